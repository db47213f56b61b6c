"""How good are the citations? Order on WiCE, kinds of support on a planted set, hints, costs.

    python benchmarks/citations.py            the half of WiCE that the rule was not chosen on
    python benchmarks/citations.py --quick    as many claims as fit in 40 seconds, smallest first
    python benchmarks/citations.py --json     the last line is one JSON object

WiCE: every evidence sentence of a supported claim is a passage; a ranking of them is judged by
whether the first is among those that annotators marked (hit@1) and by mean average precision. The
claims, in a seeded order, are halved: weights were chosen on the even ones and are reported on the
odd ones (`--half` says which). Intervals: 1000 bootstrap resamples by claim, 95 %.

    cited     the order of the product (`SentenceSupport.ranking`)
    drop jsd  the paper's Eq. 10 and 11, unit by unit
    content   the drop over tokens of content words
    refined   sentences in passages of four: the units in the product's order, and inside the
              cited ones the order that refinement gives; the others in reading order
    joint     after the search for joint and redundant support: its set first, then `cited`
    lexical   share of the claim's content words that the sentence holds
    weighted  the same, words weighing by how few sentences hold them
    first     reading order;  random: its expectation over 50 shuffles
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads sleep on a shared machine

from benchmarks.planted import examples
from gasp_engine import CheckOptions, Example
from gasp_engine.closer import look_closer
from gasp_engine.lexical import overlap
from gasp_engine.prepare import Prepared, prepare
from gasp_engine.scorers.base import Scorer
from gasp_engine.support import SentenceSupport, support_of
from gasp_engine.types import Sentence
from gasp_engine.verdict import Evidence, measure

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WHOLE = CheckOptions(max_unit_tokens=None, max_units=None)
RUN = 4
"""Evidence sentences a passage, for `refined`."""
METHODS = (
    *("cited", "refined", "joint", "drop", "jsd"),
    *("content", "lexical", "weighted", "first", "random"),
)


def load_claims(folder: Path, half: str, seed: int) -> list[dict[str, Any]]:
    """Supported claims, one row each, in a seeded order; those of one half, or all."""
    path = folder / "wice" / "claim_oracle_chunks_dev.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["label"] == "supported"]
    rng = np.random.default_rng(seed)
    first: dict[str, dict[str, Any]] = {}
    for i in rng.permutation(len(rows)):
        first.setdefault(rows[i]["claim"], rows[i])
    claims = list(first.values())
    return {"all": claims, "choose": claims[0::2], "report": claims[1::2]}[half]


def as_one_sentence(prepared: Prepared) -> Prepared:
    """A claim is judged whole, however many sentences a segmenter would see in it."""
    end = len(prepared.answer)
    return replace(prepared, sentences=(Sentence(0, 0, end, prepared.answer),))


def scored(
    scorer: Scorer, question: str, passages: Sequence[str], answer: str, options: CheckOptions
) -> tuple[Prepared, Evidence]:
    """An example, measured as the product does."""
    prepared = as_one_sentence(prepare(Example(question, passages, answer), scorer, options))
    return prepared, measure(prepared, scorer.score(prepared.requests))


class Costs:
    """Passes and seconds spent, by what they were spent on."""

    def __init__(self) -> None:
        self.passes: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)

    def add(self, name: str, passes: int, tokens: int, seconds: float) -> None:
        """Add one answer's."""
        self.passes[name] += passes
        self.tokens[name] += tokens
        self.seconds[name] += seconds

    def table(self, n: int) -> dict[str, dict[str, float]]:
        """Means over n answers."""
        return {
            name: {
                "passes": self.passes[name] / n,
                "tokens": self.tokens[name] / n,
                "seconds": self.seconds[name] / n,
            }
            for name in self.passes
        }


