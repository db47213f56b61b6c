"""Drops -> support: which units a grounded sentence leans on, and how strongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .features import SpanFeatures
from .perturb import Context
from .report import Citation
from .types import PassageSpan, Support

MIN_SHARE = 0.25
"""A unit is cited when its drop is at least this share of the largest one …"""
MIN_DROP = 0.02
"""… and at least this many nats per token."""
MAX_CITATIONS = 3
"""Citations per sentence at most."""


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
    """Strongest first."""


def support_of(features: SpanFeatures, context: Context) -> SentenceSupport:
    """The units whose removal costs the sentence most."""
    if len(context.units) == 1 and features.gap > MIN_DROP:
        return SentenceSupport("single", (UnitSupport(0, features.gap, 1.0),))
    drops = [(d, k) for k, d in enumerate(features.drops) if d is not None and d > MIN_DROP]
    drops.sort(key=lambda item: (-item[0], item[1]))
    if not drops:
        return SentenceSupport()
    strongest = drops[0][0]
    kept = [(d, k) for d, k in drops if d >= MIN_SHARE * strongest][:MAX_CITATIONS]
    units = tuple(
        UnitSupport(k, d, max(0.0, min(1.0, d / features.gap)) if features.gap > 0 else None)
        for d, k in kept
    )
    return SentenceSupport("single" if len(units) == 1 else "joint", units)


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
        spans = support.spans or unit.spans
        duplicates = tuple(sorted({s.passage for s in unit.copies} - {s.passage for s in spans}))
        return [self._of_span(span, support, duplicates) for span in spans]

    def _of_span(
        self, span: PassageSpan, support: UnitSupport, duplicates: tuple[int, ...]
    ) -> Citation:
        passage = self._context.passages[span.passage]
        text = passage.text[span.start : span.end]
        start = span.start + len(text) - len(text.lstrip())
        end = span.end - (len(text) - len(text.rstrip()))
        key = (span.passage, start, end)
        number = self._ids.setdefault(key, str(len(self._ids) + 1))
        offset = passage.metadata.get("start_index", passage.metadata.get("start_char_idx"))
        base = offset if isinstance(offset, int) and not isinstance(offset, bool) else None
        return Citation(
            id=number,
            passage_index=span.passage,
            passage_id=passage.id,
            title=passage.title,
            start=start,
            end=end,
            quote=passage.text[start:end],
            drop=support.drop,
            share=support.share,
            duplicates=duplicates,
            document_start=None if base is None else base + start,
            document_end=None if base is None else base + end,
        )
