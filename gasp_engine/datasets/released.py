"""The paper's published features: one folder a scorer, one row a response or sentence.

    DIR/<Model>_K<k>/response.csv, sentence.csv          features and labels
    DIR/<Model>_K<k>/sentence_<baseline>.csv             optional: one more column, its last
    DIR/explanation_eval.csv, attractor_controls.csv     optional

Rows become `SpanFeatures`, so that every detector of this project runs on them. Tokens and sources
were not published: what needs them stays at its "not measured" value.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import DatasetError, shorten
from ..features import SpanFeatures, explained

SPAN_FILE, RESPONSE_FILE = "sentence.csv", "response.csv"
_NUMBERS = ("mean_surprisal", "gap", "jsd_noctx")
_LISTS = ("chunk_drops", "chunk_jsds")


@dataclass(frozen=True)
class ReleasedTable:
    """One CSV file, row by row."""

    path: Path
    """The file."""
    responses: np.ndarray
    """[N] `resp_id`: the answer that each row comes from."""
    labels: np.ndarray
    """[N] 1 = unsupported."""
    features: tuple[SpanFeatures, ...]
    """[N] features."""
    kinds: tuple[str, ...]
    """[N] `none`, `baseless` or `conflict`; empty where the file does not say."""
    texts: tuple[str, ...]
    """[N] the sentence or answer; empty where the file does not say."""
    sources: np.ndarray
    """[N] `orig_idx`, the row of the benchmark; −1 where the file does not say."""

    @cached_property
    def answers(self) -> tuple[np.ndarray, ...]:
        """Row indices of every answer, in the file's order."""
        rows: dict[object, list[int]] = {}
        for i, name in enumerate(self.responses.tolist()):
            rows.setdefault(name, []).append(i)
        return tuple(np.array(r) for r in rows.values())

    def values(self, name: str) -> np.ndarray:
        """[N] one field of `SpanFeatures`; NaN where it was not measured."""
        found = [getattr(f, name) for f in self.features]
        return np.array([math.nan if v is None else v for v in found], dtype=np.float64)


@dataclass(frozen=True)
class ReleasedModel:
    """One folder."""

    folder: Path
    """Where it lies."""
    model: str
    """Its name without the number of chunks."""
    k: int | None
    """K, from the folder's name."""
    spans: ReleasedTable | None
    """`sentence.csv`."""
    answers: ReleasedTable | None
    """`response.csv`."""

    def extras(self) -> dict[str, tuple[ReleasedTable, np.ndarray]]:
        """Baselines in `sentence_<name>.csv`: name -> (rows, [N] values of the added column)."""
        found: dict[str, tuple[ReleasedTable, np.ndarray]] = {}
        for path in sorted(self.folder.glob("sentence_*.csv")):
            rows, header = _read(path)
            name = path.stem.removeprefix("sentence_")
            column = name if name in header else header[-1]
            values = [_number(row, column, path, i) for i, row in enumerate(rows)]
            found[name] = (_table(path, rows, header), np.array(values))
        return found


def find_models(folder: str | Path) -> list[ReleasedModel]:
    """Every model folder under `folder`, or `folder` itself when it holds the files.

    Raises:
        DatasetError: there is none, or a file is not of the expected form; names file and column.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DatasetError(f"{root} is not a folder")
    places = [root, *sorted(p for p in root.iterdir() if p.is_dir())]
    models = [read_model(p) for p in places if _is_model(p)]
    if not models:
        raise DatasetError(
            f"no folder under {root} holds {SPAN_FILE} or {RESPONSE_FILE}, such as "
            f"Qwen2.5-0.5B-Instruct_K5"
        )
    return models


def read_model(folder: str | Path) -> ReleasedModel:
    """One folder with `sentence.csv`, `response.csv` or both.

    Raises:
        DatasetError: names the file and the column.
    """
    place = Path(folder)
    name = place.resolve().name
    match = re.search(r"_K(\d+)(?![^_])", name)
    model = name[: match.start()] + name[match.end() :] if match else name
    return ReleasedModel(
        place,
        model,
        int(match.group(1)) if match else None,
        read_table(place / SPAN_FILE) if (place / SPAN_FILE).is_file() else None,
        read_table(place / RESPONSE_FILE) if (place / RESPONSE_FILE).is_file() else None,
    )


def read_table(path: str | Path) -> ReleasedTable:
    """One file of features.

    Raises:
        DatasetError: names the file and the column, or the file and the line.
    """
    path = Path(path)
    rows, header = _read(path)
    return _table(path, rows, header)


def read_columns(path: str | Path, columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Named columns of numbers.

    Raises:
        DatasetError: names the file and the column.
    """
    path = Path(path)
    rows, header = _read(path)
    for column in columns:
        _require(column, header, path)
    return {c: np.array([_number(row, c, path, i) for i, row in enumerate(rows)]) for c in columns}


