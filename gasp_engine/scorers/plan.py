"""What has to be run for a set of conditions, each thing once. Integers only; no model, no torch.

A *segment* is a run of tokens at consecutive positions. It sees, in this order, the ranges of
earlier segments that it names, and then each of its tokens the ones before it:

    remove      segment 0   c o n t e x t   q u e s t i o n   a n s w e r        the full condition
                segment 1   └──────► 0[0:4] t   q u e s t i o n   a n s w e r    without one unit
    mask        segment 0   c o n t e x t
                segment 1   └──────► 0[0:2], 0[5:7]   q u e s t i o n   a n s w e r

A condition's *route* is the list of ranges that spells it. A plan is cut into *passes* of bounded
size: each is one call of the model, and keys and values are kept only for what later passes see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Range:
    """Tokens `begin` to `end` of one segment."""

    segment: int
    """Index of the segment."""
    begin: int
    """First token."""
    end: int
    """One past the last token."""

    def __len__(self) -> int:
        return self.end - self.begin


Route = tuple[Range, ...]
"""Ranges that, one after the other, spell a token sequence."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens at consecutive positions, and what they see before themselves."""

    tokens: tuple[int, ...]
    """Token ids; never empty."""
    position: int
    """Position of the first token in the model's sense."""
    sees: Route
    """Ranges of earlier segments, every one of them seen by every token of this segment."""
    given: bool = False
    """The keys and values are there already: the segment is seen, but never run."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One call of the model: pieces of segments, laid out one after the other."""

    pieces: tuple[Range, ...]
    """In order; a piece comes after everything that it sees."""

    def __len__(self) -> int:
        return sum(len(piece) for piece in self.pieces)


def length(route: Iterable[Range]) -> int:
    """How many tokens a route spells."""
    return sum(len(part) for part in route)


def cut(route: Iterable[Range], begin: int, end: int) -> Route:
    """The part of a route from its token `begin` to its token `end`.

    Example:
        >>> cut((Range(0, 0, 4), Range(2, 0, 3)), 3, 6)
        (Range(segment=0, begin=3, end=4), Range(segment=2, begin=0, end=2))
    """
    parts: list[Range] = []
    offset = 0
    for part in route:
        first, last = max(begin - offset, 0), min(end - offset, len(part))
        if first < last:
            parts.append(Range(part.segment, part.begin + first, part.begin + last))
        offset += len(part)
    return tuple(parts)


def join(route: Iterable[Range]) -> Route:
    """The same route with neighbouring ranges of one segment made one, and empty ones dropped."""
    parts: list[Range] = []
    for part in route:
        if not len(part):
            continue
        last = parts[-1] if parts else None
        if last and last.segment == part.segment and last.end == part.begin:
            parts[-1] = Range(part.segment, last.begin, part.end)
        else:
            parts.append(part)
    return tuple(parts)


