"""Area under the ROC curve, its bootstrap by group, and paired comparisons on the same resamples.

    AUC = Pr[ score of a positive > score of a negative ], ties count half        (4)

A resample draws whole groups (answers) with replacement, so that sentences of one answer stay
together. All scores that are compared go through one `Bootstrap` and so through the same resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InputError

_CELLS = 4_000_000
"""Resamples are taken in blocks of about this many weights, to bound memory."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An AUC with its uncertainty; all None where one class is missing."""

    value: float | None
    """Mean over the resamples, which is what the paper's tables report."""
    low: float | None
    """2.5th percentile of the resamples."""
    high: float | None
    """97.5th percentile."""
    point: float | None
    """Computed once, on the data as they are."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two scores on the same resamples."""

    difference: float | None
    """Mean of AUC(a) − AUC(b)."""
    low: float | None
    """2.5th percentile."""
    high: float | None
    """97.5th percentile."""
    p: float | None
    """Share of resamples in which a is not above b; one-sided, never below 1 / (B + 1)."""


def auc(labels: Sequence[int] | np.ndarray, scores: Sequence[float] | np.ndarray) -> float | None:
    """The AUC of Eq. 4; None where one class is missing.

    >>> auc([0, 1, 1], [0.1, 0.1, 0.9])
    0.75
    """
    y, s = _checked(labels, scores)
    values = _weighted_auc(np.ones((1, len(y))), y, s)
    return None if np.isnan(values[0]) else float(values[0])


class Bootstrap:
    """Resamples of groups, shared by every score that is measured on the same rows.

    >>> boot = Bootstrap([0, 1, 0, 1], ["a", "a", "b", "b"], n=50)
    >>> boot.estimate([0.1, 0.9, 0.2, 0.8]).value
    1.0
    """

    def __init__(
        self,
        labels: Sequence[int] | np.ndarray,
        groups: Sequence[object] | np.ndarray,
        *,
        n: int = 1000,
        seed: int = 0,
    ) -> None:
        """Draw the resamples.

        Args:
            labels: [N] 1 = unsupported.
            groups: [N] the answer that each row comes from.
            n: B, resamples.
            seed: of the generator; equal seeds give equal resamples.
        """
        self.labels = np.asarray(labels).astype(np.int64)
        names, member = np.unique(np.asarray(groups), return_inverse=True)
        if len(member) != len(self.labels):
            raise InputError(f"{len(self.labels)} labels but {len(member)} groups")
        self._member = member
        self._n_groups = len(names)
        self._n = n
        self._seed = seed

    @cached_property
    def _counts(self) -> np.ndarray:
        """[B, G] how often each group is drawn in each resample."""
        rng = np.random.default_rng(self._seed)
        counts = np.zeros((self._n, self._n_groups), dtype=np.int32)
        for row in counts:
            drawn = rng.integers(0, self._n_groups, self._n_groups)
            row += np.bincount(drawn, minlength=self._n_groups).astype(np.int32)
        return counts

    def _blocks(self) -> Iterator[np.ndarray]:
        size = max(1, _CELLS // max(1, len(self._member)))
        for start in range(0, self._n, size):
            yield self._counts[start : start + size][:, self._member].astype(np.float64)

    def values(self, scores: Sequence[float] | np.ndarray) -> np.ndarray:
        """[B] AUC of every resample; NaN where one lacks a class."""
        y, s = _checked(self.labels, scores)
        if self._n_groups == 0:
            return np.full(self._n, np.nan)
        return np.concatenate([_weighted_auc(weights, y, s) for weights in self._blocks()])

    def estimate(self, scores: Sequence[float] | np.ndarray) -> Estimate:
        """The AUC of one score with its 95 % percentile interval."""
        point = auc(self.labels, scores)
        values = self.values(scores)
        values = values[~np.isnan(values)]
        if point is None or not values.size:
            return Estimate(None, None, None, point)
        low, high = np.percentile(values, [2.5, 97.5])
        return Estimate(float(values.mean()), float(low), float(high), point)

    def compare(
        self, a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray
    ) -> Comparison:
        """Whether score `a` ranks better than score `b`."""
        difference = self.values(a) - self.values(b)
        difference = difference[~np.isnan(difference)]
        if not difference.size:
            return Comparison(None, None, None, None)
        low, high = np.percentile(difference, [2.5, 97.5])
        p = max(float((difference <= 0).mean()), 1.0 / (difference.size + 1))
        return Comparison(float(difference.mean()), float(low), float(high), p)


def _checked(
    labels: Sequence[int] | np.ndarray, scores: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    y = np.asarray(labels).astype(np.int64)
    s = np.asarray(scores, dtype=np.float64)
    if y.shape != s.shape or y.ndim != 1:
        raise InputError(f"labels and scores must be as long, got {y.shape} and {s.shape}")
    bad = np.flatnonzero(~np.isfinite(s))
    if bad.size:
        raise InputError(f"score {bad[0]} is {s[bad[0]]}; scores must be finite")
    if y.size and not np.isin(y, (0, 1)).all():
        raise InputError("labels must be 0 (supported) or 1 (unsupported)")
    return y, s


def _weighted_auc(weights: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """[B] AUC with every row counted `weights[b, row]` times."""
    if not labels.size:
        return np.full(len(weights), np.nan)
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    w = weights[:, order]
    y = labels[order]
    positive = np.add.reduceat(w * y, starts, axis=1)
    negative = np.add.reduceat(w * (1 - y), starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    wins = (positive * (below + 0.5 * negative)).sum(axis=1)
    return np.divide(wins, pairs, out=np.full(len(w), np.nan), where=pairs > 0)
