"""A streaming chat response that also has metadata, and checks what it hands out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any

from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from ._stream import StreamCheck, checked_async_stream, checked_stream


class GroundingStreamingChatResponse(StreamingAgentChatResponse):
    """An engine's streaming response with `metadata`, which LlamaIndex's own does not have.

    It shares the inner response's attributes: the engine's history thread goes on writing to the
    inner one, and what it writes is seen here.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        inner: StreamingAgentChatResponse,
        grounding: dict[str, Any],
        check: StreamCheck | None,
    ) -> None:
        """A response around another.

        Args:
            inner: what the engine returned.
            grounding: stands in `metadata`.
            check: fills `grounding`; None: somebody else does.
        """
        self.__dict__ = inner.__dict__
        self._inner = inner
        self._check = check
        self.metadata = {"grounding": grounding}

    @property
    def response_gen(self) -> Generator[str, None, None]:
        """The inner response's tokens, unmodified."""
        tokens = self._inner.response_gen
        return tokens if self._check is None else checked_stream(None, tokens, self._check)

    async def async_response_gen(self) -> AsyncGenerator[str, None]:
        """The inner response's tokens, unmodified."""
        tokens = self._inner.async_response_gen()
        if self._check is not None:
            tokens = checked_async_stream(None, tokens, self._check)
        try:
            async for token in tokens:
                yield token
        finally:
            await tokens.aclose()
