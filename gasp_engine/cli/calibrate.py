"""`gasp-engine calibrate`: thresholds, statistics and probabilities for one scorer."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .measuring import (
    RELEASED,
    add_input_arguments,
    command_line,
    measure_input,
    statistics_of,
)

NAME = "calibrate"


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        NAME,
        help="make a calibration profile from examples",
        description='Make a profile from JSONL rows of {"question", "passages", "answer"}, with or '
        'without "labels": [{"start", "end", "label"}] (1 = unsupported). Without labels the '
        "operating points are budgets: the share of sentences to flag.",
    )
    add_input_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the profile, JSON")
    parser.add_argument("--name", help="of the profile; default: from the scorer and its settings")
    for name, text in (
        ("budget", "flag this share of all sentences"),
        ("precision", "reach this precision"),
        ("recall", "reach this recall on the examples"),
        ("conformal", "reach this recall in expectation on new answers"),
        ("cost", "a miss costs this many false flags"),
    ):
        parser.add_argument(f"--{name}", action="append", type=float, default=[], help=text)
    parser.add_argument("--f1", action="store_true", help="the best F1")
    parser.add_argument("--use", help="operating point that verdicts use, such as budget=0.1")


def run(args: argparse.Namespace) -> int:
    """Measure, choose, write the profile, print a table."""
    from ..detectors import EvidenceDetector, Profile
    from ..evaluation import auc, expected_calibration_error
    from ..evaluation.operating import operating_point, platt

    data = measure_input(args, before=lambda labelled: _choosers(args, labelled=labelled))
    spans, groups, marks = data.spans, data.groups, data.labels
    wanted = _choosers(args, labelled=marks is not None)
    statistics = statistics_of(spans)
    detector = EvidenceDetector(statistics)
    scores = detector.score(spans)
    points = [operating_point(name, choose, scores, groups, marks) for name, choose in wanted]
    use = args.use or points[0].name
    chosen = next((p for p in points if p.name == use), None)
    if chosen is None:
        names = ", ".join(p.name for p in points)
        raise InputError(f"--use {use!r} is no operating point of this call; there are {names}")
    curve = platt(scores, marks) if marks is not None else None
    quality: dict[str, float] = {"n_answers": len(set(groups)), "n_sentences": len(spans)}
    if marks is not None and curve is not None:
        quality["auc"] = auc(marks, scores) or 0.0
        quality["unsupported_rate"] = float(marks.mean())
        quality["ece"] = _cross_fitted_ece(scores, marks, groups, expected_calibration_error)
    profile = Profile(
        name=args.name or "-".join([data.scorer.split("/")[-1], *data.settings.values()]),
        scorer=data.scorer,
        settings=data.settings,
        detector=detector.name,
        threshold=chosen.threshold,
        statistics=statistics,
        operating_points={p.name: p.to_dict() for p in points},
        platt=curve,
        quality=quality,
        source={
            "command": command_line(NAME, args),
            "data": Path(args.input).name,
            "features": "likelihood alone" if args.format == RELEASED else "likelihood and words",
            "date": datetime.now(UTC).date().isoformat(),
            "revision": data.revision,
            "threshold": use,
        },
    )
    profile.save(args.output)
    _print_table(profile, sys.stdout)
    return 0


def _choosers(args: argparse.Namespace, *, labelled: bool) -> list[tuple[str, Any]]:
    from ..evaluation import operating as op

    kinds = (
        ("budget", op.budget),
        ("precision", op.target_precision),
        ("recall", op.target_recall),
        ("conformal", op.conformal_recall),
        ("cost", op.least_cost),
    )
    wanted = [(f"{kind}={v:g}", make(v)) for kind, make in kinds for v in getattr(args, kind)]
    if args.f1:
        wanted.append(("f1", op.best_f1()))
    if not wanted:
        wanted = [(f"budget={q:g}", op.budget(q)) for q in (0.1, 0.05, 0.15, 0.2)]
        if labelled:
            wanted = [("f1", op.best_f1()), *wanted]
            wanted += [(f"precision={p:g}", op.target_precision(p)) for p in (0.5, 0.8)]
            wanted += [(f"recall={r:g}", op.target_recall(r)) for r in (0.8,)]
    for name, _ in wanted:
        if not labelled and not name.startswith("budget"):
            raise InputError(
                f"{name} needs labels in every row of {args.input}; without labels use --budget"
            )
    return wanted


def _cross_fitted_ece(scores: np.ndarray, labels: np.ndarray, groups: list[str], ece: Any) -> float:
    """Calibration error of probabilities that were fitted on the other half of the answers."""
    from ..evaluation.operating import platt

    names = sorted(set(groups))
    half = set(names[::2])
    first = np.array([g in half for g in groups])
    probability = np.zeros(len(scores))
    for own in (first, ~first):
        if len(set(labels[~own].tolist())) < 2:
            return 1.0
        a, b = platt(scores[~own], labels[~own])
        probability[own] = 1.0 / (1.0 + np.exp(-(a * scores[own] + b)))
    return float(ece(labels, probability))


def _print_table(profile: Any, file: Any) -> None:
    quality = ", ".join(f"{k} {v:.3g}" for k, v in profile.quality.items())
    print(f"{profile.name}: {quality}", file=file)
    print(
        f"{'point':16} {'threshold':>9}  {'flags':>18}  {'precision':>18}  {'recall':>18}",
        file=file,
    )
    for name, point in profile.operating_points.items():
        cells = [
            _cell(point[k], point[f"{k}_interval"]) for k in ("flag_rate", "precision", "recall")
        ]
        mark = " <- used" if name == profile.source["threshold"] else ""
        kind, _, target = name.partition("=")
        if kind == "precision" and (point["precision"] or 0.0) < float(target):
            mark = f"{mark} target not reached"
        row = "  ".join(f"{c:>18}" for c in cells)
        print(f"{name:16} {point['threshold']:9.3f}  {row}{mark}", file=file)


def _cell(value: float | None, interval: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
