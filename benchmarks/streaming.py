"""How soon do verdicts come while an answer is being written? A replayed stream of tokens.

    python benchmarks/streaming.py            three answers, 20, 50 and 100 tokens/s, three rounds
    python benchmarks/streaming.py --quick    one answer, one round, within 60 seconds
    python benchmarks/streaming.py --json     the last line is one JSON object
    python benchmarks/streaming.py --cuts 200     only: reports under 200 random cuts, float32

Evidence: neighbouring articles of QAGS (CNN/DM) up to about 1000 tokens, cut into five units;
answer: their summaries, one after the other. Without that data, the example corpus. The scorer's
own tokens are fed one by one at a fixed rate, after a pause in which a generator would read its
prompt. Dtype and mode are what users get on this machine, unless they are given.

    delay       from the last character of a sentence to its verdict
    writing     how long a sentence takes to be written at that rate
    final       from the last token to the final report
    one-shot    `check` of the whole answer, begun at the last token
    CPU         how many times fewer processor seconds `final` took than `one-shot`: this holds on
                a machine that is busy with other work as well
    last        the last sentence's tokens alone, scored on top of all before them
    tokens      positions that the model ran, in the session and in the one-shot check

The stores of the scorer are emptied before every measurement. `same` says whether spans, verdicts
and citations of the final report are those of the one-shot check, and how far scores differ.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gasp_engine import GroundingChecker, Report
from gasp_engine.prepare import Example, prepare
from gasp_engine.scorers.transformers import TransformersScorer
from gasp_engine.segment import segment

QAGS = Path(__file__).resolve().parents[2] / "shared" / "data" / "qags" / "mturk_cnndm.jsonl"
CONTEXT_TOKENS = 1000
RATES = (20, 50, 100)
K = 5
QUICK_TOKENS = 120
QUICK_SECONDS = 55
CUT_QUESTION = "What of the dam?"
CUT_PASSAGES = [
    "The dam opened in 1931 and holds 4 km³ of water.",
    "Boats are red. A crew of nine.",
]
CUT_ANSWER = (
    "The dam opened in 1931.[1] Its crew \U0001f469\u200d\U0001f4bb\U0001f468\u200d\U0001f467 "
    "\U0001f44d\U0001f3fd is nine.\r\n\r\n- Boats are red, e.g. 3.5 m\r\n- 大坝建成。\n\nIt is blue"
)


@dataclass(frozen=True)
class Run:
    """What was measured of one replayed answer."""

    rate: int
    """Tokens a second."""
    delays: tuple[float, ...]
    """Seconds, a sentence each."""
    writing: tuple[float, ...]
    """Seconds, a sentence each."""
    final: float
    """Seconds from the last token to the report."""
    one_shot: float
    """Seconds of `check`."""
    final_cpu: float
    """Processor seconds from the last token to the report."""
    one_shot_cpu: float
    """Processor seconds of `check`."""
    last: float
    """Seconds for the last sentence's own tokens."""
    tokens: int
    """Positions run by the session."""
    one_shot_tokens: int
    """Positions run by `check`."""
    answer_tokens: int
    """Length of the answer."""
    same: bool
    """Whether spans, verdicts and citations are those of `check`."""
    difference: float
    """Largest difference of a sentence's score."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the replay and print a table; see the module's text."""
    started = time.perf_counter()
    options = _options(arguments)
    import torch

    torch.set_num_threads(options.threads)
    if options.cuts:
        options.dtype = options.dtype or "float32"
    scorer = TransformersScorer.from_pretrained(
        options.model,
        device="cpu",
        dtype=options.dtype,
        **({"mode": options.mode} if options.mode else {}),
    )
    if options.cuts:
        return random_cuts(GroundingChecker(scorer), options.cuts)
    checker = GroundingChecker(scorer, n_groups=K)
    examples = load_examples(scorer, 1 if options.quick else 3)
    if options.quick:
        examples = [(q, p, shortened(a, QUICK_TOKENS, scorer)) for q, p, a in examples]
    checker.check("What is red?", ["Boats are red.", "It rains."], "Boats are red.")  # warms up
    runs: list[Run] = []
    longest = 0.0
    for number in range(1 if options.quick else options.rounds):
        for rate in RATES:
            for example in examples:
                begun = time.perf_counter()
                if options.quick and runs and begun - started + longest > QUICK_SECONDS:
                    continue
                runs.append(replay(checker, example, rate, options.pause))
                longest = max(longest, time.perf_counter() - begun)
        print(f"round {number + 1} done", file=sys.stderr)
    result = summary(runs, scorer, options)
    print(table(result))
    if options.json:
        print(json.dumps(result, allow_nan=False))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one answer; ends within 60 s")
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object")
    parser.add_argument("--model", default="embedded", help="name or folder of a scorer")
    parser.add_argument("--mode", help="ablation; default: the scorer's own")
    parser.add_argument("--dtype", help="of the scorer; default: its own")
    parser.add_argument("--cuts", type=int, default=0, metavar="N", help="compare N random cuts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds before the first token")
    return parser.parse_args(arguments)


