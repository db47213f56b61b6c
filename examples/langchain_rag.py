"""A LangChain RAG chain whose answers are checked.

    input -> retriever -> prompt -> LLM -> GroundingRunnable -> {input, context, answer, grounding}

Run it from the repository's folder:

    python -m examples.langchain_rag "What does a single ticket cost?"
"""

from __future__ import annotations

import sys
from operator import itemgetter

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough

from examples.documents import KeywordSearch, load_corpus
from gasp_engine import GroundingChecker, Report
from gasp_engine.render import to_text
from gasp_integrations.langchain import GroundingRunnable

PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "human",
            "Context:\n{context}\n\nAnswer the question in two or three full sentences, using only "
            "the context.\n\nQuestion: {input}",
        )
    ]
)
"""What the generator is asked."""


class KeywordRetriever(BaseRetriever):
    """BM25 over the example corpus as a LangChain retriever."""

    index: KeywordSearch
    """The passages and their index."""
    k: int = 4
    """How many documents are returned."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(
                id=passage.id,
                page_content=passage.text,
                metadata={"title": passage.title, "relevance": relevance},
            )
            for passage, relevance in self.index.search(query, self.k)
        ]


def build_chain(llm: BaseChatModel, retriever: BaseRetriever) -> Runnable:
    """A plain RAG chain: `{"input"}` in, `{"input", "context", "answer"}` out."""
    generate = (
        RunnablePassthrough.assign(
            context=lambda x: "\n\n".join(d.page_content for d in x["context"])
        )
        | PROMPT
        | llm
        | StrOutputParser()
    )
    retrieve = RunnableParallel(input=itemgetter("input"), context=itemgetter("input") | retriever)
    return retrieve | RunnablePassthrough.assign(answer=generate)


def build_checked_chain(
    llm: BaseChatModel, retriever: BaseRetriever, checker: GroundingChecker
) -> Runnable:
    """The same chain with the report added as `grounding`."""
    return build_chain(llm, retriever) | GroundingRunnable(checker=checker)


def main() -> None:
    """Answer one question and print the report."""
    from examples.local_llm import langchain_llm

    question = " ".join(sys.argv[1:]) or "What does a single ticket on the Velmora tram cost?"
    retriever = KeywordRetriever(index=KeywordSearch(load_corpus()))
    checker = GroundingChecker.from_pretrained("embedded")
    result = build_checked_chain(langchain_llm(), retriever, checker).invoke({"input": question})
    print(to_text(Report.from_dict(result["grounding"])))


if __name__ == "__main__":
    main()