class Plan:
    """Segments in an order in which each comes after all that it sees; equal ones are kept once."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._known: dict[Segment, int] = {}

    @property
    def tokens(self) -> int:
        """How many tokens the model runs for the plan."""
        return sum(len(s.tokens) for s in self.segments if not s.given)

    def add(
        self, tokens: Sequence[int], position: int, sees: Route = (), *, given: bool = False
    ) -> int:
        """Add a segment, or find the equal one that is there.

        Args:
            tokens: not empty.
            position: of the first token.
            sees: ranges of segments that were added before.
            given: keys and values need not be computed.

        Returns:
            The segment's index.
        """
        assert len(tokens) > 0
        segment = Segment(tuple(tokens), position, join(sees), given)
        index = self._known.get(segment)
        if index is None:
            index = self._known[segment] = len(self.segments)
            self.segments.append(segment)
        return index

    def share(
        self, sequences: Sequence[Sequence[int]], *, given: int | None = None, fresh: int = 0
    ) -> list[Route]:
        """Add whole sequences that begin at position 0; every shared prefix is run once.

        Args:
            sequences: token sequences, none empty.
            given: a segment at position 0 whose keys and values are there already.
            fresh: how many tokens at the end of every sequence must be run, and not only be seen
                in the given segment (their outputs are wanted).

        Returns:
            Per sequence its route; the last range of each lies in a segment that is run.
        """
        arrays: list[np.ndarray] = []
        routes: list[Route] = []
        if given is not None:
            tokens = self.segments[given].tokens
            arrays.append(np.asarray(tokens))
            routes.append((Range(given, 0, len(tokens)),))
        start = len(routes)
        for sequence in sequences:
            array = np.asarray(sequence)
            best, source = 0, -1
            for index, other in enumerate(arrays):
                shared = _common_prefix(array, other)
                if shared > best:
                    best, source = shared, index
            route = cut(routes[source], 0, best) if best else ()
            if route and route[0].segment == given and len(route[0]) > len(array) - fresh:
                best = max(len(array) - fresh, 0)
                route = cut(route, 0, best)
            if best < len(array):
                added = self.add(tuple(sequence)[best:], best, route)
                route = join((*route, Range(added, 0, len(array) - best)))
            arrays.append(array)
            routes.append(route)
        return routes[start:]

    def passes(self, limit: int) -> list[Pass]:
        """Cut the plan into calls of at most `limit` tokens.

        A segment longer than `limit` is cut, and fills what is left of the pass before it; any
        other stays whole, so that branches of equal length can be run side by side.
        """
        assert limit > 0
        passes: list[Pass] = []
        pieces: list[Range] = []
        room = limit

        def close() -> None:
            nonlocal pieces, room
            if pieces:
                passes.append(Pass(tuple(pieces)))
            pieces, room = [], limit

        for index, segment in enumerate(self.segments):
            if segment.given:
                continue
            begin, total = 0, len(segment.tokens)
            if room < total <= limit:
                close()
            while begin < total:
                if room == 0:
                    close()
                end = min(begin + room, total)
                pieces.append(Range(index, begin, end))
                room -= end - begin
                begin = end
        close()
        return passes

    def keeps(self, passes: Sequence[Pass], wanted: Iterable[Range] = ()) -> dict[int, int]:
        """How many first tokens of each segment need their keys and values kept.

        Args:
            passes: as `passes` made them.
            wanted: ranges that the caller wants to see later.

        Returns:
            Segment -> number of tokens, enough for everything that sees the segment. Segments that
            are not named are run in one pass and seen in no other.
        """
        home: dict[int, set[int]] = {}
        for number, run in enumerate(passes):
            for piece in run.pieces:
                home.setdefault(piece.segment, set()).add(number)
        uses: list[tuple[int, Range]] = [(-1, part) for part in wanted]
        for number, run in enumerate(passes):
            for piece in run.pieces:
                own = Range(piece.segment, 0, piece.begin)
                uses += [(number, part) for part in (*self.segments[piece.segment].sees, own)]
        uses = [(number, part) for number, part in uses if len(part)]
        across = {p.segment for number, p in uses if home.get(p.segment) != {number}}
        kept: dict[int, int] = {}
        for _, part in uses:
            if part.segment in across:
                kept[part.segment] = max(kept.get(part.segment, 0), part.end)
        return kept

    def last_use(self, passes: Sequence[Pass]) -> dict[int, int]:
        """Per segment, the number of the last pass that sees it."""
        last: dict[int, int] = {}
        for number, run in enumerate(passes):
            for piece in run.pieces:
                last[piece.segment] = number
                for part in self.segments[piece.segment].sees:
                    last[part.segment] = number
        return last


def _common_prefix(a: np.ndarray, b: np.ndarray) -> int:
    """How many first items two integer arrays share."""
    size = min(len(a), len(b))
    different = np.flatnonzero(a[:size] != b[:size])
    return int(different[0]) if len(different) else size
