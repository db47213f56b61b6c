"""Self-consistency: the answer is drawn again; sentences that the samples contradict are suspect.

    score(sentence) = mean over N samples of P(contradiction | sample, sentence)

Samples come from a causal model under the same prompt: N = 4, temperature 1.0, top-p 0.95 in the
paper. It costs N generations an answer, where the detectors of this project only score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .nli import Entailment

N_SAMPLES, TEMPERATURE, TOP_P = 4, 1.0, 0.95


def draw_samples(
    model: Any,
    tokenizer: Any,
    prompt: str,
    *,
    n: int = N_SAMPLES,
    temperature: float = TEMPERATURE,
    top_p: float = TOP_P,
    max_new_tokens: int = 200,
    seed: int = 0,
) -> list[str]:
    """`n` answers to a prompt from a `transformers` causal model.

    Torch's global random state is put back afterwards: the caller's draws do not change.

    Args:
        model: generates.
        tokenizer: its tokenizer.
        prompt: as the scorer sees it under the full context.
        n: samples.
        temperature: of the sampling.
        top_p: nucleus.
        max_new_tokens: length of a sample at most.
        seed: of the sampling.
    """
    import torch

    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    inputs = tokenizer(prompt, return_tensors="pt").to(model.device)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.inference_mode():
        torch.manual_seed(seed)
        found = model.generate(
            **inputs,
            do_sample=True,
            temperature=temperature,
            top_p=top_p,
            top_k=0,
            num_return_sequences=n,
            max_new_tokens=max_new_tokens,
            pad_token_id=pad,
        )
    start = inputs["input_ids"].shape[1]
    return [tokenizer.decode(ids[start:], skip_special_tokens=True).strip() for ids in found]


def contradiction(
    encoder: Entailment, samples: Sequence[str], sentences: Sequence[str]
) -> np.ndarray:
    """[S] how much the samples contradict each sentence, in [0, 1].

    Raises:
        InputError: there are no samples.
    """
    if not samples:
        raise InputError("self-consistency needs at least one sample of the answer")
    pairs = [(sample, sentence) for sentence in sentences for sample in samples]
    found = encoder.probabilities(pairs, "contradiction").reshape(len(sentences), len(samples))
    return found.mean(axis=1)
