"""What else is known of a sentence without further passes: blind spots, hints, heat maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from .features import GroupScores, SpanFeatures
from .perturb import Context
from .support import SentenceSupport, trimmed
from .types import Tokens

PARAMETRIC = 1.25
"""A sentence of less surprisal without any source, in nats per token, is likely by itself: whether
it leans on a source can hardly be measured (`docs/citations.md`)."""


def hints(features: SpanFeatures, support: SentenceSupport, context: Context) -> dict[str, Any]:
    """`parametric` and `against`, where there is something to say."""
    found: dict[str, Any] = {}
    if features.surprisal_none < PARAMETRIC:
        found["parametric"] = True
    against = [
        {
            "passage_index": span.passage,
            "start": span.start,
            "end": span.end,
            "drop": unit.drop,
        }
        for unit in support.against
        for span in (trimmed(context, s) for s in context.units[unit.unit].spans)
    ]
    if against:
        found["against"] = against
    return found


def token_values(
    groups: tuple[GroupScores, ...], tokens: Tokens, own: np.ndarray, support: SentenceSupport
) -> list[dict[str, Any]]:
    """Per token of a sentence, what all sources and what the first cited unit add to it.

    Args:
        groups: token scores; the values are those of the group that makes the sentence likeliest.
        tokens: of the answer.
        own: indices of the sentence's tokens.
        support: names the unit; without one, `drop` is None.

    Returns:
        `{"start", "end", "gap", "drop"}` a token, in nats.
    """
    if not own.size:
        return []
    best = max(groups, key=lambda g: float(g.scores.log_probs[0, own].sum(dtype=np.float64)))
    gap = best.gap()
    drop = None
    if support.units:
        unit = support.units[0].unit
        drop = next((g.drop(unit) for g in groups if unit in g.units), None)
    return [
        {
            "start": tokens.offsets[t][0],
            "end": tokens.offsets[t][1],
            "gap": float(gap[t]),
            "drop": None if drop is None else float(drop[t]),
        }
        for t in own
    ]
