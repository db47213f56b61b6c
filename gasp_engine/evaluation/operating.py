"""Operating points: where to put the threshold, and what it then does, with intervals.

    unlabelled traffic   flag the least supported q of all spans
    labelled spans       reach a precision, a recall, the best F1, the least cost
    conformal            miss at most a share of the unsupported spans, in expectation

Every span is flagged whose score is above the threshold. Intervals resample answers; the threshold
is chosen anew in every resample and tried on the answers that the resample left out, so that they
say what a threshold found in this way does on data that it has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .quality import quality

Interval = tuple[float, float] | None
"""2.5th and 97.5th percentile; None where it cannot be measured."""
Chooser = Callable[[np.ndarray, np.ndarray | None], float]
"""(scores [N], labels [N] or None) -> threshold."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A threshold and what it does."""

    name: str
    """Such as `budget=0.1` or `precision=0.5`."""
    threshold: float
    """Scores above it are flagged."""
    flag_rate: float
    """Share of the spans flagged."""
    flag_rate_interval: Interval = None
    """On answers that were not seen."""
    precision: float | None = None
    """Share of the flagged that are unsupported; None without labels, or when none is flagged."""
    precision_interval: Interval = None
    """On answers that were not seen."""
    recall: float | None = None
    """Share of the unsupported that are flagged."""
    recall_interval: Interval = None
    """On answers that were not seen."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def budget(share: float) -> Chooser:
    """Flag the least supported `share` of all spans; ties at the threshold are not flagged."""
    _check_share(share, "budget")

    def choose(scores: np.ndarray, labels: np.ndarray | None) -> float:
        rank = min(int(share * len(scores) + 1e-9), len(scores) - 1)
        return float(np.sort(scores)[::-1][rank])

    return choose


def target_precision(target: float) -> Chooser:
    """The lowest threshold at which enough of the flagged are unsupported.

    A handful of flags says nothing of precision: only thresholds that flag at least 1 % of the
    spans, and at least 10 where there are 50, are considered. Where none reaches the target, the
    most precise of them is taken; the point's own precision then says so.
    """
    _check_share(target, "target precision")

    def choose(scores: np.ndarray, labels: np.ndarray | None) -> float:
        cuts, flagged, right, _ = _sweep(scores, labels)
        enough = flagged >= (max(10, 0.01 * len(scores)) if len(scores) >= 50 else 1)
        good = np.flatnonzero(enough & (right >= target * flagged))
        if good.size:
            return float(cuts[good[-1]])
        return float(cuts[int(np.argmax(np.where(enough, right / flagged, -1.0)))])

    return choose


def target_recall(target: float) -> Chooser:
    """The highest threshold that flags enough of the unsupported spans of this data."""
    _check_share(target, "target recall")

    def choose(scores: np.ndarray, labels: np.ndarray | None) -> float:
        cuts, _, right, total = _sweep(scores, labels)
        return float(cuts[np.flatnonzero(right >= target * total)[0]])

    return choose


def best_f1() -> Chooser:
    """The threshold with the highest F1."""

    def choose(scores: np.ndarray, labels: np.ndarray | None) -> float:
        cuts, flagged, right, total = _sweep(scores, labels)
        return float(cuts[int(np.argmax(2 * right / (flagged + total)))])

    return choose


def least_cost(ratio: float) -> Chooser:
    """The threshold of least cost when a miss costs `ratio` times a false flag."""
    if not ratio > 0:
        raise InputError(f"the cost ratio must be above 0, got {ratio!r}")

    def choose(scores: np.ndarray, labels: np.ndarray | None) -> float:
        cuts, flagged, right, total = _sweep(scores, labels)
        cost = ratio * (total - right) + (flagged - right)
        if float(cost.min()) >= ratio * total:
            return float(scores.max())  # flagging nothing is cheapest
        return float(cuts[int(np.argmin(cost))])

    return choose


def conformal_recall(target: float) -> Chooser:
    """A threshold that misses at most 1 − `target` of unsupported spans in expectation.

    Split conformal prediction: with n unsupported calibration spans, exchangeable with a new one,
    the k-th smallest of their scores with k = ⌊(n + 1)(1 − target)⌋ is missed with probability
    at most k / (n + 1). Where k = 0 everything is flagged. Honest only as far as spans of one
    answer are exchangeable; expect to flag a lot.
    """
    _check_share(target, "target recall")

    def choose(scores: np.ndarray, labels: np.ndarray | None) -> float:
        own = np.sort(scores[_labels(labels) == 1])
        k = math.floor((len(own) + 1) * (1.0 - target))
        return float(np.nextafter(own[k - 1], -np.inf)) if k else float(-np.finfo(np.float64).max)

    return choose


def operating_point(
    name: str,
    choose: Chooser,
    scores: Sequence[float] | np.ndarray,
    groups: Sequence[object] | np.ndarray,
    labels: Sequence[int] | np.ndarray | None = None,
    *,
    n: int = 500,
    seed: int = 0,
) -> OperatingPoint:
    """Choose a threshold and say what it does.

    Args:
        name: of the point.
        choose: finds the threshold.
        scores: [N] of the spans.
        groups: [N] the answer of each span.
        labels: [N] 1 = unsupported; None: unlabelled.
        n: resamples for the intervals.
        seed: of the generator.

    Raises:
        InputError: no spans, or labels of one kind only.
    """
    values = np.asarray(scores, dtype=np.float64)
    marks = None if labels is None else np.asarray(labels).astype(np.int64)
    if not values.size:
        raise InputError("there are no scored spans to calibrate on")
    if marks is not None and len(set(marks.tolist())) < 2:
        raise InputError(
            "calibration needs supported and unsupported spans; all labels are the same. Label "
            "more answers, or calibrate without labels for a budget"
        )
    threshold = choose(values, marks)
    rates = _resampled(choose, values, marks, np.asarray(groups), n, seed)
    own = quality(np.zeros(len(values)) if marks is None else marks, values, threshold)
    return OperatingPoint(
        name,
        threshold,
        own.flag_rate,
        _interval(rates[:, 0]),
        None if marks is None else own.precision,
        None if marks is None else _interval(rates[:, 1]),
        None if marks is None else own.recall,
        None if marks is None else _interval(rates[:, 2]),
    )


def platt(scores: np.ndarray, labels: np.ndarray, *, steps: int = 100) -> tuple[float, float]:
    """(a, b) of probability = 1 / (1 + exp(−(a·score + b))), by Newton's method.

    Labels are smoothed as Platt (1999) does, so that separable data gives finite numbers; a is
    held to be at least 0, since a higher score never means better supported.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    positive = y.sum()
    high, low = (positive + 1) / (positive + 2), 1 / (len(y) - positive + 2)
    target = np.where(y > 0, high, low)
    a, b = 0.0, math.log((positive + 1) / (len(y) - positive + 1))
    for _ in range(steps):
        p = 1.0 / (1.0 + np.exp(-np.clip(a * x + b, -35, 35)))
        weight = np.maximum(p * (1 - p), 1e-9)
        gradient = np.array([((p - target) * x).sum(), (p - target).sum()])
        hessian = np.array([[(weight * x * x).sum(), (weight * x).sum()], [0.0, weight.sum()]])
        hessian[1, 0] = hessian[0, 1]
        step = np.linalg.solve(hessian + 1e-9 * np.eye(2), gradient)
        a, b = a - float(step[0]), b - float(step[1])
        if float(np.abs(step).max()) < 1e-10:
            break
    return (a, b) if a > 0 else (0.0, math.log((positive + 1) / (len(y) - positive + 1)))


