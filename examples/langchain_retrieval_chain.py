"""`create_retrieval_chain` and a checker: its output has the keys that the checker reads.

Run it from the repository's folder:

    python -m examples.langchain_retrieval_chain "How long is the Velmora tram?"
"""

from __future__ import annotations

import sys

from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from examples.documents import KeywordSearch, load_corpus
from examples.langchain_rag import PROMPT, KeywordRetriever
from gasp_engine import GroundingChecker
from gasp_integrations.langchain import GroundingRunnable, to_markdown


def build(llm: BaseChatModel, retriever: BaseRetriever, checker: GroundingChecker) -> Runnable:
    """Retrieve, stuff the documents into the prompt, answer, check."""
    answer = create_stuff_documents_chain(llm, PROMPT)
    return create_retrieval_chain(retriever, answer) | GroundingRunnable(checker=checker)


def main() -> None:
    """Answer one question and print the answer with its footnotes."""
    from examples.local_llm import langchain_llm

    question = " ".join(sys.argv[1:]) or "What does a single ticket on the Velmora tram cost?"
    retriever = KeywordRetriever(index=KeywordSearch(load_corpus()), k=3)
    checker = GroundingChecker.from_pretrained("embedded")
    print(to_markdown(build(langchain_llm(), retriever, checker).invoke({"input": question})))


if __name__ == "__main__":
    main()
