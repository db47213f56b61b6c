"""The one path that every wrapper takes: a response and its evidence in, the same response with
verdicts in `metadata["grounding"]` out.

    Response, PydanticResponse, AgentChatResponse    checked before they are returned
    StreamingResponse, AsyncStreamingResponse        returned at once, checked while they are read

Only `metadata` (and, in streams, the generator) is replaced; the answer, the source nodes and the
nodes' own metadata stay as they are.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.instrumentation import (
    get_dispatcher,  # pyright: ignore[reportPrivateImportUsage]
)

from gasp_engine import GroundingChecker, Report
from gasp_engine.errors import InputError, InputTypeError, shorten

from ._convert import Source, grounding_of, passages_of, pending_grounding
from ._stream import StreamCheck, checked_async_stream, checked_stream
from .events import GroundingEndEvent, GroundingSentenceEvent, GroundingStartEvent

dispatcher = get_dispatcher(__name__)

EMPTY_RESPONSE = "Empty Response"
"""What LlamaIndex answers by itself when nothing was retrieved."""

OnError = Literal["raise", "record"]
OnSentence = Callable[[dict[str, Any]], None]
Synthesis = dict[str, Any] | None


class Annotator:
    """Checks responses and writes verdicts into their metadata. Safe to use from many threads."""

    def __init__(
        self,
        checker: GroundingChecker | str | Callable[[], GroundingChecker] | None = None,
        *,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
        empty_response: str | None = None,
    ) -> None:
        """An annotator.

        Args:
            checker: the engine, or the name or path of a model, or a function, that gives one at
                the first check; None: `"embedded"`.
            on_sentence: called with each sentence's verdict, in order; for a stream while the
                answer is still being written, by whoever reads it.
            on_error: what a failing check does to an answer that is complete: `"raise"`, or
                `"record"` it in the metadata. A stream always records: its tokens are already out.
            empty_response: the synthesizer's own text for "nothing was retrieved".

        Raises:
            InputError: `on_error` is neither.
            InputTypeError: `checker` is nothing of the kind.
        """
        if on_error not in ("raise", "record"):
            raise InputError(f'on_error must be "raise" or "record", got {on_error!r}')
        known = checker is None or isinstance(checker, str | GroundingChecker) or callable(checker)
        if not known or isinstance(checker, type):
            raise InputTypeError(
                f"checker must be a GroundingChecker or the name or path of a model, got "
                f"{shorten(checker)}"
            )
        self.on_sentence = on_sentence
        self.on_error: OnError = on_error
        self._checker = "embedded" if checker is None else checker
        self._empty = {EMPTY_RESPONSE, empty_response or EMPTY_RESPONSE}
        self._marking: GroundingChecker | None = None
        self._lock = threading.Lock()

    @property
    def checker(self) -> GroundingChecker:
        """The engine; a model given by name is loaded now."""
        with self._lock:
            if isinstance(self._checker, str):
                self._checker = GroundingChecker.from_pretrained(self._checker)
            elif callable(self._checker):
                self._checker = self._checker()
            return self._checker

    async def aload(self) -> None:
        """Load the engine, if that is still to be done, without blocking the event loop."""
        await asyncio.to_thread(lambda: self.checker)

    def checker_for(self, sources: Sequence[Source]) -> GroundingChecker:
        """The engine; for the labelled chunks of `CitationQueryEngine` one that checks markers."""
        checker = self.checker
        if checker.options.check_markers or not any(source.number for source in sources):
            return checker
        with self._lock:
            if self._marking is None:
                self._marking = checker.with_options(check_markers=True)
            return self._marking

    def is_placeholder(self, answer: str, sources: Sequence[Source]) -> bool:
        """Whether LlamaIndex, not the LLM, wrote the answer because nothing was retrieved."""
        return not sources and answer.strip() in self._empty

    def check(self, question: str, sources: Sequence[Source], answer: str) -> Report:
        """The engine's report on an answer."""
        checker = self.checker_for(sources)
        if self.is_placeholder(answer, sources):
            checker = checker.with_options(is_abstention=lambda _: True)
        return checker.check(question, passages_of(sources), answer)

    @dispatcher.span
    def ground(self, question: str, sources: Sequence[Source], answer: str) -> dict[str, Any]:
        """`metadata["grounding"]` of an answer, with events and the callback.

        Raises:
            Exception: whatever the scorer raises, unless `on_error` is `"record"`.
        """
        self.begin(question, sources)
        grounding = pending_grounding(question, sources)
        try:
            grounding.update(grounding_of(self.check(question, sources, answer), sources))
        except Exception as error:
            self.fail(grounding, error)
            self.end(grounding)
            if self.on_error == "raise":
                raise
            return grounding
        for sentence in grounding["sentences"]:
            self.tell(sentence)
        self.end(grounding)
        return grounding

    async def aground(
        self, question: str, sources: Sequence[Source], answer: str
    ) -> dict[str, Any]:
        """`ground` in a worker thread; the event loop goes on."""
        return await asyncio.to_thread(self.ground, question, sources, answer)

    def begin(self, question: str, sources: Sequence[Source]) -> None:
        """Send the event that a check begins."""
        ids = [source.node_id for source in sources]
        dispatcher.event(GroundingStartEvent(query=question, node_ids=ids))

    def tell(self, sentence: dict[str, Any]) -> None:
        """Hand out one verdict: event and callback."""
        dispatcher.event(GroundingSentenceEvent(sentence=sentence))
        if self.on_sentence is not None:
            self.on_sentence(sentence)

    def end(self, grounding: dict[str, Any]) -> None:
        """Send the event that a check has ended."""
        dispatcher.event(GroundingEndEvent(grounding=grounding))

    def fail(self, grounding: dict[str, Any], error: BaseException) -> None:
        """Note in the metadata that the check failed, and why."""
        message = {"type": type(error).__name__, "message": str(error)}
        grounding.update(status="error", complete=False, error=message)

    def annotate(
        self,
        response: Any,
        question: str,
        sources: Sequence[Source],
        synthesis: Synthesis = None,
    ) -> Any:
        """Check a response and write the verdicts into its metadata.

        Args:
            response: of any of LlamaIndex's response types.
            question: the user's question.
            sources: the nodes that the LLM saw.
            synthesis: how the answer was made, as `Seen.synthesis` tells.

        Returns:
            The same response.
        """
        if isinstance(response, StreamingResponse | AsyncStreamingResponse):
            return self.follow(response, question, sources, synthesis)
        grounding = self.ground(question, sources, answer_of(response))
        return self._attach(response, grounding, synthesis)

    async def aannotate(
        self,
        response: Any,
        question: str,
        sources: Sequence[Source],
        synthesis: Synthesis = None,
    ) -> Any:
        """`annotate` without blocking the event loop."""
        if isinstance(response, StreamingResponse | AsyncStreamingResponse):
            await self.aload()
            return self.follow(response, question, sources, synthesis)
        grounding = await self.aground(question, sources, answer_of(response))
        return self._attach(response, grounding, synthesis)

    def follow(
        self,
        response: StreamingResponse | AsyncStreamingResponse,
        question: str,
        sources: Sequence[Source],
        synthesis: Synthesis = None,
    ) -> StreamingResponse | AsyncStreamingResponse:
        """Check a stream while it is read."""
        check = self.start(question, sources, synthesis)
        response.metadata = {**(response.metadata or {}), "grounding": check.grounding}
        if response.response_txt is not None:
            # Somebody has read the stream already: what it said is known.
            check.push(response.response_txt)
            check.finish()
        elif isinstance(response, StreamingResponse):
            response.response_gen = checked_stream(response, response.response_gen, check)
        else:
            response.response_gen = checked_async_stream(response, response.response_gen, check)
        return response

    def start(
        self, question: str, sources: Sequence[Source], synthesis: Synthesis = None
    ) -> StreamCheck:
        """A check of an answer that will arrive in pieces."""
        grounding = pending_grounding(question, sources)
        note_synthesis(grounding, synthesis)
        return StreamCheck(self, question, sources, grounding)

    def _attach(self, response: Any, grounding: dict[str, Any], synthesis: Synthesis) -> Any:
        note_synthesis(grounding, synthesis)
        response.metadata = {**(response.metadata or {}), "grounding": grounding}
        return response