def rank_claim(
    scorer: Scorer, row: dict[str, Any], costs: Costs, rng: np.random.Generator
) -> dict[str, tuple[float, float]] | None:
    """hit@1 and average precision of every method on a claim; None when all or no unit is gold."""
    question = f"What is known about {row['meta']['claim_title']}?"
    evidence, claim = row["evidence"], row["claim"]
    marked = {row["meta"]["chunk_idx"].index(i) for i in row["meta"]["oracle_idx"]}
    start = time.perf_counter()
    prepared, measured = scored(scorer, question, evidence, claim, WHOLE)
    features = measured.features[0]
    assert features is not None
    units = prepared.context.units
    gold = np.array([any(s.passage in marked for s in (*u.spans, *u.copies)) for u in units])
    if gold.all() or not gold.any():
        return None
    group = measured.groups[0].scores
    spent = time.perf_counter() - start
    costs.add("leave one out", len(group.conditions), group.tokens_computed, spent)
    plain = support_of(features, prepared.context, measured.signs[0])

    start = time.perf_counter()
    options = CheckOptions(max_unit_tokens=None, max_units=None, max_extra_passes=12)
    (found,) = look_closer([prepared], [measured], [[0]], scorer, options)
    costs.add("joint", found.passes, found.tokens_computed, time.perf_counter() - start)
    joint = found.supports.get(0, plain)

    signs = measured.signs[0]
    n = len(units)
    scores = {
        "drop": np.array([s.drop or 0.0 for s in signs]),
        "jsd": np.array([s.divergence or 0.0 for s in signs]),
        "content": np.array([s.content or 0.0 for s in signs]),
        "lexical": np.array([overlap(claim, unit.text) for unit in units]),
        "weighted": np.array([s.overlap for s in signs]),
        "first": -np.arange(n, dtype=float),
    }
    orders = {name: np.argsort(-values, kind="stable") for name, values in scores.items()}
    orders["cited"] = np.array(plain.ranking)
    ahead = [u.unit for u in joint.units] if joint.kind in ("joint", "redundant") else []
    orders["joint"] = np.array([*ahead, *(k for k in plain.ranking if k not in ahead)])
    result = {name: judge(gold[order]) for name, order in orders.items()}
    shuffles = [judge(gold[rng.permutation(n)]) for _ in range(50)]
    result["random"] = tuple(np.mean(shuffles, axis=0))
    result["refined"] = rank_refined(scorer, question, evidence, claim, marked, costs)
    return result


def rank_refined(
    scorer: Scorer,
    question: str,
    evidence: Sequence[str],
    claim: str,
    marked: set[int],
    costs: Costs,
) -> tuple[float, float]:
    """The same claim on passages of several sentences, refined."""
    texts: list[str] = []
    where: list[tuple[int, int, int]] = []
    for i, sentence in enumerate(evidence):
        if i % RUN == 0:
            texts.append("")
        else:
            texts[-1] += " "
        where.append((len(texts) - 1, len(texts[-1]), len(texts[-1]) + len(sentence)))
        texts[-1] += sentence
    start = time.perf_counter()
    prepared, measured = scored(scorer, question, texts, claim, WHOLE)
    costs.add(
        "passages of four",
        len(measured.groups[0].scores.conditions),
        measured.groups[0].scores.tokens_computed,
        time.perf_counter() - start,
    )
    features = measured.features[0]
    assert features is not None
    start = time.perf_counter()
    options = CheckOptions(max_unit_tokens=None, max_units=None, refine=True)
    (found,) = look_closer([prepared], [measured], [[0]], scorer, options)
    costs.add("refine", found.passes, found.tokens_computed, time.perf_counter() - start)
    support = found.supports.get(0) or support_of(features, prepared.context, measured.signs[0])
    return judge(np.array([i in marked for i in order_of_sentences(prepared, support, where)]))


