"""A LlamaIndex chat engine that streams; each turn's answer is checked against its own sources.

    GroundingChatEngine(engine).stream_chat(message) -> tokens; response.metadata["grounding"]

Run it from the repository's folder:

    python -m examples.llama_index_chat
"""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import LLM
from llama_index.core.memory import ChatMemoryBuffer

from examples.documents import KeywordSearch, load_corpus
from examples.llama_index_rag import KeywordRetriever
from gasp_engine import GroundingChecker
from gasp_integrations.llama_index import GroundingChatEngine

MESSAGES = ("How high does the Korbel hut stand?", "How are beds in the hut booked?")
"""What is said, turn by turn."""


def build(llm: LLM, checker: GroundingChecker) -> GroundingChatEngine:
    """A chat engine that retrieves for every turn, checked from outside."""
    engine = ContextChatEngine.from_defaults(
        retriever=KeywordRetriever(KeywordSearch(load_corpus()), k=2),
        llm=llm,
        memory=ChatMemoryBuffer.from_defaults(token_limit=1000),
        system_prompt="Answer in one or two full sentences, using only the context.",
    )
    return GroundingChatEngine(engine, checker)


def main(
    messages: Sequence[str] = MESSAGES,
    llm: LLM | None = None,
    checker: GroundingChecker | None = None,
) -> None:
    """Hold a short conversation and print the verdicts under each answer."""
    from examples.local_llm import llama_index_llm

    checker = checker or GroundingChecker.from_pretrained("embedded")
    engine = build(llm or llama_index_llm(), checker)
    for message in messages:
        print(f"> {message}")
        response = engine.stream_chat(message)
        for token in response.response_gen:
            print(token, end="", flush=True)
        print()
        for sentence in response.metadata["grounding"]["sentences"]:
            cited = ", ".join(c["node_id"] for c in sentence["citations"]) or "no source"
            print(f"    [{sentence['status']}] {sentence['text']} <- {cited}")
        print()


if __name__ == "__main__":
    main()
