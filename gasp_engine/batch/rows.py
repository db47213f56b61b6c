"""Rows of a JSONL or Parquet file, read one by one, never all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import DatasetError, MissingExtraError

PARQUET_BATCH = 256
"""Rows of a Parquet file held at a time."""


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | None, str | None]]:
    """Yield (row number, row, None), or (row number, None, why it cannot be used).

    A row that is not a JSON object spoils itself alone, not the run.

    Raises:
        DatasetError: the file cannot be read at all; names it.
    """
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    if path.suffix == ".parquet":
        yield from _read_parquet(path)
        return
    with path.open("rb") as lines:
        number = -1
        for line in lines:
            if not line.strip():
                continue
            number += 1
            try:
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                yield number, None, f"not JSON: {error}"
                continue
            if isinstance(row, dict):
                yield number, row, None
            else:
                yield number, None, f"expected a JSON object, got {type(row).__name__}"


def count_rows(path: Path) -> int:
    """How many rows the file has, for the progress bar."""
    if path.suffix == ".parquet":
        return int(_parquet().ParquetFile(path).metadata.num_rows)
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())


def write_parquet(rows: Iterator[dict[str, Any]], path: Path) -> None:
    """Write rows of (row, id, error, report as JSON text, flags and scores as columns)."""
    import pyarrow

    parquet = _parquet()
    schema = pyarrow.schema(
        [
            ("row", pyarrow.int64()),
            ("id", pyarrow.string()),
            ("error", pyarrow.string()),
            ("grounded", pyarrow.bool_()),
            ("score", pyarrow.float64()),
            ("n_flagged", pyarrow.int64()),
            ("report", pyarrow.string()),
        ]
    )
    scratch = path.with_name(path.name + ".writing")
    with parquet.ParquetWriter(scratch, schema) as writer:
        chunk: list[dict[str, Any]] = []
        for row in rows:
            chunk.append(_columns(row))
            if len(chunk) == PARQUET_BATCH:
                writer.write_table(pyarrow.Table.from_pylist(chunk, schema))
                chunk = []
        writer.write_table(pyarrow.Table.from_pylist(chunk, schema))
    scratch.replace(path)


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    report: dict[str, Any] = row.get("report") or {}
    sentences: list[dict[str, Any]] = report.get("sentences", [])
    return {
        "row": row["row"],
        "id": None if row.get("id") is None else str(row["id"]),
        "error": row.get("error"),
        "grounded": report.get("grounded"),
        "score": report.get("score"),
        "n_flagged": sum(s["status"] == "flagged" for s in sentences) if report else None,
        "report": json.dumps(report, ensure_ascii=False) if report else None,
    }


def _read_parquet(path: Path) -> Iterator[tuple[int, dict[str, Any] | None, str | None]]:
    number = 0
    for batch in _parquet().ParquetFile(path).iter_batches(PARQUET_BATCH):
        for row in batch.to_pylist():
            yield number, row, None
            number += 1


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            'Parquet files need pyarrow: pip install "gasp-integrations[eval]"'
        ) from error
    return parquet
