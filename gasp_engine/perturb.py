"""Passages -> units -> conditions: what is removed, and what the scorer sees of the rest.

    passages   [ "A. B.", "C.", "A. B." ]
    units      0: "A. B." (passages 0 and 2, removed together)   1: "C."
    conditions full {0,1}   none {}   without 0 {1}   without 1 {0}

Units partition the text of every passage that is not blank: concatenating a passage's pieces gives
the passage back, so nothing of the evidence is lost by cutting.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from .lexical import Word, words
from .types import Condition, Passage, PassageSpan, SpanSplitter, Unit

SEPARATOR = "\n\n"
"""What stands between two passages in the context."""

NEAR = 0.6
"""Copies that are not exact share at least this part of their runs of three words."""

NEGATIONS = frozenset(("no", "not", "nor", "none", "never", "cannot", "nicht", "kein", "ne", "pas"))
"""Function words that turn a sentence round; texts that differ in one are not copies."""

_LIGHT = r"[.,;:!\"'()\[\]*_#`•·]+"
_PUNCTUATION = re.compile(rf"(?<![\w=<>]){_LIGHT}(?![=])|{_LIGHT}(?![\w=])")
_QUOTES = str.maketrans("“”„«»‘’‚", '"' * 5 + "'" * 3)


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of the rendered context and the unit it belongs to."""

    start: int
    """First code point in the rendered context."""
    end: int
    """One past the last."""
    unit: int
    """Index of the unit."""


@dataclass(frozen=True)
class Context:
    """The evidence of one question: passages, and the units that can be removed from them."""

    passages: tuple[Passage, ...]
    """As the caller gave them, blank ones included (they have no unit)."""
    units: tuple[Unit, ...]
    """In reading order of their first span."""
    separator: str = SEPARATOR
    """What stands between two passages."""

    @cached_property
    def _spans(self) -> tuple[tuple[PassageSpan, int], ...]:
        spans = [(s, unit.index) for unit in self.units for s in (*unit.spans, *unit.copies)]
        return tuple(sorted(spans, key=lambda item: (item[0].passage, item[0].start)))

    def layout(self, kept: Sequence[int]) -> tuple[str, tuple[Piece, ...]]:
        """The context text under a condition, and which unit each part of it comes from.

        Pieces of one passage follow each other directly; between passages stands the separator,
        which belongs to no unit. Edges of a passage are trimmed of white space.

        Args:
            kept: indices of the units that are shown.

        Returns:
            The text, and its pieces sorted by position.
        """
        shown = set(kept)
        text = ""
        pieces: list[Piece] = []
        block: list[tuple[str, int]] = []

        def flush() -> None:
            nonlocal text
            while block and not block[0][0].strip():
                block.pop(0)
            while block and not block[-1][0].strip():
                block.pop()
            if not block:
                return
            block[0] = (block[0][0].lstrip(), block[0][1])
            block[-1] = (block[-1][0].rstrip(), block[-1][1])
            if text:
                text += self.separator
            for part, unit in block:
                pieces.append(Piece(len(text), len(text) + len(part), unit))
                text += part
            block.clear()

        last = -1
        for span, unit in self._spans:
            if unit not in shown:
                continue
            if span.passage != last:
                flush()
                last = span.passage
            block.append((self.passages[span.passage].text[span.start : span.end], unit))
        flush()
        return text, tuple(pieces)

    def render(self, kept: Sequence[int]) -> str:
        """The context text under a condition; empty when nothing is kept."""
        return self.layout(kept)[0]

    @property
    def full(self) -> Condition:
        """All units shown."""
        return Condition(tuple(range(len(self.units))), "full")

    @property
    def none(self) -> Condition:
        """No unit shown."""
        return Condition((), "none")

    def without(self, *removed: int) -> Condition:
        """All units but the given ones."""
        kept = tuple(k for k in range(len(self.units)) if k not in removed)
        return Condition(kept, "without " + "+".join(map(str, removed)))

    def only(self, *kept: int) -> Condition:
        """The given units and no other."""
        return Condition(tuple(sorted(kept)), "only " + "+".join(map(str, sorted(kept))))

    def part(self, units: Sequence[int]) -> Context:
        """Some of the units alone, each shown once, numbered anew from 0; the passages stay."""
        chosen = tuple(replace(self.units[k], index=i, copies=()) for i, k in enumerate(units))
        return Context(self.passages, chosen, self.separator)

    def leave_one_out(self) -> tuple[Condition, ...]:
        """`full`, `none` and `without k` for every unit; without repeats when K < 2."""
        conditions = [self.full, self.none]
        if len(self.units) > 1:
            conditions += [self.without(k) for k in range(len(self.units))]
        return tuple(conditions)


