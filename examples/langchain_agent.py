"""An agent with a retriever tool, and the checker as its middleware.

The tool returns its documents as an artifact (`response_format="content_and_artifact"`), so that
the middleware sees passages with their sources and not one long text.

No small local model calls tools reliably, so what the model says is written down here; put your own
chat model in its place. Retriever, agent, middleware and checker are real. Run it from the
repository's folder:

    python -m examples.langchain_agent
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool

from examples.documents import KeywordSearch, load_corpus, prepared_answers
from examples.langchain_rag import KeywordRetriever
from gasp_engine import GroundingChecker
from gasp_integrations.langchain import GroundingMiddleware


class WrittenDown(GenericFakeChatModel):
    """A chat model that says what it was given to say."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """It knows its calls already."""
        return self


def build(
    model: BaseChatModel,
    retriever: BaseRetriever,
    checker: GroundingChecker,
    on_flagged: Literal["annotate", "retry", "block"] = "annotate",
) -> Any:
    """An agent whose answers are checked against what its tool found."""

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Document]]:
        """Finds passages."""
        documents = retriever.invoke(query)
        return "\n\n".join(document.page_content for document in documents), documents

    middleware = GroundingMiddleware(checker, on_flagged=on_flagged)
    return create_agent(model, [search], middleware=[middleware])


def written_down(query: str, *answers: str) -> WrittenDown:
    """A model that searches for `query` once and then gives the answers, one a call."""
    call = {"name": "search", "args": {"query": query}, "id": "call-1"}
    messages = [AIMessage("", tool_calls=[call]), *[AIMessage(answer) for answer in answers]]
    return WrittenDown(messages=iter(messages))


def main() -> None:
    """Ask once for each of the three ways to deal with a flagged sentence."""
    prepared = prepared_answers()[0]
    better = " ".join(s.text for s in prepared.sentences if s.fault is None)
    retriever = KeywordRetriever(index=KeywordSearch(load_corpus()))
    checker = GroundingChecker.from_pretrained("embedded")
    for on_flagged in ("annotate", "retry", "block"):
        model = written_down(prepared.question, prepared.text, better)
        agent = build(model, retriever, checker, on_flagged)
        state = agent.invoke({"messages": [("user", prepared.question)]})
        answer, report = state["messages"][-1], state["grounding"]
        print(f"--- {on_flagged}: {answer.text}")
        for sentence in report["sentences"]:
            sources = [citation["passage_id"] for citation in sentence["citations"]]
            print(f"    {sentence['status']:9} {sources} {sentence['text']}")


if __name__ == "__main__":
    main()
