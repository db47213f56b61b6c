"""Tokens at once, verdicts as soon as a sentence is finished, the report at the end.

Run it from the repository's folder:

    python -m examples.langchain_streaming
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import convert_to_openai_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda

from examples.documents import KeywordSearch, load_corpus
from examples.langchain_rag import KeywordRetriever, build_chain
from gasp_engine import GroundingChecker
from gasp_integrations.langchain import GroundingRunnable


class Verdicts(BaseCallbackHandler):
    """Shows the verdict on each sentence when it comes; `astream_events` has the same events."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self.show = show

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Called with `grounding_sentence` and the sentence's part of the report."""
        if name == "grounding_sentence":
            numbers = "".join(f"[{citation['id']}]" for citation in data["citations"])
            self.show(f"\n  <{data['status']} {numbers}: {data['text']}>\n")


def stream(chain: Runnable, question: str, show: Callable[[str], None]) -> dict[str, Any]:
    """Show tokens and verdicts; gives the report."""
    report: dict[str, Any] = {}
    for chunk in chain.stream({"input": question}, {"callbacks": [Verdicts(show)]}):
        show(chunk.get("answer", ""))
        report = chunk.get("grounding", report)
    return report


def streaming_llm() -> Any:
    """The local model as a completion model: LangChain streams its tokens, the chat form not."""
    from examples.local_llm import langchain_llm, model_and_tokenizer

    _, tokenizer = model_and_tokenizer()

    def as_text(prompt: PromptValue) -> str:
        turns = convert_to_openai_messages(prompt.to_messages())
        return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)

    llm: Any = langchain_llm()
    return RunnableLambda(as_text) | llm.llm


def main() -> None:
    """Answer one question on the terminal."""
    question = " ".join(sys.argv[1:]) or "What does a single ticket on the Velmora tram cost?"
    retriever = KeywordRetriever(index=KeywordSearch(load_corpus()), k=3)
    checker = GroundingChecker.from_pretrained("embedded")
    chain = build_chain(streaming_llm(), retriever) | GroundingRunnable(checker=checker)

    def show(text: str) -> None:
        print(text, end="", flush=True)

    report = stream(chain, question, show)
    print(f"\ngrounded: {report['grounded']}")


if __name__ == "__main__":
    main()