def order_of_sentences(
    prepared: Prepared, support: SentenceSupport, where: Sequence[tuple[int, int, int]]
) -> list[int]:
    """Evidence sentences in the order of refined support, then by unit and reading order."""
    order: list[int] = []

    def take(passage: int, start: int, end: int) -> None:
        shared = [
            (min(end, e) - max(start, s), i)
            for i, (p, s, e) in enumerate(where)
            if p == passage and min(end, e) > max(start, s)
        ]
        for _, i in sorted(shared, key=lambda item: (-item[0], item[1])):
            if i not in order:
                order.append(i)

    for span in support.parts:
        take(span.passage, span.start, span.end)
    for unit in support.ranking:
        for span in prepared.context.units[unit].spans:
            for p, s, e in where:
                if p == span.passage and span.start <= s < span.end:
                    take(p, s, e)
    return [*order, *(i for i in range(len(where)) if i not in order)]


def judge(gold: np.ndarray) -> tuple[float, float]:
    """hit@1 and average precision of a ranking, given whether each item in it is gold."""
    precision = np.cumsum(gold) / np.arange(1, len(gold) + 1)
    return float(gold[0]), float(precision[gold].mean()) if gold.any() else 0.0


def interval(values: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of a mean."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (1000, len(values)))].mean(1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def run_planted(scorer: Scorer, passes: int, deadline: float) -> dict[str, Any]:
    """How often the kind and the passages of planted support are found, with and without passes."""
    outcome: dict[str, Counter[str]] = defaultdict(Counter)
    spent: list[int] = []
    for example in examples():
        if time.perf_counter() > deadline:
            break
        prepared, measured = scored(
            scorer, example.question, example.passages, example.answer, WHOLE
        )
        features = measured.features[0]
        assert features is not None
        plain = support_of(features, prepared.context, measured.signs[0])
        options = CheckOptions(max_unit_tokens=None, max_units=None, max_extra_passes=passes)
        (found,) = look_closer([prepared], [measured], [[0]], scorer, options)
        spent.append(found.passes)
        for name, support in (("leave one out", plain), ("looked", found.supports.get(0, plain))):
            counts = outcome[f"{example.kind}, {name}"]
            counts["examples"] += 1
            counts["kind found"] += support.kind == example.kind
            cited = {s.passage for u in support.units for s in prepared.context.units[u.unit].spans}
            counts["first is planted"] += bool(support.units) and (
                prepared.context.units[support.units[0].unit].spans[0].passage in example.planted
            )
            counts["exact set"] += cited == set(example.planted)
            counts["all planted cited"] += cited >= set(example.planted)
            counts[f"called {support.kind}"] += 1
    return {
        "outcome": {name: dict(counts) for name, counts in outcome.items()},
        "mean_extra_passes": float(np.mean(spent)) if spent else None,
    }


def run_against(folder: Path) -> dict[str, Any]:
    """Whether a chunk that speaks against a sentence says anything about conflicts (AUROC)."""
    results: dict[str, Any] = {}
    for name in ("Qwen2.5-0.5B-Instruct_K5", "Qwen2.5-1.5B-Instruct_K5"):
        path = folder / "released" / name / "sentence.csv"
        if not path.is_file():
            continue
        lowest: dict[str, list[float]] = defaultdict(list)
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                drops = json.loads(row["chunk_drops"])
                if drops:
                    lowest[row["sent_type"]].append(-min(drops))
        results[name] = {
            f"{a} over {b}": auroc(np.array(lowest[a]), np.array(lowest[b]))
            for a, b in (("conflict", "none"), ("conflict", "baseless"), ("baseless", "none"))
        }
    return results


def auroc(positive: np.ndarray, negative: np.ndarray) -> dict[str, Any]:
    """Area under the ROC curve and its 95 % bootstrap interval, sentences resampled by class."""

    def area(p: np.ndarray, n: np.ndarray) -> float:
        n = np.sort(n)
        below = np.searchsorted(n, p, "left") + np.searchsorted(n, p, "right")
        return float(below.mean() / 2 / len(n))

    rng = np.random.default_rng(0)
    draws = [
        area(rng.choice(positive, len(positive)), rng.choice(negative, len(negative)))
        for _ in range(1000)
    ]
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"auroc": area(positive, negative), "low": float(low), "high": float(high)}


