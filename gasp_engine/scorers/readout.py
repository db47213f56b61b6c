"""Last hidden states -> log-probabilities and divergences, without holding all logits at once.

    JSD = ½ Σ p log p + ½ Σ q log q − Σ m log m,   m = ½ (p + q)

which takes one exponential and one logarithm for each condition, token and vocabulary entry. The
answer's positions are taken in blocks of all conditions together, so that what is live is bounded
by a number of bytes and not by the answer's length.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..divergence import clip_rounding
from ..types import Condition
from .linear import output_layer
from .plain import check_finite

_BLOCK_BYTES = 24 << 20
"""Memory of one array of float32 logits [conditions, tokens, V], the result of one matrix product;
a larger one gains nothing there, and its memory comes from the system anew each time."""

_CACHE_BYTES = 4 << 20
"""Memory of what is live beside the logits, which are gone through in steps that caches hold."""

_TINY = float(torch.finfo(torch.float32).tiny)


class Head:
    """Hidden states -> logits, as the model's own output layer does it.

    Args:
        model: a causal language model.
    """

    def __init__(self, model: Any) -> None:
        config = model.config.get_text_config()
        self._model = model
        self._layer = model.get_output_embeddings()
        self.vocabulary = int(self._layer.weight.shape[0])
        """V, the number of logits."""
        self._softcap: float | None = getattr(config, "final_logit_softcapping", None)
        scale = getattr(config, "logit_scale", None)
        divisor = getattr(config, "logits_scaling", None)
        self._scale = float(scale or 1.0) / float(divisor or 1.0)

    def __call__(self, hidden: Tensor) -> Tensor:
        """[..., size] -> [..., V] float32."""
        logits = output_layer(self._model, self._layer, hidden).float()
        if self._scale != 1.0:
            logits = logits * self._scale
        if self._softcap is not None:
            logits = torch.tanh(logits / self._softcap) * self._softcap
        return logits


def read_out(
    hidden: Tensor,
    answer: Sequence[int],
    head: Head,
    conditions: Sequence[Condition],
    dtype: str,
    *,
    first_token: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities and divergences of T answer tokens under C conditions.

    Args:
        hidden: [C, T, size]; row t predicts answer token t. The first condition is the reference.
        answer: the T token ids.
        head: the output layer.
        conditions: the C conditions, for messages.
        dtype: of the model, for messages.
        first_token: index of `answer[0]` in the whole answer, for messages.

    Returns:
        [C, T] float32 log-probabilities, nats, and [C, T] float32 divergences, nats in [0, ln 2].

    Raises:
        NumericalError: a log-probability is not finite; names token, condition and dtype.
    """
    count, total = hidden.shape[:2]
    row = 4 * head.vocabulary * count
    step, small = max(1, _BLOCK_BYTES // row), max(1, _CACHE_BYTES // row)
    log_probs = torch.empty((count, total), device=hidden.device)
    jsd = torch.zeros((count, total), device=hidden.device)
    targets = torch.tensor(list(answer), device=hidden.device)
    weights: Tensor | None = None
    with torch.inference_mode():
        for begin in range(0, total, step):
            end = min(begin + step, total)
            logits = head(hidden[:, begin:end])  # [C, n, V]
            if weights is None:
                weights = logits.new_empty((count, small, head.vocabulary))
            for offset in range(0, end - begin, small):
                part = slice(begin + offset, min(begin + offset + small, end))
                few = logits[:, offset : offset + small]
                room = weights[:, : few.shape[1]]
                _read_block(few, targets[part], log_probs[:, part], jsd[:, part], room)
    for row, condition in enumerate(conditions):
        check_finite(log_probs[row], condition, dtype, first_token)
    return log_probs.cpu().numpy(), clip_rounding(jsd.cpu().numpy(), 1e-4).astype(np.float32)


def _read_block(
    logits: Tensor, targets: Tensor, log_probs: Tensor, jsd: Tensor, weights: Tensor
) -> None:
    """Fill [C, n] log-probabilities and divergences from logits [C, n, V], which are consumed.

    `weights` [C, n, V] is memory to work in.
    """
    logits -= logits.amax(-1, keepdim=True)
    # −inf (a token that the model forbids) times its probability 0 must be 0, not NaN.
    index = targets[None, :, None].expand(logits.shape[0], -1, 1)
    picked = logits.gather(-1, index)[..., 0]
    logits.clamp_(min=-1e4)
    torch.exp(logits, out=weights)
    total = weights.sum(-1, keepdim=True)
    log_total = total.log()[..., 0]
    torch.sub(picked, log_total, out=log_probs)
    weights /= total
    # Σ p log p. A product and a sum, not a dot product: BLAS adds 49 000 terms up one by one, which
    # costs four digits; PyTorch's own sum is pairwise.
    logits *= weights
    plogp = logits.sum(-1) - log_total
    # The logits are not needed any more: their memory holds what is made of the mixtures.
    mixtures = weights[1:].add_(weights[:1]).clamp_(min=_TINY)
    twice = torch.log(mixtures, out=logits[1:]).mul_(mixtures).sum(-1)  # Σ 2m log 2m
    jsd[1:] = 0.5 * (plogp[:1] + plogp[1:] - twice) + math.log(2)
