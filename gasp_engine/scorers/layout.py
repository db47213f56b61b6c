"""One pass as the attention sees it: stretches of it, and the keys that each of them sees.

place    0 1 2 3 4 5 6 7 8 9
piece    └─ A ─┘ └─ B ─┘ └C┘       B sees 0[2:9] of a kept segment and A; C sees B and itself
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

_SMALL = 64
"""Pieces shorter than this are attended over together where they can be."""

_MANY_KEYS = 256
"""Fewer keys than this are not worth a call and a merge of their own."""


class KeyValues:
    """Keys and values of the first tokens of one segment, in all layers.

    What was written is never changed; only `append` adds to it.

    Args:
        tokens: how many tokens it holds.
    """

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}
        """Layer -> keys and values, each [heads, at least `tokens`, size]."""

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return sum(k.nbytes + v.nbytes for k, v in self.layers.values())

    def write(self, layer: int, begin: int, key: Tensor, value: Tensor) -> None:
        """Store the tokens from `begin` on, as far as there is room."""
        if layer not in self.layers:
            self.layers[layer] = (
                key.new_empty((key.shape[0], self.tokens, key.shape[2])),
                value.new_empty((value.shape[0], self.tokens, value.shape[2])),
            )
        size = min(key.shape[1], self.tokens - begin)
        keys, values = self.layers[layer]
        keys[:, begin : begin + size] = key[:, :size]
        values[:, begin : begin + size] = value[:, :size]

    def append(self, other: KeyValues) -> None:
        """Add the tokens of `other` after these; room is made in steps, so that few are copied."""
        total = self.tokens + other.tokens
        for layer, stored in self.layers.items():
            room = stored[0].shape[1]
            if room < total:
                more = max(total, room + room // 2 + _SMALL) - room
                wider = [
                    torch.cat((t, t.new_empty(t.shape[0], more, t.shape[2])), 1) for t in stored
                ]
                self.layers[layer] = stored = (wider[0], wider[1])
            for mine, new in zip(stored, other.layers[layer], strict=True):
                mine[:, self.tokens : total] = new[:, : other.tokens]
        self.tokens = total


@dataclass(frozen=True, slots=True)
class Source:
    """A range of keys that a piece sees in full."""

    kept: KeyValues | None
    """Where the keys lie; None: in this pass."""
    begin: int
    """First key: a token of the kept segment, or a place in this pass."""
    end: int
    """One past the last key."""
    position: int
    """Position of the first key in the model's sense."""

    @property
    def size(self) -> int:
        """Keys."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one pass that belongs together."""

    begin: int
    """First place in the pass."""
    end: int
    """One past the last place."""
    position: int
    """Position of the first token in the model's sense."""
    sources: tuple[Source, ...]
    """What it sees before itself."""
    keep: KeyValues | None
    """Where its keys and values are stored, if anywhere."""
    keep_at: int
    """Index there of the piece's first token."""

    @property
    def size(self) -> int:
        """Tokens."""
        return self.end - self.begin

    @property
    def own(self) -> Source | None:
        """The last source, if it ends where the piece begins: the piece goes on with it."""
        last = self.sources[-1] if self.sources else None
        ends = last is not None and last.position + last.size == self.position
        return last if ends else None

    @property
    def others(self) -> tuple[Source, ...]:
        """All sources but `own`."""
        return self.sources[:-1] if self.own else self.sources

    def within(self, window: int | None) -> Piece:
        """The piece with those sources alone of which its first token sees something."""
        if window is None:
            return self
        seen = [s for s in self.sources if s.position + s.size - 1 + window > self.position]
        return replace(self, sources=tuple(seen))

    def is_cut(self, window: int | None) -> bool:
        """Whether a sliding window hides some keys and shows others, of a source or of itself."""
        if window is None:
            return False
        last = self.position + self.size - 1
        return self.size > window or any(
            source.position + window <= last for source in self.within(window).sources
        )


@dataclass
class PassLayout:
    """One pass, ready to be attended over."""

    pieces: Sequence[Piece]
    """All pieces, in the order of their places."""
    windows: dict[int, int | None] = field(default_factory=dict[int, int | None])
    """Layer -> the sliding window that the model asked for; filled while the pass runs."""
    _splits: dict[int | None, Split] = field(default_factory=dict["int | None", "Split"])

    def split(self, window: int | None) -> Split:
        """How the pass is attended over in a layer with this sliding window."""
        if window not in self._splits:
            self._splits[window] = Split(self.pieces, window)
        return self._splits[window]

    @cached_property
    def bundles(self) -> list[Bundle]:
        """Short pieces that see much the same kept keys, bundled; empty unless all are such."""
        groups: dict[tuple[int, int], list[Piece]] = {}
        for piece in self.pieces:
            if piece.size >= _SMALL or any(source.kept is None for source in piece.sources):
                return []
            own = piece.own
            groups.setdefault((piece.size, own.size if own else 0), []).append(piece)
        bundles = [Bundle(tuple(group)) for group in groups.values()]
        return bundles if all(bundle.is_worth_it for bundle in bundles) else []