def report(results: list[dict[str, tuple[float, float]]], say: Callable[[str], None]) -> dict:
    """Tables of hit@1 and MAP, with paired differences from what is cited."""
    values = {m: np.array([r[m] for r in results]) for m in METHODS}
    say(f"\n{'':10s}  hit@1                  MAP                    MAP, cited minus it")
    for name in METHODS:
        cells: list[str] = []
        for column in (values[name][:, 0], values[name][:, 1]):
            low, high = interval(column)
            cells.append(f"{column.mean():.3f} [{low:.3f}, {high:.3f}]")
        difference = values["cited"][:, 1] - values[name][:, 1]
        low, high = interval(difference)
        cells.append(f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]")
        say(f"{name:10s}  " + "  ".join(cells))
    out: dict[str, Any] = {"n": len(results)}
    for key, column in (("hit_rate", 0), ("map", 1)):
        out[key] = {m: float(values[m][:, column].mean()) for m in METHODS}
        out[f"{key}_interval"] = {m: interval(values[m][:, column]) for m in METHODS}
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="within 60 seconds")
    parser.add_argument("--json", action="store_true", help="last line: one JSON object")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with wice/ and released/")
    parser.add_argument("--half", choices=("report", "choose", "all"), default="report")
    parser.add_argument("--claims", type=int, help="at most so many")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--mode", default="mask", help="how evidence is ablated")
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if not (given.data / "wice").is_dir():
        print(f"no wice/ in {given.data}: name the folder with --data", file=sys.stderr)
        return 2
    begin = time.perf_counter()
    if given.threads:
        import torch

        torch.set_num_threads(given.threads)
    from gasp_engine.scorers.transformers import TransformersScorer

    scorer = TransformersScorer.from_pretrained(given.model, mode=given.mode)
    claims = load_claims(given.data, given.half, given.seed)[: given.claims]
    if given.quick:
        claims.sort(key=lambda row: sum(map(len, row["evidence"])) * len(row["evidence"]))
    deadline = begin + 40 if given.quick else float("inf")
    rng, costs = np.random.default_rng(given.seed), Costs()
    results: list[dict[str, tuple[float, float]]] = []
    slowest = 0.0
    for row in claims:
        start = time.perf_counter()
        if start + slowest > deadline and results:
            break
        found = rank_claim(scorer, row, costs, rng)
        if found is not None:
            results.append(found)
        slowest = max(slowest, time.perf_counter() - start)
    info = scorer.info
    print(
        f"WiCE, half {given.half!r}: {len(results)} claims; {info.name}, mode {info.mode}, "
        f"seed {given.seed}"
    )
    out = report(results, print)
    print("\ncost a claim        passes   tokens  seconds")
    out["costs"] = costs.table(len(results))
    for name, cost in out["costs"].items():
        print(f"{name:18s} {cost['passes']:7.1f} {cost['tokens']:8.0f} {cost['seconds']:8.2f}")
    planted = run_planted(scorer, 16, begin + 48 if given.quick else float("inf"))
    out["planted"] = planted
    print(f"\nplanted set, at most 16 further passes (mean {planted['mean_extra_passes']})")
    for name, counts in planted["outcome"].items():
        print(f"{name:26s} " + ", ".join(f"{k} {v}" for k, v in counts.items()))
    out["against"] = run_against(given.data)
    print("\nlowest chunk drop as a sign of conflict: AUROC")
    for name, pairs in out["against"].items():
        cells = (
            f"{k} {v['auroc']:.3f} [{v['low']:.3f}, {v['high']:.3f}]" for k, v in pairs.items()
        )
        print(f"{name:26s} " + "; ".join(cells))
    out["seconds"] = time.perf_counter() - begin
    print(f"\n{out['seconds']:.0f} s")
    if given.json:
        print(json.dumps(out, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
