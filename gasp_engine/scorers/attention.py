"""Attention for one pass of a plan: each piece sees its ranges in full, and itself causally.

    out = Σ_i w_i · out_i,   w = softmax over i of lse_i      (i: each range, and the piece itself)

The parts are computed each by itself and put together by their log-sum-exps, which is exact. So no
key is copied for the branches that share it, no masked square is computed, and the memory does not
grow with the number of branches. Where the device gives no log-sum-exp (or a sliding window cuts
through a range) a piece's keys are laid side by side and masked instead.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ..errors import ModelLoadError
from .layout import Bundle, PassLayout, Piece, Shelf, Source, Split

NAME = "gasp_packed"
"""What the attention is registered under with transformers."""

_active = threading.local()


class running:
    """Context in which `packed_attention` attends over `layout`, in this thread only."""

    def __init__(self, layout: PassLayout) -> None:
        self._layout = layout

    def __enter__(self) -> None:
        _active.layout = self._layout

    def __exit__(self, *_: object) -> None:
        _active.layout = None


def packed_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in each layer.

    Args:
        module: the layer's attention module; its `layer_idx` is read.
        query: [1, H, N, size].
        key: [1, KH, N, size], KH a divisor of H.
        value: [1, KH, N, size].
        attention_mask: ignored; the layout of the pass says what is seen.
        scaling: of the scores; None: size ** -0.5.
        dropout: must be 0.
        sliding_window: a token sees only the last so many positions, itself included.
        options: anything that would change the scores makes it refuse.

    Returns:
        [1, N, H, size], and None for the weights.

    Raises:
        ModelLoadError: the model asks for something that is not computed here.
    """
    layout: PassLayout | None = getattr(_active, "layout", None)
    assert layout is not None, "packed attention outside a pass"
    strange = [n for n in ("softcap", "s_aux", "position_bias") if options.get(n) is not None]
    if strange or dropout:
        raise ModelLoadError(
            f"{type(module).__name__} asks for {', '.join(strange) or 'dropout'} in its attention, "
            f"which only mode='plain' computes"
        )
    layer = int(module.layer_idx)
    layout.windows[layer] = sliding_window
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    for piece in layout.pieces:
        if piece.keep is not None and piece.keep_at < piece.keep.tokens:
            here = slice(piece.begin, piece.end)
            piece.keep.write(layer, piece.keep_at, key[0, :, here], value[0, :, here])
    out = query.new_empty((1, query.shape[2], query.shape[1], value.shape[-1]))
    pass_ = _LayerPass(layer, query[0], key[0], value[0], out[0], scale, sliding_window)
    if query.device.type != "cpu":
        for piece in layout.pieces:
            pass_.attend_masked(piece)
    elif sliding_window is None and layout.bundles:
        for bundle in layout.bundles:
            pass_.attend_bundle(bundle)
    else:
        pass_.attend_split(layout.split(sliding_window))
    return out, None