class Split:
    """The attention of one pass in parts: each piece to itself, and tiles.

    Args:
        pieces: all pieces of the pass.
        window: the layer's sliding window.
    """

    def __init__(self, pieces: Sequence[Piece], window: int | None) -> None:
        self.cut: list[Piece] = []
        """Pieces that cannot be split, because the window hides some keys of a range."""
        whole: list[Piece] = []
        for piece in pieces:
            if piece.is_cut(window):
                self.cut.append(piece)
            else:
                whole.append(piece.within(window))
        self.rows: list[list[Piece]] = []
        """The others, where neighbours of equal length can be run side by side."""
        for piece in whole:
            last = self.rows[-1][-1] if self.rows else None
            if last and last.end == piece.begin and last.size == piece.size:
                self.rows[-1].append(piece)
            else:
                self.rows.append([piece])
        self.shelf = Shelf(whole)
        """What they see before themselves."""
        self.tiles = _tiles(whole, self.shelf)
        """All of that, each key of each piece in exactly one tile."""
        # Worked out here, once a pass, and not in each of the model's layers.
        self.sources = [
            [source for run in tile.ranges for source in self.shelf.sources(*run)]
            for tile in self.tiles
        ]
        """For each tile, where its keys lie."""
        crossing = [r for t in self.tiles for r in t.ranges if len(self.shelf.sources(*r)) > 1]
        self.is_laid = sum(end - begin for begin, end in crossing) > self.shelf.total
        """Whether to lay the shelf out, because tiles would otherwise copy more keys than that."""


class Shelf:
    """Keys that several pieces see, as if laid one after the other: what a piece sees is ranges.

    Args:
        pieces: that see keys.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        hulls: dict[int, tuple[KeyValues | None, int, int]] = {}
        for source in (source for piece in pieces for source in piece.sources):
            _, begin, end = hulls.get(id(source.kept), (None, source.begin, source.end))
            hull = (source.kept, min(begin, source.begin), max(end, source.end))
            hulls[id(source.kept)] = hull
        self.spans = list(hulls.values())
        """What is laid out: where the keys lie (None: in this pass), first, one past the last."""
        ends = list(accumulate(end - begin for _, begin, end in self.spans))
        self.total = ends[-1] if ends else 0
        """Keys that are laid out."""
        self.edges = [0, *ends]
        """Where a span begins, and `total`."""
        shifts = {
            key: edge - begin
            for (key, (_, begin, _)), (edge, _) in zip(
                hulls.items(), pairwise(self.edges), strict=True
            )
        }
        self._ranges = {
            piece.begin: _runs(
                (shifts[id(s.kept)] + s.begin, shifts[id(s.kept)] + s.end) for s in piece.sources
            )
            for piece in pieces
        }
        self.most = max((self.seen(piece) for piece in pieces), default=0)
        """Most keys that one piece sees."""

    def ranges(self, piece: Piece) -> list[tuple[int, int]]:
        """What a piece sees of it: first, one past the last."""
        return self._ranges[piece.begin]

    def seen(self, piece: Piece) -> int:
        """How many keys a piece sees."""
        return sum(end - begin for begin, end in self.ranges(piece))

    def sources(self, begin: int, end: int) -> list[Source]:
        """Where a range of it lies: one source for each span that the range touches."""
        found: list[Source] = []
        for (edge, until), (kept, first, _) in zip(pairwise(self.edges), self.spans, strict=True):
            start, stop = max(begin, edge), min(end, until)
            if start < stop:
                found.append(Source(kept, first + start - edge, first + stop - edge, 0))
        return found


@dataclass(frozen=True, slots=True)
class Tile:
    """Pieces, and keys that every one of them sees: a rectangle of the attention.

    units      u1 u2 u3 u4
    without 1     b  a  a       tiles: a two pieces, two units
    without 2  b     a  a              b one piece, one unit
    without 3  a  a     b
    without 4  a  a  b
    """

    pieces: tuple[Piece, ...]
    """In the order of their places; not empty."""
    ranges: tuple[tuple[int, int], ...]
    """Of the shelf, first and one past the last; attended to as if they followed each other."""
    places: slice | Tensor
    """Where the pieces' tokens lie in the pass."""


