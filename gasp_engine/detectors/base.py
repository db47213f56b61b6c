"""One protocol for everything that turns features into scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..features import SpanFeatures


class Detector(Protocol):
    """Features of all spans of one answer in, scores out; higher = less supported, everywhere."""

    @property
    def name(self) -> str:
        """Goes into the report and into profiles."""
        ...

    @property
    def fallback_threshold(self) -> float:
        """Scores above it are flagged where no calibration profile says otherwise."""
        ...

    def score(self, spans: Sequence[SpanFeatures]) -> np.ndarray:
        """[S] float64, finite. Spans are those of one answer, since a detector may pool them.

        Raises:
            NotFittedError: the detector needs statistics or a model that it was not given.
            InputError: a feature that it needs was not measured; names it.
        """
        ...

    def pool(self, scores: np.ndarray) -> float:
        """[S] span scores, S ≥ 1 -> the score of the answer."""
        ...


def mean_of_weakest(scores: np.ndarray, n: int = 2) -> float:
    """Mean of the `n` highest scores: an answer is as good as its weakest sentences."""
    return float(np.sort(scores)[-n:].mean())
