"""Support by several units: which small set of units a sentence cannot do without.

Leaving one unit out shows little when another says the same. Leaving several out together does.
How much of a sentence goes with a set S of units is read token by token, because passages that say
nothing of the fact still make its wording likelier:

    e(S) = Σ_t w_t · clip( [log p(y_t|c) − log p(y_t|c∖S)] / g_t, 0, 1 ) / Σ_t w_t

    g_t = log p(y_t|c) − log p(y_t|∅)      w_t = max(0, g_t) on tokens of content words

The units, strongest first, are left out in growing sets; the smallest set with which nearly all
goes that ever goes is then thinned to the units that it needs.

    order of the units      a   b   c   d
    left out together       a, ab, abc, abcd     e = .1 .9 .9 .9      the set is within ab
    thinned                 b without a           e = .1              both are needed in it
    alone                   e(a) + e(b) = .2, far below e(ab) = .9    `redundant`; were the sum
                                                                      near .9, `joint`

The functions are pure: they say which sets they would like to see next, or decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .types import Support

CLEAR = 0.75
"""A unit with which this share of the sentence goes needs no look, unless …"""
SECOND = 0.15
"""… another unit takes at least this share of it along."""
MIN_GAP = 0.1
"""A smaller gap, in nats per token, is not looked into: there is nothing to share out."""
MIN_GAIN = 0.1
"""A unit belongs to the set when this share of the sentence stays for want of removing it."""
ADDITIVE = 0.9
"""Units of which each takes its own part along, so that the parts make up this much of the whole,
are joint; where the parts make up less, one stands in for another."""
CANDIDATES = 4
"""Units that are left out together at most."""

Explained = Callable[[tuple[int, ...]], "float | None"]
"""Units left out, ascending -> e of Eq. above, in [0, 1]; None when it was not measured."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What has to be measured before more can be said."""

    sets: tuple[tuple[int, ...], ...]
    """Sets of units to leave out together."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """How the support is spread."""

    kind: Support
    """The finding."""
    units: tuple[int, ...]
    """The units of the set, strongest first."""
    share: float
    """What goes with all of them, in [0, 1]."""


def token_weights(gap: np.ndarray, content: np.ndarray) -> np.ndarray:
    """[T] float64: the positive gap on tokens of content words; on all where no such token gains.

    Args:
        gap: [T] nats, of the sentence's tokens.
        content: [T] bool, of the sentence's tokens.
    """
    positive = np.maximum(gap.astype(np.float64), 0.0)
    weights = np.where(content, positive, 0.0)
    return weights if weights.sum() > 0 else positive


def explained_share(drop: np.ndarray, gap: np.ndarray, weights: np.ndarray) -> float:
    """e(S) in [0, 1], from the [T] drops without S, the [T] gaps and the [T] weights, in nats."""
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    parts = np.clip(drop.astype(np.float64), 0.0, np.maximum(gap.astype(np.float64), 0.0))
    safe = np.where(weights > 0, gap.astype(np.float64), 1.0)
    return float((weights * parts / safe).sum() / total)


def needs_a_look(gap: float, shares: Sequence[float | None]) -> bool:
    """Whether leaving units out one by one leaves the support unclear.

    Args:
        gap: of the sentence, nats per token.
        shares: e of each unit alone; None for one that was not left out.

    >>> needs_a_look(2.0, [0.9, 0.0]), needs_a_look(2.0, [0.1, 0.0])
    (False, True)
    """
    known = sorted((s for s in shares if s is not None), reverse=True)
    if gap < MIN_GAP or len(known) < 2:
        return False
    return known[0] < CLEAR or known[1] >= SECOND


def weigh(explained: Explained, order: Sequence[int]) -> Weighed | Wanted:
    """The kind of support, or the sets that must be left out first.

    Args:
        explained: what is known so far.
        order: units, strongest first; at least one.
    """
    order = tuple(order[:CANDIDATES])
    growing = [tuple(sorted(order[: n + 1])) for n in range(len(order))]
    missing = tuple(s for s in growing if explained(s) is None)
    if missing:
        return Wanted(missing)
    most = max(explained(s) or 0.0 for s in growing)
    size = next(n for n, s in enumerate(growing, 1) if (explained(s) or 0.0) > most - MIN_GAIN)
    chosen = order[:size]
    whole = explained(growing[size - 1]) or 0.0
    if most < MIN_GAIN:
        return Weighed("none", (), most)
    less = {k: tuple(sorted(u for u in chosen if u != k)) for k in chosen if size > 1}
    missing = tuple(s for s in less.values() if explained(s) is None)
    if missing:
        return Wanted(missing)
    needed = [k for k in chosen if size == 1 or whole - (explained(less[k]) or 0.0) >= MIN_GAIN]
    if not needed:
        needed = [max(chosen, key=lambda k: explained((k,)) or 0.0)]
    if len(needed) == 1:
        return Weighed("single", tuple(needed), whole)
    alone = [explained((k,)) for k in needed]
    missing = tuple((k,) for k, share in zip(needed, alone, strict=True) if share is None)
    if missing:
        return Wanted(missing)
    parts = sum(share or 0.0 for share in alone)
    return Weighed("joint" if parts >= ADDITIVE * whole else "redundant", tuple(needed), whole)
