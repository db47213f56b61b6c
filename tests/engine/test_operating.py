"""Thresholds do on new answers what they promise, within the interval that they state."""

import csv
from pathlib import Path

import numpy as np
import pytest

from gasp_engine.errors import InputError
from gasp_engine.evaluation.operating import (
    best_f1,
    budget,
    conformal_recall,
    least_cost,
    operating_point,
    platt,
    target_precision,
    target_recall,
)
from gasp_engine.evaluation.quality import quality

RELEASED = Path(__file__).parents[2] / ".." / "shared" / "data" / "released"
SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
LABELS = np.array([0, 0, 0, 1, 0, 0, 1, 0, 1, 1])


def flags(choose, labels=LABELS, scores=SCORES):
    return (scores > choose(scores, labels)).tolist().count(True)


def test_a_budget_flags_its_share_and_no_more():
    assert flags(budget(0.2), None) == 2
    assert flags(budget(0.5), None) == 5
    assert flags(budget(0.2), None, np.zeros(10)) == 0


def test_a_target_precision_flags_as_much_as_it_may():
    assert flags(target_precision(0.9)) == 2
    assert quality(LABELS, SCORES, target_precision(0.5)(SCORES, LABELS)).precision >= 0.5


def test_a_target_recall_flags_as_little_as_it_may():
    assert flags(target_recall(0.5)) == 2
    assert flags(target_recall(0.99)) == 7


def test_the_best_f1_is_the_best_of_all_thresholds():
    found = quality(LABELS, SCORES, best_f1()(SCORES, LABELS)).f1
    assert found == pytest.approx(max(quality(LABELS, SCORES, t - 0.05).f1 for t in SCORES))


def test_dear_misses_flag_more_and_cheap_ones_less():
    assert flags(least_cost(100.0)) == 7
    assert flags(least_cost(0.01)) <= flags(least_cost(1.0)) <= flags(least_cost(100.0))


def test_conformal_recall_holds_in_expectation_and_flags_all_when_there_is_too_little_data():
    rng = np.random.default_rng(0)
    missed = []
    for _ in range(400):
        scores = rng.normal(size=41)
        threshold = conformal_recall(0.8)(scores[:-1], np.ones(40, dtype=int))
        missed.append(scores[-1] <= threshold)
    assert np.mean(missed) <= 0.2 + 0.04
    assert flags(conformal_recall(0.9)) == 10


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, float("nan")])
def test_shares_outside_0_and_1_are_refused(value):
    for make in (budget, target_precision, target_recall, conformal_recall):
        with pytest.raises(InputError, match="between 0 and 1"):
            make(value)


def test_labels_of_one_kind_and_no_spans_are_refused():
    with pytest.raises(InputError, match="all labels are the same"):
        operating_point("f1", best_f1(), SCORES, range(10), np.zeros(10))
    with pytest.raises(InputError, match="no scored spans"):
        operating_point("f1", best_f1(), [], [])
    with pytest.raises(InputError, match="needs labels"):
        operating_point("f1", best_f1(), SCORES, range(10))


def test_platt_recovers_the_curve_that_made_the_labels():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=20000)
    labels = rng.random(20000) < 1 / (1 + np.exp(-(1.7 * scores - 1.0)))
    assert platt(scores, labels) == pytest.approx((1.7, -1.0), abs=0.08)


def test_platt_never_says_that_a_higher_score_is_better_supported():
    a, b = platt(-SCORES, LABELS)
    assert a == 0.0
    assert 1 / (1 + np.exp(-b)) == pytest.approx(5 / 12, abs=0.01)


def published(folder):
    """Scores, labels and answers of a published file: unexplained share of the surprisal."""
    path = RELEASED / folder / "sentence.csv"
    if not path.exists():
        pytest.skip("the published features are not here")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    surprisal, gap = (np.array([float(r[k]) for r in rows]) for k in ("mean_surprisal", "gap"))
    scores = 1 - np.clip(gap / np.maximum(surprisal + gap, 1e-6), -1, 1)
    labels = np.array([int(r["label"]) for r in rows])
    return -(1 - scores), labels, np.array([r["resp_id"] for r in rows])


@pytest.mark.parametrize("folder", ["Qwen2.5-0.5B-Instruct_K5", "Qwen2.5-1.5B-Instruct_K5"])
def test_calibrating_on_half_of_the_answers_holds_on_the_other_half(folder):
    """A 95 % interval covers what happens on the other half in at least 85 % of 20 halvings."""
    scores, labels, groups = published(folder)
    names = np.unique(groups)
    held = []
    for seed in range(20):
        half = np.random.default_rng(seed).permutation(names)[: len(names) // 2]
        own = np.isin(groups, half)
        data = scores[own], groups[own], labels[own]
        point = operating_point("b", budget(0.15), *data, n=200)
        assert point.flag_rate == pytest.approx(0.15, abs=0.01)
        new = quality(labels[~own], scores[~own], point.threshold)
        precise = operating_point("p", target_precision(0.5), *data, n=200)
        other = quality(labels[~own], scores[~own], precise.threshold)
        held.append(
            [
                within(new.flag_rate, point.flag_rate_interval),
                within(new.precision, point.precision_interval),
                within(new.recall, point.recall_interval),
                within(other.precision, precise.precision_interval),
            ]
        )
    assert np.mean(held, axis=0).min() >= 0.85


def within(value, interval):
    return value is not None and interval[0] <= value <= interval[1]
