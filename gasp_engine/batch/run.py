"""Rows -> reports, in micro-batches, on this machine or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ..checker import GroundingChecker
from ..errors import GaspError, InputError, MissingExtraError
from .journal import Journal
from .rows import read_rows, write_parquet

Row = tuple[int, dict[str, Any]]
CheckerFactory = Callable[[], GroundingChecker]
"""Makes the checker; called once in every process that scores."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    done: int
    """Rows finished, those of earlier runs included."""
    failed: int
    """Rows of this run that ended in an error of their own."""
    skipped: int
    """Rows that an earlier run had finished."""


def score_file(
    source: str | Path,
    target: str | Path,
    make_checker: CheckerFactory,
    *,
    settings: dict[str, Any],
    batch_size: int = 16,
    engine: Literal["local", "ray"] = "local",
    workers: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Score every row of a file; continues where an earlier run of the same call stopped.

    A row is `{"question", "passages", "answer"}`, with an optional `"id"`. An output row is
    `{"row", "id", "report"}` or `{"row", "id", "error"}`: a bad row never ends the run. Output rows
    of a JSONL file stand in the order in which they were finished; `row` is the input's number.

    Args:
        source: JSONL or Parquet.
        target: JSONL or Parquet; a Parquet file appears when the run is complete.
        make_checker: makes the checker, in each worker.
        settings: what must not change between a run and its continuation.
        batch_size: rows scored together, and lost at most when the run is killed.
        engine: `local`, or `ray` for actors on a Ray cluster.
        workers: Ray actors.
        on_progress: told after every batch.

    Raises:
        DatasetError: the input cannot be read, or the output belongs to another run.
    """
    source, target = Path(source), Path(target)
    is_parquet = target.suffix == ".parquet"
    journal_path = target.with_name(target.name + ".rows.jsonl") if is_parquet else target
    if target.suffix not in (".jsonl", ".ndjson", ".json", ".parquet"):
        raise InputError(f"{target} must end in .jsonl or .parquet, got {target.suffix!r}")
    if workers < 1 or batch_size < 1:
        raise InputError(f"workers and batch_size must be 1 or more, got {workers}, {batch_size}")
    if is_parquet and target.exists():
        raise InputError(f"{target} exists: move it away or choose another output")
    journal = Journal(journal_path, {**settings, "source": str(source)})
    skipped = len(journal.done)
    done, failed = skipped, 0
    try:
        batches = _batches(source, journal.done, batch_size)
        if engine == "ray":
            finished = _on_ray(batches, make_checker, workers)
        else:
            finished = _here(batches, make_checker)
        for rows in finished:
            journal.append(rows)
            done += len(rows)
            failed += sum("error" in row for row in rows)
            if on_progress:
                on_progress(Progress(done, failed, skipped))
    finally:
        journal.close()
    if is_parquet:
        write_parquet(journal.rows(), target)
        journal.remove()
    return Progress(done, failed, skipped)


def score_rows(checker: GroundingChecker, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Reports on some rows; when the batch fails, each row is tried by itself."""
    try:
        reports = checker.check_many([row for _, row in rows])
        return [
            _result(n, row, report=r.to_dict()) for (n, row), r in zip(rows, reports, strict=True)
        ]
    except GaspError as error:
        if len(rows) == 1:
            number, row = rows[0]
            return [_result(number, row, error=f"{type(error).__name__}: {error}")]
    return [result for row in rows for result in score_rows(checker, [row])]


def _result(number: int, row: dict[str, Any], **outcome: Any) -> dict[str, Any]:
    return {"row": number, "id": row.get("id"), **outcome}


def _batches(source: Path, done: set[int], size: int) -> Iterator[list[Row | dict[str, Any]]]:
    """Rows that are still to do; a row that cannot be read is its own result."""

    def pending() -> Iterator[Row | dict[str, Any]]:
        for number, row, fault in read_rows(source):
            if number in done:
                continue
            yield (number, row) if row is not None else _result(number, {}, error=fault)

    rows = pending()
    while batch := list(islice(rows, size)):
        yield batch


def _split(batch: list[Row | dict[str, Any]]) -> tuple[list[Row], list[dict[str, Any]]]:
    good = [item for item in batch if isinstance(item, tuple)]
    return good, [item for item in batch if isinstance(item, dict)]


def _here(
    batches: Iterator[list[Row | dict[str, Any]]], make_checker: CheckerFactory
) -> Iterator[list[dict[str, Any]]]:
    checker: GroundingChecker | None = None
    for batch in batches:
        good, bad = _split(batch)
        if good and checker is None:
            checker = make_checker()
        yield bad + (score_rows(checker, good) if checker and good else [])


def _on_ray(
    batches: Iterator[list[Row | dict[str, Any]]], make_checker: CheckerFactory, workers: int
) -> Iterator[list[dict[str, Any]]]:
    try:
        remote: Any = import_module("ray")
    except ImportError as error:
        raise MissingExtraError(
            'the ray engine needs Ray: pip install "gasp-integrations[ray]"'
        ) from error

    class Worker:
        def __init__(self, make: CheckerFactory) -> None:
            self._checker = make()

        def score(self, rows: list[Row]) -> list[dict[str, Any]]:
            return score_rows(self._checker, rows)

    if not remote.is_initialized():
        remote.init(log_to_driver=False)
    idle = [remote.remote(Worker).remote(make_checker) for _ in range(max(1, workers))]
    running: dict[Any, tuple[Any, list[dict[str, Any]]]] = {}

    def wait_one() -> list[dict[str, Any]]:
        (ready, *_), _ = remote.wait(list(running), num_returns=1)
        actor, bad = running.pop(ready)
        idle.append(actor)
        return bad + remote.get(ready)

    for batch in batches:
        good, bad = _split(batch)
        if not idle:
            yield wait_one()
        actor = idle.pop()
        running[actor.score.remote(good)] = (actor, bad)
    while running:
        yield wait_one()