@dataclass(frozen=True, slots=True)
class _LayerPass:
    """One layer's tensors of a pass."""

    layer: int
    query: Tensor  # [H, N, size]
    key: Tensor  # [KH, N, size]
    value: Tensor  # [KH, N, size]
    out: Tensor  # [N, H, size]
    scale: float
    window: int | None

    def attend_bundle(self, bundle: Bundle) -> None:
        """Fill the rows of `out` that belong to a bundle."""
        count, size, places = len(bundle.pieces), bundle.size, bundle.places
        query = self.query[:, places]  # [H, c * n, d]

        def own(which: int) -> Tensor:  # [c, KH, own + n, d]
            here = (self.key, self.value)[which][:, places]
            new = here.unflatten(1, (count, size)).transpose(0, 1)
            old = [self._slice(source)[which] for source in bundle.own]
            return torch.cat((torch.stack(old), new), 2) if old else new

        side_by_side = query.unflatten(1, (count, size)).transpose(0, 1)
        alone, lse = _flash(side_by_side, own(0), own(1), self.scale, False, bundle.own_mask)
        parts = [(alone.transpose(0, 1).flatten(1, 2), lse.transpose(0, 1).flatten(1, 2))]
        if bundle.shelf.total:
            mask = bundle.mask(self.query.shape[0] // self.key.shape[0])
            parts.append(self._attend_range(query, *self._lay(bundle.shelf), mask))
        self.out[places] = _merge(parts).transpose(0, 1).to(self.out.dtype)

    def attend_split(self, split: Split) -> None:
        """Fill the rows of `out` piece by piece and tile by tile."""
        for piece in split.cut:
            self.attend_masked(piece)
        parts: dict[int, list[tuple[Tensor, Tensor]]] = {}
        for row in split.rows:
            parts |= self._attend_themselves(row)
        laid = self._lay(split.shelf) if split.is_laid else None
        for tile, sources in zip(split.tiles, split.sources, strict=True):
            if laid is None:
                key, value = self._gather(sources)
            else:
                key, value = (_joined([t[:, b:e] for b, e in tile.ranges]) for t in laid)
            out, lse = self._attend_range(self.query[:, tile.places], key, value)
            sizes = [piece.size for piece in tile.pieces]
            found = zip(out.split(sizes, 1), lse.split(sizes, 1), strict=True)
            for piece, part in zip(tile.pieces, found, strict=True):
                parts[piece.begin].append(part)
        for begin, mine in parts.items():
            merged = _merge(mine)
            self.out[begin : begin + merged.shape[1]] = merged.transpose(0, 1)

    def _attend_themselves(self, row: list[Piece]) -> dict[int, list[tuple[Tensor, Tensor]]]:
        """Pieces of equal length, one after the other: each causally to itself, by its place."""
        here, size = slice(row[0].begin, row[-1].end), row[0].size

        def side_by_side(tensor: Tensor) -> Tensor:  # [heads, c * size, d] -> [c, heads, size, d]
            return tensor[:, here].unflatten(1, (len(row), size)).transpose(0, 1)

        query, key, value = (side_by_side(t) for t in (self.query, self.key, self.value))
        out, lse = _flash(query, key, value, self.scale, causal=True)
        return {piece.begin: [(out[i], lse[i])] for i, piece in enumerate(row)}

    def _lay(self, shelf: Shelf) -> tuple[Tensor, Tensor]:
        """All keys and values of a shelf, [KH, total, size]."""
        return self._gather(shelf.sources(0, shelf.total))

    def _gather(self, sources: Sequence[Source]) -> tuple[Tensor, Tensor]:
        """Keys and values of some ranges, one after the other; not copied where there is one."""
        parts = [self._slice(source) for source in sources]
        return _joined([k for k, _ in parts]), _joined([v for _, v in parts])

    def _slice(self, source: Source) -> tuple[Tensor, Tensor]:
        keys, values = (self.key, self.value)
        if source.kept is not None:
            keys, values = source.kept.layers[self.layer]
        return keys[:, source.begin : source.end], values[:, source.begin : source.end]

    def _attend_range(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries [H, n, d] against all keys of a range, [H, n, d] and [H, n]."""
        heads, size, depth = query.shape
        # Queries that share a key head are laid one under the other: no key is repeated.
        folded = query.reshape(1, key.shape[0], -1, depth)
        out, lse = _flash(folded, key[None], value[None], self.scale, False, mask)
        return out[0].reshape(heads, size, -1), lse[0].reshape(heads, size)

    def attend_masked(self, piece: Piece) -> None:
        """Fill the rows of `out` that belong to one piece, with a mask over all of its keys."""
        sources = piece.within(self.window).sources
        size = piece.size
        device = self.query.device
        here = slice(piece.begin, piece.end)
        keys, values = self._gather([*sources, Source(None, piece.begin, piece.end, 0)])
        starts = [(s.position, s.size) for s in sources] + [(piece.position, size)]
        at = torch.cat([torch.arange(p, p + n, device=device) for p, n in starts])
        mine = torch.arange(piece.position, piece.position + size, device=device)[:, None]
        seen = torch.ones((size, len(at)), dtype=torch.bool, device=device)
        seen[:, -size:] = torch.ones((size, size), dtype=torch.bool, device=device).tril()
        if self.window is not None:
            seen &= at[None, :] > mine - self.window
        repeat = self.query.shape[0] // keys.shape[0]
        out = scaled_dot_product_attention(
            self.query[None, :, here],
            keys.repeat_interleave(repeat, 0)[None],
            values.repeat_interleave(repeat, 0)[None],
            attn_mask=seen[None, None],
            scale=self.scale,
        )
        self.out[here] = out[0].transpose(0, 1)


def _flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    causal: bool,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention [b, heads, n, d] with its log-sum-exps [b, heads, n] float32, on the CPU.

    `mask` [n, keys] float32 is added to the scores.
    """
    if query.shape[1] != key.shape[1] and not _flash_shares_keys():
        repeat = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeat, 1), value.repeat_interleave(repeat, 1)
    if query.shape[-1] == value.shape[-1]:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query,
            key,
            value,
            0.0,
            causal,
            attn_mask=None if mask is None else mask[None, None],
            scale=scale,
        )
    repeat = query.shape[1] // key.shape[1]
    scores = query.float() @ key.repeat_interleave(repeat, 1).float().transpose(2, 3) * scale
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    if mask is not None:
        scores += mask
    lse = scores.logsumexp(-1)
    out = (scores - lse[..., None]).exp() @ value.repeat_interleave(repeat, 1).float()
    return out.to(value.dtype), lse


def _joined(parts: list[Tensor]) -> Tensor:
    """[heads, n, d] tensors, one after the other."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


@cache
def _flash_shares_keys() -> bool:
    """Whether this torch lets several query heads share a key head; older ones cannot."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn((1, h, 3, 8), generator=generator) for h in (4, 2))
    try:
        ours, _ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, key)
    except RuntimeError:
        return False
    wide = key.repeat_interleave(2, 1)
    wanted, _ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, wide, wide)
    return bool(torch.allclose(ours, wanted, atol=1e-6))


def _merge(parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Put partial attentions [H, n, d] together by their log-sum-exps [H, n]."""
    if len(parts) == 1:
        return parts[0][0]
    weights = torch.stack([lse for _, lse in parts]).softmax(0)[..., None]
    total = parts[0][0] * weights[0]  # bfloat16 times float32 is float32
    for (out, _), weight in zip(parts[1:], weights[1:], strict=True):
        total.addcmul_(out.to(total.dtype), weight)
    return total
