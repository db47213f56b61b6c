"""Runs a plan on a Hugging Face model: many segments in one call, keys and values shared.

    pass   | c o n t e x t | question answer | question answer | …      one row, positions given
             ↑ kept for later passes           ↑ sees ranges of what lies before it

The model's own layers run unchanged; only the attention is exchanged, by the interface that
transformers has for it. Before a model is used this way it is checked: a small plan must give the
same outputs as the model itself, so that an architecture that mixes tokens in another way
(recurrent layers, position biases, …) is refused and never wrong in silence.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from ..errors import ModelLoadError
from .attention import NAME, packed_attention, running
from .layout import KeyValues, PassLayout, Piece, Source
from .linear import fast_linear
from .plan import Pass, Plan, Range, join
from .readout import Head

AttentionInterface.register(NAME, packed_attention)

_KNOWN_LAYERS = {"full_attention", "sliding_attention"}


class PackedModel:
    """A causal language model that runs plans.

    Args:
        model: in evaluation mode; its attention implementation is exchanged during `run` only.
        limit: most tokens in one pass.

    Raises:
        ModelLoadError: the model does not compute what a plan means; says what to use instead.
    """

    def __init__(self, model: Any, limit: int) -> None:
        self._model = model
        self._limit = limit
        self._checked = False

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self._model.device

    def run(
        self,
        plan: Plan,
        rows: Sequence[Range],
        *,
        given: Mapping[int, KeyValues] | None = None,
        keep: Sequence[Range] = (),
    ) -> tuple[list[Tensor], dict[int, KeyValues]]:
        """Run all passes of a plan.

        Args:
            plan: what to run.
            rows: ranges whose outputs are wanted.
            given: keys and values of the plan's given segments.
            keep: ranges whose keys and values are wanted.

        Returns:
            Per range of `rows` the last hidden states [len(range), size] in the model's dtype; and
            the keys and values of the segments named in `keep`, from their first token on.
        """
        self.check()
        return self._run(plan, rows, given or {}, keep)

    def check(self) -> None:
        """Compare a small plan with the model itself, once. Raises ModelLoadError."""
        if self._checked:
            return
        _refuse_by_config(self._model)
        self._compare()
        self._checked = True

    def _run(
        self,
        plan: Plan,
        rows: Sequence[Range],
        given: Mapping[int, KeyValues],
        keep: Sequence[Range],
        windows: dict[int, int | None] | None = None,
    ) -> tuple[list[Tensor], dict[int, KeyValues]]:
        passes = plan.passes(self._limit)
        needed = plan.keeps(passes, keep)
        last = plan.last_use(passes)
        wanted = {part.segment for part in keep}
        stores = {s: KeyValues(n) for s, n in needed.items() if s not in given}
        found: dict[int, Tensor] = {}
        before = self._model.config._attn_implementation
        self._model.set_attn_implementation(NAME)
        try:
            with torch.inference_mode(), fast_linear(self._model):
                for number, one in enumerate(passes):
                    layout = _layout(plan, one, {**stores, **given})
                    hidden = self._forward(plan, one, layout)
                    _collect(hidden, one, rows, found)
                    for segment, until in last.items():
                        if until == number and segment not in wanted:
                            stores.pop(segment, None)
                    if windows is not None:
                        windows.update(layout.windows)
        finally:
            self._model.set_attn_implementation(before)
        return [found[i] for i in range(len(rows))], {s: stores[s] for s in wanted if s in stores}

    def _forward(self, plan: Plan, one: Pass, layout: PassLayout) -> Tensor:
        """Last hidden states [N, size] of one pass."""
        ids: list[int] = []
        positions: list[int] = []
        for part in one.pieces:
            segment = plan.segments[part.segment]
            ids += segment.tokens[part.begin : part.end]
            positions += range(segment.position + part.begin, segment.position + part.end)
        device = self._model.device
        with running(layout):
            output: Any = self._model.base_model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([positions], device=device),
                use_cache=False,
            )
        return output.last_hidden_state[0]

    def _compare(self) -> None:
        """Three branches over shared tokens, against the model's own passes."""
        model = self._model
        vocabulary = model.get_input_embeddings().weight.shape[0]
        draw = torch.Generator().manual_seed(1)
        stem = torch.randint(vocabulary, (17,), generator=draw).tolist()
        tails = torch.randint(vocabulary, (2, 6), generator=draw).tolist()
        sequences = [stem + tails[0], stem[:9] + tails[1], tails[1]]
        plan = Plan()
        routes = plan.share(sequences)
        windows: dict[int, int | None] = {}
        try:
            ours, _ = self._run(plan, [route[-1] for route in routes], {}, (), windows)
            with torch.inference_mode():
                theirs = [
                    model(input_ids=torch.tensor([s], device=model.device), use_cache=False).logits[
                        0
                    ]
                    for s in sequences
                ]
                logits = [Head(model)(hidden) for hidden in ours]
        except (TypeError, ValueError, RuntimeError, AttributeError, KeyError) as error:
            raise _refusal(model, f"it cannot run a packed pass ({error})") from error
        _refuse_by_windows(model, windows)
        wide = model.dtype == torch.float32
        for mine, whole in zip(logits, theirs, strict=True):
            wanted = whole[-len(mine) :].float()
            # A model that overflows is no other model: the scores themselves will say so.
            finite = torch.isfinite(wanted) & torch.isfinite(mine)
            if not finite.any():
                continue
            scale = float(wanted[finite].abs().max()) or 1.0
            error = float((mine - wanted)[finite].abs().max()) / scale
            if not error < (1e-3 if wide else 0.2):
                raise _refusal(model, f"a packed pass differs from a plain one by {error:.2g}")


