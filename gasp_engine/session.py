"""Verdicts while the answer is still being written: sessions, which never make a stream wait.

    feed(text) ──> text ──> turns of an `IncrementalCheck`, in a thread ──> verdicts ──> feed, poll
    (caller)                                                                (queue)

A session owns no thread. Its work is cut into turns of a bounded number of tokens, which the
sessions of a checker take one after the other in the threads of one pool.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from .errors import SessionError, shorten
from .incremental import IncrementalCheck, settled_sentences
from .report import Report, SentenceReport
from .session_pool import MAX_SESSIONS, SessionPool
from .types import Passage, as_passages, as_text

if TYPE_CHECKING:
    from .checker import GroundingChecker

__all__ = ["MAX_SESSIONS", "GroundingSession", "Lag", "SessionPool"]

Phase = Literal["open", "failed", "closed", "cancelled", "evicted"]


@dataclass(frozen=True, slots=True)
class Lag:
    """What has been written but not judged."""

    sentences: int
    """Sentences that are complete and wait for their verdict."""
    seconds: float
    """How long ago the end of the oldest of them arrived; 0 when none waits."""


class GroundingSession:
    """Verdicts on one answer while it is being written; made by `GroundingChecker.session`.

    `feed` never waits for the scorer. The report of `close` equals that of `check` on the whole
    text. Safe to use from several threads. A context manager: it closes at the end of the block and
    cancels when the block raises; with `async with` likewise.

    Example:
        >>> with checker.session(question, passages) as session:  # doctest: +SKIP
        ...     for piece in stream:
        ...         for sentence in session.feed(piece):
        ...             print(sentence.status, sentence.text)
        >>> session.report.grounded  # doctest: +SKIP
    """

    def __init__(
        self,
        checker: GroundingChecker,
        question: str,
        passages: Iterable[Passage | str | dict[str, Any]],
    ) -> None:
        question, evidence = as_text(question, "question"), as_passages(passages)
        self._work = _Work(checker, question, evidence)
        weakref.finalize(self, checker.sessions.stop_soon, self._work).atexit = False
        self._work.begin()

    def feed(self, text: str) -> list[SentenceReport]:
        """Add a piece of the answer, of any size; never waits for the scorer.

        Args:
            text: what follows the text so far.

        Returns:
            The verdicts that have become available since the last call, in the order of the
            answer; each sentence once. A verdict whose `extra["provisional"]` is true may still
            change in the final report. Nothing while an `async for` over the session is running,
            which gets them instead.

        Raises:
            InputTypeError: `text` is no string; the session goes on.
            SessionError: the session was closed, cancelled or evicted.
            GaspError: scoring failed since the last call: the scorer's own error, raised once. The
                text is kept, no more verdicts come, and `close` tries again with the whole answer.
        """
        return self._work.feed(as_text(text, "text"))

    def poll(self) -> list[SentenceReport]:
        """The verdicts that have become available since the last call, without adding text.

        Raises:
            SessionError: the session was evicted.
            GaspError: scoring failed since the last call.
        """
        return self._work.take()

    def __iter__(self) -> Iterator[SentenceReport]:
        """The verdicts that are available now; does not wait."""
        return iter(self.poll())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a verdict is available or none will come any more.

        Args:
            timeout: seconds; None: as long as it takes.

        Returns:
            Whether `poll` has something to give.
        """
        return self._work.wait(timeout)

    @property
    def text(self) -> str:
        """The answer so far."""
        return self._work.text

    @property
    def lag(self) -> Lag:
        """What has been written but not judged; reads the whole text, so ask now and then."""
        return self._work.lag()

    @property
    def report(self) -> Report | None:
        """The final report, once the session is closed."""
        return self._work.report

    def close(self) -> Report:
        """Judge what is left and give the final report, which equals `check`'s on the whole text.

        Verdicts that no call has returned yet are still there for `poll`. Closing again returns the
        same report.

        Raises:
            SessionError: the session was cancelled or evicted.
            GaspError: scoring failed and no call has said so yet. Calling again scores the whole
                answer at once, as `check` does.
        """
        return self._work.close()

    def cancel(self) -> None:
        """Give up and free the state; what is being scored is finished first, then dropped."""
        self._work.stop("cancelled")

    def __enter__(self) -> GroundingSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.cancel()
        elif self._work.phase in ("open", "failed"):
            with _cancelled_on_error(self._work):
                self.close()

    async def afeed(self, text: str) -> list[SentenceReport]:
        """`feed`; it never waits, so it needs no thread."""
        return self.feed(text)

    async def aclose(self) -> Report:
        """`close` in a worker thread; cancels the session if the waiting task is cancelled."""
        with _cancelled_on_error(self._work, only=asyncio.CancelledError):
            return await asyncio.to_thread(self.close)

    async def __aenter__(self) -> GroundingSession:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.cancel()
        elif self._work.phase in ("open", "failed"):
            with _cancelled_on_error(self._work):
                await self.aclose()

    async def __aiter__(self) -> AsyncIterator[SentenceReport]:
        """Every verdict as it comes, the last ones included; ends when the session is over.

        Raises:
            SessionError: the session was evicted.
            GaspError: scoring failed.
        """
        arrived, loop = asyncio.Event(), asyncio.get_running_loop()
        watcher = (loop, arrived)
        self._work.watchers.append(watcher)
        try:
            while True:
                arrived.clear()
                over = self._work.phase != "open"
                for sentence in self._work.take():
                    yield sentence
                if over:
                    return
                await arrived.wait()
        finally:
            self._work.watchers.remove(watcher)


