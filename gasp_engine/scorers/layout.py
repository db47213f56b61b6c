"""One pass as the attention sees it: stretches of it, and the keys that each of them sees.

place    0 1 2 3 4 5 6 7 8 9
piece    └─ A ─┘ └─ B ─┘ └C┘       B sees 0[2:9] of a kept segment and A; C sees B and itself
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

_SMALL = 64
"""Pieces shorter than this are attended over together where they can be."""


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
        ends = last is not None and last.position + last.end - last.begin == self.position
        return last if ends else None

    @property
    def others(self) -> tuple[Source, ...]:
        """All sources but `own`."""
        return self.sources[:-1] if self.own else self.sources


@dataclass
class PassLayout:
    """One pass, ready to be attended over."""

    pieces: Sequence[Piece]
    """All pieces, in the order of their places."""
    windows: dict[int, int | None] = field(default_factory=dict[int, int | None])
    """Layer -> the sliding window that the model asked for; filled while the pass runs."""

    @cached_property
    def rows(self) -> list[list[Piece]]:
        """Neighbouring pieces of equal length, which can be run side by side."""
        rows: list[list[Piece]] = []
        for piece in self.pieces:
            last = rows[-1][-1] if rows else None
            if last and last.size == piece.size:
                rows[-1].append(piece)
            else:
                rows.append([piece])
        return rows

    @cached_property
    def shelf(self) -> Shelf | None:
        """The kept keys of the pass, side by side; None where pieces see few kept segments each."""
        kept = [{id(s.kept) for s in piece.sources if s.kept} for piece in self.pieces]
        if max((len(seen) for seen in kept), default=0) <= 2:
            return None
        shelf = Shelf(self.pieces)
        return shelf if shelf.total <= 2 * shelf.most else None

    @cached_property
    def bundles(self) -> list[Bundle]:
        """Short pieces that see much the same kept keys, bundled; empty unless all are such."""
        groups: dict[tuple[int, int], list[Piece]] = {}
        for piece in self.pieces:
            if piece.size >= _SMALL or any(source.kept is None for source in piece.sources):
                return []
            own = piece.own
            groups.setdefault((piece.size, own.end - own.begin if own else 0), []).append(piece)
        bundles = [Bundle(tuple(group)) for group in groups.values()]
        return bundles if all(bundle.is_worth_it for bundle in bundles) else []


class Shelf:
    """Kept keys that several pieces see, laid out once: what each of them sees is then ranges.

    Args:
        pieces: that see kept keys.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        spans: dict[int, tuple[KeyValues, int, int]] = {}
        for source in (source for piece in pieces for source in piece.sources):
            if source.kept is not None:
                _, begin, end = spans.get(id(source.kept), (None, source.begin, source.end))
                span = (source.kept, min(begin, source.begin), max(end, source.end))
                spans[id(source.kept)] = span
        self.spans = list(spans.values())
        """What is laid out: where the keys lie, first, one past the last."""
        self.total = 0
        """Keys that are laid out."""
        starts: dict[int, int] = {}
        for key, (_, begin, end) in spans.items():
            starts[key] = self.total - begin
            self.total += end - begin
        self._ranges = {
            piece.begin: _runs(
                (starts[id(s.kept)] + s.begin, starts[id(s.kept)] + s.end)
                for s in piece.sources
                if s.kept is not None
            )
            for piece in pieces
        }
        self.most = max(sum(b - a for a, b in runs) for runs in self._ranges.values())
        """Most keys that one piece sees."""

    def ranges(self, piece: Piece) -> list[tuple[int, int]]:
        """What a piece sees of it: first, one past the last."""
        return self._ranges[piece.begin]

    def lay(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of a layer, [heads, total, size]."""
        parts = [kept.layers[layer] for kept, _, _ in self.spans]
        if len(parts) == 1:
            (key, value), (_, begin, end) = parts[0], self.spans[0]
            return key[:, begin:end], value[:, begin:end]
        cut = [(k[:, b:e], v[:, b:e]) for (k, v), (_, b, e) in zip(parts, self.spans, strict=True)]
        return torch.cat([k for k, _ in cut], 1), torch.cat([v for _, v in cut], 1)


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
        seen = [sum(end - begin for begin, end in self.shelf.ranges(p)) for p in self.pieces]
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
        before = self.own[0].end - self.own[0].begin if self.own else 0
        full = torch.full((self.size, before + self.size), -torch.inf)
        return full.triu(before + 1)


def _places(pieces: Sequence[Piece]) -> slice | Tensor:
    if all(after.begin == piece.end for piece, after in pairwise(pieces)):
        return slice(pieces[0].begin, pieces[-1].end)
    return torch.cat([torch.arange(piece.begin, piece.end) for piece in pieces])