def build_context(
    passages: Sequence[Passage],
    *,
    max_unit_chars: int | Sequence[int | None] | None = None,
    split: SpanSplitter | None = None,
) -> Context:
    """Cut passages into units; copies of the same text become one unit, removed together.

    Copies are texts that differ in white space, letter case and punctuation, or in a few function
    words, alone. A copy is cut where its original is, so that long copies meet part by part.

    Args:
        passages: the evidence; blank passages get no unit.
        max_unit_chars: longest unit, in code points; a longer passage is cut at the ends of its
            sentences as `split` finds them, and inside a sentence only where it must.
            One number, or one a passage. None: a passage is one unit.
        split: finds sentences; None: no sentence ends are known.
    """
    if max_unit_chars is None or isinstance(max_unit_chars, int):
        limits: Sequence[int | None] = [max_unit_chars] * len(passages)
    else:
        limits = max_unit_chars
    pieces: list[tuple[PassageSpan, _Fingerprint]] = []
    whole: dict[str, tuple[_Fingerprint, list[tuple[int, int]]]] = {}
    for index, (passage, limit) in enumerate(zip(passages, limits, strict=True)):
        if passage.is_blank:
            continue
        print_ = _Fingerprint(passage.text)
        twin = whole.get(print_.key)
        ranges = _cut_alike(print_, *twin) if twin else None
        if ranges is None:
            ranges = cut(passage.text, limit, split)
            whole.setdefault(print_.key, (print_, ranges))
        for start, end in ranges:
            part = print_ if len(ranges) == 1 else _Fingerprint(passage.text[start:end])
            pieces.append((PassageSpan(index, start, end), part))
    groups: list[tuple[_Fingerprint, list[PassageSpan]]] = []
    exact: dict[str, list[PassageSpan]] = {}
    for span, part in pieces:
        group = exact.get(part.key)
        if group is None:
            group = next((spans for other, spans in groups if part.is_near_copy(other)), None)
        if group is None:
            group = []
            groups.append((part, group))
        exact.setdefault(part.key, group)
        group.append(span)
    units = tuple(
        Unit(k, (first,), passages[first.passage].text[first.start : first.end], tuple(copies))
        for k, (_, (first, *copies)) in enumerate(groups)
    )
    return Context(tuple(passages), units)


