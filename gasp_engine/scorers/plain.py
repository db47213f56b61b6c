"""The paper's computation as it stands: one full pass for each condition. The oracle of the others.

    prompt  p0 p1 … pn   answer  a0 a1 … aT-1
    input   p0 p1 … pn a0 a1 … aT-2              (the last answer token predicts nothing we need)
    logits            ↑  ↑  …  ↑                 T rows, kept from position n on

Correct before fast: it runs the model's own attention and its own output layer, shares nothing
between conditions, and computes every divergence by the definition.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..types import Condition
from .base import not_finite

_ROWS = 16
"""Rows of [T, V] that a divergence is computed for at a time."""


def plain_scores(
    model: Any,
    prompts: Sequence[Sequence[int]],
    answer: Sequence[int],
    conditions: Sequence[Condition],
    *,
    first_token: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Score an answer under C prompts, by C separate passes.

    Args:
        model: a Hugging Face causal language model in evaluation mode.
        prompts: per condition, the tokens in front of the answer; the first is the reference of
            every divergence. Not empty.
        answer: the answer's T token ids.
        conditions: the conditions, for messages.
        first_token: index of `answer[0]` in the whole answer, for messages.

    Returns:
        log-probabilities [C, T] float32, nats, and divergences [C, T] float32, nats in [0, ln 2].

    Raises:
        NumericalError: a log-probability is not finite; names token, condition and dtype.
    """
    shape = (len(prompts), len(answer))
    log_probs, jsd = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    if not answer:
        return log_probs, jsd
    reference: torch.Tensor | None = None
    for row, (prompt, condition) in enumerate(zip(prompts, conditions, strict=True)):
        values = torch.log_softmax(_answer_logits(model, prompt, answer).float(), dim=-1)
        targets = torch.tensor(list(answer), device=values.device)
        picked = values.gather(1, targets[:, None])[:, 0]
        check_finite(picked, condition, str(model.dtype), first_token)
        log_probs[row] = picked.cpu().numpy()
        if reference is None:
            reference = values
        else:
            jsd[row] = _jensen_shannon(reference, values).cpu().numpy()
    return log_probs, jsd


def check_finite(picked: torch.Tensor, condition: Condition, dtype: str, first_token: int) -> None:
    """Refuse log-probabilities [T] that are not finite.

    Raises:
        NumericalError: names the first such token, the condition and the dtype.
    """
    bad = ~torch.isfinite(picked)
    if bool(bad.any()):
        index = int(bad.nonzero()[0, 0])
        raise not_finite(
            first_token + index, condition, float(picked[index]), dtype.removeprefix("torch.")
        )


def _answer_logits(model: Any, prompt: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
    """Logits [T, V] that predict the answer's tokens, in the model's dtype."""
    ids = torch.tensor([[*prompt, *answer[:-1]]], device=model.device)
    options: dict[str, Any] = {"use_cache": False}
    if "logits_to_keep" in inspect.signature(model.forward).parameters:
        options["logits_to_keep"] = len(answer)
    with torch.inference_mode():
        logits: torch.Tensor = model(input_ids=ids, **options).logits
    return logits[0, -len(answer) :]


def _jensen_shannon(log_p: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """Divergences [T] of the rows of two [T, V] log-probabilities, by the definition."""
    parts: list[torch.Tensor] = []
    for lp, lq in zip(log_p.split(_ROWS), log_q.split(_ROWS), strict=True):
        log_m = torch.logaddexp(lp, lq) - math.log(2)
        p, q = lp.exp(), lq.exp()
        # 0 · (−inf − −inf) is NaN, but a token that neither gives weight adds nothing.
        both = torch.where(p > 0, p * (lp - log_m), 0) + torch.where(q > 0, q * (lq - log_m), 0)
        parts.append(0.5 * both.sum(dim=-1, dtype=torch.float64))
    return torch.cat(parts).clamp(0.0, math.log(2)).float()
