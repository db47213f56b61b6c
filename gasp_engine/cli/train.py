"""`gasp-engine train`: fit the project's trained detector on labelled answers."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .measuring import RELEASED, add_input_arguments, command_line, measure_input

NAME = "train"
SETS = ("four", "base", "signed", "answer", "place", "words", "all")


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        NAME,
        help="fit a detector on labelled answers",
        description='Fit monotone trees on JSONL rows of {"question", "passages", "answer", '
        '"labels": [{"start", "end", "label"}]} (1 = unsupported) and save them as a folder. '
        "AUC and calibration error are measured on answers that were held out.",
    )
    add_input_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the detector")
    parser.add_argument(
        "--features",
        choices=SETS,
        help="feature set; default: words, and signed for published features. answer, place and "
        "all also learn how a benchmark was sampled: they do worse on other data",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, fit, save, print what it is worth."""
    from dataclasses import replace

    from ..detectors.trained import FEATURE_SETS
    from ..evaluation import Bootstrap, make_folds, out_of_fold
    from ..evaluation.training import fit_trained, table_of

    feature_set = args.features or ("signed" if args.format == RELEASED else "words")
    if feature_set in ("words", "all") and args.format == RELEASED:
        raise InputError("published features hold no words; use --features signed or place")
    data = measure_input(args, before=lambda labelled: _need_labels(args, labelled))
    if data.labels is None:
        raise InputError(f"{args.input}: training needs labels in every row")
    answers = data.by_answer()
    table = table_of(
        [data.spans[part] for part in answers],
        [data.labels[part].tolist() for part in answers],
        range(len(answers)),
        FEATURE_SETS[feature_set],
    )
    folds = make_folds(table.labels, table.groups)
    scores = out_of_fold(lambda t: fit_trained(t, feature_set=feature_set), table, folds)
    measured = Bootstrap(table.labels, table.groups).estimate(scores)
    detector = fit_trained(table, feature_set=feature_set).detector
    quality = dict(detector.quality)
    for name, value in (("low", measured.low), ("high", measured.high), ("auc", measured.point)):
        if value is not None:
            quality[name] = value
    source = {
        "command": command_line(NAME, args),
        "data": Path(args.input).name,
        "date": datetime.now(UTC).date().isoformat(),
        "scorer": data.scorer,
        **data.settings,
    }
    replace(detector, quality=quality, source=source).save(args.output)
    print(
        f"{feature_set}: {len(table.names)} features, {len(table.labels)} sentences of "
        f"{len(np.unique(table.groups))} answers; AUC on held-out answers "
        f"{quality.get('auc', 0):.3f} [{quality.get('low', 0):.3f}, {quality.get('high', 0):.3f}], "
        f"calibration error {quality['ece']:.3f}; saved in {args.output}",
        file=sys.stdout,
    )
    return 0


def _need_labels(args: argparse.Namespace, labelled: bool) -> None:
    if not labelled:
        raise InputError(f"{args.input}: training needs labels in every row")
