"""How good are the citations? Order on WiCE, kinds of support on a planted set, hints, costs.

    python benchmarks/citations.py            the claims that the rule was not chosen on
    python benchmarks/citations.py --quick    as many claims as fit in 24 seconds, smallest first,
                                              and of those as many as fit for the slower parts
    python benchmarks/citations.py --json     the last line is one JSON object

WiCE: every evidence sentence of a supported claim is a passage; a ranking of them is judged by
whether the first is among those that annotators marked (hit@1) and by mean average precision. The
claims are put in a seeded order. The rule was chosen on 70 of them (`--half choose`: the first 50
and every other one up to the 90th) and is reported on the 44 that nothing was chosen on. Intervals:
1000 bootstrap resamples by claim, 95 %.

    cited     the order of the product (`SentenceSupport.ranking`)
    drop jsd  the paper's Eq. 10 and 11, unit by unit
    gain      the positive part of the drop over tokens of content words
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads sleep on a shared machine

from benchmarks.planted import examples
from gasp_engine import CheckOptions, Example
from gasp_engine.closer import Findings, look_closer
from gasp_engine.lexical import overlap
from gasp_engine.prepare import Prepared, prepare
from gasp_engine.scorers.base import Scorer
from gasp_engine.support import SentenceSupport, support_of
from gasp_engine.types import Sentence, TokenScores
from gasp_engine.verdict import Evidence, measure

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WHOLE = CheckOptions(max_unit_tokens=None, max_units=None)
RUN = 4
"""Evidence sentences a passage, for `refined`."""
METHODS = (
    *("cited", "refined", "joint", "drop", "jsd"),
    *("gain", "lexical", "weighted", "first", "random"),
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
    chosen_on = {i for i in range(len(claims)) if i < 50 or (i < 90 and i % 2 == 0)}
    wanted = {"all": (True, False), "choose": (True,), "report": (False,)}[half]
    return [row for i, row in enumerate(claims) if (i in chosen_on) in wanted]


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
    """Passes, token positions and seconds spent, by what they were spent on."""

    def __init__(self) -> None:
        self._spent: dict[str, list[tuple[int, int, float]]] = defaultdict(list)

    def add(self, name: str, work: TokenScores | Findings, seconds: float) -> None:
        """Add what one answer took."""
        passes = work.passes if isinstance(work, Findings) else len(work.conditions)
        self._spent[name].append((passes, work.tokens_computed, seconds))

    def table(self) -> dict[str, dict[str, float]]:
        """Means over answers."""
        return {
            name: dict(zip(("passes", "tokens", "seconds"), np.mean(rows, axis=0), strict=True))
            for name, rows in self._spent.items()
        }


@dataclass
class Ranked:
    """One claim, measured, and how its rankings fare: method -> (hit@1, average precision)."""

    row: dict[str, Any]
    prepared: Prepared
    measured: Evidence
    gold: np.ndarray
    scores: dict[str, tuple[float, float]]

    @property
    def plain(self) -> SentenceSupport:
        """What the product says without further passes."""
        features = self.measured.features[0]
        assert features is not None
        return support_of(features, self.prepared.context, self.measured.signs[0])


def question_of(row: dict[str, Any]) -> str:
    """WiCE has no questions."""
    return f"What is known about {row['meta']['claim_title']}?"


def marked_in(row: dict[str, Any]) -> set[int]:
    """Indices of the evidence sentences that annotators marked."""
    return {row["meta"]["chunk_idx"].index(i) for i in row["meta"]["oracle_idx"]}


def rank_claim(
    scorer: Scorer, row: dict[str, Any], costs: Costs, rng: np.random.Generator
) -> Ranked | None:
    """The rankings that leave-one-out passes give; None when all or no unit is gold."""
    start = time.perf_counter()
    claim = row["claim"]
    prepared, measured = scored(scorer, question_of(row), row["evidence"], claim, WHOLE)
    units, marked = prepared.context.units, marked_in(row)
    gold = np.array([any(s.passage in marked for s in (*u.spans, *u.copies)) for u in units])
    if gold.all() or not gold.any():
        return None
    costs.add("leave one out", measured.groups[0].scores, time.perf_counter() - start)
    signs, n = measured.signs[0], len(units)
    values = {
        "drop": np.array([s.drop or 0.0 for s in signs]),
        "jsd": np.array([s.divergence or 0.0 for s in signs]),
        "gain": np.array([s.gain or 0.0 for s in signs]),
        "lexical": np.array([overlap(claim, unit.text) for unit in units]),
        "weighted": np.array([s.overlap for s in signs]),
        "first": -np.arange(n, dtype=float),
    }
    scores = {m: judge(gold[np.argsort(-v, kind="stable")]) for m, v in values.items()}
    scores["random"] = tuple(np.mean([judge(gold[rng.permutation(n)]) for _ in range(50)], axis=0))
    ranked = Ranked(row, prepared, measured, gold, scores)
    scores["cited"] = judge(gold[list(ranked.plain.ranking)])
    return ranked


def rank_joint(scorer: Scorer, ranked: Ranked, costs: Costs) -> tuple[float, float]:
    """The ranking after the search for joint and redundant support."""
    start = time.perf_counter()
    options = replace(WHOLE, max_extra_passes=12)
    (found,) = look_closer([ranked.prepared], [ranked.measured], [[0]], scorer, options)
    costs.add("joint", found, time.perf_counter() - start)
    support = found.supports.get(0, ranked.plain)
    ahead = [u.unit for u in support.units] if support.kind in ("joint", "redundant") else []
    order = [*ahead, *(k for k in support.ranking if k not in ahead)]
    return judge(ranked.gold[order])


def rank_refined(scorer: Scorer, row: dict[str, Any], costs: Costs) -> tuple[float, float]:
    """The same claim on passages of several sentences, refined."""
    evidence, marked = row["evidence"], marked_in(row)
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
    prepared, measured = scored(scorer, question_of(row), texts, row["claim"], WHOLE)
    costs.add("passages of four", measured.groups[0].scores, time.perf_counter() - start)
    features = measured.features[0]
    assert features is not None
    start = time.perf_counter()
    options = replace(WHOLE, refine=True)
    (found,) = look_closer([prepared], [measured], [[0]], scorer, options)
    costs.add("refine", found, time.perf_counter() - start)
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


def until(deadline: float, items: Iterable[Any]) -> Iterator[Any]:
    """Items, as long as the slowest one so far would be done in time; the first in any case."""
    slowest, last = 0.0, time.perf_counter()
    for item in items:
        yield item
        now = time.perf_counter()
        slowest, last = max(slowest, now - last), now
        if now + slowest > deadline:
            return


def run_planted(scorer: Scorer, passes: int, deadline: float) -> dict[str, Any]:
    """How often the kind and the passages of planted support are found, with and without passes."""
    outcome: dict[str, Counter[str]] = defaultdict(Counter)
    spent: list[int] = []
    for example in until(deadline, examples()):
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


def report(
    results: Sequence[dict[str, tuple[float, float]]], say: Callable[[str], None]
) -> dict[str, Any]:
    """Tables of hit@1 and MAP, with paired differences from what is cited."""
    out: dict[str, Any] = {"n": {m: sum(m in r for r in results) for m in METHODS}}
    for key in ("hit_rate", "map"):
        out |= {key: {}, f"{key}_interval": {}, f"cited_minus_{key}": {}}
    say(
        f"\n{'':10s}   n  hit@1                 MAP                   cited minus it, hit@1 and MAP"
    )
    for name in METHODS:
        rows = [r for r in results if name in r]
        if not rows:
            continue
        cells: list[str] = []
        for column, key in enumerate(("hit_rate", "map")):
            values = np.array([r[name][column] for r in rows])
            low, high = interval(values)
            out[key][name], out[f"{key}_interval"][name] = float(values.mean()), (low, high)
            cells.append(f"{values.mean():.3f} [{low:.3f}, {high:.3f}]")
        for column, key in enumerate(("hit_rate", "map")):
            difference = np.array([r["cited"][column] - r[name][column] for r in rows])
            low, high = interval(difference)
            out[f"cited_minus_{key}"][name] = (float(difference.mean()), low, high)
            cells.append(f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]")
        say(f"{name:10s} {len(rows):3d}  " + "  ".join(cells))
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="within 60 seconds")
    parser.add_argument("--json", action="store_true", help="last line: one JSON object")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with wice/ and released/")
    parser.add_argument("--half", choices=("report", "choose", "all"), default="report")
    parser.add_argument("--claims", type=int, help="at most so many")
    parser.add_argument("--slow", type=int, help="joint and refined on so many claims at most")
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
    ends = (begin + 24, begin + 40, begin + 48) if given.quick else (float("inf"),) * 3
    rng, costs = np.random.default_rng(given.seed), Costs()
    found = (rank_claim(scorer, row, costs, rng) for row in claims)
    ranked = [r for r in until(ends[0], found) if r is not None]
    for r in until(ends[1], ranked[: given.slow]):
        r.scores["joint"] = rank_joint(scorer, r, costs)
        r.scores["refined"] = rank_refined(scorer, r.row, costs)
    info = scorer.info
    print(
        f"WiCE, half {given.half!r}: {len(ranked)} claims; {info.name}, mode {info.mode}, "
        f"seed {given.seed}"
    )
    out = report([r.scores for r in ranked], print)
    print("\ncost a claim        passes   tokens  seconds")
    out["costs"] = costs.table()
    for name, cost in out["costs"].items():
        print(f"{name:18s} {cost['passes']:7.1f} {cost['tokens']:8.0f} {cost['seconds']:8.2f}")
    planted = run_planted(scorer, 16, ends[2])
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
