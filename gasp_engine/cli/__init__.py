"""`gasp-engine`: the command line.

Exit status: 0 done; 1 something was flagged and `--fail-on-flag` is set; 2 bad input or usage, with
one line on standard error that names the input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from .. import __version__
from ..errors import GaspError

COMMANDS = ("check", "segment", "score", "calibrate", "train", "evaluate", "reproduce", "models")
"""Subcommands, in the order of the help; one module each."""


class _Parser(argparse.ArgumentParser):
    """Usage errors are one line, and exit with 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser with all subcommands."""
    parser = _Parser(
        prog="gasp-engine",
        description="Which parts of a RAG answer rest on the retrieved passages.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        if find_spec(f".{name}", __name__) is None:
            continue
        import_module(f".{name}", __name__).add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = build_parser().parse_args(argv)
    module = import_module(f".{args.command}", __name__)
    try:
        status = module.run(args)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (GaspError, OSError) as error:
        print(f"gasp-engine {args.command}: {_one_line(error)}", file=sys.stderr)
        return 2


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
