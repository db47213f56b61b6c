"""How one pass is attended over: tiles cover exactly what is seen, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gasp_engine.scorers import layout
from gasp_engine.scorers.attention import _LayerPass
from gasp_engine.scorers.layout import KeyValues, Piece, Source, Split

HEADS, KEY_HEADS, SIZE = 4, 2, 8
SCALE = SIZE**-0.5


def kept(tokens, seed):
    draw = torch.Generator().manual_seed(seed)
    store = KeyValues(tokens)
    shape = (KEY_HEADS, tokens, SIZE)
    store.write(0, 0, torch.randn(shape, generator=draw), torch.randn(shape, generator=draw))
    return store


def layer_pass(tokens, window=None):
    draw = torch.Generator().manual_seed(9)
    query = torch.randn((HEADS, tokens, SIZE), generator=draw)
    key, value = torch.randn((2, KEY_HEADS, tokens, SIZE), generator=draw)
    return _LayerPass(0, query, key, value, torch.empty(tokens, HEADS, SIZE), SCALE, window)


def expected(one, pieces):
    """Each piece over the keys of its sources and itself, in double precision."""
    out = np.empty((one.query.shape[1], HEADS, SIZE))
    for piece in pieces:
        parts = [one._slice(source) for source in piece.sources]
        here = slice(piece.begin, piece.end)
        parts.append((one.key[:, here], one.value[:, here]))
        key, value = (torch.cat([p[i] for p in parts], 1).double() for i in (0, 1))
        at = [s.position + i for s in piece.sources for i in range(s.size)]
        at = torch.tensor([*at, *range(piece.position, piece.position + piece.size)])
        own = at[-piece.size :, None]
        seen = at[None, :] <= own
        if one.window is not None:
            seen &= at[None, :] > own - one.window
        key, value = (t.repeat_interleave(HEADS // KEY_HEADS, 0) for t in (key, value))
        scores = one.query[:, here].double() @ key.transpose(1, 2) * SCALE
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        out[here] = (weights @ value).transpose(0, 1).numpy()
    return out


@st.composite
def passes(draw):
    """Pieces that see any units of a few kept segments, and perhaps an earlier piece."""
    units = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    stores = [(kept(n + 3, seed), n) for seed, n in enumerate(units)]
    pieces, begin = [], 0
    for _ in range(draw(st.integers(1, 6))):
        size = draw(st.integers(1, 4))
        sources, position = [], 0
        for store, n in stores:
            if draw(st.booleans()):
                first = draw(st.integers(0, 3))
                sources.append(Source(store, first, first + n, position))
            position += n
        if pieces and draw(st.booleans()):
            sources.append(Source(None, pieces[0].begin, pieces[0].end, position))
            position += pieces[0].size
        pieces.append(Piece(begin, begin + size, position, tuple(sources), None, 0))
        begin += size
    return pieces


@pytest.mark.parametrize("many", [1, 5, 256])
@settings(max_examples=60, deadline=None)
@given(pieces=passes())
def test_tiles_give_what_each_piece_sees(many, pieces):
    one = layer_pass(pieces[-1].end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "_MANY_KEYS", many)
        split = Split(pieces, None)
    for piece in pieces:
        mine = sorted(r for t in split.tiles if piece in t.pieces for r in t.ranges)
        keys = [key for begin, end in mine for key in range(begin, end)]
        wanted = [key for begin, end in split.shelf.ranges(piece) for key in range(begin, end)]
        assert sorted(keys) == sorted(wanted)
    one.attend_split(split)
    np.testing.assert_allclose(one.out.numpy(), expected(one, pieces), atol=2e-6)


@pytest.mark.parametrize("window", [1, 4, 9, 40])
@settings(max_examples=40, deadline=None)
@given(pieces=passes())
def test_a_sliding_window_hides_what_lies_before_it(window, pieces):
    one = layer_pass(pieces[-1].end, window)
    one.attend_split(Split(pieces, window))
    np.testing.assert_allclose(one.out.numpy(), expected(one, pieces), atol=2e-6)


def test_leaving_out_one_of_many_units_makes_few_large_tiles():
    store = kept(16 * 300, 0)
    pieces = [
        Piece(
            10 * k,
            10 * k + 10,
            16 * 300,
            (Source(store, 0, 300 * k, 0), Source(store, 300 * k + 300, 4800, 300 * k + 300)),
            None,
            0,
        )
        for k in range(16)
    ]
    split = Split(pieces, None)
    assert len(split.tiles) == 2 + 4 + 8 + 16
    assert len(split.tiles[0].pieces) == 8
    assert not split.is_laid
