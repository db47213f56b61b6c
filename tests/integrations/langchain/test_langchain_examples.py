"""The LangChain examples: each is run, on the table scorer and, slower, on the embedded model."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from lc_cases import CountingScorer, ScriptedModel

pytest.importorskip("rank_bm25", reason="the examples search with BM25")

from examples import langchain_lcel, langchain_streaming
from examples.documents import KeywordSearch, load_corpus, prepared_answers
from examples.langchain_rag import KeywordRetriever, build_chain
from gasp_engine import GroundingChecker
from gasp_integrations.langchain import GroundingRunnable

PREPARED = prepared_answers()[0]
TRUE = [s.text for s in PREPARED.sentences if s.fault is None]
PLANTED = [s.text for s in PREPARED.sentences if s.fault == "invented"]


@pytest.fixture
def retriever() -> BaseRetriever:
    return KeywordRetriever(index=KeywordSearch(load_corpus()), k=5)


def model(*answers: str) -> ScriptedModel:
    return ScriptedModel(script=[AIMessage(answer) for answer in answers])


def flagged(report: dict[str, Any]) -> list[str]:
    return [s["text"] for s in report["sentences"] if s["status"] == "flagged"]


def test_the_lcel_example_checks_a_batch_in_one_call(
    checker: GroundingChecker, scorer: CountingScorer, retriever: BaseRetriever
) -> None:
    rag = build_chain(model(PREPARED.text, PREPARED.text), retriever)
    outputs = langchain_lcel.checked(rag, checker).batch([{"input": PREPARED.question}] * 2)
    assert scorer.calls == [2]
    assert set(PLANTED) <= set(flagged(outputs[0]["grounding"]))
    message = langchain_lcel.cited(outputs[0])
    blocks: list[Any] = message.content_blocks
    assert {"citation", "non_standard_annotation"} == {a["type"] for a in blocks[0]["annotations"]}


def test_the_retrieval_chain_example_has_the_keys_that_the_checker_reads(
    checker: GroundingChecker, retriever: BaseRetriever
) -> None:
    pytest.importorskip("langchain_classic", reason="needs the package langchain-classic")
    from examples import langchain_retrieval_chain

    chain = langchain_retrieval_chain.build(model(PREPARED.text), retriever, checker)
    output = chain.invoke({"input": PREPARED.question})
    assert list(output) == ["input", "context", "answer", "grounding"]
    assert set(PLANTED) <= set(flagged(output["grounding"]))


def test_a_streamed_retrieval_chain_keeps_its_documents(
    checker: GroundingChecker, retriever: BaseRetriever
) -> None:
    """langchain #12400: the source documents vanish when streaming."""
    pytest.importorskip("langchain_classic", reason="needs the package langchain-classic")
    from examples import langchain_retrieval_chain

    chain = langchain_retrieval_chain.build(model(PREPARED.text), retriever, checker)
    chunks = list(chain.stream({"input": PREPARED.question}))
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    again = langchain_retrieval_chain.build(model(PREPARED.text), retriever, checker)
    invoked = again.invoke({"input": PREPARED.question})
    assert len([c for c in chunks if "answer" in c]) > 10
    assert total["context"] == invoked["context"]
    assert total["answer"] == PREPARED.text
    assert total["grounding"]["sentences"] == invoked["grounding"]["sentences"]


def test_the_streaming_example_shows_tokens_and_a_verdict_on_every_sentence(
    checker: GroundingChecker, retriever: BaseRetriever
) -> None:
    chain = build_chain(model(PREPARED.text), retriever) | GroundingRunnable(checker=checker)
    shown: list[str] = []
    report = langchain_streaming.stream(chain, PREPARED.question, shown.append)
    verdicts = [text for text in shown if text.startswith("\n  <")]
    assert "".join(text for text in shown if not text.startswith("\n  <")) == PREPARED.text
    assert len(verdicts) == len(report["sentences"]) == len(PREPARED.sentences)
    for verdict, sentence in zip(verdicts, report["sentences"], strict=True):
        assert sentence["status"] in verdict
        assert sentence["text"] in verdict


def test_the_agent_example_annotates_retries_and_blocks(
    checker: GroundingChecker, retriever: BaseRetriever
) -> None:
    pytest.importorskip("langchain.agents.middleware", reason="needs the extra `agents`")
    from examples import langchain_agent
    from gasp_integrations.langchain.middleware import BLOCKED

    better = " ".join(TRUE)
    texts = {}
    for on_flagged in ("annotate", "retry", "block"):
        chat = langchain_agent.written_down(PREPARED.question, PREPARED.text, better)
        agent = langchain_agent.build(chat, retriever, checker, on_flagged)
        state = agent.invoke({"messages": [("user", PREPARED.question)]})
        texts[on_flagged] = state["messages"][-1].text
        assert len(state["messages"]) == 4
    assert texts == {"annotate": PREPARED.text, "retry": better, "block": BLOCKED}


@pytest.mark.filterwarnings("error")
def test_the_graph_example_keeps_its_report_in_the_checkpointer(
    checker: GroundingChecker, retriever: BaseRetriever
) -> None:
    pytest.importorskip("langgraph", reason="needs the extra `agents`")
    from langgraph.checkpoint.memory import InMemorySaver

    from examples import langgraph_node

    answers = [PREPARED.text, " ".join(TRUE)]
    graph = langgraph_node.build(
        lambda state: answers[state["attempts"]], retriever, checker, InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph.invoke({"question": PREPARED.question}, config)
        history = list(graph.get_state_history(config))
    assert not [w for w in caught if "unregistered" in str(w.message)]
    kept = history[0].values
    assert kept["attempts"] == 2
    assert kept["answer"] == " ".join(TRUE)
    report = checker.check(
        PREPARED.question,
        [
            {"text": d.page_content, "id": d.id, "title": d.metadata["title"]}
            for d in kept["context"]
        ],
        kept["answer"],
    )
    assert kept["grounding"] == report.to_dict()
    first = next(s.values["grounding"] for s in reversed(history) if "grounding" in s.values)
    assert set(PLANTED) <= set(flagged(first))


def test_the_runnable_itself_can_be_a_node(checker: GroundingChecker) -> None:
    pytest.importorskip("langgraph", reason="needs the extra `agents`")
    from langgraph.graph import END, START, StateGraph

    from examples.langgraph_node import State

    graph = StateGraph(State)
    graph.add_node("check", GroundingRunnable(checker=checker))
    graph.add_edge(START, "check")
    graph.add_edge("check", END)
    values: Any = {"question": "When?", "context": ["It opened in 1931."], "answer": "In 1931."}
    assert graph.compile().invoke(values)["grounding"]["answer"] == "In 1931."


EXAMPLES = [
    "langchain_lcel",
    "langchain_retrieval_chain",
    "langchain_streaming",
    "langchain_agent",
    "langgraph_node",
]


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs_as_printed(
    name: str,
    embedded_checker: GroundingChecker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("langchain_classic", reason="needs the package langchain-classic")
    # the model that the session has already loaded, not another copy of it
    monkeypatch.setattr(GroundingChecker, "from_pretrained", lambda name: embedded_checker)
    monkeypatch.setattr(sys, "argv", [name])
    importlib.import_module(f"examples.{name}").main()
    printed = capsys.readouterr().out
    assert "Velmora" in printed or "Lumaro" in printed