class _cancelled_on_error:
    """Stops a session's work when the block raises, so that no state outlives it."""

    def __init__(self, work: _Work, only: type[BaseException] = BaseException) -> None:
        self._work, self._only = work, only

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._only):
            self._work.stop("cancelled")


class _Work:
    """All of a session but its handle, so that the threads never keep the handle alive.

    `_lock` guards what callers and threads share and is never held while anything is scored.
    `_check` belongs to the one turn that is running.
    """

    def __init__(
        self, checker: GroundingChecker, question: str, passages: tuple[Passage, ...]
    ) -> None:
        self.checker = checker
        self.question = question
        self.passages = passages
        self.text = ""
        self.phase: Phase = "open"
        self.report: Report | None = None
        self.watchers: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._pool = checker.sessions
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ready: list[SentenceReport] = []
        self._arrivals: list[tuple[int, float]] = []
        self._error: BaseException | None = None
        self._closing = False
        self._running = False
        self._judged = 0
        self._check: IncrementalCheck | None = IncrementalCheck(checker, question, passages)

    # called by the session's handle, in any thread

    def begin(self) -> None:
        """Queue the first turn, which encodes the evidence."""
        self._pool.add(self)
        with self._lock:
            self._wake()

    def feed(self, text: str) -> list[SentenceReport]:
        """See `GroundingSession.feed`."""
        with self._lock:
            self._require_usable("feed")
            if self._closing:
                raise SessionError("cannot feed a session that is being closed")
            self.text += text
            self._arrivals.append((len(self.text), time.monotonic()))
            if text and self.phase == "open":
                self._wake()
            self._pool.touch(self)
            return [] if self.watchers else self.take()

    def take(self) -> list[SentenceReport]:
        """See `GroundingSession.poll`."""
        with self._lock:
            if self.phase == "evicted":
                self._require_usable("poll")
            ready, self._ready = self._ready, []
            if not ready:
                self._raise_error()
            return ready

    def wait(self, timeout: float | None) -> bool:
        """See `GroundingSession.wait`."""
        with self._lock:
            self._changed.wait_for(
                lambda: self._ready or self._error or self.phase != "open", timeout
            )
            return bool(self._ready or self._error)

    def lag(self) -> Lag:
        """See `GroundingSession.lag`."""
        with self._lock:
            text, judged, arrivals = self.text, self._judged, list(self._arrivals)
            is_idle = not self._running
        waiting = [] if is_idle else settled_sentences(text, self.checker.options)[judged:]
        if not waiting:
            return Lag(0, 0.0)
        end = waiting[0].end
        arrived = next((when for reach, when in arrivals if reach >= end), time.monotonic())
        return Lag(len(waiting), time.monotonic() - arrived)

    def close(self) -> Report:
        """See `GroundingSession.close`."""
        with self._lock:
            if self.report is not None:
                return self.report
            self._raise_error()
            self._require_usable("close")
            again = self.phase == "failed"
            if not again:
                self._closing = True
                self._wake()
                self._changed.wait_for(lambda: self.phase != "open")
                if self.report is not None:
                    return self.report
                self._raise_error()
                self._require_usable("close")
        report = self.checker.check(self.question, self.passages, self.text)
        with self._lock:
            self._settle(report)
        return report

    def stop(self, phase: Phase) -> None:
        """End without a report and free the state, at once or when the running turn is over."""
        with self._lock:
            if self.phase in ("open", "failed"):
                self._end(phase)

    def evict(self) -> None:
        """End, because too many sessions are open."""
        self.stop("evicted")

    def abandon(self) -> None:
        """Cancel, because nobody can ask for the verdicts any more."""
        self.stop("cancelled")

    # called by the threads of the pool

    def turn(self) -> None:
        """Do a bounded amount of what there is to do, and queue the rest behind other sessions."""
        with self._lock:
            check, text, closing = self._check, self.text, self._closing
            if self.phase != "open" or check is None:
                self._running = False
                self._free()
                return
        failure: BaseException | None = None
        report: Report | None = None
        verdicts: list[SentenceReport] = []
        more = False
        try:
            if check.has_begun or not closing:
                verdicts, more = check.advance(text)
            if closing and not more:
                report = check.finish(text, lambda: self.phase == "open")
        except BaseException as error:
            failure = error  # raised again in the caller's thread, by feed, poll or close
        with self._lock:
            self._running = False
            self._ready += verdicts
            self._judged += len(verdicts)
            if self.phase != "open":
                self._free()
            elif failure is not None:
                self._error = failure
                self._closing = False
                self._end("failed")
            elif report is not None:
                self._settle(report)
            elif more or self._closing or len(self.text) > len(text):
                self._wake()
            self._notify()

    # shared state, with the lock held

    def _wake(self) -> None:
        if self._running:
            return
        self._running = True
        self._pool.submit(self.turn)

    def _notify(self) -> None:
        self._changed.notify_all()
        for loop, event in list(self.watchers):
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def _end(self, phase: Phase) -> None:
        self.phase = phase
        self._pool.remove(self)
        if not self._running:
            self._free()
        self._notify()

    def _settle(self, report: Report) -> None:
        """Keep the final report and give out the verdicts that are still owed."""
        self._ready += report.sentences[self._judged :]
        self._judged = len(report.sentences)
        self.report = report
        self._end("closed")

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _require_usable(self, action: str) -> None:
        if self.phase in ("open", "failed"):
            return
        reasons = {
            "closed": "it was closed; its report is in session.report",
            "cancelled": "it was cancelled",
            "evicted": (
                f"it was evicted, because more than {self._pool.limit} sessions were open "
                f"(max_sessions) and this one had been idle longest. Check its text with "
                f"checker.check(question, passages, session.text), close sessions sooner, or "
                f"raise max_sessions"
            ),
        }
        raise SessionError(
            f"cannot {action} this session on {shorten(self.question)}: {reasons[self.phase]}"
        )

    def _free(self) -> None:
        """Drop everything that takes memory; only the text, the verdicts and the report stay."""
        check, self._check = self._check, None
        if check is not None:
            check.close()
