"""Matrix products of float32 models on AMD processors, by the library that is faster there.

PyTorch multiplies float32 matrices with MKL, which keeps to 256-bit instructions on AMD processors.
oneDNN, which PyTorch ships too and uses for bfloat16, does not: 8 to 20 % faster per product on a
Zen 4 core. On a Zen 3 core, which has no wider ones, MKL is up to 15 % faster on a model's layers
and oneDNN up to 70 % faster on its output layer, where a block of a few rows has many columns. The
results differ by rounding only.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def fast_linear(model: Any) -> Generator[None]:
    """The context to run `model` in: its linear layers use oneDNN where that is faster.

    The layers' `forward` is exchanged meanwhile, so the model must run nowhere else.
    """
    exchanged = _linear_layers(model) if _fits(model) and _layers_gain() else []
    for layer in exchanged:
        layer.forward = partial(_forward, layer)
    try:
        yield
    finally:
        for layer in exchanged:
            del layer.forward


def output_layer(model: Any, layer: Any, hidden: Tensor) -> Tensor:
    """What `layer`, the output layer of `model`, makes of hidden states [..., size]."""
    if _fits(model) and type(layer) is nn.Linear:
        return _forward(layer, hidden)
    return layer(hidden)


def _linear_layers(model: Any) -> list[Any]:
    return [module for module in model.modules() if type(module) is nn.Linear]


def _forward(layer: nn.Linear, values: Tensor) -> Tensor:
    if values.dtype != torch.float32 or values.shape[:-1].numel() < 2:
        return nn.functional.linear(values, layer.weight, layer.bias)
    return torch.ops.mkldnn._linear_pointwise(values, layer.weight, layer.bias, "none", [], "")


def _fits(model: Any) -> bool:
    return model.dtype == torch.float32 and model.device.type == "cpu" and _is_amd()


@cache
def _layers_gain() -> bool:
    """Whether the processor has instructions that MKL does not use on it."""
    return torch.backends.cpu.get_cpu_capability() == "AVX512"


@cache
def _is_amd() -> bool:
    """Whether this is an AMD processor and this torch has the operator."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    info = Path("/proc/cpuinfo")
    text = info.read_text(errors="replace") if info.is_file() else ""
    return "AuthenticAMD" in text
