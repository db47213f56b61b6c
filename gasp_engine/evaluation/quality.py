"""What a threshold or a probability is worth on labelled spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Quality:
    """Counts and rates of one operating point."""

    n: int
    """Spans."""
    flagged: int
    """Spans above the threshold."""
    unsupported: int
    """Spans that are labelled unsupported."""
    precision: float | None
    """Share of the flagged that are unsupported; None when nothing is flagged."""
    recall: float | None
    """Share of the unsupported that are flagged; None when there are none."""
    f1: float
    """Harmonic mean of both, 0 when nothing right is flagged."""

    @property
    def flag_rate(self) -> float:
        """Share of all spans that is flagged."""
        return self.flagged / self.n if self.n else 0.0


def quality(
    labels: Sequence[int] | np.ndarray, scores: Sequence[float] | np.ndarray, threshold: float
) -> Quality:
    """Precision, recall and flag rate of `score > threshold`.

    >>> quality([0, 1, 1], [0.1, 0.4, 0.9], 0.5).recall
    0.5
    """
    y = np.asarray(labels).astype(bool)
    flags = np.asarray(scores, dtype=np.float64) > threshold
    right = int((flags & y).sum())
    flagged, unsupported = int(flags.sum()), int(y.sum())
    total = flagged + unsupported
    return Quality(
        n=len(y),
        flagged=flagged,
        unsupported=unsupported,
        precision=right / flagged if flagged else None,
        recall=right / unsupported if unsupported else None,
        f1=2 * right / total if total else 0.0,
    )


def expected_calibration_error(
    labels: Sequence[int] | np.ndarray,
    probabilities: Sequence[float] | np.ndarray,
    *,
    bins: int = 10,
) -> float:
    """Mean distance between claimed and observed frequency over bins of equal size, in [0, 1].

    >>> expected_calibration_error([0, 1], [0.0, 1.0], bins=2)
    0.0
    """
    y = np.asarray(labels, dtype=np.float64)
    p = np.asarray(probabilities, dtype=np.float64)
    if not len(y):
        return 0.0
    order = np.argsort(p, kind="stable")
    total = 0.0
    for part in np.array_split(order, min(bins, len(y))):
        total += len(part) * abs(float(p[part].mean()) - float(y[part].mean()))
    return total / len(y)
