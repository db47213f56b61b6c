"""Support by several units: which small sets of units explain a sentence's gap by themselves.

Leaving one unit out shows nothing when another says the same, and too little when a fact is put
together from two. Showing units without the others tells the cases apart:

    r(S) = mean_t [ log p(y_t|S) − log p(y_t|∅) ] / gap      the share that the set S recovers

    two single units recover it, each alone          redundant
    one does                                         single
    none does, a pair or a triple does               joint (greedy: the best unit, then the one
                                                     that adds most)
    nothing does                                     none

The functions are pure: they say which sets they would like to see next, or decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .types import Support

ALONE = 0.6
"""A set that recovers this share of the gap supports the sentence by itself."""
CLEAR = 0.6
"""A unit whose drop is this share of the gap, while no other's is a `SECOND`, needs no look."""
SECOND = 0.25
"""A further unit whose drop is this share of the largest one makes a look worth while."""
MIN_GAP = 0.1
"""A smaller gap, in nats per token, is not looked into: there is nothing to share out."""
MIN_GAIN = 0.1
"""A unit joins a set when it adds this share of the gap."""
MIN_SHARE = 0.25
"""A single unit that recovers less supports nothing by itself."""
CANDIDATES = 4
"""Units that are shown alone, per sentence at most."""
MAX_SET = 3
"""Units of a joint set at most."""

Recovery = Callable[[tuple[int, ...]], "float | None"]
"""Units shown, ascending -> share of the gap that they recover; None when it was not measured."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What has to be measured before more can be said."""

    sets: tuple[tuple[int, ...], ...]
    """Sets of units to show without the others, the most telling first."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """How the support is spread."""

    kind: Support
    """The finding."""
    units: tuple[int, ...]
    """The units of the set, strongest first."""
    share: float
    """Share of the gap that they recover: together, or the best of them when redundant."""


def needs_a_look(gap: float, drops: Sequence[float | None]) -> bool:
    """Whether leaving units out one by one leaves the support unclear.

    >>> needs_a_look(2.0, [1.9, 0.0]), needs_a_look(2.0, [0.1, 0.0])
    (False, True)
    """
    known = sorted((d for d in drops if d is not None), reverse=True)
    if gap < MIN_GAP or len(known) < 2:
        return False
    return known[0] < CLEAR * gap or known[1] >= SECOND * known[0]


def weigh(recovery: Recovery, candidates: Sequence[int]) -> Weighed | Wanted:
    """The kind of support, or the sets that must be seen first.

    Args:
        recovery: what is known so far.
        candidates: units, the most promising first; at least one.
    """
    alone: dict[int, float] = {}
    unseen: list[tuple[int, ...]] = []
    for unit in candidates:
        share = recovery((unit,))
        if share is None:
            unseen.append((unit,))
        else:
            alone[unit] = share
    if unseen:
        return Wanted(tuple(unseen))
    order = sorted(candidates, key=lambda k: -alone[k])
    enough = tuple(k for k in order if alone[k] >= ALONE)
    if enough:
        return Weighed("redundant" if len(enough) > 1 else "single", enough, alone[order[0]])
    chosen, share = (order[0],), alone[order[0]]
    while len(chosen) < min(MAX_SET, len(candidates)) and share < ALONE:
        sets = [(k, tuple(sorted((*chosen, k)))) for k in order if k not in chosen]
        unseen = [kept for _, kept in sets if recovery(kept) is None]
        if unseen:
            return Wanted(tuple(unseen))
        gains = [(recovery(kept) or 0.0, -place, k) for place, (k, kept) in enumerate(sets)]
        best, _, unit = max(gains)
        if best < share + MIN_GAIN:
            break
        chosen, share = (*chosen, unit), best
    if len(chosen) > 1:
        return Weighed("joint", chosen, share)
    return Weighed("single", chosen, share) if share >= MIN_SHARE else Weighed("none", (), share)
