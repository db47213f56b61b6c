"""Keys and values of encoded evidence on disk, for a corpus that outlives the process.

One safetensors file for each piece of evidence, named by its content and the model's: nothing in it
can run code, and a file of another model is never read. Files are written beside their place and
renamed into it. When the folder grows beyond its limit, the ones that were used longest ago go.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from .layout import KeyValues
from .store import content_key


class EvidenceFolder:
    """A folder of encoded evidence of one model; safe for several processes at once.

    Args:
        folder: made when it is missing.
        identity: what the numbers depend on: model, revision, dtype.
        limit: most bytes in the folder.
    """

    def __init__(self, folder: Path, identity: tuple[str, ...], limit: int) -> None:
        self._folder = folder
        self._identity = content_key(*identity).hex()[:12]
        self._limit = limit
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: bytes, device: str) -> KeyValues | None:
        """The keys and values, on the device; None when they are not there or damaged."""
        path = self._path(key)
        try:
            tensors = load_file(path, device=device)
            os.utime(path)
        except FileNotFoundError:
            return None
        except SafetensorError:
            path.unlink(missing_ok=True)
            return None
        values = KeyValues(tensors["0.k"].shape[1])
        for layer in range(len(tensors) // 2):
            values.layers[layer] = (tensors[f"{layer}.k"], tensors[f"{layer}.v"])
        return values

    def put(self, key: bytes, values: KeyValues) -> None:
        """Write the keys and values, and make room for them."""
        path = self._path(key)
        if path.exists() or values.nbytes > self._limit:
            return
        tensors = {f"{layer}.k": k.contiguous() for layer, (k, _) in values.layers.items()}
        tensors |= {f"{layer}.v": v.contiguous() for layer, (_, v) in values.layers.items()}
        self._make_room(values.nbytes)
        handle, scratch = tempfile.mkstemp(dir=self._folder, suffix=".part")
        os.close(handle)
        try:
            save_file(tensors, scratch)
            Path(scratch).replace(path)
        finally:
            Path(scratch).unlink(missing_ok=True)

    def _path(self, key: bytes) -> Path:
        return self._folder / f"{self._identity}-{key.hex()}.safetensors"

    def _make_room(self, size: int) -> None:
        files: list[tuple[float, int, Path]] = []
        for path in self._folder.glob("*.safetensors"):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # another process made room too
            files.append((status.st_mtime, status.st_size, path))
        used = sum(length for _, length, _ in files)
        for _, length, path in sorted(files):
            if used + size <= self._limit:
                break
            path.unlink(missing_ok=True)
            used -= length
