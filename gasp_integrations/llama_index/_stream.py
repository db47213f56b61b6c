"""Tokens pass at once; a thread beside them does the scoring.

    generator ── token ──┬──> the reader, unmodified
                         └──> queue ──> worker: session.feed ──> metadata["grounding"]["sentences"]

The metadata's dict has all its keys from the beginning and its lists are replaced, never grown, so
that it can be read and serialized from any thread while it fills.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.instrumentation import (
    get_dispatcher,  # pyright: ignore[reportPrivateImportUsage]
)

from ._convert import Source, grounding_of, passages_of, sentence_values
from .events import GroundingEndEvent

if TYPE_CHECKING:
    from ._annotate import Annotator

dispatcher = get_dispatcher(__name__)


class StreamCheck:
    """One answer that is checked while it is being written."""

    def __init__(
        self,
        annotator: Annotator,
        question: str,
        sources: Sequence[Source],
        grounding: dict[str, Any],
    ) -> None:
        """A check that begins with the first token.

        Args:
            annotator: the engine and the callbacks.
            question: the user's question.
            sources: the nodes that the LLM saw.
            grounding: where the verdicts are written.
        """
        self.grounding = grounding
        self._annotator = annotator
        self._question = question
        self._sources = sources
        self._parts: list[str] = []
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._ended = False
        self._stopped = threading.Event()
        # The span and the tags of the caller: both are gone from the context once tokens are read.
        self._context = copy_context()
        self._worker = threading.Thread(
            target=self._context.run, args=(self._run,), name="grounding", daemon=True
        )

    @property
    def text(self) -> str:
        """What has come in so far."""
        return "".join(self._parts)

    def push(self, token: object) -> None:
        """Take the next piece of the answer; returns at once."""
        if isinstance(token, str) and token and not self._ended:
            if not self._parts:
                self._worker.start()
            self._parts.append(token)
            self._queue.put(token)

    def finish(self) -> None:
        """The answer is complete: wait until every verdict is in."""
        if self._ended:
            return
        self._ended = True
        self._queue.put(None)
        if not self._parts:
            self._context.run(self._run)
            return
        self._worker.join()

    def stop(self, error: BaseException | None = None) -> None:
        """The answer will not be completed: the reader has left, or the generator has failed."""
        if self._ended:
            return
        self._ended = True
        if error is None:
            self.grounding.update(status="closed", complete=False)
        else:
            self._annotator.fail(self.grounding, error)
        self._stopped.set()
        self._queue.put(None)
        # A copy: the worker may still be inside the context itself.
        end = self._context.copy().run(GroundingEndEvent, grounding=self.grounding)
        dispatcher.event(end)

    def _run(self) -> None:
        try:
            self._annotator.begin(self._question, self._sources)
            if self._sources:
                self._follow()
            else:
                # Nothing to score; what the answer is can only be said once it is complete.
                while self._queue.get() is not None:
                    pass
                self._conclude(self._report_at_once())
        except Exception as error:
            # The answer is already with the reader: a failing check must not take it away.
            self._conclude(error)

    def _follow(self) -> None:
        session = self._annotator.checker.session(self._question, passages_of(self._sources))
        with session:
            while (token := self._queue.get()) is not None:
                if self._stopped.is_set():
                    return
                for sentence in session.feed(token):
                    self._tell(sentence_values(sentence, self._sources))
            if self._stopped.is_set():
                return
            report = session.close()
        self._conclude(grounding_of(report, self._sources))

    def _report_at_once(self) -> dict[str, Any]:
        report = self._annotator.check(self._question, self._sources, self.text)
        return grounding_of(report, self._sources)

    def _tell(self, sentence: dict[str, Any]) -> None:
        self.grounding["sentences"] = [*self.grounding["sentences"], sentence]
        self._annotator.tell(sentence)

    def _conclude(self, outcome: dict[str, Any] | Exception) -> None:
        if self._stopped.is_set():
            return
        if isinstance(outcome, Exception):
            self._annotator.fail(self.grounding, outcome)
        else:
            told = len(self.grounding["sentences"])
            outcome["warnings"] = [*outcome["warnings"], *self.grounding["warnings"]]
            outcome["synthesis"] = self.grounding["synthesis"]
            self.grounding.update(outcome)
            for sentence in outcome["sentences"][told:]:
                self._annotator.tell(sentence)
        dispatcher.event(GroundingEndEvent(grounding=self.grounding))


def checked_stream(
    response: StreamingResponse | None, tokens: Any, check: StreamCheck
) -> Generator[Any, None, None]:
    """The same tokens; afterwards the verdicts are in, and the response knows its text."""
    try:
        for token in tokens:
            check.push(token)
            yield token
    except BaseException as error:
        check.stop(None if isinstance(error, GeneratorExit) else error)
        raise
    else:
        check.finish()
    finally:
        close = getattr(tokens, "close", None)
        if close is not None:
            close()
        if response is not None:
            response.response_txt = check.text


async def checked_async_stream(
    response: AsyncStreamingResponse | None, tokens: Any, check: StreamCheck
) -> AsyncGenerator[Any, None]:
    """`checked_stream` for asynchronous generators; the event loop is not blocked."""
    try:
        async for token in tokens:
            check.push(token)
            yield token
    except BaseException as error:
        check.stop(None if isinstance(error, GeneratorExit) else error)
        raise
    else:
        await asyncio.to_thread(check.finish)
    finally:
        close = getattr(tokens, "aclose", None)
        if close is not None:
            await close()
        if response is not None:
            response.response_txt = check.text
