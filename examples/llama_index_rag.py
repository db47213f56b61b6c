"""A LlamaIndex query engine whose answers are checked.

    query -> retriever -> GroundingSynthesizer(synthesizer) -> response, metadata["grounding"]

Run it from the repository's folder:

    python -m examples.llama_index_rag "What does a single ticket cost?"
"""

from __future__ import annotations

import sys

from llama_index.core import PromptTemplate, get_response_synthesizer
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from examples.documents import KeywordSearch, load_corpus
from gasp_engine import GroundingChecker, Report
from gasp_engine.render import to_text
from gasp_integrations.llama_index import GroundingSynthesizer

PROMPT = PromptTemplate(
    "Context:\n{context_str}\n\nAnswer the question in two or three full sentences, using only the "
    "context.\n\nQuestion: {query_str}"
)
"""What the generator is asked."""


class KeywordRetriever(BaseRetriever):
    """BM25 over the example corpus as a LlamaIndex retriever."""

    def __init__(self, index: KeywordSearch, k: int = 4) -> None:
        super().__init__()
        self._index = index
        self._k = k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=passage.id or "", text=passage.text, metadata={"title": passage.title}
                ),
                score=relevance,
            )
            for passage, relevance in self._index.search(query_bundle.query_str, self._k)
        ]


def build_query_engine(
    llm: LLM, retriever: BaseRetriever, checker: GroundingChecker
) -> RetrieverQueryEngine:
    """A query engine with the report in `response.metadata["grounding"]`."""
    synthesizer = get_response_synthesizer(llm=llm, text_qa_template=PROMPT)
    return RetrieverQueryEngine(
        retriever=retriever,
        response_synthesizer=GroundingSynthesizer(synthesizer, checker=checker),
    )


def main() -> None:
    """Answer one question and print the report."""
    from examples.local_llm import llama_index_llm

    question = " ".join(sys.argv[1:]) or "What does a single ticket on the Velmora tram cost?"
    retriever = KeywordRetriever(KeywordSearch(load_corpus()))
    checker = GroundingChecker.from_pretrained("embedded")
    response = build_query_engine(llama_index_llm(), retriever, checker).query(question)
    print(to_text(Report.from_dict(response.metadata["grounding"])))


if __name__ == "__main__":
    main()
