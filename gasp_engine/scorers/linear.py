"""Matrix products of float32 models on AMD processors, by the library that is faster there.

PyTorch multiplies float32 matrices with MKL, which keeps to 256-bit instructions on AMD processors.
oneDNN, which PyTorch ships too and uses for bfloat16, does not: 8 to 20 % faster per product on a
Zen 4 core. On a Zen 3 core, which has no wider ones, MKL is 5 to 15 % faster on a model's layers and
oneDNN up to 70 % faster on its output layer, as a block of a few rows has many columns there. The
results differ by rounding only. Nothing is exchanged outside the `with` block, nor in other threads.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_MANY_COLUMNS = 16_384
"""An output layer has more columns than this, any other layer has fewer."""


class OneDnnLinear(TorchFunctionMode):
    """Context in which `linear` runs in oneDNN.

    Args:
        columns: layers with fewer output columns than this are left to PyTorch.
    """

    def __init__(self, columns: int = 0) -> None:
        super().__init__()
        self._columns = columns

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Exchange one function and pass on all others."""
        if func is torch.nn.functional.linear and len(args) >= 2 and not kwargs:
            values, weight = args[0], args[1]
            fits = values.dtype == weight.dtype == torch.float32 and values.shape[:-1].numel() > 1
            if fits and weight.shape[0] >= self._columns:
                bias = args[2] if len(args) > 2 else None
                return torch.ops.mkldnn._linear_pointwise(values, weight, bias, "none", [], "")
        return func(*args, **(kwargs or {}))


def fast_linear(model: Any) -> AbstractContextManager[Any]:
    """The context to run `model` in: `OneDnnLinear` where that is faster, else an empty one."""
    fits = model.dtype == torch.float32 and model.device.type == "cpu"
    if not fits or not _may_be_faster():
        return nullcontext()
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return OneDnnLinear(0 if wide else _MANY_COLUMNS)


@cache
def _may_be_faster() -> bool:
    """Whether this is an AMD processor and this torch has the operator."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    info = Path("/proc/cpuinfo")
    text = info.read_text(errors="replace") if info.is_file() else ""
    return "AuthenticAMD" in text
