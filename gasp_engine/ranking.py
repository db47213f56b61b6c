"""How strongly a sentence leans on each unit: the order in which units are cited.

The paper's drop (Eq. 10) alone is not the best order: function words and style weigh in it as much
as the fact, and a rival that reads no model, lexical overlap, is better at hitting one of the right
units first. So the words lead and the model decides among units that share about as many:

    strength(k) = x_overlap(k) / max(0.2, max_j x_overlap(j))
                  + 0.15 · [ x_gain(k) / max_j x_gain(j) + x_distance(k) / max_j x_distance(j) ]

    x_overlap   share of the sentence's content words that unit k holds, a word's weight being
                log(1 + K / units that hold it)
    x_gain      mean_t max(0, log p(y_t|c) − log p(y_t|c∖k))     over tokens of content words
    x_distance  mean_t √JSD( p_t^c ‖ p_t^{c∖k} )                 over tokens of content words

Where no unit shares words with the sentence (another language, a paraphrase) the model alone
decides. Only the order is set here; what is cited at all is a matter of drops (`support.py`). The
numbers were chosen on some claims of WiCE, measured on others: `docs/decisions/005-citations.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .features import GroupScores
from .lexical import words
from .perturb import Context

W_MODEL = 0.15
"""Weight of each of the model's two signs beside the words'."""
MIN_OVERLAP = 0.2
"""Units that all share less with the sentence than this are told apart by the model."""


@dataclass(frozen=True, slots=True)
class UnitSigns:
    """What speaks for one unit being what a sentence leans on."""

    unit: int
    """Index of the unit."""
    drop: float | None
    """Nats per token lost without it; None when it was not left out alone."""
    gain: float | None
    """Mean positive part of the same over tokens of content words; over all without such."""
    divergence: float | None
    """Mean JSD without it."""
    distance: float | None
    """Mean √JSD without it, over tokens of content words; over all without such tokens."""
    overlap: float
    """Weighted share of the sentence's content words that it holds, in [0, 1]."""


class OverlapIndex:
    """The words of every unit, to compare sentences with.

    >>> from gasp_engine.perturb import build_context
    >>> from gasp_engine.types import as_passages
    >>> index = OverlapIndex(build_context(as_passages(["The dam opened.", "Boats are red."])))
    >>> [round(x, 2) for x in index.overlaps("A dam opened late.")]
    [0.67, 0.0]
    """

    def __init__(self, context: Context) -> None:
        texts = (
            " ".join(context.passages[s.passage].text[s.start : s.end] for s in unit.spans)
            for unit in context.units
        )
        self._held = [{w.key for w in words(text) if w.is_content} for text in texts]
        self._counts = Counter(key for keys in self._held for key in keys)

    def overlaps(self, sentence: str) -> list[float]:
        """Per unit, the weighted share of the sentence's content words that it holds."""
        wanted = {w.key for w in words(sentence) if w.is_content}
        n = len(self._held)
        weight = {key: math.log(1 + n / max(self._counts[key], 1)) for key in wanted}
        total = sum(weight.values())
        return [
            sum(weight[key] for key in wanted & keys) / total if total else 0.0
            for keys in self._held
        ]


def unit_signs(
    groups: Sequence[GroupScores], own: np.ndarray, content: np.ndarray, overlaps: Sequence[float]
) -> tuple[UnitSigns, ...]:
    """The signs of every unit for one sentence.

    Args:
        groups: token scores.
        own: indices of the sentence's tokens, at least one.
        content: [T] bool, tokens of content words.
        overlaps: per unit.
    """
    wordy = own[content[own]] if content[own].any() else own
    signs = [UnitSigns(k, None, None, None, None, overlap) for k, overlap in enumerate(overlaps)]
    for group in groups:
        for unit in group.units:
            drop, divergence = group.drop(unit), group.divergence(unit)
            if drop is None or divergence is None:
                continue
            signs[unit] = UnitSigns(
                unit,
                float(drop[own].mean(dtype=np.float64)),
                float(np.maximum(drop[wordy], 0).mean(dtype=np.float64)),
                float(divergence[own].mean(dtype=np.float64)),
                float(np.sqrt(np.maximum(divergence[wordy], 0)).mean(dtype=np.float64)),
                overlaps[unit],
            )
    return tuple(signs)


def strengths(signs: Sequence[UnitSigns]) -> np.ndarray:
    """[K] float64: how strongly the sentence leans on each unit; only the order has a meaning."""
    total = np.zeros(len(signs))
    for weight, floor, values in (
        (1.0, MIN_OVERLAP, [s.overlap for s in signs]),
        (W_MODEL, 0.0, [s.gain for s in signs]),
        (W_MODEL, 0.0, [s.distance for s in signs]),
    ):
        column = np.array([max(0.0, v or 0.0) for v in values])
        largest = max(floor, float(column.max(initial=0.0)))
        if largest > 0:
            total += weight * column / largest
    return total


def ranking(signs: Sequence[UnitSigns]) -> tuple[int, ...]:
    """Units, strongest first; equally strong ones in reading order."""
    if not signs:
        return ()
    order = np.argsort(-strengths(signs), kind="stable")
    return tuple(signs[int(i)].unit for i in order)
