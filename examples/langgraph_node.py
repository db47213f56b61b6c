"""The checker as a node of a LangGraph graph, with a checkpointer and a branch on the verdict.

    START -> retrieve -> generate -> check -+-> END
                            ^               |
                            +--- again <----+   (once, when a sentence is flagged)

Run it from the repository's folder:

    python -m examples.langgraph_node
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from examples.documents import KeywordSearch, load_corpus
from examples.langchain_rag import KeywordRetriever
from gasp_engine import GroundingChecker
from gasp_integrations.langchain import GroundingRunnable


class State(TypedDict):
    """What the graph knows; the report is plain JSON, which every checkpointer can hold."""

    question: str
    """What was asked."""
    context: list[Document]
    """What was retrieved."""
    answer: str
    """The last answer."""
    attempts: int
    """How many answers there were."""
    grounding: dict[str, Any]
    """The report on the last answer."""


def build(
    generate: Callable[[State], str],
    retriever: BaseRetriever,
    checker: GroundingChecker,
    checkpointer: BaseCheckpointSaver | None = None,
) -> Any:
    """A graph that answers, checks, and answers once more when something was flagged."""
    runnable = GroundingRunnable(checker=checker)

    def retrieve(state: State) -> dict[str, Any]:
        return {"context": retriever.invoke(state["question"]), "attempts": 0}

    def answer(state: State) -> dict[str, Any]:
        return {"answer": generate(state), "attempts": state["attempts"] + 1}

    def check(state: State) -> dict[str, Any]:
        # the report alone: a node that handed back the whole state would write every key again
        return {"grounding": runnable.invoke(dict(state))["grounding"]}

    def is_done(state: State) -> str:
        is_flagged = state["grounding"]["grounded"] is False
        return "generate" if is_flagged and state["attempts"] < 2 else END

    graph = StateGraph(State)
    graph.add_node("retrieve", retrieve)
    graph.add_node("generate", answer)
    graph.add_node("check", check)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", "check")
    graph.add_conditional_edges("check", is_done, ["generate", END])
    return graph.compile(checkpointer=checkpointer)


def main() -> None:
    """Answer one question with the local model; read the report back from the checkpointer."""
    from examples.langchain_rag import PROMPT
    from examples.local_llm import langchain_llm

    llm = langchain_llm()

    def generate(state: State) -> str:
        context = "\n\n".join(document.page_content for document in state["context"])
        prompt = PROMPT.invoke({"context": context, "input": state["question"]})
        return llm.invoke(prompt).text

    retriever = KeywordRetriever(index=KeywordSearch(load_corpus()), k=3)
    checker = GroundingChecker.from_pretrained("embedded")
    graph = build(generate, retriever, checker, InMemorySaver())
    config: Any = {"configurable": {"thread_id": "example"}}
    graph.invoke({"question": "What does a single ticket on the Velmora tram cost?"}, config)
    kept = graph.get_state(config).values
    print(f"{kept['attempts']} attempt(s): {kept['answer']}")
    for sentence in kept["grounding"]["sentences"]:
        print(f"  {sentence['status']:9} {sentence['text']}")


if __name__ == "__main__":
    main()
