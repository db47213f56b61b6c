"""`gasp-engine segment`: text on standard input, its sentences as JSON on standard output."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from ..errors import InputError
from ..segment import segment

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage]


def add_parser(subparsers: Subparsers) -> argparse.ArgumentParser:
    """Add the `segment` command; `run` is its `func`."""
    parser = subparsers.add_parser(
        "segment",
        help="cut text into sentences",
        description="Reads UTF-8 text on standard input and writes a JSON list of "
        "{start, end, kind, text}; positions are code points, end exclusive.",
    )
    parser.add_argument("--language", help="ISO 639 code, such as en or de; default: from the text")
    parser.add_argument("--splitter", choices=["default", "paper"], default="default")
    parser.add_argument(
        "--granularity", choices=["sentence", "clause", "token"], default="sentence"
    )
    parser.set_defaults(func=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Read, cut, write; returns the exit status.

    Raises:
        InputError: standard input is not UTF-8.
    """
    raw = sys.stdin.buffer.read()  # bytes: text mode would turn \r\n into \n and move every offset
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"standard input is not UTF-8: byte {error.start} is {raw[error.start]:#04x}. "
            "Convert it first, for example with iconv"
        ) from error
    sentences = segment(
        text, language=args.language, splitter=args.splitter, granularity=args.granularity
    )
    rows = [{"start": s.start, "end": s.end, "kind": s.kind, "text": s.text} for s in sentences]
    sys.stdout.buffer.write(json.dumps(rows, ensure_ascii=False, indent=2).encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()
    return 0
