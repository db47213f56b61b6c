"""`gasp-engine evaluate`: how well detectors rank the sentences of labelled answers."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from ..errors import InputError
from .measuring import RELEASED, Measured, add_input_arguments, measure_input, statistics_of

NAME = "evaluate"


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        NAME,
        help="measure detectors on labelled answers",
        description="AUC of the default detector, the paper's and the baselines on labelled "
        "sentences, with intervals over answers and a paired comparison against perplexity. "
        "No labels are used: the paper's detector and the calibrated default are standardized on "
        "the other half of the answers.",
    )
    add_input_arguments(parser)
    parser.add_argument(
        "--trained",
        action="append",
        default=[],
        metavar="FOLDER",
        help="also a detector that gasp-engine train made, on other data",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from ..evaluation import Bootstrap

    data = measure_input(args, before=lambda labelled: _need_labels(args, labelled))
    if data.labels is None:
        raise InputError(f"{args.input}: evaluation needs labels in every row")
    boot = Bootstrap(data.labels, data.groups)
    scores = _methods(data, args)
    rows: list[dict[str, Any]] = []
    for method, values in scores.items():
        own, test = boot.estimate(values), boot.compare(values, scores["perplexity"])
        rows.append(
            {
                "method": method,
                "auc": own.point,
                "low": own.low,
                "high": own.high,
                "over_perplexity": test.difference,
                "over_low": test.low,
                "over_high": test.high,
                "p": test.p,
            }
        )
    n, bad = len(data.spans), int(data.labels.sum())
    if args.json:
        about = {"version": 1, "sentences": n, "unsupported": bad, "answers": len(set(data.groups))}
        print(json.dumps({**about, "scorer": data.scorer, "rows": rows}, allow_nan=False))
        return 0
    print(f"{n} sentences of {len(set(data.groups))} answers, {bad} unsupported")
    print(f"{'method':28} {'AUC':>6} {'95 %':>16} {'over perplexity':>24}")
    for row in rows:
        cells = [row[k] for k in ("auc", "low", "high", "over_perplexity", "over_low", "over_high")]
        if any(c is None for c in cells):
            print(f"{row['method']:28} {'-':>6}")
            continue
        value, low, high, more, more_low, more_high = cells
        lead = f"{more:+.3f} [{more_low:+.3f}, {more_high:+.3f}]"
        print(f"{row['method']:28} {value:6.3f} [{low:.3f}, {high:.3f}] {lead:>24}")
    return 0


def _need_labels(args: argparse.Namespace, labelled: bool) -> None:
    if not labelled:
        raise InputError(f"{args.input}: evaluation needs labels in every row")


def _methods(data: Measured, args: argparse.Namespace) -> dict[str, np.ndarray]:
    from ..baselines import SIMPLE, baseline_scores
    from ..detectors import EvidenceDetector, default_detector
    from ..detectors.paper import PAPER_FEATURES, PaperDetector
    from ..detectors.trained import TrainedDetector

    answers = data.by_answer()
    trained = {folder: TrainedDetector.load(folder) for folder in args.trained}
    scores = {"perplexity": baseline_scores("perplexity", data.spans)}
    scores["default"] = default_detector(None).score(data.spans)
    scores["default, calibrated"] = _held_out(
        lambda spans: EvidenceDetector(statistics_of(spans)), data
    )
    has_all = all(getattr(s, name) is not None for s in data.spans for name in PAPER_FEATURES)
    if has_all:
        scores["paper"] = _held_out(PaperDetector.fit, data)
    for name in SIMPLE:
        without_words = args.format == RELEASED and name in (
            "lexical overlap",
            "novel bigrams",
            "local overlap",
        )
        if name not in scores and not without_words and (has_all or name != "largest drop"):
            scores[name] = baseline_scores(name, data.spans)
    for folder, detector in trained.items():
        parts = [detector.score(data.spans[part]) for part in answers]
        scores[f"trained: {folder}"] = np.concatenate(parts)
    return scores


def _held_out(fit: Any, data: Measured) -> np.ndarray:
    """Scores of a detector that needs statistics, which come from the other half of the answers."""
    names = list(dict.fromkeys(data.groups))
    first = set(names[::2])
    own = np.array([group in first for group in data.groups])
    scores = np.zeros(len(data.spans))
    for part in (own, ~own):
        rest = [s for s, mine in zip(data.spans, part, strict=True) if not mine]
        here = [s for s, mine in zip(data.spans, part, strict=True) if mine]
        if here:
            scores[part] = fit(rest or here).score(here)
    return scores
