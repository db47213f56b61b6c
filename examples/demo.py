"""`make demo`: two real RAG chains over a small corpus, their answers checked sentence by sentence.

    1  LangChain    question -> BM25 -> SmolLM2 writes -> GroundingRunnable
    2  LlamaIndex   the same question -> BM25 -> SmolLM2 writes -> GroundingSynthesizer
    3  five answers written by hand, with planted faults beside grounded sentences: what was found

Everything runs on this machine; nothing is downloaded.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from dataclasses import dataclass

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TQDM_DISABLE", "1")

from examples.documents import KeywordSearch, PreparedAnswer, load_corpus, prepared_answers
from gasp_engine import GroundingChecker, Passage, Report, SentenceReport
from gasp_engine.render import to_text

QUESTION = "When can I visit the Tarn Hollow observatory, and what is its telescope like?"
"""What both chains are asked."""


@dataclass(frozen=True)
class Tally:
    """What the checker made of a prepared answer, against what was planted in it."""

    verdicts: Counter[tuple[str, str]]
    """(what the sentence is: `grounded`, `invented` or `changed`; the verdict) -> how many."""
    cited: int
    """Grounded sentences whose first citation is a passage that says it."""
    ranked: bool
    """Whether every invented sentence scores as less supported than every grounded one."""

    @property
    def grounded(self) -> int:
        """Sentences that rest on a passage."""
        return self.count("grounded")

    def count(self, kind: str, status: str | None = None) -> int:
        """Sentences of a kind, or those of them with a verdict."""
        return sum(n for (k, s), n in self.verdicts.items() if k == kind and status in (None, s))


def tally(prepared: PreparedAnswer, report: Report) -> Tally:
    """Compare the verdicts on a prepared answer with what was planted."""
    pairs = list(zip(prepared.sentences, report.sentences, strict=True))
    kinds = [planned.fault or "grounded" for planned, _ in pairs]
    scores: dict[str, list[float]] = {}
    for kind, (_, found) in zip(kinds, pairs, strict=True):
        scores.setdefault(kind, []).append(found.score if found.score is not None else 0.0)
    return Tally(
        Counter((kind, found.status) for kind, (_, found) in zip(kinds, pairs, strict=True)),
        sum(
            bool(found.citations) and found.citations[0].passage_id in planned.sources
            for planned, found in pairs
        ),
        min(scores["invented"]) > max(scores["grounded"]),
    )


def main() -> None:
    """Run the three parts and print them."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    start = time.perf_counter()
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    search = KeywordSearch(load_corpus())
    checker = GroundingChecker.from_pretrained("embedded")
    print(
        f"{len(search.passages)} passages; scorer and generator: SmolLM2-135M-Instruct, on the CPU"
    )

    _title("1. A LangChain chain")
    show_langchain(search, checker)
    _title("2. A LlamaIndex query engine")
    show_llama_index(search, checker)
    _title("3. Answers written by hand, with planted faults")
    show_prepared(search, checker)
    print(f"\n{time.perf_counter() - start:.0f} s in all")


def show_langchain(search: KeywordSearch, checker: GroundingChecker) -> None:
    """Ask the LangChain chain and print what it says and on what it rests."""
    from examples.langchain_rag import KeywordRetriever, build_checked_chain
    from examples.local_llm import langchain_llm

    chain = build_checked_chain(langchain_llm(), KeywordRetriever(index=search), checker)
    result = chain.invoke({"input": QUESTION})
    _show(Report.from_dict(result["grounding"]))


def show_llama_index(search: KeywordSearch, checker: GroundingChecker) -> None:
    """Ask the LlamaIndex query engine and print what it says and on what it rests."""
    from examples.llama_index_rag import KeywordRetriever, build_query_engine
    from examples.local_llm import llama_index_llm

    engine = build_query_engine(llama_index_llm(), KeywordRetriever(search), checker)
    response = engine.query(QUESTION)
    _show(Report.from_dict(response.metadata["grounding"]))


def show_prepared(search: KeywordSearch, checker: GroundingChecker) -> list[Tally]:
    """Check the prepared answers; the first is printed whole, then the count over all."""
    tallies: list[Tally] = []
    for prepared in prepared_answers():
        passages: list[Passage] = [p for p, _ in search.search(prepared.question)]
        report = checker.check(prepared.question, passages, prepared.text)
        if not tallies:
            print(f"Question: {prepared.question}\n")
            for planned, found in zip(prepared.sentences, report.sentences, strict=True):
                print(_line(found, planted=planned.fault))
        tallies.append(tally(prepared, report))
    first = tallies[0]
    print(
        f"\nThis answer: {first.count('invented', 'flagged')} of {first.count('invented')} planted "
        f"sentences flagged, {first.count('grounded', 'grounded')} of {first.grounded} grounded "
        f"ones kept, {first.cited} of {first.grounded} cite the right passage."
    )
    print(f"\nAll {len(tallies)} prepared answers:")
    for kind, good, name in (
        ("grounded", "grounded", "grounded sentences kept"),
        ("invented", "flagged", "invented sentences flagged (no passage speaks of it)"),
        ("changed", "flagged", "changed sentences flagged (one word of a passage altered)"),
    ):
        hits = sum(t.count(kind, good) for t in tallies)
        print(f"  {hits:2} of {sum(t.count(kind) for t in tallies):2} {name}")
    print(
        f"  {sum(t.cited for t in tallies):2} of {sum(t.grounded for t in tallies):2} grounded "
        f"sentences cite the right passage first\n"
        f"  {sum(t.ranked for t in tallies):2} of {len(tallies):2} answers rank every invented "
        f"sentence below every grounded one"
    )
    return tallies


def _show(report: Report) -> None:
    print(f"Question: {report.question}\n\n{to_text(report)}", end="")


def _line(sentence: SentenceReport, *, planted: str | None) -> str:
    sources = (
        ", ".join(dict.fromkeys(c.passage_id or "?" for c in sentence.citations)) or "no source"
    )
    note = f"   <- planted: {planted}" if planted else ""
    score = " " * 6 if sentence.score is None else f"{sentence.score:6.2f}"
    return f"{sentence.status:9} {score}  {sentence.text}{note}\n{'':18}{sources}"


def _title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}\n")


if __name__ == "__main__":
    main()