def _tiles(pieces: Sequence[Piece], shelf: Shelf) -> list[Tile]:
    """Cover what pieces see of a shelf.

    The attention kernel is up to a quarter faster on many rows than on the few of one piece. So
    keys that all pieces see are attended to by all at once; then both halves of the pieces do the
    same with what is left to them.
    """
    edges = sorted({edge for piece in pieces for run in shelf.ranges(piece) for edge in run})
    sizes = np.diff(np.asarray(edges))
    left = np.zeros((len(pieces), len(sizes)), dtype=bool)
    for row, piece in zip(left, pieces, strict=True):
        for begin, end in shelf.ranges(piece):
            row[bisect_left(edges, begin) : bisect_left(edges, end)] = True
    found: list[Tile] = []

    def ranges(cells: Any) -> list[tuple[int, int]]:
        return _runs((edges[i], edges[i + 1]) for i in np.flatnonzero(cells).tolist())

    def cover(rows: list[int]) -> None:
        rows = [row for row in rows if left[row].any()]
        if len(rows) < 2:
            for row in rows:
                found.extend(_alone(pieces[row], ranges(left[row])))
            return
        group = tuple(pieces[row] for row in rows)
        for begin, end in ranges(left[rows].all(0)):
            if end - begin >= _MANY_KEYS:
                left[rows, bisect_left(edges, begin) : bisect_left(edges, end)] = False
                found.append(Tile(group, ((begin, end),), _places(group)))
        cover(rows[: len(rows) // 2])
        cover(rows[len(rows) // 2 :])

    cover(list(range(len(pieces))))
    return found


def _alone(piece: Piece, ranges: list[tuple[int, int]]) -> Iterator[Tile]:
    """What only one piece is left to see: one call for all of it, or two long ones."""
    places = _places((piece,))
    if len(ranges) == 2 and all(end - begin >= _MANY_KEYS for begin, end in ranges):
        yield Tile((piece,), (ranges[0],), places)
        yield Tile((piece,), (ranges[1],), places)
    else:
        yield Tile((piece,), tuple(ranges), places)


def _runs(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges with neighbours made one."""
    runs: list[tuple[int, int]] = []
    for begin, end in ranges:
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return runs


class Bundle:
    """Pieces of one length that are attended over in two calls: to all kept keys, to their own.

    A piece's own keys are those of the kept source that ends where the piece begins. All others are
    laid out once for the whole bundle, and a mask says which piece sees which of them.

    Args:
        pieces: of equal length, their own sources of equal length as well; not empty.
    """

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        self.pieces = pieces
        self.size = pieces[0].size
        """Tokens of a piece, n."""
        self.own = [piece.own for piece in pieces if piece.own]
        """Each piece's own source; empty when none has one."""
        self.shelf = Shelf([replace(piece, sources=piece.others) for piece in pieces])
        """The keys that are not a piece's own."""
        self.places = _places(pieces)
        """Where the pieces' tokens lie in the pass: c * n of them."""
        self._masks: dict[int, Tensor] = {}

    @property
    def is_worth_it(self) -> bool:
        """Whether one piece sees at least half of the shelf, and every one something."""
        seen = [self.shelf.seen(piece) for piece in self.pieces]
        return self.shelf.total == 0 or (min(seen) > 0 and 2 * self.shelf.most >= self.shelf.total)

    def mask(self, repeat: int) -> Tensor:
        """0 where a token sees a key of the shelf, −inf elsewhere: [repeat * c * n, keys]."""
        if repeat not in self._masks:
            hidden = torch.full((len(self.pieces), self.shelf.total), -torch.inf)
            for row, piece in zip(hidden, self.pieces, strict=True):
                for begin, end in self.shelf.ranges(piece):
                    row[begin:end] = 0.0
            self._masks[repeat] = hidden.repeat_interleave(self.size, 0).repeat(repeat, 1)
        return self._masks[repeat]

    @cached_property
    def own_mask(self) -> Tensor:
        """0 where a token sees one of its piece's own keys or of the piece itself, else −inf."""
        before = self.own[0].size if self.own else 0
        full = torch.full((self.size, before + self.size), -torch.inf)
        return full.triu(before + 1)


def _places(pieces: Sequence[Piece]) -> slice | Tensor:
    if all(after.begin == piece.end for piece, after in pairwise(pieces)):
        return slice(pieces[0].begin, pieces[-1].end)
    return torch.cat([torch.arange(piece.begin, piece.end) for piece in pieces])