def note_synthesis(grounding: dict[str, Any], synthesis: Synthesis) -> None:
    """Report how the answer was made, and what that means for the verdicts."""
    if synthesis is None:
        return
    warnings: list[str] = []
    if synthesis["calls"] > 1:
        warnings.append(
            f"the answer was written over {synthesis['calls']} calls of the LLM, each of which saw "
            f"a part of the nodes; it was checked against all of them together"
        )
    if synthesis["cut"]:
        names = ", ".join(f"source_nodes[{i}]" for i in synthesis["cut"])
        warnings.append(
            f"the LLM did not see the whole of {names}, which its prompt had no room for; the "
            f"answer was checked against the whole"
        )
    grounding["synthesis"] = synthesis
    grounding["warnings"] = [*grounding["warnings"], *warnings]


def answer_of(response: Any) -> str:
    """The text of a response that is complete.

    Raises:
        InputTypeError: it is not one of LlamaIndex's response types.
    """
    if isinstance(response, PydanticResponse):
        return str(response) if response.response is not None else ""
    if isinstance(response, Response | AgentChatResponse):
        return response.response or ""
    raise InputTypeError(
        f"response must be one of LlamaIndex's response types, got {type(response).__name__}"
    )


def grounding_in(response: Any) -> dict[str, Any] | None:
    """The verdicts that a response carries; None when it was not checked."""
    metadata = getattr(response, "metadata", None)
    grounding = metadata.get("grounding") if isinstance(metadata, dict) else None
    return grounding if isinstance(grounding, dict) else None
