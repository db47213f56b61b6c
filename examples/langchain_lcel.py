"""One runnable at the end of an LCEL chain: a batch in one engine call, footnotes, citations.

Run it from the repository's folder:

    python -m examples.langchain_lcel
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable

from examples.documents import KeywordSearch, load_corpus
from examples.langchain_rag import KeywordRetriever, build_chain
from gasp_engine import GroundingChecker
from gasp_integrations.langchain import GroundingRunnable, annotate_message, to_markdown

QUESTIONS = ("What does a single ticket on the Velmora tram cost?", "When is the Korbel hut open?")
"""What is asked when the module is run."""


def checked(rag: Runnable, checker: GroundingChecker) -> Runnable:
    """Any chain that gives `{"input", "context", "answer"}`, with the report beside them."""
    return rag | GroundingRunnable(checker=checker)


def cited(output: dict[str, Any]) -> AIMessage:
    """The answer as a message that carries its citations, for an interface that shows them."""
    return annotate_message(AIMessage(output["answer"]), output, output["context"])


def main() -> None:
    """Ask two questions in one batch, print the answers with footnotes and one citation."""
    from examples.local_llm import langchain_llm

    retriever = KeywordRetriever(index=KeywordSearch(load_corpus()), k=3)
    chain = checked(
        build_chain(langchain_llm(), retriever), GroundingChecker.from_pretrained("embedded")
    )
    outputs = chain.batch([{"input": question} for question in QUESTIONS])  # one engine call
    for output in outputs:
        print(to_markdown(output), end="\n\n")
    for block in cited(outputs[0]).content_blocks:
        if block["type"] == "text":
            for annotation in block.get("annotations", []):
                print(annotation)


if __name__ == "__main__":
    main()
