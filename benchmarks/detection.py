"""Detection on QAGS (CNN/DM): the default detector against the paper's and the usual baselines.

    python benchmarks/detection.py [--limit N] [--mode mask] [--dtype float32] [--json]

Each article is one context of K = 5 sentence groups; each summary sentence is labelled unsupported
when most of its three judges said no. AUCs are over sentences; intervals and paired comparisons
resample answers. The default detector was chosen on the first 120 answers: the others are reported
apart. `gasp-rag` is that package's score, −max_k drop, from the same passes.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gasp_engine import CheckOptions, Example
from gasp_engine.detectors import default_detector
from gasp_engine.evaluation.auc import Bootstrap
from gasp_engine.features import SpanFeatures
from gasp_engine.prepare import prepare
from gasp_engine.types import Sentence
from gasp_engine.verdict import measure

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "qags"
QUESTION = "Summarize the article."
N_CHOSEN = 120
"""Answers on which the default detector was chosen."""

Row = tuple[int, int, SpanFeatures]
"""Answer, label (1 = unsupported), features."""


def answers(path: Path) -> list[tuple[str, list[str], list[int]]]:
    """(article, sentences, labels) of every answer."""
    rows: list[tuple[str, list[str], list[int]]] = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        sentences = [s["sentence"] for s in row["summary_sentences"]]
        votes = [[r["response"] == "no" for r in s["responses"]] for s in row["summary_sentences"]]
        rows.append((row["article"], sentences, [int(2 * sum(v) > len(v)) for v in votes]))
    return rows


def score(args: argparse.Namespace) -> list[Row]:
    """Features of every labelled sentence, through the product's own code."""
    from gasp_engine.scorers.transformers import TransformersScorer

    settings = {k: getattr(args, k) for k in ("mode", "dtype", "prompt") if getattr(args, k)}
    scorer = TransformersScorer.from_pretrained(args.model, **settings)
    print(f"scorer: {scorer.info}", file=sys.stderr)
    found: list[Row] = []
    data = answers(DATA / "mturk_cnndm.jsonl")[: args.limit]
    for n, (article, sentences, labels) in enumerate(data):
        answer = " ".join(sentences)
        starts = np.cumsum([0, *(len(s) + 1 for s in sentences)])
        spans = tuple(
            Sentence(i, int(starts[i]), int(starts[i]) + len(s), s) for i, s in enumerate(sentences)
        )
        example = Example(QUESTION, [article], answer)
        prepared = prepare(example, scorer, CheckOptions(n_groups=5, max_units=None))
        prepared = replace(prepared, sentences=spans)
        evidence = measure(prepared, scorer.score(prepared.requests))
        found += [
            (n, y, f) for y, f in zip(labels, evidence.features, strict=True) if f is not None
        ]
        if n % 20 == 0:
            print(f"{n}/{len(data)}", file=sys.stderr)
    return found


def read_cache(path: Path) -> list[Row]:
    """What an earlier run wrote."""
    rows = json.loads(path.read_text("utf-8"))
    pairs = ("drops", "jsds")
    return [(n, y, SpanFeatures(**f | {k: tuple(f[k]) for k in pairs})) for n, y, f in rows]


def methods(rows: list[Row]) -> dict[str, np.ndarray]:
    """Scores by method, higher = less supported. Nothing is fitted."""

    def column(name: str) -> np.ndarray:
        return np.array([getattr(f, name) or 0.0 for _, _, f in rows])

    def standard(values: np.ndarray) -> np.ndarray:
        return (values - values.mean()) / values.std()

    detector = default_detector(None)
    four = ("gap", "jsd_none", "drop_max", "jsd_loo_max")
    return {
        "default": detector.score([f for _, _, f in rows]),
        "paper": -np.sum([standard(column(name)) for name in four], axis=0),
        "gasp-rag": -column("drop_max"),
        "perplexity": column("surprisal"),
        "explained": -column("explained"),
        "length": column("n_tokens"),
        "lexical overlap": column("novelty"),
        "novel bigrams": column("novel_bigrams"),
        "local overlap": -column("overlap"),
    }


def table(rows: list[Row], part: str) -> list[dict[str, Any]]:
    """AUC of every method with its interval, and the default's lead over it."""
    labels = np.array([y for _, y, _ in rows])
    boot = Bootstrap(labels, [n for n, _, _ in rows])
    scores = methods(rows)
    lines: list[dict[str, Any]] = []
    for name, values in scores.items():
        own, lead = boot.estimate(values), boot.compare(scores["default"], values)
        lines.append(
            {
                "part": part,
                "method": name,
                "auc": own.point,
                "low": own.low,
                "high": own.high,
                "default_leads_by": lead.difference,
                "lead_low": lead.low,
                "lead_high": lead.high,
                "p": lead.p,
            }
        )
    return lines


def main() -> int:
    """Print the table; with `--json` also one object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--mode", default="mask")
    parser.add_argument("--dtype")
    parser.add_argument("--prompt")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--quick", action="store_true", help="the first 12 answers")
    parser.add_argument("--cache", type=Path, help="a file to keep the features in between runs")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.limit = 12 if args.quick else args.limit
    if not DATA.is_dir():
        print(f"no data: {DATA} is missing, nothing was measured", file=sys.stderr)
        return 0
    if args.cache and args.cache.exists():
        rows = read_cache(args.cache)
    else:
        rows = score(args)
        if args.cache:
            args.cache.write_text(json.dumps([(n, y, f.to_dict()) for n, y, f in rows]), "utf-8")
    parts = {"all": rows, "chosen on": [r for r in rows if r[0] < N_CHOSEN]}
    parts["held out"] = [r for r in rows if r[0] >= N_CHOSEN]
    lines = [line for part, some in parts.items() if some for line in table(some, part)]
    print(f"{'part':10} {'method':16} {'AUC':>6}  {'95 %':>13}  {'lead of default':>24}")
    for x in lines:
        interval = f"{x['low']:.3f}–{x['high']:.3f}"
        lead = f"{x['default_leads_by']:+.3f} [{x['lead_low']:+.3f}, {x['lead_high']:+.3f}]"
        print(f"{x['part']:10} {x['method']:16} {x['auc']:6.3f}  {interval:>13}  {lead:>24}")
    if args.json:
        print(json.dumps({"n": {k: len(v) for k, v in parts.items()}, "rows": lines}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
