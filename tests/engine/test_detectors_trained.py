"""The trained detector: laws, files, and what a damaged file says (hard input 36)."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from gasp_engine.detectors.paper import PAPER_FEATURES, PaperDetector
from gasp_engine.detectors.trained import (
    FEATURE_SETS,
    MODEL_FILE,
    TrainedDetector,
    answer_matrix,
)
from gasp_engine.errors import InputError, ModelLoadError, NotFittedError
from gasp_engine.evaluation.training import fit_trained, table_of
from gasp_engine.features import SpanFeatures, explained


def span(surprisal: float, gap: float, drops: tuple[float, ...], n: int = 12) -> SpanFeatures:
    """Features of a span, with divergences that follow the likelihoods."""
    return SpanFeatures(
        n_tokens=n,
        surprisal=surprisal,
        surprisal_none=surprisal + gap,
        gap=gap,
        jsd_none=min(0.69, 0.1 * abs(gap)),
        explained=explained(surprisal, surprisal + gap),
        drop_max=max(drops),
        jsd_loo_max=min(0.69, 0.1 * abs(max(drops))),
        drops=drops,
        jsds=tuple(min(0.69, 0.1 * abs(d)) for d in drops),
    )


def corpus(n_answers: int = 60, seed: int = 0) -> tuple[list[list[SpanFeatures]], list[list[int]]]:
    """Answers of two to five spans; unsupported spans lean less on the sources."""
    rng = np.random.default_rng(seed)
    answers: list[list[SpanFeatures]] = []
    labels: list[list[int]] = []
    for _ in range(n_answers):
        bad = (rng.random(rng.integers(2, 6)) < 0.3).astype(int)
        answers.append(
            [
                span(
                    float(rng.gamma(4, 0.4)),
                    float(abs(rng.normal(0.4 if b else 1.5, 0.5))),
                    tuple(float(d) for d in rng.normal(0.1 if b else 0.5, 0.4, 4)),
                    int(rng.integers(3, 40)),
                )
                for b in bad
            ]
        )
        labels.append(bad.tolist())
    return answers, labels


@pytest.fixture(scope="module")
def detector() -> TrainedDetector:
    answers, labels = corpus()
    table = table_of(answers, labels, range(len(answers)), FEATURE_SETS["place"])
    return fit_trained(table, feature_set="place").detector


@pytest.fixture
def saved(detector: TrainedDetector, tmp_path: Path) -> Path:
    detector.save(tmp_path / "detector")
    return tmp_path / "detector"


def test_the_numpy_trees_say_what_lightgbm_says(detector: TrainedDetector) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    answers, _ = corpus(40, seed=9)
    matrix = np.concatenate([answer_matrix(a, detector.trees.names) for a in answers])
    matrix[::7, 0] = np.nan
    matrix[::5, 6] = 0.0
    booster = lightgbm.Booster(model_str=detector.model_text)
    theirs = booster.predict(matrix, raw_score=True, num_threads=1)
    assert detector.trees.margin(matrix) == pytest.approx(theirs, abs=1e-9)


def test_a_model_read_back_scores_the_same(detector: TrainedDetector, saved: Path) -> None:
    answers, _ = corpus(5, seed=3)
    again = TrainedDetector.load(saved)
    for spans in answers:
        assert again.score(spans) == pytest.approx(detector.score(spans), abs=1e-12)
    assert (again.threshold, again.platt) == (detector.threshold, detector.platt)


def test_scores_are_probabilities_and_an_answer_without_spans_has_none(
    detector: TrainedDetector,
) -> None:
    answers, _ = corpus(10, seed=4)
    scores = np.concatenate([detector.score(spans) for spans in answers])
    assert ((scores >= 0) & (scores <= 1)).all()
    assert detector.score([]).shape == (0,)


def test_leaning_more_on_the_sources_never_raises_the_score(detector: TrainedDetector) -> None:
    names = detector.trees.names
    answers, _ = corpus(30, seed=5)
    matrix = np.concatenate([answer_matrix(spans, names) for spans in answers])
    for name in ("gap", "jsd_none", "explained", "drop_max", "answer_gap", "drops_up"):
        more = matrix.copy()
        more[:, names.index(name)] += 0.4
        before, after = (detector.predict_matrix(m, names) for m in (matrix, more))
        assert (after <= before + 1e-12).all(), name


def test_supported_and_unsupported_spans_are_told_apart(detector: TrainedDetector) -> None:
    answers, labels = corpus(40, seed=6)
    scores = np.concatenate([detector.score(spans) for spans in answers])
    marks = np.concatenate([np.array(row) for row in labels]).astype(bool)
    assert scores[marks].mean() > scores[~marks].mean() + 0.2


def test_the_first_half_of_a_model_file_is_refused_by_path(saved: Path) -> None:
    path = saved / MODEL_FILE
    text = path.read_text()
    for cut in (len(text) // 2, len(text) // 10, len(text) - len(text) // 4):
        path.write_text(text[:cut])
        with pytest.raises(ModelLoadError, match=r"model\.txt"):
            TrainedDetector.load(saved)


@pytest.mark.parametrize("content", ("", "  \n", "tree\nnothing\nend of trees\n", "{}"))
def test_an_empty_or_foreign_model_file_is_refused_by_path(saved: Path, content: str) -> None:
    (saved / MODEL_FILE).write_text(content)
    with pytest.raises(ModelLoadError, match=r"model\.txt"):
        TrainedDetector.load(saved)


def test_a_missing_folder_is_refused_by_path(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="nowhere"):
        TrainedDetector.load(tmp_path / "nowhere")


def test_a_model_with_one_feature_fewer_says_what_it_expected_and_got(
    detector: TrainedDetector, saved: Path
) -> None:
    about = json.loads((saved / "detector.json").read_text())
    about["features"] = about["features"][:-1]
    (saved / "detector.json").write_text(json.dumps(about))
    with pytest.raises(ModelLoadError, match="expected 32 features, got 33"):
        TrainedDetector.load(saved)
    names = detector.trees.names
    with pytest.raises(InputError, match=f"expected {len(names)} features, got {len(names) - 1}"):
        detector.predict_matrix(np.zeros((2, len(names) - 1)), names[:-1])


def test_features_in_another_order_are_named_at_the_first_mismatch(
    detector: TrainedDetector, saved: Path
) -> None:
    about = json.loads((saved / "detector.json").read_text())
    names = about["features"]
    names[2], names[3] = names[3], names[2]
    (saved / "detector.json").write_text(json.dumps(about))
    with pytest.raises(ModelLoadError, match="feature 2 is 'drop_max', expected 'jsd_loo_max'"):
        TrainedDetector.load(saved)
    with pytest.raises(InputError, match="feature 2 is 'jsd_loo_max', expected 'drop_max'"):
        detector.predict_matrix(np.zeros((1, len(names))), names)


def test_a_model_file_that_was_altered_is_refused(saved: Path) -> None:
    path = saved / MODEL_FILE
    path.write_text(path.read_text() + "\n")
    with pytest.raises(ModelLoadError, match="hash"):
        TrainedDetector.load(saved)


def _score_in_worker(folder: str, queue: object) -> None:
    spans = corpus(1, seed=8)[0][0]
    queue.put(TrainedDetector.load(folder).score(spans).tolist())  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_worker_ends_after_the_parent_trained_and_predicted(
    detector: TrainedDetector, saved: Path
) -> None:
    pytest.importorskip("torch")
    spans = corpus(1, seed=8)[0][0]
    here = detector.score(spans)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    worker = context.Process(target=_score_in_worker, args=(str(saved), queue))
    worker.start()
    there = queue.get(timeout=30)
    worker.join(timeout=30)
    assert worker.exitcode == 0
    assert there == pytest.approx(here.tolist(), abs=1e-12)


def test_a_feature_that_was_not_measured_is_named(detector: TrainedDetector) -> None:
    spans = [
        SpanFeatures(5, 1.0, 2.0, 1.0, 0.1, 0.5),
    ]
    with pytest.raises(InputError, match="drop_max"):
        detector.score(spans)
    with pytest.raises(InputError, match="drop_max"):
        PaperDetector({n: (0.0, 1.0) for n in PAPER_FEATURES}).score(spans)


def test_the_paper_detector_is_the_negated_sum_of_standard_scores() -> None:
    answers, _ = corpus(8, seed=2)
    spans = [s for a in answers for s in a]
    detector = PaperDetector.fit(spans)
    values = np.array([[getattr(s, n) for n in PAPER_FEATURES] for s in spans])
    expected = -((values - values.mean(0)) / values.std(0)).sum(1)
    assert detector.score(spans) == pytest.approx(expected)
    assert detector.score(spans[:3]) == pytest.approx(expected[:3])


def test_the_paper_detector_without_statistics_says_what_it_lacks() -> None:
    with pytest.raises(NotFittedError, match="jsd_loo_max"):
        PaperDetector({"gap": (0.0, 1.0)})


def test_a_feature_that_never_varies_adds_nothing() -> None:
    spans = [span(1.0, 0.5, (0.1, 0.1)), span(2.0, 0.5, (0.1, 0.1))]
    assert PaperDetector.fit(spans).score(spans).tolist() == [0.0, 0.0]
