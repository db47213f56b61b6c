"""Labelled or unlabelled input -> features of its sentences, for calibrate, train and evaluate."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .check import add_scorer_arguments, checker_from

if TYPE_CHECKING:
    from ..datasets.rows import LabelledExample
    from ..features import SpanFeatures

FORMS = ("rows", "qags")
"""Forms of `datasets.rows.read_examples`, not imported here: the parser needs the names alone."""
BATCH = 8
"""Answers measured together."""
RELEASED = "released"
"""Form of the paper's published features: a `sentence.csv` or its folder, measured already."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Sentences of many answers; those of one answer follow each other."""

    spans: list[SpanFeatures]
    """Features."""
    groups: list[str]
    """The answer of each sentence."""
    labels: np.ndarray | None
    """[N] 1 = unsupported; None: unlabelled."""
    scorer: str
    """Name of the scorer."""
    settings: dict[str, str]
    """`mode`, `prompt`, `dtype`, as far as they are known."""
    revision: str
    """Of the scorer, empty where it is not known."""

    def by_answer(self) -> list[slice]:
        """Where each answer's sentences stand."""
        starts = [i for i, g in enumerate(self.groups) if i == 0 or g != self.groups[i - 1]]
        return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(self.groups)], strict=True)]


def add_input_arguments(parser: Any) -> None:
    """The input, its form, and the scorer that measures it."""
    parser.add_argument("input", help="JSONL; with --format released a sentence.csv or its folder")
    parser.add_argument("--format", choices=(*FORMS, RELEASED), default="rows", help="of the input")
    parser.add_argument("--limit", type=int, help="use the first answers alone")
    add_scorer_arguments(parser)


def measure_input(
    args: argparse.Namespace, *, before: Callable[[bool], object] | None = None
) -> Measured:
    """Features of every sentence of the input that a detector sees.

    Args:
        args: of the command.
        before: called with whether all rows are labelled, before the scorer runs; may raise.

    Raises:
        DatasetError: the input is not of its form; names file and line or column.
        InputError: nothing in it can be scored.
    """
    found = _released(args) if args.format == RELEASED else _scored(args, before)
    if not found.spans:
        raise InputError(f"{args.input}: no sentence could be scored")
    return found


def _released(args: argparse.Namespace) -> Measured:
    from ..datasets.released import SPAN_FILE, read_table

    path = Path(args.input)
    table = read_table(path / SPAN_FILE if path.is_dir() else path)
    rows = [int(i) for answer in table.answers[: args.limit] for i in answer]
    return Measured(
        [table.features[i] for i in rows],
        [str(table.responses[i]) for i in rows],
        table.labels[rows],
        args.model,
        {"mode": args.mode or "remove", "prompt": args.prompt or "paper"},
        "",
    )


def _scored(args: argparse.Namespace, before: Callable[[bool], object] | None) -> Measured:
    from ..datasets.rows import read_examples

    examples = read_examples(args.input, args.format)[: args.limit]
    labelled = all(example.labels is not None for example in examples)
    if before is not None:
        before(labelled)
    checker = checker_from(args)
    spans, groups, labels = measure_examples(checker, examples)
    info = checker.scorer.info
    return Measured(
        spans,
        groups,
        np.array(labels) if labelled else None,
        info.name,
        {"mode": info.mode, "prompt": info.prompt, "dtype": info.dtype},
        info.revision,
    )


def measure_examples(
    checker: Any, examples: Sequence[LabelledExample]
) -> tuple[list[SpanFeatures], list[str], list[int]]:
    """Features, answer and label of every sentence that the detector sees."""
    from ..datasets.rows import label_of
    from ..prepare import prepare
    from ..verdict import measure, scored_spans

    spans: list[SpanFeatures] = []
    groups: list[str] = []
    labels: list[int] = []
    for start in range(0, len(examples), BATCH):
        some = examples[start : start + BATCH]
        prepared = [prepare(e.example, checker.scorer, checker.options) for e in some]
        scores = iter(checker.scorer.score([r for p in prepared for r in p.requests]))
        for example, ready in zip(some, prepared, strict=True):
            evidence = measure(ready, [next(scores) for _ in ready.groups])
            for i in scored_spans(ready, evidence, checker.options):
                features, sentence = evidence.features[i], ready.sentences[i]
                if features is not None:
                    spans.append(features)
                    groups.append(example.group)
                    labels.append(label_of(sentence.start, sentence.end, example.labels or ()))
        if sys.stderr.isatty():
            done = start + len(some)
            end = "\n" if done == len(examples) else ""
            print(f"\r{done}/{len(examples)}", end=end, file=sys.stderr, flush=True)
    return spans, groups, labels


def statistics_of(spans: Sequence[SpanFeatures]) -> dict[str, tuple[float, float]]:
    """Mean and deviation of every feature, over the spans that have it."""
    from ..features import SpanFeatures

    found: dict[str, tuple[float, float]] = {}
    for name in SpanFeatures.__dataclass_fields__:
        if name in ("drops", "jsds"):
            continue
        values = [getattr(s, name) for s in spans]
        known = np.array([v for v in values if v is not None], dtype=np.float64)
        if known.size > 1 and known.std() > 0:
            found[name] = (round(float(known.mean()), 6), round(float(known.std()), 6))
    return found


def command_line(name: str, args: argparse.Namespace) -> str:
    """The call as it goes into what it makes: file names without their folders."""
    parts = [f"gasp-engine {name} {Path(args.input).name}"]
    for option, value in sorted(vars(args).items()):
        if option in ("command", "input", "output") or value in (None, False, []):
            continue
        for one in value if isinstance(value, list) else [value]:
            parts.append(f"--{option.replace('_', '-')}" + ("" if one is True else f" {one}"))
    return " ".join(parts)
