"""AUC, bootstrap, folds and the protocol that refuses leaks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gasp_engine.errors import InputError, LeakageError
from gasp_engine.evaluation import (
    Bootstrap,
    Fold,
    Table,
    auc,
    expected_calibration_error,
    make_folds,
    out_of_fold,
    quality,
)
from gasp_engine.evaluation.protocol import check_unseen
from gasp_engine.evaluation.training import FittedSum, fit_paper, fit_sum, fit_trained

FOUR = ("gap", "jsd_none", "drop_max", "jsd_loo_max")


def make_table(n_answers: int = 40, seed: int = 0) -> Table:
    """Three spans an answer; a small gap makes a span unsupported more often."""
    rng = np.random.default_rng(seed)
    n = 3 * n_answers
    features = rng.normal(size=(n, 4))
    labels = (features[:, 0] + rng.normal(size=n) < -0.3).astype(int)
    return Table(features, FOUR, labels, np.repeat(np.arange(n_answers), 3))


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=2, max_size=40).filter(
        lambda rows: len({y for y, _ in rows}) == 2
    )
)
def test_auc_is_the_share_of_pairs_in_order_with_ties_as_half(rows: list[tuple[int, int]]) -> None:
    good = [s for y, s in rows if y == 0]
    bad = [s for y, s in rows if y == 1]
    wins = sum((b > g) + 0.5 * (b == g) for b in bad for g in good)
    found = auc([y for y, _ in rows], [s for _, s in rows])
    assert found == pytest.approx(wins / (len(bad) * len(good)))


def test_auc_of_one_class_is_none() -> None:
    assert auc([1, 1], [0.1, 0.2]) is None
    assert auc([], []) is None
    estimate = Bootstrap([1, 1], [0, 1]).estimate([0.1, 0.2])
    assert (estimate.value, estimate.low, estimate.point) == (None, None, None)


@pytest.mark.parametrize("scores", ([0.1, float("nan")], [0.1], [float("inf"), 0.2]))
def test_scores_that_cannot_be_ranked_are_refused(scores: list[float]) -> None:
    with pytest.raises(InputError):
        auc([0, 1], scores)


def test_a_bootstrap_draws_whole_answers() -> None:
    """Copies of a span leave the interval as it is where answers are drawn, not where spans are."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 60)
    scores = labels + rng.normal(size=60)
    copied = np.repeat(np.arange(60), 20)
    by_answer = Bootstrap(labels[copied], copied, n=300).estimate(scores[copied])
    by_span = Bootstrap(labels[copied], np.arange(1200), n=300).estimate(scores[copied])
    once = Bootstrap(labels, np.arange(60), n=300).estimate(scores)
    assert None not in (by_answer.low, by_answer.high, by_span.low, by_span.high, once.low)
    assert by_answer.high - by_answer.low > 3 * (by_span.high - by_span.low)  # type: ignore[operator]
    assert (by_answer.low, by_answer.high) == pytest.approx((once.low, once.high))


def test_a_comparison_is_paired_and_its_p_is_never_zero() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 200)
    weak = labels + 3 * rng.normal(size=200)
    boot = Bootstrap(labels, np.arange(200), n=200)
    same = boot.compare(weak, weak)
    assert (same.difference, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
    better = boot.compare(weak + 3 * labels, weak)
    assert better.low is not None
    assert better.low > 0
    assert better.p == pytest.approx(1 / 201)


def test_equal_seeds_give_equal_intervals() -> None:
    table = make_table()
    scores = -table.features[:, 0]
    one, two = (Bootstrap(table.labels, table.groups, n=50).estimate(scores) for _ in range(2))
    assert one == two


def test_folds_keep_answers_together_and_cover_every_row_once() -> None:
    table = make_table()
    folds = make_folds(table.labels, table.groups)
    assert len(folds) == 5
    assert sorted(np.concatenate([f.test for f in folds]).tolist()) == list(range(120))
    for fold in folds:
        assert not set(table.groups[fold.train]) & set(table.groups[fold.test])


def test_folds_are_fewer_where_a_class_is_rare_and_refused_where_it_is_in_one_answer() -> None:
    groups = np.repeat(np.arange(10), 2)
    labels = np.zeros(20, dtype=int)
    labels[[0, 4, 8]] = 1
    assert len(make_folds(labels, groups)) == 3
    labels[[4, 8]] = 0
    with pytest.raises(InputError, match="two groups of each class"):
        make_folds(labels, groups)


def test_folds_that_split_an_answer_are_a_leak() -> None:
    table = make_table()
    odd = np.arange(120) % 2 == 1
    folds = [Fold(np.flatnonzero(odd), np.flatnonzero(~odd))]
    with pytest.raises(LeakageError, match="training part of a fold"):
        out_of_fold(fit_sum, table, folds)


def test_statistics_of_the_whole_file_are_a_leak() -> None:
    table = make_table()
    folds = make_folds(table.labels, table.groups)

    def planted(train: Table) -> FittedSum:
        """Looks harmless, but standardizes over everything."""
        return fit_sum(table)

    with pytest.raises(LeakageError, match="FittedSum has seen"):
        out_of_fold(planted, table, folds)
    assert np.isfinite(out_of_fold(fit_sum, table, folds)).all()


def test_a_classifier_that_saw_a_test_answer_is_a_leak() -> None:
    table = make_table()
    folds = make_folds(table.labels, table.groups)

    def planted(train: Table) -> object:
        return fit_paper(table.take(np.arange(3, 120)))

    with pytest.raises(LeakageError, match="FittedClassifier has seen"):
        out_of_fold(planted, table, folds)  # type: ignore[arg-type]


def test_a_threshold_is_checked_like_any_other_fit() -> None:
    check_unseen(frozenset({1, 2}), frozenset({3}), "the threshold")
    with pytest.raises(LeakageError, match="the threshold has seen 1 of the 2 groups"):
        check_unseen(frozenset({1, 2}), frozenset({2, 3}), "the threshold")


def test_out_of_fold_statistics_come_from_the_training_rows_alone() -> None:
    table = make_table()
    folds = make_folds(table.labels, table.groups)
    scores = out_of_fold(fit_sum, table, folds)
    train = table.features[folds[0].train]
    first = table.features[folds[0].test]
    expected = -((first - train.mean(0)) / train.std(0)).sum(1)
    assert scores[folds[0].test] == pytest.approx(expected)


def test_a_trained_detector_remembers_what_it_saw() -> None:
    table = make_table()
    fitted = fit_trained(table, feature_set="four")
    assert fitted.seen == table.group_set == fitted.detector.seen


@settings(max_examples=30)
@given(st.integers(1, 50), st.integers(0, 10_000))
def test_calibration_error_is_0_for_true_frequencies_and_at_most_1(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    assert expected_calibration_error(labels, labels) == 0.0
    assert expected_calibration_error(labels, 1 - labels) > 0.0
    assert expected_calibration_error(np.zeros(n), np.ones(n)) == 1.0
    assert 0.0 <= expected_calibration_error(labels, rng.random(n)) <= 1.0


def test_quality_of_a_threshold_that_flags_nothing_has_no_precision() -> None:
    found = quality([0, 1], [0.1, 0.2], 0.9)
    assert (found.precision, found.recall, found.f1, found.flag_rate) == (None, 0.0, 0.0, 0.0)
