"""`gasp-engine reproduce`: the paper's tables from its published features, ours beside its own."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

NAME = "reproduce"


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        NAME,
        help="the paper's tables from its published features",
        description="For every folder <Model>_K<k> with sentence.csv or response.csv under DIR: "
        "AUCs with bootstrap intervals and paired tests (Tables 4, 7-15), and from "
        "explanation_eval.csv and attractor_controls.csv sections 8.5 and 8.7. The paper's value "
        "stands beside ours where it has one.",
    )
    parser.add_argument("--released", required=True, metavar="DIR", help="the published features")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument(
        "--trained",
        nargs="?",
        const="four,base,signed,answer,place",
        metavar="SETS",
        help="also cross-validate this project's trained detector with these feature sets (slow)",
    )


def run(args: argparse.Namespace) -> int:
    """Compute and print."""
    from ..datasets.released import find_models
    from ..detectors.trained import FEATURE_SETS
    from ..diagnostics.controls import control_rows
    from ..errors import InputError
    from ..evaluation.reproduce import reproduce

    sets = [name for name in (args.trained or "").split(",") if name]
    unknown = [name for name in sets if name not in FEATURE_SETS]
    if unknown:
        raise InputError(
            f"--trained: no feature set {unknown[0]!r}; there are {', '.join(FEATURE_SETS)}"
        )
    rows, notes = reproduce(find_models(args.released), feature_sets=sets)
    rows += control_rows(args.released)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if args.json:
        found = {"version": 1, "rows": [row.to_dict() for row in rows], "notes": notes}
        print(json.dumps(found, allow_nan=False, ensure_ascii=False))
        return 0
    _print(rows)
    return 0


def _print(rows: list[Any]) -> None:
    header = (
        f"{'table':5} {'model':26} {'level':8} {'method':52} {'ours':>8} {'interval':>16} paper"
    )
    last = None
    for row in rows:
        if row.table != last:
            print(f"\n{header}")
            last = row.table
        interval = "" if row.low is None else f"[{row.low:.3f}, {row.high:.3f}]"
        paper = "" if row.paper is None else f"{row.paper:g}"
        print(
            f"{row.table:5} {row.model:26.26} {row.level:8} {row.method:52.52} "
            f"{_number(row.ours):>8} {interval:>16} {paper}"
        )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value == int(value) and abs(value) > 1 else f"{value:.3f}"
