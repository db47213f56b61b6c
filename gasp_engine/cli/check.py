"""`gasp-engine check`: one example from files, or one JSON object on standard input."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, InputTypeError, shorten
from ..report import Report
from ..types import Passage, as_passages

NAME = "check"


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        NAME,
        help="check one answer against its sources",
        description="Check one answer. Give --question, --answer and --passage or --passages; or "
        'one JSON object {"question", "passages", "answer"} on standard input.',
    )
    parser.add_argument("--question", help="the question, as text")
    parser.add_argument(
        "--passage",
        action="append",
        metavar="FILE",
        help="a text file with one passage; repeatable",
    )
    parser.add_argument(
        "--passages",
        metavar="FILE.jsonl",
        help='one passage a line: a JSON string or {"text", "id", "title", "metadata"}',
    )
    parser.add_argument("--answer", metavar="FILE", help="a file with the answer; - for stdin")
    add_scorer_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--html", metavar="FILE", help="also write a page with the report; implies --refine"
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown with footnotes")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour the text"
    )
    parser.add_argument(
        "--fail-on-flag", action="store_true", help="exit with 1 when a sentence is flagged"
    )


def add_scorer_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that choose the scorer and how it is used; shared by several commands."""
    parser.add_argument(
        "--model", default="embedded", help="hub name, local folder, or embedded (the default)"
    )
    parser.add_argument("--device", help="cuda, mps or cpu; default: the best there is")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), help="of the weights"
    )
    parser.add_argument("--mode", choices=("remove", "mask", "cached", "plain"), help="of ablation")
    parser.add_argument("--prompt", choices=("paper", "chat"), help="form of the prompt")
    parser.add_argument("--profile", metavar="FILE", help="calibration profile to use")
    parser.add_argument("--threshold", type=float, help="flag scores above it")
    parser.add_argument("--passes", choices=("all", "two"), help="two: verdicts without citations")
    parser.add_argument("--language", help="of the answer, as an ISO 639-1 code")
    parser.add_argument(
        "--granularity", choices=("sentence", "clause", "token"), help="what gets a verdict"
    )
    parser.add_argument("--refine", action="store_true", help="narrow citations to sentences")
    parser.add_argument(
        "--max-extra-passes", type=int, metavar="N", help="look for joint and redundant support"
    )
    parser.add_argument("--max-units", type=int, metavar="N", help="leave out one by one at most")
    parser.add_argument(
        "--token-values", action="store_true", help="report every token's gap and drop"
    )
    parser.add_argument(
        "--check-markers", action="store_true", help="check the answer's own [1] marks"
    )


def checker_from(args: argparse.Namespace) -> Any:
    """The checker that the scorer arguments describe."""
    from ..checker import GroundingChecker

    options = {
        name: value
        for name in (
            *("threshold", "passes", "language", "granularity"),
            *("max_extra_passes", "max_units"),
        )
        if (value := getattr(args, name)) is not None
    }
    switches = ("refine", "check_markers", "token_values")
    options |= {name: True for name in switches if getattr(args, name)}
    quiet_libraries()
    return GroundingChecker.from_pretrained(
        args.model,
        device=args.device,
        dtype=args.dtype,
        mode=args.mode,
        prompt=args.prompt,
        profile=args.profile,
        **options,
    )


def quiet_libraries() -> None:
    """Keep notices of the model library off the terminal, and its threads off a busy machine."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TQDM_DISABLE", "1")
    # Waiting threads sleep: spinning ones make a busy machine many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def run(args: argparse.Namespace) -> int:
    """Check and print."""
    question, passages, answer = read_example(args)
    shown = as_passages(passages)
    args.refine = args.refine or (
        bool(args.html) and args.passes != "two"
    )  # a page is for looking closely
    report: Report = checker_from(args).check(question, list(shown), answer)
    if args.html:
        from ..render.html import to_html

        Path(args.html).write_text(to_html(report, shown), encoding="utf-8")
    _show(report, args)
    return 1 if args.fail_on_flag and report.flagged else 0


def _show(report: Report, args: argparse.Namespace) -> None:
    if args.json:
        sys.stdout.write(report.to_json() + "\n")
    elif args.markdown:
        from ..render.markdown import to_markdown

        sys.stdout.write(to_markdown(report))
    elif args.color == "always" or (args.color == "auto" and _is_color_terminal()):
        from ..render.terminal import print_report

        print_report(report, sys.stdout, force=args.color == "always")
    else:
        from ..render.text import to_text

        sys.stdout.write(to_text(report))


def _is_color_terminal() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and find_spec("rich") is not None


def read_example(args: argparse.Namespace) -> tuple[str, list[Any], str]:
    """Question, passages and answer from the arguments or from standard input.

    Raises:
        InputError: names the file, line or field that cannot be used.
    """
    from_files = any(
        value is not None for value in (args.question, args.passage, args.passages, args.answer)
    )
    if not from_files:
        return _from_json(read_text("-"))
    if args.question is None or args.answer is None:
        missing = "--question" if args.question is None else "--answer"
        raise InputError(f"{missing} is missing (or give one JSON object on standard input)")
    passages: list[Any] = [
        Passage(read_text(name), id=name, title=Path(name).name) for name in args.passage or []
    ]
    if args.passages:
        passages += _read_passages(args.passages)
    return args.question, passages, read_text(args.answer)


def _from_json(text: str) -> tuple[str, list[Any], str]:
    if not text.strip():
        raise InputError(
            "standard input is empty: expected a JSON object with question, passages and answer, "
            "or use --question, --passage and --answer"
        )
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"standard input is not JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"standard input is no JSON that can be read: {error}") from error
    if not isinstance(values, dict):
        raise InputTypeError(
            f"standard input must hold one JSON object, got {type(values).__name__} "
            f"{shorten(values)}"
        )
    missing = [k for k in ("question", "passages", "answer") if k not in values]
    if missing:
        raise InputError(f"standard input: the JSON object lacks {', '.join(missing)}")
    return values["question"], values["passages"], values["answer"]


def _read_passages(name: str) -> list[Any]:
    rows: list[Any] = []
    for number, line in enumerate(read_text(name).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}, line {number}: not JSON ({error})") from error
        try:
            rows += as_passages([row])
        except InputError as error:
            what = str(error).removeprefix("passages[0]")
            raise InputError(f"{name}, line {number}: the passage{what}") from error
    return rows


def read_text(name: str) -> str:
    """A file's text, line ends and all; `-` is standard input.

    Raises:
        InputError: not UTF-8.
    """
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = "standard input" if name == "-" else name
        raise InputError(f"{what} is not UTF-8 (byte {error.start}): convert it first") from error