def load_examples(scorer: TransformersScorer, count: int) -> list[tuple[str, list[str], str]]:
    """`count` questions, evidence of about `CONTEXT_TOKENS` tokens, and answers."""
    found: list[tuple[str, list[str], str]] = []
    passages: list[str] = []
    answer: list[str] = []
    size = 0
    for question, passage, text in _sources():
        tokens = scorer.tokenize(passage)
        if size + len(tokens) > CONTEXT_TOKENS:
            passage = passage[: tokens.offsets[CONTEXT_TOKENS - size - 1][1]]
        passages.append(passage)
        answer.append(text)
        size += len(tokens)
        if size >= CONTEXT_TOKENS:
            found.append((question, passages, " ".join(answer)))
            passages, answer, size = [], [], 0
            if len(found) == count:
                break
    return found


def shortened(answer: str, limit: int, scorer: TransformersScorer) -> str:
    """The leading sentences of an answer, up to about `limit` tokens."""
    tokens = scorer.tokenize(answer)
    if len(tokens) <= limit:
        return answer
    reach = tokens.offsets[limit][1]
    ends = [sentence.end for sentence in segment(answer) if sentence.end <= reach]
    return answer[: ends[-1] if ends else reach]


def _sources() -> list[tuple[str, str, str]]:
    if QAGS.is_file():
        rows = [json.loads(line) for line in QAGS.read_text("utf-8").splitlines()]
        return [
            (
                "What do the articles say?",
                row["article"],
                " ".join(s["sentence"] for s in row["summary_sentences"]),
            )
            for row in rows
        ]
    from examples.documents import load_corpus, prepared_answers

    passages = [p.text for p in load_corpus()]
    answers = prepared_answers()
    return [
        (
            answers[k % len(answers)].question,
            text,
            answers[k % len(answers)].text if not k % 6 else "",
        )
        for k, text in enumerate(passages * 3)
    ]


def replay(
    checker: GroundingChecker, example: tuple[str, list[str], str], rate: int, pause: float
) -> Run:
    """Stream one answer at `rate` tokens a second, and check it at once for comparison."""
    question, passages, answer = example
    scorer = checker.scorer
    assert isinstance(scorer, TransformersScorer)
    ends = [end for _, end in scorer.tokenize(answer).offsets]
    ends = [*(end for end, after in pairwise(ends) if after > end), len(answer)]
    scorer.clear()
    fed: list[float] = []
    came: dict[int, float] = {}
    with checker.session(question, passages) as session:
        begin = time.perf_counter() + pause
        start = 0
        for index, end in enumerate(ends):
            due = begin + index / rate
            while (left := due - time.perf_counter()) > 0:
                if session.wait(left):
                    _note(session.poll(), came)
            _note(session.feed(answer[start:end]), came)
            fed.append(time.perf_counter())
            start = end
        cpu = time.process_time()
        report = session.close()
        final_cpu = time.process_time() - cpu
        final = time.perf_counter() - fed[-1]
        _note(session.poll(), came)
    scorer.clear()
    clock, cpu = time.perf_counter(), time.process_time()
    direct = checker.check(question, passages, answer)
    one_shot, one_shot_cpu = time.perf_counter() - clock, time.process_time() - cpu
    spans = [(s.start, s.end) for s in report.sentences]
    arrived = [fed[next(i for i, e in enumerate(ends) if e >= end)] for _, end in spans]
    sizes = [sum(start < e <= end for e in ends) for start, end in spans]
    return Run(
        rate=rate,
        delays=tuple(came[i] - arrived[i] for i in range(len(spans))),
        writing=tuple(size / rate for size in sizes),
        final=final,
        one_shot=one_shot,
        final_cpu=final_cpu,
        one_shot_cpu=one_shot_cpu,
        last=last_sentence(checker, example),
        tokens=report.usage["tokens_computed"],
        one_shot_tokens=direct.usage["tokens_computed"],
        answer_tokens=len(ends),
        same=_outline(report) == _outline(direct),
        difference=max(
            (abs((a.score or 0.0) - (b.score or 0.0)))
            for a, b in zip(report.sentences, direct.sentences, strict=True)
        ),
    )