def _sweep(
    scores: np.ndarray, labels: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Every useful threshold from high to low: (threshold, spans flagged, of these right), total.

    Thresholds lie between neighbouring values, so that nothing depends on ties.
    """
    y = _labels(labels)
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(y[order])
    last = np.flatnonzero(np.append(np.diff(ranked) != 0, True))
    below = np.append(ranked[last[:-1] + 1], ranked[-1] - 1.0)
    return (ranked[last] + below) / 2, (last + 1).astype(np.float64), right[last], int(y.sum())


def _labels(labels: np.ndarray | None) -> np.ndarray:
    if labels is None:
        raise InputError("this operating point needs labels; without them choose a budget")
    return labels


def _resampled(
    choose: Chooser,
    scores: np.ndarray,
    labels: np.ndarray | None,
    groups: np.ndarray,
    n: int,
    seed: int,
) -> np.ndarray:
    """[n, 3] flag rate, precision and recall on the answers that a resample left out."""
    names, member = np.unique(groups, return_inverse=True)
    rows_of = [np.flatnonzero(member == g) for g in range(len(names))]
    rng = np.random.default_rng(seed)
    rates = np.full((n, 3), np.nan)
    for i in range(n):
        drawn = rng.integers(0, len(names), len(names))
        left = np.setdiff1d(np.arange(len(names)), drawn)
        if not left.size:
            continue
        seen = np.concatenate([rows_of[g] for g in drawn])
        new = np.concatenate([rows_of[g] for g in left])
        marks = None if labels is None else labels[seen]
        if marks is not None and len(set(marks.tolist())) < 2:
            continue
        threshold = choose(scores[seen], marks)
        own = quality(np.zeros(len(new)) if labels is None else labels[new], scores[new], threshold)
        rates[i] = (
            own.flag_rate,
            np.nan if own.precision is None else own.precision,
            np.nan if own.recall is None else own.recall,
        )
    return rates


def _interval(values: np.ndarray) -> Interval:
    known = values[~np.isnan(values)]
    if known.size < 20:
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


def _check_share(value: float, name: str) -> None:
    if not 0.0 < value < 1.0:
        raise InputError(f"the {name} must lie between 0 and 1, got {value!r}")
