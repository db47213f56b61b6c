"""How fast the scoring modes are, beside the plain passes and the package `gasp-rag`.

    python benchmarks/speed.py --quick            K = 5, about 900 + 160 tokens; within a minute
    python benchmarks/speed.py                    also K = 20 (3800 + 100 tokens) and the grids
    python benchmarks/speed.py --only-grids --plot docs/speed.png     the grids, and a plot of one
    python benchmarks/speed.py --qags 60          also what each mode changes on 60 answers of QAGS

All systems score the same answer on the same evidence with the same weights, one after the other,
round after round; a figure is the median over its rounds, in which those that take many seconds run
once. What is timed is scoring: the model is loaded, texts are tokenized within. With `--quick` the
differences from the plain passes are measured on a short case. The peer is optional: `pip install
gasp-rag==0.2.1`; without it its figures are null.

    floor     one pass over context and answer, logits at the answer: nothing that reads the
              evidence can cost less
    plain     the paper: one full pass for each condition
    peer      gasp-rag as it comes, float32, with its limits on length lifted
    remove, mask, cached    the modes, float32; cached is timed on evidence it has met before
    two       mask, with the conditions full and none alone
    shortlist mask, with `max_units` = 2: two units left out one by one
    default   what users get: default mode, default dtype; where that is one of the modes above, the
              very same runs
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import numpy as np
import torch

from gasp_engine.perturb import build_context
from gasp_engine.scorers.base import ScoreRequest
from gasp_engine.scorers.embedded import embedded_model
from gasp_engine.scorers.loading import EMBEDDED, default_dtype, load
from gasp_engine.scorers.model_thread import run_model
from gasp_engine.scorers.transformers import DEFAULT_MODE, TransformersScorer
from gasp_engine.types import TokenScores, as_passages
from gasp_engine.windows import shortlist

ROOT = Path(__file__).resolve().parents[1]
QAGS = ROOT / ".." / "shared" / "data" / "qags" / "mturk_cnndm.jsonl"
CORPUS = ROOT / "examples" / "corpus"
QUESTION = "What happened, and who says so?"
CPU = torch.device("cpu")
SLOW = ("peer", "plain", "remove")
QUICK_BUDGET = 30.0
"""Seconds after which a quick run begins no further round."""
SHORT = ("short", 5, 80, 15)
"""The case on which a quick run compares features: name, units, context and answer tokens."""


@dataclass
class Case:
    """One answer on one context of K units."""

    name: str
    request: ScoreRequest
    answer: str
    tokens: tuple[int, int]
    """Of the context and of the answer."""


@dataclass
class Timing:
    """What one system took for one case."""

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    tokens: int = 0
    peak_mb: float = 0.0
    scores: TokenScores | None = None

    @property
    def median(self) -> float:
        """Seconds, over the rounds."""
        return statistics.median(self.seconds)

    @property
    def busy(self) -> float:
        """Processor seconds of all threads, over the rounds; what a busy machine distorts least."""
        return statistics.median(self.processor)


class Memory:
    """The most memory that this process took inside the `with` block, above what it had before."""

    def __enter__(self) -> Memory:
        gc.collect()
        self._start = self.peak = _resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            self.peak = max(self.peak, _resident())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, _resident()) - self._start


def _resident() -> float:
    """Resident memory in MB; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        return 0.0
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def real_text() -> tuple[str, list[str]]:
    """A long stretch of news or, without the shared data, of the example corpus; its source."""
    if QAGS.is_file():
        rows = [json.loads(line) for line in QAGS.read_text("utf-8").splitlines()]
        return "QAGS (CNN/DM)", " ".join(row["article"] for row in rows).split()
    words = " ".join(p.read_text("utf-8") for p in sorted(CORPUS.rglob("*.*"))).split()
    return "examples/corpus, repeated", words * (1 + 40_000 // max(len(words), 1))


class Bench:
    """The systems, and the text that cases are made from."""

    def __init__(self, model: str) -> None:
        loaded = load(model, "cpu", "float32", None)
        parts = (loaded.model, loaded.tokenizer)
        nothing: dict[str, int] = {"scores_bytes": 0, "evidence_bytes": 0}
        self.scorer = TransformersScorer(*parts, name=model, mode="plain", **nothing)
        self.cached = TransformersScorer(*parts, name=model, mode="cached", scores_bytes=0)
        self.same_as = DEFAULT_MODE if default_dtype("cpu") == torch.float32 else None
        """The system that the default is, if it is one."""
        self.default = (
            self.scorer.with_mode(DEFAULT_MODE)
            if self.same_as
            else TransformersScorer.from_pretrained(model, device="cpu", **nothing)
        )
        self.source, self.words = real_text()
        self.peer: Any = None
        if importlib.util.find_spec("gasp") is not None:
            import gasp

            path = str(embedded_model()) if model == EMBEDDED else model
            self.peer = gasp.Scorer(path, device="cpu", max_ctx_tokens=10**6, max_ans_tokens=10**6)
            torch.set_grad_enabled(True)  # the peer switches it off for the whole process

    def case(self, name: str, units: int, context: int, answer: int) -> Case:
        """A context of about `context` tokens in `units` passages, and an answer."""
        per_word = self.scorer.count_tokens(" ".join(self.words[:2000])) / 2000
        size = max(1, round(context / per_word / units))
        passages = [" ".join(self.words[i * size : (i + 1) * size]) for i in range(units)]
        start = units * size
        # Half of the answer is copied from the evidence, half is text from elsewhere.
        half = max(1, round(answer / per_word / 2))
        copied = self.words[start // 2 : start // 2 + half]
        text = " ".join([*copied, *self.words[start + 500 : start + 500 + half]])
        evidence = build_context(as_passages(passages))
        tokens = self.scorer.tokenize(text)
        request = ScoreRequest(QUESTION, evidence, tokens, evidence.leave_one_out())
        counts = self.scorer.count_tokens(evidence.render(evidence.full.kept)), len(tokens)
        return Case(name, request, text, counts)

    def systems(self, case: Case) -> dict[str, Callable[[], TokenScores | int]]:
        """System -> what runs it once; gives its scores, or the tokens it computed."""
        request = case.request
        two = ScoreRequest(
            request.question, request.context, request.answer, request.conditions[:2]
        )
        scorer = self.scorer
        few = shortlisted(request, case.answer, 2)

        def run(mode: Any, wanted: ScoreRequest = request) -> TokenScores:
            return scorer.with_mode(mode).score([wanted])[0]

        found: dict[str, Callable[[], TokenScores | int]] = {
            "floor": lambda: run_model(CPU, self._floor, request),
            "plain": lambda: run("plain"),
            "remove": lambda: run("remove"),
            "mask": lambda: run("mask"),
            "two": lambda: run("mask", two),
            "shortlist": lambda: run("mask", few),
            "cached": lambda: self.cached.score([request])[0],
            "default": lambda: self.default.score([request])[0],
        }
        if self.peer is not None:
            found["peer"] = lambda: run_model(CPU, self._peer, case)
        return found

    def _floor(self, request: ScoreRequest) -> int:
        text = request.context.render(request.context.full.kept)
        prompt = self.scorer._tokenizer.prompt_tokens(request.question, text).ids
        ids = torch.tensor([[*prompt, *request.answer.ids[:-1]]])
        with torch.inference_mode():
            logits = self.scorer._model(
                ids, use_cache=False, logits_to_keep=len(request.answer)
            ).logits
            torch.log_softmax(logits[0].float(), -1)
        return ids.shape[1]

    def _peer(self, case: Case) -> int:
        import gasp

        text, pieces = case.request.context.layout(case.request.context.full.kept)
        wanted = gasp.Case(
            query=case.request.question,
            context=text,
            answer=case.answer,
            sent_spans=gasp.sentence_spans(case.answer),
            chunk_spans=[(piece.start, piece.end) for piece in pieces],
        )
        with torch.no_grad():
            self.peer.score(wanted)
        plain = self.scorer._evidence(
            case.request.question, case.request.context, case.request.conditions
        )
        return sum(len(b.lead) for b in plain.branches) + len(plain.branches) * case.tokens[1]

    def time(
        self, case: Case, names: list[str], rounds: int, budget: float | None = None
    ) -> dict[str, Timing]:
        """Run the systems in turn, `rounds` times; the slow ones in the first round alone.

        With a budget, in seconds, no round begins after it is spent.
        """
        systems = self.systems(case)
        found = {name: Timing() for name in names if name in systems}
        if self.same_as in found:
            found.pop("default", None)
        begin = time.perf_counter()
        if "cached" in found:  # it has met the passages before
            one = self.scorer.tokenize("Yes")
            self.cached.score([replace(case.request, answer=one)])
        for number in range(rounds):
            for name, timing in found.items():
                spent = time.perf_counter() - begin
                if number and (name in SLOW or (budget is not None and spent > budget)):
                    continue
                with Memory() as memory:
                    start, busy = time.perf_counter(), time.process_time()
                    result = systems[name]()
                    timing.seconds.append(time.perf_counter() - start)
                    timing.processor.append(time.process_time() - busy)
                timing.peak_mb = max(timing.peak_mb, memory.peak)
                if isinstance(result, TokenScores):
                    timing.tokens, timing.scores = result.tokens_computed, result
                else:
                    timing.tokens = result
        if "default" in names and self.same_as in found:
            found["default"] = found[self.same_as]
        return found


def shortlisted(request: ScoreRequest, answer: str, size: int) -> ScoreRequest:
    """The request with only `size` units left out one by one, chosen as `max_units` does."""
    context = request.context
    units = shortlist(context, f"{request.question}\n{answer}", size)
    without = [tuple(k for k in context.full.kept if k != unit) for unit in units]
    few = [c for c in request.conditions[2:] if c.kept in without]  # one unit alone: it is `none`
    return replace(request, conditions=(*request.conditions[:2], *few))


def features(scores: TokenScores, case: Case) -> np.ndarray:
    """The paper's four features of every sentence, [S, 4]: Eqs. 8 to 11."""
    spans = [(i, min(i + 25, case.tokens[1])) for i in range(0, case.tokens[1], 25)]
    gains = scores.log_probs[0] - scores.log_probs
    rows: list[list[float]] = []
    for begin, end in spans:
        drops, jsd = gains[:, begin:end].mean(1), scores.jsd[:, begin:end].mean(1)
        row = [drops[1], jsd[1]]
        row += [drops[2:].max(), jsd[2:].max()] if len(drops) > 2 else [drops[1], jsd[1]]
        rows.append([float(x) for x in row])
    return np.array(rows)


def differences(found: dict[str, Timing], case: Case) -> dict[str, float]:
    """Per mode, the largest difference of any feature from the plain passes."""
    plain = found["plain"].scores
    assert plain is not None
    wanted = features(plain, case)
    result: dict[str, float] = {}
    for name, timing in found.items():
        if name not in ("plain", "two", "shortlist") and timing.scores is not None:
            result[name] = float(np.abs(features(timing.scores, case) - wanted).max())
    return result


def ratios(times: dict[str, float], suffix: str) -> dict[str, float | None]:
    """Times of the peer over those of our modes, and mask over the floor."""
    peer = times.get("peer")
    result: dict[str, float | None] = {
        f"{name}_vs_peer_{suffix}": peer / times[name] if peer else None
        for name in ("remove", "mask", "default", "cached")
    }
    for name in ("mask", "shortlist", "cached"):
        if name in times:
            result[f"{name}_floor_{suffix}"] = times[name] / times["floor"]
    return result


def table(case: Case, found: dict[str, Timing], different: dict[str, float]) -> str:
    """One line for each system."""
    floor = found.get("floor")
    lines = [
        f"{case.name}: {case.tokens[0]} context and {case.tokens[1]} answer tokens, "
        f"{len(case.request.context.units)} units",
        f"  {'':9} {'seconds':>8} {'busy s':>8} {'tokens':>7} {'peak MB':>8} {'x floor':>8} "
        f"{'max |Δ|':>9}",
    ]
    for name, timing in found.items():
        times = f"{timing.busy / floor.busy:8.2f}" if floor else " " * 8
        delta = f"{different[name]:9.1e}" if name in different else " " * 9
        lines.append(
            f"  {name:9} {timing.median:8.2f} {timing.busy:8.2f} {timing.tokens:7d} "
            f"{timing.peak_mb:8.0f} {times} {delta}".rstrip()
        )
    return "\n".join(lines)


def grids(bench: Bench, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Seconds of each mode over K, context length, answer length and batch."""
    modes = ["remove", "mask", "two", "cached", "default"]
    points = [("K", k, (k, 2000, 100)) for k in (1, 2, 5, 10, 20, 50)]
    points += [("context", c, (5, c, 100)) for c in (200, 1000, 3000, 7500)]
    points += [("answer", a, (5, 900, a)) for a in (25, 100, 400)]
    rows: list[dict[str, Any]] = []
    for axis, value, shape in points:
        case = bench.case(f"{axis} = {value}", *shape)
        names = ["floor", *modes]
        if shape[0] > 10 or shape[1] > 4000:  # minutes each
            names.remove("remove")
        elif axis == "K":
            names.append("plain")
        found = bench.time(case, names, 1)
        say(table(case, found, differences(found, case) if "plain" in found else {}))
        for name, timing in found.items():
            rows.append(
                {
                    "axis": axis,
                    "value": value,
                    "system": name,
                    "seconds": timing.median,
                    "processor_seconds": timing.busy,
                    "tokens": timing.tokens,
                    "peak_mb": timing.peak_mb,
                }
            )
    for size in (1, 4, 16):
        cases = [bench.case("", 3, 200 + 10 * i, 40 + i) for i in range(16)]
        requests = [case.request for case in cases]
        scorer = bench.scorer.with_mode("mask")
        start = time.perf_counter()
        for i in range(0, 16, size):
            scorer.score(requests[i : i + size])
        seconds = time.perf_counter() - start
        say(f"batch = {size:2d}: {seconds:.2f} s for 16 answers (3 units, 200–350 + 40–55 tokens)")
        rows.append({"axis": "batch", "value": size, "system": "mask", "seconds": seconds})
    five, fifty = bench.case("", 5, 2000, 100), bench.case("", 50, 2000, 100)
    scorer = bench.scorer.with_mode("mask")
    for name, request in (
        ("K = 5", five.request),
        ("K = 50, max_units = 5", shortlisted(fifty.request, fifty.answer, 5)),
    ):
        start = time.perf_counter()
        scorer.score([request])
        seconds = time.perf_counter() - start
        say(f"shortlist: {name}: {seconds:.2f} s")
        rows.append({"axis": "shortlist", "value": name, "system": "mask", "seconds": seconds})
    return rows


@dataclass
class Answer:
    """One answer of QAGS, its article cut into units, and which sentences readers objected to."""

    request: ScoreRequest
    text: str
    home: np.ndarray
    """The sentence of each token."""
    unsupported: list[bool]
    """For each sentence."""


def qags_answers(scorer: TransformersScorer, count: int, units: int) -> list[Answer]:
    """The first answers of QAGS, their articles in about `units` units."""
    rows = [json.loads(line) for line in QAGS.read_text("utf-8").splitlines()][:count]
    answers: list[Answer] = []
    for row in rows:
        sentences = [s["sentence"] for s in row["summary_sentences"]]
        votes = [[r["response"] == "no" for r in s["responses"]] for s in row["summary_sentences"]]
        pieces = row["article"].split(". ")
        size = -(-len(pieces) // units)
        groups = [". ".join(pieces[i : i + size]) for i in range(0, len(pieces), size)]
        evidence = build_context(as_passages([g for g in groups if g.strip()]))
        text = " ".join(sentences)
        tokens = scorer.tokenize(text)
        request = ScoreRequest("Summarize the article.", evidence, tokens, evidence.leave_one_out())
        ends = np.cumsum([len(s) + 1 for s in sentences])
        home = np.searchsorted(ends, [b - 1 for _, b in tokens.offsets], side="right")
        answers.append(Answer(request, text, home, [2 * sum(v) > len(v) for v in votes]))
    return answers


def sentence_features(answer: Answer, scores: TokenScores) -> list[tuple[list[float], int]]:
    """Per sentence the paper's four features and the unit whose loss costs it most."""
    gains = scores.log_probs[0] - scores.log_probs
    found: list[tuple[list[float], int]] = []
    for index in range(len(answer.unsupported)):
        here = answer.home == index
        drops, jsd = gains[:, here].mean(1), scores.jsd[:, here].mean(1)
        row = [float(x) for x in (drops[1], jsd[1], drops[2:].max(), jsd[2:].max())]
        top = scores.conditions[2 + int(drops[2:].argmax())].kept
        left_out = set(answer.request.context.full.kept) - set(top)
        found.append((row, left_out.pop()))
    return found


def on_qags(bench: Bench, count: int, say: Callable[[str], None]) -> dict[str, Any]:
    """What modes, dtypes and the shortlist change: the paper's detector, ranks, top units."""
    from scipy.stats import rankdata, spearmanr

    wide, narrow = bench.scorer, bench.default
    kinds = {"float32": wide, narrow.info.dtype: narrow}
    systems = {
        f"{mode}, {kind}": scorer.with_mode(mode)
        for kind, scorer in kinds.items()
        for mode in ("remove", "mask", "cached")
    }
    answers = qags_answers(wide, count, 5)
    truth = np.array([int(u) for answer in answers for u in answer.unsupported])
    rows: dict[str, np.ndarray] = {}
    tops: dict[str, np.ndarray] = {}
    for name, system in systems.items():
        found = [
            pair for a in answers for pair in sentence_features(a, system.score([a.request])[0])
        ]
        rows[name] = np.array([row for row, _ in found])
        tops[name] = np.array([top for _, top in found])
    result = dict[str, Any]()
    bad = int(truth.sum())
    say(f"QAGS, first {count} answers, {len(truth)} sentences, {bad} unsupported")
    for name, values in rows.items():
        ranks = rankdata(-((values - values.mean(0)) / values.std(0)).sum(1))
        auc = (ranks[truth == 1].sum() - bad * (bad + 1) / 2) / (bad * (len(truth) - bad))
        base = rows["remove, float32"]
        order = [float(spearmanr(values[:, i], base[:, i]).statistic) for i in range(4)]
        same = float(np.mean(tops[name] == tops["remove, float32"]))
        result[name] = {"auc": float(auc), "rank_correlation": order, "same_top_unit": same}
        shown = " ".join(f"{x:.3f}" for x in order)
        say(f"  {name:20} AUC {auc:.4f}  rank correlation {shown}  same top unit {same:.3f}")
    result["shortlist"] = shortlist_loss(wide, count // 3, say)
    return result


def shortlist_loss(
    scorer: TransformersScorer, count: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """How often the unit that a sentence leans on most is found when few are left out."""
    mask = scorer.with_mode("mask")
    answers = qags_answers(scorer, count, 50)
    sizes = (2, 5, 10)
    same: dict[int, list[bool]] = {size: [] for size in sizes}
    for answer in answers:
        whole = mask.score([answer.request])[0]
        wanted = sentence_features(answer, whole)
        for size in sizes:
            few = shortlisted(answer.request, answer.text, size).conditions
            rows = [whole.conditions.index(condition) for condition in few]
            part = TokenScores(few, whole.log_probs[rows], whole.jsd[rows])
            found = sentence_features(answer, part)
            same[size] += [
                mine[1] == full[1]
                for mine, full, unsupported in zip(found, wanted, answer.unsupported, strict=True)
                if not unsupported
            ]
    units = float(np.mean([len(answer.request.context.units) for answer in answers]))
    shares = {size: float(np.mean(found)) for size, found in same.items()}
    total = len(same[sizes[0]])
    say(f"shortlist: {total} supported sentences, {units:.0f} units on average: same top unit with")
    for size, share in shares.items():
        say(f"  max_units = {size:2d}: {share:.3f}")
    return {"sentences": total, "units": units, "same_top_unit": shares}


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds against K, one line for each system."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    lines: dict[tuple[tuple[int, float], ...], str] = {}
    for name in dict.fromkeys(row["system"] for row in rows if row["axis"] == "K"):
        own = [row for row in rows if row["axis"] == "K" and row["system"] == name]
        points = tuple((row["value"], row["seconds"]) for row in own)
        lines[points] = f"{lines[points]} = {name}" if points in lines else name
    for points, name in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xlabel="units K", ylabel="seconds per answer", yscale="log")
    axes.set_title("2000 context and 100 answer tokens")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="K = 5 alone, within a minute")
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-grids", action="store_true", help="K = 5 and K = 20 alone")
    which.add_argument("--only-grids", action="store_true", help="no K = 5 and K = 20")
    parser.add_argument("--no-plain", action="store_true", help="leave the plain passes out")
    parser.add_argument("--qags", type=int, default=0, metavar="N", help="answers of QAGS to score")
    parser.add_argument("--model", default=EMBEDDED, help="name, folder or 'embedded'")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot", type=Path, help="write a plot of time against K here")
    args = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr if args.json else sys.stdout, flush=True)

    torch.set_num_threads(args.threads)
    bench = Bench(args.model)
    default = bench.default.info
    say(
        f"model {args.model}, {args.threads} threads, text: {bench.source}; "
        f"default: {default.mode}, {default.dtype}"
    )
    if bench.peer is None:
        say("the peer is not installed (pip install gasp-rag==0.2.1): its figures are null")
    warm = bench.case("warm-up", 2, 250, 40)
    bench.time(warm, ["floor", "mask", "default"], 1)
    bench.time(bench.case("warm-up", 2, 40, 5), ["peer"], 1)
    names = ["floor", "mask", "shortlist", "cached", "default", "remove", "two", "peer", "plain"]
    if args.quick:
        names = [name for name in names if name not in ("two", "shortlist", "plain")]
    if args.no_plain and not args.quick:
        names.remove("plain")
    output: dict[str, Any] = {"model": args.model, "threads": args.threads, "ratios": {}}
    output["default"] = {"mode": default.mode, "dtype": default.dtype}
    output["processor_ratios"], output["max_abs_diff"], output["cases"] = {}, {}, {}
    shapes = [("k5", 5, 900, 160)] + ([] if args.quick else [("k20", 20, 3800, 98)])
    for name, *shape in [] if args.only_grids else shapes:
        case = bench.case(name, *shape)
        found = bench.time(case, names, args.rounds, QUICK_BUDGET if args.quick else None)
        compared, on = found, case
        if args.quick:
            on = bench.case(*SHORT)
            compared = bench.time(on, ["mask", "cached", "default", "remove", "plain"], 1)
        output["max_abs_diff_tokens"] = {"context": on.tokens[0], "answer": on.tokens[1]}
        different = differences(compared, on) if "plain" in compared else {}
        say(table(case, found, different))
        output["ratios"] |= ratios({n: t.median for n, t in found.items()}, name)
        output["processor_ratios"] |= ratios({n: t.busy for n, t in found.items()}, name)
        for mode, value in different.items():
            output["max_abs_diff"][mode] = max(value, output["max_abs_diff"].get(mode, 0.0))
        output["cases"][name] = {
            system: {
                "seconds": t.median,
                "processor_seconds": t.busy,
                "tokens": t.tokens,
                "peak_mb": round(t.peak_mb, 1),
            }
            for system, t in found.items()
        }
    say("ratios of medians, by the clock and by processor time (steadier on a busy machine)")
    for key, value in output["ratios"].items():
        busy = output["processor_ratios"][key]
        shown = "null" if value is None else f"{value:6.2f} {busy:6.2f}"
        say(f"  {key:24} {shown}")
    if not args.quick and not args.no_grids:
        output["grids"] = grids(bench, say)
        if args.plot:
            plot(output["grids"], args.plot)
    if args.qags and QAGS.is_file():
        output["qags"] = on_qags(bench, args.qags, say)
    if args.json:
        print(json.dumps(output, allow_nan=False))


if __name__ == "__main__":
    main()
