"""Drops -> support: which units a sentence leans on, and how strongly.

    gap      |----------------------------------|      what all sources together explain (Eq. 8)
    drops    |--------------------------|              one unit does: `single`
             |-----------||----------|                 two do, and neither alone: `joint`
             ||                                        none: each can stand in for another
                                                       (`redundant`), or nothing is known

From the leave-one-out passes alone `redundant` cannot be told from `none`; `joint.py` spends
further passes on the sentences where that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .features import SpanFeatures
from .perturb import Context
from .ranking import UnitSigns, ranking
from .report import Citation
from .types import Passage, PassageSpan, Support

MIN_SHARE = 0.3
"""A unit is cited when its drop is at least this share of the largest one …"""
MIN_DROP = 0.05
"""… and at least this many nats per token."""
MAX_CITATIONS = 3
"""Citations per sentence at most."""
AGAINST = 0.05
"""A unit without which a sentence gains this many nats per token is listed as against it."""


@dataclass(frozen=True, slots=True)
class UnitSupport:
    """One unit that a sentence leans on."""

    unit: int
    """Index of the unit."""
    drop: float | None
    """Nats per token lost without it."""
    share: float | None
    """Share of the gap that it explains, in [0, 1]."""
    spans: tuple[PassageSpan, ...] | None = None
    """Narrower ranges than the unit's own, when the citation was refined."""


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """How one sentence's support is spread over the units."""

    kind: Support = "none"
    """One unit, several together, several that could each stand alone, or none."""
    units: tuple[UnitSupport, ...] = ()
    """Those that are cited, strongest first."""
    share: float | None = None
    """What goes without all of them (`e` of `joint.py`), in [0, 1]; None when not looked into."""
    ranking: tuple[int, ...] = ()
    """All units, strongest first, cited or not."""
    against: tuple[UnitSupport, ...] = ()
    """Units whose removal makes the sentence likelier, the largest effect first. A hint only."""
    parts: tuple[PassageSpan, ...] = ()
    """When it was refined: all sentences of the units that were cut, strongest first by unit."""


def support_of(
    features: SpanFeatures, context: Context, signs: Sequence[UnitSigns] = ()
) -> SentenceSupport:
    """The units whose removal costs the sentence most, as far as leaving one out can tell.

    Args:
        features: of the sentence.
        context: the evidence.
        signs: per unit, for the order; empty: the order of the drops.
    """
    if len(context.units) == 1:
        if features.gap <= MIN_DROP:
            return SentenceSupport(ranking=(0,))
        return SentenceSupport("single", (UnitSupport(0, features.gap, 1.0),), 1.0, (0,))
    drops = {k: d for k, d in enumerate(features.drops) if d is not None}
    order = ranking(signs) or tuple(sorted(drops, key=lambda k: (-drops[k], k)))
    against = tuple(
        UnitSupport(k, d, None)
        for k, d in sorted(drops.items(), key=lambda item: (item[1], item[0]))
        if d <= -AGAINST
    )[:MAX_CITATIONS]
    floor = max(MIN_DROP, MIN_SHARE * max(drops.values(), default=0.0))
    kept = [k for k in order if drops.get(k, 0.0) >= floor][:MAX_CITATIONS]
    units = tuple(UnitSupport(k, drops[k], share_of(drops[k], features.gap)) for k in kept)
    kind: Support = "none" if not units else "single" if len(units) == 1 else "joint"
    return SentenceSupport(kind, units, None, order, against)


def share_of(part: float, gap: float) -> float | None:
    """`part / gap`, held to [0, 1]; None where there is no gap to explain.

    >>> share_of(1.0, 4.0)
    0.25
    """
    return max(0.0, min(1.0, part / gap)) if gap > 0 else None


class CitationNumbers:
    """Gives citations their numbers, by first use over the answer."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ids: dict[tuple[int, int, int], str] = {}

    def cite(self, support: SentenceSupport) -> tuple[Citation, ...]:
        """The citations of one sentence; call in the order of the answer."""
        return tuple(c for unit in support.units for c in self._of_unit(unit))

    def _of_unit(self, support: UnitSupport) -> Sequence[Citation]:
        unit = self._context.units[support.unit]
        spans = [trimmed(self._context, s) for s in support.spans or unit.spans]
        spans = [s for s in spans if s.end > s.start]
        duplicates = tuple(sorted({s.passage for s in unit.copies} - {s.passage for s in spans}))
        return [self._of_span(span, support, duplicates) for span in spans]

    def _of_span(
        self, span: PassageSpan, support: UnitSupport, duplicates: tuple[int, ...]
    ) -> Citation:
        passage = self._context.passages[span.passage]
        number = self._ids.setdefault((span.passage, span.start, span.end), str(len(self._ids) + 1))
        base = document_offset(passage)
        return Citation(
            id=number,
            passage_index=span.passage,
            passage_id=passage.id,
            title=passage.title,
            start=span.start,
            end=span.end,
            quote=passage.text[span.start : span.end],
            drop=support.drop,
            share=support.share,
            duplicates=duplicates,
            document_start=None if base is None else base + span.start,
            document_end=None if base is None else base + span.end,
        )


def trimmed(context: Context, span: PassageSpan) -> PassageSpan:
    """A span without the white space at its edges."""
    text = context.passages[span.passage].text[span.start : span.end]
    start = span.start + len(text) - len(text.lstrip())
    return PassageSpan(span.passage, start, max(start, span.end - len(text) + len(text.rstrip())))


def document_offset(passage: Passage) -> int | None:
    """Where the passage begins in its document, if its metadata says so.

    A text splitter that did not find a passage in its document says -1, which is no offset.
    """
    for name in ("start_index", "start_char_idx"):
        value: Any = passage.metadata.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
