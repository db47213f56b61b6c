"""A scorer without a model, exact and instant, that counts the calls of its scorer.

A word of the answer is likely when the evidence holds it and unlikely when not, so that a sentence
copied from a passage is grounded and an invented one is flagged. Beside it the chat model that
writes the answers: it says what a test tells it to, word by word when it is streamed.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

from gasp_engine.scorers.table import TableScorer
from gasp_engine.types import Tokens

VOCABULARY = 4096


def tokenize(text: str) -> Tokens:
    offsets = [m.span() for m in re.finditer(r"\s*(?:\w+|[^\w\s])", text)]
    if offsets and offsets[-1][1] < len(text):
        offsets[-1] = (offsets[-1][0], len(text))
    ids = [zlib.crc32(text[a:b].strip().lower().encode()) % VOCABULARY for a, b in offsets]
    return Tokens(tuple(ids), tuple(offsets))


def log_probs(question: str, context: str, index: int, tokens: Tokens) -> np.ndarray:
    target = tokens.ids[index]
    p = 0.9 if target in tokenize(context).ids else 0.001
    row = np.full(VOCABULARY, np.log((1 - p) / (VOCABULARY - 1)))
    row[target] = np.log(p)
    return row


class CountingScorer(TableScorer):
    """Keeps how many answers each call of `score` was asked for, and can be made to fail."""

    def __init__(self) -> None:
        super().__init__(log_probs, tokenize=tokenize)
        self.calls: list[int] = []
        self.opened = 0
        self.error: Exception | None = None

    def open(self, question: Any, context: Any, conditions: Any) -> Any:
        self.opened += 1
        if self.error is not None:
            raise self.error
        return super().open(question, context, conditions)

    def score(self, requests: Any) -> Any:
        self.calls.append(len(requests))
        if self.error is not None:
            raise self.error
        return super().score(requests)


DAM = Document(
    page_content="The dam opened in 1931. It is open to visitors.",
    metadata={"source": "https://example.org/dam", "title": "The dam", "page": 4},
    id="doc-dam",
)
BOATS = Document(page_content="Boats are red. They sail in May.", metadata={"source": "boats.md"})
GROUNDED = "The dam opened in 1931."
INVENTED = "Mayor Ruiz painted seventeen lions."
ANSWER = f"{GROUNDED} {INVENTED}"
INPUT = {"input": "When did it open?", "context": [DAM, BOATS], "answer": ANSWER}


class ScriptedModel(BaseChatModel):
    """Answers with the given messages, one a call, and remembers what it was shown."""

    script: list[AIMessage]
    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.seen.append(messages)
        return self.script[len(self.seen) - 1]

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = self._next(messages).model_copy()
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = self._next(messages)
        for word in re.findall(r"\s*\S+|\s+", str(message.content)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        if message.tool_calls:
            calls = [
                {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": i}
                for i, c in enumerate(message.tool_calls)
            ]
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))