def _layout(plan: Plan, one: Pass, stores: Mapping[int, KeyValues]) -> PassLayout:
    place: dict[int, int] = {}  # segment -> place of its token 0, for those that lie in this pass
    pieces: list[Piece] = []
    begin = 0
    for part in one.pieces:
        segment = plan.segments[part.segment]
        place[part.segment] = begin - part.begin
        sources: list[Source] = []
        for seen in join((*segment.sees, Range(part.segment, 0, part.begin))):
            position = plan.segments[seen.segment].position + seen.begin
            kept = stores.get(seen.segment)
            shift = 0 if kept is not None else place[seen.segment]
            sources.append(Source(kept, seen.begin + shift, seen.end + shift, position))
        pieces.append(
            Piece(
                begin,
                begin + len(part),
                segment.position + part.begin,
                tuple(sources),
                stores.get(part.segment),
                part.begin,
            )
        )
        begin += len(part)
    return PassLayout(pieces)


def _collect(hidden: Tensor, one: Pass, rows: Sequence[Range], found: dict[int, Tensor]) -> None:
    """Copy the wanted rows of a pass into `found`, by the index of their range."""
    begin = 0
    for part in one.pieces:
        for index, wanted in enumerate(rows):
            if wanted.segment != part.segment:
                continue
            first, last = max(wanted.begin, part.begin), min(wanted.end, part.end)
            if first >= last:
                continue
            if index not in found:
                found[index] = hidden.new_empty((len(wanted), hidden.shape[-1]))
            source = hidden[begin + first - part.begin : begin + last - part.begin]
            found[index][first - wanted.begin : last - wanted.begin] = source
        begin += len(part)


def _refusal(model: Any, reason: str) -> ModelLoadError:
    return ModelLoadError(f"{type(model).__name__} can only be scored with mode='plain': {reason}")


def _refuse_by_config(model: Any) -> None:
    config = model.config.get_text_config()
    strange = set(getattr(config, "layer_types", None) or ()) - _KNOWN_LAYERS
    if strange:
        raise _refusal(model, f"it has layers of type {', '.join(sorted(map(str, strange)))}")
    if getattr(config, "use_bidirectional_attention", None):
        raise _refusal(model, "its attention is not causal")
    rope: Any = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    rope = rope or {}
    nested = [v for v in rope.values() if isinstance(v, dict)] or [rope]
    kinds = {str(r.get("rope_type", r.get("type", "default"))) for r in nested}
    if kinds & {"dynamic", "longrope"}:
        raise _refusal(model, "its rotary positions depend on the length of the sequence")


def _refuse_by_windows(model: Any, windows: Mapping[int, int | None]) -> None:
    """A sliding window that the config names must have reached the attention."""
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    kinds: Any = getattr(config, "layer_types", None)
    if not window:
        return
    for layer, seen in windows.items():
        slides = kinds[layer] == "sliding_attention" if kinds else True
        if slides and seen != window:
            raise _refusal(model, f"its sliding window of {window} tokens cannot be seen")