def random_cuts(checker: GroundingChecker, count: int) -> int:
    """Stream one awkward answer in `count` random ways; 0 when every report is that of `check`."""
    assert isinstance(checker.scorer, TransformersScorer)
    question, passages, answer = CUT_QUESTION, CUT_PASSAGES, CUT_ANSWER
    expected = checker.check(question, passages, answer)
    rng = random.Random(11)
    different, difference, tokens = 0, 0.0, 0.0
    for _ in range(count):
        checker.scorer.clear()
        size = rng.choice([1, 3, 10, 30, len(answer) - 1])
        edges = [0, *sorted(rng.sample(range(1, len(answer)), size)), len(answer)]
        with checker.session(question, passages) as session:
            for begin, end in pairwise(edges):
                session.feed(answer[begin:end])
                if rng.random() < 0.2:
                    session.wait(rng.random() / 4)
        report = session.report
        assert report is not None
        pairs = list(zip(report.sentences, expected.sentences, strict=False))
        difference = max(difference, *(abs((a.score or 0) - (b.score or 0)) for a, b in pairs))
        different += _outline(report) != _outline(expected)
        tokens = max(tokens, report.usage["tokens_computed"] / expected.usage["tokens_computed"])
    print(
        f"{count} random cuts of {len(answer)} code points: {different} reports differ in spans, "
        f"verdicts or citations; scores within {difference:.1e}; tokens up to {tokens:.3f} x check"
    )
    return int(different > 0)


def _note(sentences: Sequence[Any], came: dict[int, float]) -> None:
    now = time.perf_counter()
    for sentence in sentences:
        came[sentence.index] = now


def _outline(report: Report) -> list[tuple[Any, ...]]:
    return [
        (s.start, s.end, s.status, tuple((c.passage_index, c.start, c.end) for c in s.citations))
        for s in report.sentences
    ]


def last_sentence(checker: GroundingChecker, example: tuple[str, list[str], str]) -> float:
    """Seconds that the tokens of the last sentence cost, everything before them being kept."""
    prepared = prepare(Example(*example), checker.scorer, checker.options)
    first = int((prepared.owner == len(prepared.sentences) - 1).argmax())
    (request,) = prepared.requests
    state = checker.scorer.open(request.question, request.context, request.conditions)
    state.extend(prepared.tokens.ids[:first])
    clock = time.perf_counter()
    state.extend(prepared.tokens.ids[first:])
    seconds = time.perf_counter() - clock
    state.close()
    return seconds


def summary(
    runs: Sequence[Run], scorer: TransformersScorer, options: argparse.Namespace
) -> dict[str, Any]:
    """Figures by rate; those at 20 tokens/s also at the top."""
    by_rate: dict[str, dict[str, Any]] = {}
    for rate in RATES:
        own = [run for run in runs if run.rate == rate]
        if not own:
            continue
        delays = sorted(d for run in own for d in run.delays)
        by_rate[str(rate)] = {
            "verdict_delay_s": {
                "median": statistics.median(delays),
                "p95": delays[min(len(delays) - 1, int(0.95 * len(delays)))],
            },
            "sentence_writing_s": statistics.median(w for run in own for w in run.writing),
            "final_s": statistics.median(run.final for run in own),
            "one_shot_s": statistics.median(run.one_shot for run in own),
            "last_sentence_s": statistics.median(run.last for run in own),
            "final_speedup_vs_oneshot": statistics.median(r.one_shot / r.final for r in own),
            "final_cpu_speedup_vs_oneshot": statistics.median(
                r.one_shot_cpu / r.final_cpu for r in own
            ),
            "final_vs_last_sentence": statistics.median(r.final / r.last for r in own),
            "token_ratio": statistics.median(r.tokens / r.one_shot_tokens for r in own),
            "runs": len(own),
        }
    return {
        **by_rate[str(RATES[0])],
        "same": all(run.same for run in runs),
        "max_abs_score_diff": max(run.difference for run in runs),
        "answer_tokens": statistics.median(run.answer_tokens for run in runs),
        "tokens": statistics.median(run.tokens for run in runs),
        "one_shot_tokens": statistics.median(run.one_shot_tokens for run in runs),
        "model": scorer.info.name,
        "mode": scorer.info.mode,
        "dtype": scorer.info.dtype,
        "threads": options.threads,
        "pause_s": options.pause,
        "rates": by_rate,
    }


def table(result: dict[str, Any]) -> str:
    """The figures as a Markdown table, one row a rate."""
    lines = [
        f"{result['model']}, {result['mode']}, {result['dtype']}, {result['threads']} threads, "
        f"K = {K}, {CONTEXT_TOKENS} context and {result['answer_tokens']:g} answer tokens; "
        f"final report the same as check: {result['same']} "
        f"(scores within {result['max_abs_score_diff']:.1e})",
        "",
        "| tokens/s | delay, median | p95 | writing | final | one-shot | sooner | CPU | last "
        "| tokens |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for rate, row in result["rates"].items():
        delay = row["verdict_delay_s"]
        lines.append(
            f"| {rate} | {delay['median']:.2f} s | {delay['p95']:.2f} s "
            f"| {row['sentence_writing_s']:.2f} s | {row['final_s']:.2f} s "
            f"| {row['one_shot_s']:.2f} s | {row['final_speedup_vs_oneshot']:.1f} x "
            f"| {row['final_cpu_speedup_vs_oneshot']:.1f} x "
            f"| {row['last_sentence_s']:.2f} s | {row['token_ratio']:.3f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