def group_context(passages: Sequence[Passage], n_groups: int, split: SpanSplitter) -> Context:
    """The paper's units: all sentences in order, in `n_groups` runs of nearly equal length.

    A run may cross from one passage into the next; it is then one unit with several spans.
    Fewer sentences than groups give one unit a sentence.
    """
    sentences: list[PassageSpan] = []
    for index, passage in enumerate(passages):
        if passage.is_blank:
            continue
        starts = [start for start, _ in split(passage.text)]
        edges = [0, *[start for start in starts if start > 0], len(passage.text)]
        sentences += [PassageSpan(index, a, b) for a, b in pairwise(edges) if b > a]
    n = min(n_groups, len(sentences))
    units: list[Unit] = []
    for k in range(n):
        run = sentences[k * len(sentences) // n : (k + 1) * len(sentences) // n]
        spans: list[PassageSpan] = []
        for span in run:
            if spans and spans[-1].passage == span.passage:
                spans[-1] = PassageSpan(span.passage, spans[-1].start, span.end)
            else:
                spans.append(span)
        first = spans[0]
        text = passages[first.passage].text[first.start : first.end]
        units.append(Unit(k, tuple(spans), text))
    return Context(tuple(passages), tuple(units), separator=" ")


def cut(text: str, max_chars: int | None, split: SpanSplitter | None) -> list[tuple[int, int]]:
    """Ranges that partition `text`, each at most `max_chars` long, cut at sentence ends."""
    if max_chars is None or len(text) <= max_chars:
        return [(0, len(text))]
    ends = [start for start, _ in (split(text) if split else ()) if start > 0]
    ranges: list[tuple[int, int]] = []
    start = 0
    for stop in [*ends, len(text)]:
        previous = ranges[-1] if ranges else None
        while stop - start > max_chars:
            space = text.rfind(" ", start + max_chars // 2, start + max_chars)
            middle = space + 1 if space > 0 else _whole_character(text, start, start + max_chars)
            ranges.append((start, middle))
            start = middle
            previous = None
        if previous and stop - previous[0] <= max_chars:
            ranges[-1] = (previous[0], stop)
        elif stop > start:
            ranges.append((start, stop))
        start = stop
    return ranges


def _whole_character(text: str, start: int, position: int) -> int:
    """The last position up to `position` that parts no accent, emoji or line end from its base.

    A run without such a position is cut where it must be.
    """
    for middle in range(position, start, -1):
        before, after = text[middle - 1], text[middle : middle + 1]
        joined = (
            unicodedata.category(after or " ")[0] == "M"
            or after == "\u200d"
            or before == "\u200d"
            or "\U0001f3fb" <= after <= "\U0001f3ff"
            or (before == "\r" and after == "\n")
        )
        if not joined:
            return middle
    return position


class _Fingerprint:
    """What a text is compared by, to find copies of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = words(text)
        folded = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTES)
        bare = re.sub(r"\s+", " ", _PUNCTUATION.sub(" ", folded)).strip()
        self.key = bare or re.sub(r"\s+", " ", folded).strip()
        """Equal for exact copies: alike but for white space, letter case and punctuation."""
        keys = [word.key for word in self.words]
        self._content = Counter(w.key for w in self.words if w.is_content)
        self._symbols = Counter(c for c in bare if not (c.isalnum() or c.isspace()))
        self._rest = Counter(w.key for w in self.words if not w.is_content)
        self._runs = set(zip(keys, keys[1:], keys[2:], strict=False))

    def is_near_copy(self, other: _Fingerprint) -> bool:
        """Whether they differ in a few function words alone, none of them a negation.

        A text that says another number, name or verb is other evidence, however alike it looks.
        """
        if not self._content or self._content != other._content or self._symbols != other._symbols:
            return False
        if NEGATIONS & {*(self._rest - other._rest), *(other._rest - self._rest)}:
            return False
        either = self._runs | other._runs
        return bool(either) and len(self._runs & other._runs) >= NEAR * len(either)


def _cut_alike(
    copy: _Fingerprint, original: _Fingerprint, ranges: Sequence[tuple[int, int]]
) -> list[tuple[int, int]] | None:
    """Cut a copy before the same words as its original, so that the parts are copies too.

    None when the words do not pair up.
    """
    if len(ranges) == 1:
        return [(0, len(copy.text))]
    if len(copy.words) != len(original.words):
        return None
    starts = [word.start for word in original.words]
    edges = [0]
    for start, _ in ranges[1:]:
        k = next((i for i, position in enumerate(starts) if position >= start), None)
        if k is not None and copy.words[k].start > edges[-1]:
            edges.append(copy.words[k].start)
    return list(pairwise([*edges, len(copy.text)]))
