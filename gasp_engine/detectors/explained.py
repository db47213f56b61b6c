"""The share of a span's surprisal that the sources explain, turned over; needs no calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..features import SpanFeatures
from .base import mean_of_weakest


class ExplainedDetector:
    """score = 1 − explained, in [0, 2]: 1 when the sources explain nothing, 0 when all."""

    name = "explained"
    fallback_threshold = 0.75
    """Flags a span of whose surprisal the sources explain less than a quarter. A rule of thumb."""

    def score(self, spans: Sequence[SpanFeatures]) -> np.ndarray:
        """[S] scores."""
        return np.array([1.0 - span.explained for span in spans], dtype=np.float64)

    def pool(self, scores: np.ndarray) -> float:
        """Mean of the two weakest spans."""
        return mean_of_weakest(scores)
