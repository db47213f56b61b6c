"""A sub-question engine: each sub-answer is checked, and so is the answer made of them.

    question -> sub-question × tool -> checked sub-answers -> answer, checked against these

The LLM that writes the last answer sees the sub-answers only; the passages behind them are among
the source nodes, but are no evidence for it. They are evidence for the sub-answers.

Run it from the repository's folder:

    python -m examples.llama_index_subquestion
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core import get_response_synthesizer
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool, ToolMetadata

from examples.documents import KeywordSearch, load_corpus
from examples.llama_index_rag import PROMPT, KeywordRetriever
from gasp_engine import GroundingChecker
from gasp_integrations.llama_index import GroundingQueryEngine, GroundingSynthesizer

QUESTION = (
    "What does a ticket for the Velmora tram cost, and how are beds in the Korbel hut booked?"
)
"""What is asked."""
SUB_QUESTIONS = {
    "velmora-tram": "What does a single ticket on the Velmora tram cost?",
    "korbel-hut": "How are beds in the Korbel hut booked?",
}
"""Document -> the part of the question that it can answer."""


class FixedQuestions(BaseQuestionGenerator):
    """Asks what it was told to; a large LLM would think of the sub-questions itself."""

    def generate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """One sub-question a tool."""
        return [
            SubQuestion(sub_question=SUB_QUESTIONS[tool.name], tool_name=tool.name)
            for tool in tools
            if tool.name in SUB_QUESTIONS
        ]

    async def agenerate(
        self, tools: Sequence[ToolMetadata], query: QueryBundle
    ) -> list[SubQuestion]:
        """`generate`; there is nothing to wait for."""
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        pass


def build(llm: LLM, checker: GroundingChecker, on_sentence: Any = None) -> GroundingQueryEngine:
    """One checked engine a document, and a checked engine over them."""
    passages = load_corpus()
    tools: list[QueryEngineTool] = []
    for name in SUB_QUESTIONS:
        search = KeywordSearch([p for p in passages if (p.id or "").startswith(name)])
        synthesizer = GroundingSynthesizer(
            get_response_synthesizer(llm=llm, text_qa_template=PROMPT),
            checker,
            on_sentence=on_sentence,
        )
        engine = RetrieverQueryEngine(KeywordRetriever(search, k=2), synthesizer)
        tools.append(QueryEngineTool.from_defaults(engine, name=name, description=name))
    engine = SubQuestionQueryEngine.from_defaults(
        query_engine_tools=tools,
        question_gen=FixedQuestions(),
        response_synthesizer=get_response_synthesizer(llm=llm, text_qa_template=PROMPT),
        verbose=False,
        use_async=False,
    )
    return GroundingQueryEngine(engine, checker)


def main(llm: LLM | None = None, checker: GroundingChecker | None = None) -> None:
    """Ask one question in two parts and print all verdicts."""
    from examples.local_llm import llama_index_llm

    def show(sentence: dict[str, Any]) -> None:
        cited = ", ".join(c["node_id"] for c in sentence["citations"]) or "no source"
        print(f"    [{sentence['status']}] {sentence['text']} <- {cited}")

    checker = checker or GroundingChecker.from_pretrained("embedded")
    print("The sub-answers, against the passages:")
    response = build(llm or llama_index_llm(), checker, show).query(QUESTION)
    print("The answer, against the sub-answers:")
    for sentence in response.metadata["grounding"]["sentences"]:  # pyright: ignore[reportOptionalSubscript]
        cited = [f"source_nodes[{c['source_index']}]" for c in sentence["citations"]]
        print(f"    [{sentence['status']}] {sentence['text']} <- {', '.join(cited) or 'no source'}")


if __name__ == "__main__":
    main()
