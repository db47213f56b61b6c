"""Tokens pass at once, unmodified; the engine's session scores beside them and says what is ready.

    generator ── token ──┬──> the reader
                         └──> session.feed ──> verdicts that are ready ──> metadata["grounding"]

The metadata's dict has all its keys from the beginning and its lists are replaced, never grown, so
that it can be read and serialized at any time, from any thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from gasp_engine.errors import SessionError

from ._convert import Source, grounding_of, passages_of, sentence_values

if TYPE_CHECKING:
    from ._annotate import Annotator


class StreamCheck:
    """One answer that is checked while it is being written; one reader at a time."""

    def __init__(
        self,
        annotator: Annotator,
        question: str,
        sources: Sequence[Source],
        grounding: dict[str, Any],
    ) -> None:
        """Begins at once: the evidence is encoded while the LLM prepares its first word.

        Args:
            annotator: the engine and the callbacks.
            question: the user's question.
            sources: the nodes that the LLM saw.
            grounding: where the verdicts are written.
        """
        self.grounding = grounding
        self.text = ""
        self._annotator = annotator
        self._question = question
        self._sources = sources
        # The span and the tags of the caller, which are gone once tokens are read.
        self._context = copy_context()
        annotator.begin(question, sources)
        # Without evidence there is nothing to score; what the answer is, its end will tell.
        self._session = (
            annotator.checker_for(sources).session(question, passages_of(sources))
            if sources
            else None
        )
        self._ended = False

    def push(self, token: object) -> None:
        """Take the next piece of the answer and note the verdicts that are ready; never waits."""
        if not isinstance(token, str) or not token or self._ended:
            return
        self.text += token
        if self._session is None:
            return
        try:
            ready = self._session.feed(token)
        except SessionError:
            # Too many streams at a time: this one is checked as a whole when it ends.
            self._session = None
            return
        except Exception:
            # The answer must go on. Closing the session scores all of it again, and if that fails
            # too, says so.
            return
        for sentence in ready:
            values = sentence_values(sentence, self._sources)
            self.grounding["sentences"] = [*self.grounding["sentences"], values]
            self._context.run(self._annotator.tell, values)

    def finish(self) -> None:
        """The answer is complete: wait until every verdict is in."""
        if self._ended:
            return
        self._ended = True
        told = len(self.grounding["sentences"])
        try:
            outcome = self._whole()
        except Exception as error:
            # The answer is with its reader: a failing check must not take it away.
            self._annotator.fail(self.grounding, error)
        else:
            outcome["warnings"] = [*outcome["warnings"], *self.grounding["warnings"]]
            outcome["synthesis"] = self.grounding["synthesis"]
            self.grounding.update(outcome)
            for sentence in outcome["sentences"][told:]:
                self._context.run(self._annotator.tell, sentence)
        self._context.run(self._annotator.end, self.grounding)

    def stop(self, error: BaseException | None = None) -> None:
        """The answer will not be completed: its reader has left, or its generator has failed."""
        if self._ended:
            return
        self._ended = True
        if self._session is not None:
            self._session.cancel()
        if error is None:
            self.grounding.update(status="closed", complete=False)
        else:
            self._annotator.fail(self.grounding, error)
        self._context.run(self._annotator.end, self.grounding)

    def _whole(self) -> dict[str, Any]:
        if self._session is not None:
            try:
                return grounding_of(self._session.close(), self._sources)
            except SessionError:
                pass  # evicted, see above
        report = self._annotator.check(self._question, self._sources, self.text)
        return grounding_of(report, self._sources)


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
