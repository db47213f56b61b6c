"""The project's own detector: what the sources explain, and what their words hold. No training.

    score = mean of the parts that were measured + min(numbers in no source, 2)

    part        high when …                                                          from
    explained   the sources explain little of what is surprising in the content       likelihood
    surprise    some content stays surprising in spite of the sources                 likelihood
    bigrams     neighbouring content words are neighbours in no source                words
    overlap     no one place in the sources holds the sentence's content words        words

Each part is a standard score against a reference (the calibration profile's, else the embedded
scorer's), held to [−2, 2]. Four equal weights: fitted ones carried their data set along. A span
without content words is judged by its likelihood alone. Where only the paper's features are known,
`jsd_none` stands in for the surprise. How it was chosen: docs/decisions/004-detector.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..features import SpanFeatures
from .base import mean_of_weakest

Statistics = Mapping[str, tuple[float, float]]
"""Feature -> mean and standard deviation over the spans of some corpus."""

REFERENCE: Statistics = {
    "explained": (0.70, 0.18),
    "explained_content": (0.74, 0.18),
    "surprisal_top": (4.0, 2.5),
    "novel_bigrams": (0.13, 0.20),
    "overlap": (0.905, 0.155),
    "jsd_none": (0.33, 0.08),
}
"""The embedded scorer on QAGS (CNN/DM), where no profile says otherwise."""

LIMIT = 2.0
"""Standard scores are held to ± this."""
MAX_NUMBERS = 2
"""Numbers in no source that count at most; each adds 1 to the score."""


class EvidenceDetector:
    """Score 0 is an ordinary supported sentence; from about 0.9 on it is rather not supported."""

    name = "evidence"
    fallback_threshold = 0.9
    """Rather misses than cries wolf; docs/decisions/004-detector.md has what it costs."""

    def __init__(self, statistics: Statistics | None = None) -> None:
        """A detector.

        Args:
            statistics: of the features, as a profile holds them; missing ones are `REFERENCE`'s.
        """
        self._statistics = {**REFERENCE, **(statistics or {})}

    def score(self, spans: Sequence[SpanFeatures]) -> np.ndarray:
        """[S] scores; spans do not influence one another."""
        return np.array([self._one(span) for span in spans], dtype=np.float64)

    def pool(self, scores: np.ndarray) -> float:
        """Mean of the two weakest spans."""
        return mean_of_weakest(scores)

    def parts(self, span: SpanFeatures) -> dict[str, float]:
        """The parts that were measured, each in [−2, 2]; higher = less supported."""
        name = "explained" if span.explained_content is None else "explained_content"
        parts = {"explained": -self._z(name, getattr(span, name))}
        if span.surprisal_top is not None:
            parts["surprise"] = self._z("surprisal_top", span.surprisal_top)
        elif span.jsd_none is not None:
            parts["surprise"] = -self._z("jsd_none", span.jsd_none)
        if span.n_content:
            parts["overlap"] = -self._z("overlap", span.overlap)
        if span.n_content > 1:
            parts["bigrams"] = self._z("novel_bigrams", span.novel_bigrams)
        return parts

    def _one(self, span: SpanFeatures) -> float:
        parts = self.parts(span).values()
        wrong = min(span.numbers_missing, MAX_NUMBERS)
        return sum(parts) / len(parts) + wrong

    def _z(self, name: str, value: float) -> float:
        mean, deviation = self._statistics[name]
        return float(np.clip((value - mean) / deviation, -LIMIT, LIMIT)) if deviation > 0 else 0.0
