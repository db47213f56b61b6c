"""The paper's training-free detector: −Σ of its four standardized features.

    score = −[ z(gap) + z(jsd_none) + z(drop_max) + z(jsd_loo_max) ],  z(x) = (x − mean) / deviation

Mean and deviation come from a corpus of spans: a profile's statistics, or the training folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import InputError, NotFittedError
from ..features import SpanFeatures

PAPER_FEATURES = ("gap", "jsd_none", "drop_max", "jsd_loo_max")
"""Eqs. 8–11."""


class PaperDetector:
    """GASP-threshold; kept for reproduction and comparison.

    >>> detector = PaperDetector({name: (0.0, 1.0) for name in PAPER_FEATURES})
    >>> detector.name
    'paper'
    """

    name = "paper"
    needs = PAPER_FEATURES
    """Fields of `SpanFeatures` that must have been measured."""
    fallback_threshold = 0.0
    """The score of an average span."""

    def __init__(self, statistics: Mapping[str, tuple[float, float]] | None) -> None:
        """A detector.

        Args:
            statistics: per feature, mean and standard deviation over spans; others are ignored.

        Raises:
            NotFittedError: a feature's statistics are missing.
        """
        known = statistics or {}
        missing = [name for name in PAPER_FEATURES if name not in known]
        if missing:
            raise NotFittedError(
                f"the paper's detector needs mean and deviation of {', '.join(missing)}. Take them "
                f"from a profile: gasp-engine calibrate makes one"
            )
        self.statistics = {name: known[name] for name in PAPER_FEATURES}

    @classmethod
    def fit(cls, spans: Sequence[SpanFeatures]) -> PaperDetector:
        """A detector standardized over `spans`, which need no labels."""
        values = feature_matrix(spans, PAPER_FEATURES)
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        return cls(
            {
                name: (float(m), float(d))
                for name, m, d in zip(PAPER_FEATURES, mean, deviation, strict=True)
            }
        )

    def score(self, spans: Sequence[SpanFeatures]) -> np.ndarray:
        """[S] scores; spans do not influence one another."""
        values = feature_matrix(spans, PAPER_FEATURES)
        pairs = np.array([self.statistics[name] for name in PAPER_FEATURES])
        return standard_sum(values, pairs[:, 0], pairs[:, 1])

    def pool(self, scores: np.ndarray) -> float:
        """Mean over the spans."""
        return float(np.mean(scores))


def standard_sum(values: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """[N, F] -> [N] −Σ of standard scores; a feature that never varies adds nothing."""
    safe = np.where(deviation > 0, deviation, np.inf)
    return -((values - mean) / safe).sum(axis=1)


def feature_matrix(spans: Sequence[SpanFeatures], names: Sequence[str]) -> np.ndarray:
    """[S, F] fields of spans.

    Raises:
        InputError: a field was not measured; names it.
    """
    rows = [[getattr(span, name) for name in names] for span in spans]
    for row in rows:
        for name, value in zip(names, row, strict=True):
            if value is None:
                raise InputError(
                    f'this detector needs {name}, which was not measured; use passes="all" and a '
                    f"scorer that gives distributions, or the default detector"
                )
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
