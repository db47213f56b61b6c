"""Any chat engine, checked from outside, streaming included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.schema import NodeWithScore

from gasp_engine import GroundingChecker

from ._annotate import Annotator, OnError, OnSentence, grounding_in
from ._convert import Source, require_methods
from ._seen import Seen, watch
from .chat_stream import GroundingStreamingChatResponse


class GroundingChatEngine(BaseChatEngine):
    """A chat engine whose answers carry their verdicts in `metadata["grounding"]`.

    An answer is checked against the source nodes of its own turn: what it takes from the
    conversation alone counts as unsupported. Where the engine rewrote the message into a question
    of its own (condense-question), that question is the one that is used.

    >>> engine = GroundingChatEngine(index.as_chat_engine(), checker)  # doctest: +SKIP
    >>> response = engine.stream_chat("When?")  # doctest: +SKIP
    >>> for token in response.response_gen: ...  # doctest: +SKIP
    >>> response.metadata["grounding"]["complete"]  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        chat_engine: BaseChatEngine,
        checker: GroundingChecker | str | None = None,
        *,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
    ) -> None:
        """An engine around another.

        Args:
            chat_engine: holds the conversation.
            checker: the engine, or the name or path of a model; None: `"embedded"`.
            on_sentence: called with each sentence's verdict as soon as there is one.
            on_error: `"raise"` or `"record"` when a check fails; a stream always records.

        Raises:
            InputTypeError: an argument is no such object; names it and what to pass.
            InputError: `on_error` is neither.
        """
        require_methods(
            chat_engine, ("chat", "stream_chat"), "chat_engine", "index.as_chat_engine()"
        )
        self._inner = chat_engine
        self._annotator = Annotator(checker, on_sentence=on_sentence, on_error=on_error)

    @classmethod
    def from_defaults(
        cls,
        chat_engine: BaseChatEngine,
        checker: GroundingChecker | str | None = None,
        *,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
    ) -> GroundingChatEngine:
        """See the constructor."""
        return cls(chat_engine, checker, on_sentence=on_sentence, on_error=on_error)

    @classmethod
    def class_name(cls) -> str:
        """Name of the component."""
        return "GroundingChatEngine"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    @property
    def chat_history(self) -> list[ChatMessage]:
        """The inner engine's."""
        return self._inner.chat_history

    def reset(self) -> None:
        """Begin a new conversation."""
        self._inner.reset()

    def chat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **kwargs: Any
    ) -> AgentChatResponse | StreamingAgentChatResponse:
        """The inner engine's answer, checked."""
        with watch() as seen:
            response = self._inner.chat(message, chat_history, **kwargs)
        if isinstance(response, StreamingAgentChatResponse):
            return self._follow(response, message, seen)
        question, sources, done = _prepare(response, message, seen)
        if done is not None:
            response.metadata = {**(response.metadata or {}), "grounding": done}
            return response
        return self._annotator.annotate(response, question, sources, seen.synthesis(sources))

    async def achat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **kwargs: Any
    ) -> AgentChatResponse | StreamingAgentChatResponse:
        """`chat`, asynchronously; scoring runs in a worker thread."""
        with watch() as seen:
            response = await self._inner.achat(message, chat_history, **kwargs)
        await self._annotator.aload()
        if isinstance(response, StreamingAgentChatResponse):
            return self._follow(response, message, seen)
        question, sources, done = _prepare(response, message, seen)
        if done is not None:
            response.metadata = {**(response.metadata or {}), "grounding": done}
            return response
        return await self._annotator.aannotate(response, question, sources, seen.synthesis(sources))

    def stream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **kwargs: Any
    ) -> GroundingStreamingChatResponse:
        """The inner engine's stream, checked while it is read."""
        with watch() as seen:
            response = self._inner.stream_chat(message, chat_history, **kwargs)
        return self._follow(response, message, seen)

    async def astream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **kwargs: Any
    ) -> GroundingStreamingChatResponse:
        """`stream_chat`, asynchronously."""
        with watch() as seen:
            response = await self._inner.astream_chat(message, chat_history, **kwargs)
        await self._annotator.aload()
        return self._follow(response, message, seen)

    def _follow(
        self, response: StreamingAgentChatResponse, message: str, seen: Seen
    ) -> GroundingStreamingChatResponse:
        question, sources, done = _prepare(response, message, seen)
        if done is not None:
            return GroundingStreamingChatResponse(response, done, None)
        check = self._annotator.start(question, sources, seen.synthesis(sources))
        return GroundingStreamingChatResponse(response, check.grounding, check)


def _prepare(
    response: AgentChatResponse | StreamingAgentChatResponse, message: str, seen: Seen
) -> tuple[str, Sequence[Source], dict[str, Any] | None]:
    """The question that was answered, the evidence, and the verdicts if there are any already."""
    question = message
    nodes: list[NodeWithScore] = list(response.source_nodes)
    done = grounding_in(response)
    for tool in response.sources:
        condensed = tool.raw_input.get("query")
        if isinstance(condensed, str) and len(response.sources) == 1:
            question = condensed
        # A query engine's response, whose nodes `astream_chat` of condense-question forgets.
        inner = tool.raw_output
        done = done or grounding_in(inner)
        if not response.source_nodes:
            nodes += getattr(inner, "source_nodes", None) or []
    response.source_nodes = nodes
    return question, seen.evidence(nodes), done
