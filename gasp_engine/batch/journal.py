"""What is done so far: one JSON line a row, flushed to disk, so that a killed run loses nothing.

Beside the journal lies `<journal>.settings.json`: rows made under other settings never mix.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import DatasetError


class Journal:
    """Append-only file of finished rows."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Open or continue.

        Args:
            path: the file; created when missing.
            settings: scorer, options and input; must be the same when a run is continued.

        Raises:
            DatasetError: the file was begun under other settings; names the first that differs.
        """
        self.path = path
        self._settings_path = path.with_name(path.name + ".settings.json")
        self._check_settings(json.loads(json.dumps(settings)))
        self.done = self._recover()
        self._file = path.open("ab")

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows and wait until they are on the disk."""
        lines = [json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n" for row in rows]
        self._file.write("".join(lines).encode("utf-8"))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows, in the order in which they were finished."""
        with self.path.open("rb") as lines:
            for line in lines:
                yield json.loads(line)

    def remove(self) -> None:
        """Delete the file and its settings, once the rows are somewhere else."""
        self.path.unlink()
        self._settings_path.unlink()

    def _check_settings(self, settings: dict[str, Any]) -> None:
        if self.path.exists() and self.path.stat().st_size and not self._settings_path.exists():
            raise DatasetError(
                f"{self.path} exists and is no unfinished run: move it or choose another output"
            )
        if not self._settings_path.exists():
            self._settings_path.write_text(json.dumps(settings, indent=1), encoding="utf-8")
            return
        before = json.loads(self._settings_path.read_text("utf-8"))
        for key in sorted({*before, *settings}):
            if before.get(key) != settings.get(key):
                raise DatasetError(
                    f"{self.path} was begun with {key}={before.get(key)!r}, now it is "
                    f"{settings.get(key)!r}: use the same settings or another output"
                )

    def _recover(self) -> set[int]:
        """Numbers of finished rows; a half-written last line is cut off."""
        done: set[int] = set()
        if not self.path.exists():
            return done
        good = 0
        with self.path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                try:
                    done.add(json.loads(line)["row"])
                except (ValueError, KeyError, TypeError):
                    break
                good += len(line)
        with self.path.open("r+b") as file:
            file.truncate(good)
        return done
