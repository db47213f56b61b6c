"""Any LlamaIndex query engine, wrapped: verdicts while it streams, then the sources.

    GroundingQueryEngine(engine) -> tokens, verdicts as sentences finish -> Markdown with numbers

Run it from the repository's folder:

    python -m examples.llama_index_query_engine "Where does Line 2 of the tram go?"
"""

from __future__ import annotations

import sys
from typing import Any

from llama_index.core import get_response_synthesizer
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine

from examples.documents import KeywordSearch, load_corpus
from examples.llama_index_rag import PROMPT, KeywordRetriever
from gasp_engine import GroundingChecker
from gasp_integrations.llama_index import GroundingQueryEngine, cited_markdown

QUESTION = "Where does Line 2 of the Velmora tram go?"
"""What is asked when nothing is given."""


def build(llm: LLM, checker: GroundingChecker, on_sentence: Any = None) -> GroundingQueryEngine:
    """A streaming query engine, checked from outside."""
    engine = RetrieverQueryEngine(
        KeywordRetriever(KeywordSearch(load_corpus()), k=3),
        get_response_synthesizer(llm=llm, text_qa_template=PROMPT, streaming=True),
    )
    return GroundingQueryEngine(engine, checker, on_sentence=on_sentence)


def main(
    question: str = QUESTION, llm: LLM | None = None, checker: GroundingChecker | None = None
) -> None:
    """Stream one answer, with each verdict as soon as it is there."""
    from examples.local_llm import llama_index_llm

    def show(sentence: dict[str, Any]) -> None:
        print(f"\n    [{sentence['status']}] {sentence['text']}", flush=True)

    checker = checker or GroundingChecker.from_pretrained("embedded")
    engine = build(llm or llama_index_llm(), checker, show)
    response = engine.query(question)
    assert isinstance(response, StreamingResponse)
    for token in response.response_gen:
        print(token, end="", flush=True)
    print("\n\n" + cited_markdown(response))


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or QUESTION)
