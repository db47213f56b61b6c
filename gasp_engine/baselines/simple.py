"""Baselines that need no pass of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..errors import InputError
from ..features import SpanFeatures


def _drop(span: SpanFeatures) -> float | None:
    return None if span.drop_max is None else -span.drop_max


def _words(of: Callable[[SpanFeatures], float]) -> Callable[[SpanFeatures], float | None]:
    return lambda span: of(span) if span.n_content else 0.0


SIMPLE: Mapping[str, Callable[[SpanFeatures], float | None]] = {
    "perplexity": lambda span: span.surprisal,
    "length": lambda span: float(span.n_tokens),
    "lexical overlap": _words(lambda span: span.novelty),
    "novel bigrams": _words(lambda span: span.novel_bigrams),
    "local overlap": _words(lambda span: -span.overlap),
    "explained share": lambda span: -span.explained,
    "largest drop": _drop,
}
"""Name -> score of one span, or None where it was not measured.

`largest drop` is the score of the package gasp-rag, −max_k drop, from the same passes.
"""


def baseline_scores(name: str, spans: Sequence[SpanFeatures]) -> np.ndarray:
    """[S] scores of one baseline.

    Raises:
        InputError: there is no such baseline, or what it needs was not measured.
    """
    if name not in SIMPLE:
        raise InputError(f"no baseline {name!r}; there are {', '.join(SIMPLE)}")
    values = [SIMPLE[name](span) for span in spans]
    if any(value is None for value in values):
        raise InputError(f'{name} needs passes="all"')
    return np.array(values, dtype=np.float64)
