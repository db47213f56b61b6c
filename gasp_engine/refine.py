"""Narrower citations: which sentences of a cited unit matter, by leaving them out one by one.

units    [ A. B. C. ]  [ D. E. ]        cited: the first
finer    [A.][B.][C.]  [ D. E. ]        the same text, so the scorer reads the same context
passes   full, without A, without B, without C
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .lexical import words
from .perturb import Context, SpanSplitter
from .ranking import UnitSigns, strengths
from .support import MAX_CITATIONS, MIN_DROP, MIN_SHARE, UnitSupport, share_of, trimmed
from .types import PassageSpan, Unit

MAX_PIECES = 24
"""Sentences that are left out one by one, per answer at most."""


@dataclass(frozen=True, slots=True)
class Finer:
    """The evidence with some units cut into their sentences."""

    context: Context
    """Renders as the context that it was made from."""
    pieces: dict[int, tuple[int, ...]]
    """Per unit that was cut, its sentences as units of the new context."""


def pieces_of(context: Context, unit: int, split: SpanSplitter) -> list[PassageSpan]:
    """The sentences of a unit, which together are the unit."""
    found: list[PassageSpan] = []
    for span in context.units[unit].spans:
        text = context.passages[span.passage].text[span.start : span.end]
        starts = [start for start, _ in split(text) if start > 0]
        edges = [0, *starts, len(text)]
        found += [
            PassageSpan(span.passage, span.start + a, span.start + b)
            for a, b in pairwise(edges)
            if b > a
        ]
    return found


def cut_finer(context: Context, units: Collection[int], split: SpanSplitter) -> Finer:
    """Cut some units at their sentence ends; copies of a unit are cut along with it."""
    made: list[tuple[PassageSpan, Unit, int]] = []
    for unit in context.units:
        spans = pieces_of(context, unit.index, split) if unit.index in units else []
        if len(spans) < 2:
            made.append((unit.spans[0], unit, unit.index))
            continue
        copies: list[list[PassageSpan]] = [[] for _ in spans]
        keys = [{w.key for w in words(_text(context, s))} for s in spans]
        for copy in unit.copies:
            alone = Context(context.passages, (Unit(0, (copy,), ""),))
            for part in pieces_of(alone, 0, split):
                held = {w.key for w in words(_text(context, part))}
                nearest = max(range(len(spans)), key=lambda i: len(keys[i] & held))
                copies[nearest].append(part)
        for span, others in zip(spans, copies, strict=True):
            piece = Unit(0, (span,), _text(context, span), tuple(others))
            made.append((span, piece, unit.index))
    made.sort(key=lambda item: (item[0].passage, item[0].start))
    pieces: dict[int, list[int]] = {}
    numbered: list[Unit] = []
    for index, (_, unit, parent) in enumerate(made):
        numbered.append(Unit(index, unit.spans, unit.text, unit.copies))
        pieces.setdefault(parent, []).append(index)
    return Finer(
        Context(context.passages, tuple(numbered), context.separator),
        {parent: tuple(parts) for parent, parts in pieces.items() if len(parts) > 1},
    )


@dataclass(frozen=True, slots=True)
class Narrowed:
    """One unit's support, sentence by sentence."""

    support: tuple[UnitSupport, ...]
    """The sentences that are cited, strongest first; the unit itself when none costs anything."""
    parts: tuple[PassageSpan, ...]
    """All its sentences, strongest first."""


def narrow(
    support: UnitSupport, finer: Finer, parts: Sequence[int], signs: Sequence[UnitSigns], gap: float
) -> Narrowed:
    """A unit's support as that of its sentences which matter.

    Args:
        support: of the whole unit.
        finer: the finer evidence.
        parts: the unit's sentences in it.
        signs: of all units of the finer evidence.
        gap: of the answer's sentence.
    """
    own = [signs[k] for k in parts]
    strength = strengths(own)
    order = sorted(range(len(parts)), key=lambda i: -strength[i])
    spans = [trimmed(finer.context, finer.context.units[k].spans[0]) for k in parts]
    drops = [sign.drop or 0.0 for sign in own]
    floor = max(MIN_DROP, MIN_SHARE * max(drops))
    kept = [i for i in order if drops[i] >= floor][:MAX_CITATIONS]
    narrower = tuple(
        UnitSupport(support.unit, drops[i], share_of(drops[i], gap), (spans[i],)) for i in kept
    )
    return Narrowed(narrower or (support,), tuple(spans[i] for i in order))


def _text(context: Context, span: PassageSpan) -> str:
    return context.passages[span.passage].text[span.start : span.end]