def _is_model(folder: Path) -> bool:
    return (folder / SPAN_FILE).is_file() or (folder / RESPONSE_FILE).is_file()


def _read(path: Path) -> tuple[list[dict[str, str]], list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            header = list(reader.fieldnames or ())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path} cannot be read as CSV: {error}") from error
    if not header or not rows:
        raise DatasetError(f"{path} holds no rows")
    return rows, header


def _table(path: Path, rows: list[dict[str, str]], header: list[str]) -> ReleasedTable:
    size = next((c for c in ("n_tok", "n_ans") if c in header), None)
    for column in ("resp_id", "label", *_NUMBERS, *_LISTS, size or "n_tok"):
        _require(column, header, path)
    labels: list[int] = []
    features: list[SpanFeatures] = []
    for i, row in enumerate(rows):
        label = _number(row, "label", path, i)
        if label not in (0.0, 1.0):
            raise _wrong(path, i, "label", row, "0 or 1")
        labels.append(int(label))
        features.append(_features(row, size or "n_tok", path, i))
    text = next((c for c in ("sent_text", "answer") if c in header), None)
    return ReleasedTable(
        path=path,
        responses=_names([row["resp_id"] for row in rows]),
        labels=np.array(labels),
        features=tuple(features),
        kinds=tuple(row["sent_type"] for row in rows) if "sent_type" in header else (),
        texts=tuple(row[text] or "" for row in rows) if text else (),
        sources=np.array([_source(row) for row in rows]),
    )


def _features(row: Mapping[str, str], size: str, path: Path, i: int) -> SpanFeatures:
    surprisal, gap, jsd = (_number(row, c, path, i) for c in _NUMBERS)
    drops, jsds = (_list(row, c, path, i) for c in _LISTS)
    return SpanFeatures(
        n_tokens=int(_number(row, size, path, i)),
        surprisal=surprisal,
        surprisal_none=surprisal + gap,
        gap=gap,
        jsd_none=jsd,
        explained=explained(surprisal, surprisal + gap),
        drop_max=max(drops, default=0.0),
        jsd_loo_max=max(jsds, default=0.0),
        drops=drops,
        jsds=jsds,
    )


def _names(values: list[str]) -> np.ndarray:
    """Numbers where all are numbers: folds depend on the order of the groups, and 10 follows 9."""
    return np.array([int(v) for v in values] if all(v.isdigit() for v in values) else values)


def _require(column: str, header: list[str], path: Path) -> None:
    if column not in header:
        raise DatasetError(f"{path} has no column {column!r}; it has {', '.join(header)}")


def _number(row: Mapping[str, str], column: str, path: Path, i: int) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError) as error:
        raise _wrong(path, i, column, row, "a number") from error
    if not math.isfinite(value):
        raise _wrong(path, i, column, row, "a finite number")
    return value


def _list(row: Mapping[str, str], column: str, path: Path, i: int) -> tuple[float, ...]:
    try:
        values = tuple(float(v) for v in json.loads(row[column]))
    except (TypeError, ValueError) as error:
        raise _wrong(path, i, column, row, "a JSON list of numbers") from error
    if not all(math.isfinite(v) for v in values):
        raise _wrong(path, i, column, row, "finite numbers")
    return values


def _source(row: Mapping[str, str]) -> int:
    value = row.get("orig_idx") or ""
    return int(value) if value.isdigit() else -1


def _wrong(path: Path, i: int, column: str, row: Mapping[str, str], expected: str) -> DatasetError:
    got = shorten(row.get(column))
    return DatasetError(f"{path}, row {i + 1}, column {column!r}: expected {expected}, got {got}")
