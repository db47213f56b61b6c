"""`gasp-engine score`: a file of answers in, a file of reports out; continues where it stopped."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DatasetError, InputError
from .check import add_scorer_arguments, checker_from

if TYPE_CHECKING:
    from ..batch import Progress

NAME = "score"
SETTINGS = ("model", "device", "dtype", "mode", "prompt", "profile", "threshold", "passes")
"""Arguments that must be the same when a run is continued."""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        NAME,
        help="check a file of answers, resumably",
        description='Rows of {"question", "passages", "answer", "id"?} in, rows of {"row", "id", '
        '"report" or "error"} out. Run the same command again to continue a run that was stopped.',
    )
    parser.add_argument("input", help="JSONL or Parquet")
    parser.add_argument("-o", "--output", required=True, help="JSONL or Parquet")
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="where to run")
    parser.add_argument("--workers", type=int, default=1, help="Ray actors")
    parser.add_argument("--batch-size", type=int, default=16, help="answers scored together")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_scorer_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Score the file; 0 when every row has a report, 2 when some row has an error."""
    from ..batch import score_file
    from ..batch.rows import count_rows

    if args.batch_size < 1:
        raise InputError(f"--batch-size must be at least 1, got {args.batch_size}")
    source = Path(args.input)
    if not source.is_file():
        raise DatasetError(f"{source}: no such file")
    settings = {name: getattr(args, name) for name in SETTINGS}
    show = None if args.quiet else _progress_bar(count_rows(source))
    progress = score_file(
        source,
        args.output,
        partial(checker_from, args),
        settings=settings,
        batch_size=args.batch_size,
        engine=args.engine,
        workers=args.workers,
        on_progress=show,
    )
    if not args.quiet:
        counts = ", ".join(f"{k} {v}" for k, v in asdict(progress).items())
        print(f"{args.output}: {counts}", file=sys.stderr)
    return 2 if progress.failed else 0


def _progress_bar(total: int) -> Callable[[Progress], None]:
    """On a terminal a line that is drawn over; elsewhere nothing until the end."""

    def show(progress: Progress) -> None:
        if sys.stderr.isatty():
            width = 30
            filled = width * progress.done // max(1, total)
            bar = "█" * filled + "·" * (width - filled)
            end = "\n" if progress.done >= total else ""
            print(f"\r{bar} {progress.done}/{total}", end=end, file=sys.stderr, flush=True)

    return show
