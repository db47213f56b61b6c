"""The check as one step of a LlamaIndex workflow; an unsupported answer is written anew once.

    StartEvent -> retrieve -> write -> check ─┬─> StopEvent(response with its verdicts)
                              ^               │
                              └── try again ──┘

Run it from the repository's folder:

    python -m examples.llama_index_workflow
"""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core import get_response_synthesizer
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from examples.documents import KeywordSearch, load_corpus
from examples.llama_index_rag import PROMPT, KeywordRetriever
from gasp_engine import GroundingChecker
from gasp_integrations.llama_index import GroundingPostprocessor

QUESTION = "When is the observatory at Tarn Hollow open?"
"""What is asked."""


class Retrieved(Event):
    """The evidence is there."""

    query: str
    nodes: list[NodeWithScore]
    attempt: int = 1


class Written(Event):
    """An answer is there."""

    query: str
    nodes: list[NodeWithScore]
    response: Any
    attempt: int


class CheckedRAG(Workflow):
    """Retrieve, write, check; and once more when a sentence rests on nothing."""

    def __init__(self, llm: LLM, checker: GroundingChecker, **options: Any) -> None:
        """A workflow.

        Args:
            llm: writes the answers.
            checker: checks them.
            options: of the workflow: `timeout`, `verbose`, …
        """
        super().__init__(**options)
        self._retriever = KeywordRetriever(KeywordSearch(load_corpus()), k=3)
        self._synthesizer = get_response_synthesizer(llm=llm, text_qa_template=PROMPT)
        self._grounding = GroundingPostprocessor(checker)

    @step
    async def retrieve(self, event: StartEvent) -> Retrieved:
        """Find the evidence."""
        nodes = await self._retriever.aretrieve(event.query)
        return Retrieved(query=event.query, nodes=nodes)

    @step
    async def write(self, event: Retrieved) -> Written:
        """Let the LLM answer."""
        response = await self._synthesizer.asynthesize(event.query, event.nodes)
        return Written(
            query=event.query, nodes=event.nodes, response=response, attempt=event.attempt
        )

    @step
    async def check(self, event: Written) -> Retrieved | StopEvent:
        """Check the answer; go back once if it does not hold."""
        response = await self._grounding.apostprocess_response(
            event.response, event.query, event.nodes
        )
        if response.metadata["grounding"]["grounded"] is False and event.attempt == 1:
            return Retrieved(query=event.query, nodes=event.nodes, attempt=2)
        return StopEvent(result=response)


async def run(
    llm: LLM, checker: GroundingChecker, question: str = QUESTION, timeout: float = 300
) -> Any:
    """The checked response of one run."""
    return await CheckedRAG(llm, checker, timeout=timeout).run(query=question)


def main(llm: LLM | None = None, checker: GroundingChecker | None = None) -> None:
    """Run the workflow once and print the answer with its verdicts."""
    from examples.local_llm import llama_index_llm
    from gasp_integrations.llama_index import cited_markdown

    checker = checker or GroundingChecker.from_pretrained("embedded")
    response = asyncio.run(run(llm or llama_index_llm(), checker))
    print(cited_markdown(response))


if __name__ == "__main__":
    main()
