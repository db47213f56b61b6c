"""Verdicts while the answer is still being written.

    feed(text) ──> text ──> settled sentences ──> settled tokens ──> one state a group ──> verdicts
    (caller)       └──────────────────── a worker thread ────────────────────────┘       (queue)

The evidence is encoded when the session begins, before the first word. A sentence is judged once
neither its end nor its tokens can change any more, and costs its own tokens times the conditions.
`close` prepares the whole answer as `check` does and compares: whatever the session assumed wrongly
(a token, a window, which units to leave out) is scored again, so that its report is `check`'s.

A session owns no thread. Its work is cut into turns of at most `BLOCK` tokens, which the sessions
of a checker take one after the other in the threads of one pool.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .detectors import Detector
from .errors import ContextLengthError, InputError, SessionError, shorten
from .features import SpanFeatures
from .growing import GrowingTokens, GrowingWording
from .lexical import LexicalIndex
from .options import CheckOptions
from .perturb import Context
from .prepare import Example, Prepared, lay_out, prepare
from .report import Report, SentenceReport
from .scorers.base import Scorer, ScoreRequest, ScoringState
from .segment import SentenceStream, segment, settled
from .types import Passage, Sentence, Tokens, TokenScores, as_passages, as_text
from .verdict import build_report, measure, source_index
from .windows import Group

if TYPE_CHECKING:
    from .checker import GroundingChecker

MAX_SESSIONS = 8
"""Sessions of one checker that keep their state at a time, unless it is told otherwise."""
BLOCK = 64
"""Tokens scored in one turn at most: how long a cancelled session or another one has to wait."""
EAGER = 16
"""Settled tokens that are worth a turn before their sentence is complete."""
RESERVE = 256
"""Tokens of answer that the first plan of the windows leaves room for."""
RESTARTS = 2
"""Times that a session begins anew because settled tokens changed; after that, close scores all."""

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


class SessionPool:
    """The sessions of one checker: which are open, and the threads that work for them.

    Args:
        limit: sessions that keep state at a time; opening one more evicts the one that was used
            longest ago.
        remote: whether the scorer waits for a server, so that several turns at a time are faster.
            A local model runs one at a time whatever the number of threads.
    """

    def __init__(self, limit: int = MAX_SESSIONS, *, remote: bool = False) -> None:
        if not isinstance(limit, int) or limit < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"max_sessions must be a whole number from 1 up, got {limit!r}")
        self.limit = limit
        self._n_threads = min(limit, 8) if remote else 1
        self._lock = threading.Lock()
        self._open: OrderedDict[int, _Work] = OrderedDict()
        # A SimpleQueue may be put to from a finalizer, whatever locks its thread holds just then.
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def __len__(self) -> int:
        return len(self._open)

    def __reduce__(self) -> tuple[Any, ...]:
        return _new_pool, (self.limit, self._n_threads > 1)

    def add(self, work: _Work) -> None:
        """Count a new session in; evicts another one if there are too many."""
        with self._lock:
            self._open[id(work)] = work
            evicted = self._open.popitem(last=False)[1] if len(self._open) > self.limit else None
            if not self._threads:
                self._start()
        if evicted is not None:
            evicted.stop("evicted")

    def touch(self, work: _Work) -> None:
        """Note that a session was used just now."""
        with self._lock:
            if id(work) in self._open:
                self._open.move_to_end(id(work))

    def remove(self, work: _Work) -> None:
        """Forget a session that keeps no state any more."""
        with self._lock:
            self._open.pop(id(work), None)

    def submit(self, job: Callable[[], None]) -> None:
        """Queue a job behind those of the other sessions."""
        self._jobs.put(job)

    def stop_soon(self, work: _Work) -> None:
        """Cancel a session whose handle is gone. For finalizers: takes no lock."""
        self._jobs.put(work.abandon)

    def _start(self) -> None:
        self._threads = [
            threading.Thread(target=_work_off, args=(self._jobs,), name="gasp-session", daemon=True)
            for _ in range(self._n_threads)
        ]
        for thread in self._threads:
            thread.start()
            _threads[thread] = self._jobs
            weakref.finalize(self, self._jobs.put, None).atexit = False


_threads: weakref.WeakKeyDictionary[threading.Thread, SimpleQueue[Callable[[], None] | None]] = (
    weakref.WeakKeyDictionary()
)
"""Threads that may be alive, with the queue that ends them."""


@atexit.register
def _end_threads() -> None:
    """Let the turns that are running end, so that none is in a model when the interpreter goes."""
    alive = [(thread, jobs) for thread, jobs in _threads.items() if thread.is_alive()]
    for _, jobs in alive:
        while not jobs.empty():
            jobs.get()
        jobs.put(None)
    for thread, _ in alive:
        thread.join(timeout=10)


def _work_off(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        try:
            job()
        except BaseException:  # a state that cannot be closed must not stop the other sessions
            threading.excepthook(
                threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
            )
        del job  # or it would keep its session's state until the next one comes


def _new_pool(limit: int, remote: bool) -> SessionPool:
    return SessionPool(limit, remote=remote)


@dataclass(eq=False)
class _Lane:
    """One group of units and what has been scored of the answer under its conditions."""

    request: ScoreRequest
    group: Group
    state: ScoringState
    blocks: list[TokenScores] = field(default_factory=list[TokenScores])

    @property
    def tokens_computed(self) -> int:
        """Positions that the model ran for this lane."""
        return sum(block.tokens_computed for block in self.blocks)

    def scores(self, n_tokens: int | None = None) -> TokenScores:
        """The first `n_tokens` columns of all blocks, put side by side."""
        conditions = self.request.conditions
        empty = np.zeros((len(conditions), 0), dtype=np.float32)
        return TokenScores(
            conditions,
            np.concatenate([empty, *(b.log_probs for b in self.blocks)], axis=1)[:, :n_tokens],
            np.concatenate([empty, *(b.jsd for b in self.blocks)], axis=1)[:, :n_tokens],
            self.tokens_computed,
        )

    def scores_of(self, request: ScoreRequest, scorer: Scorer) -> TokenScores:
        """The scores under the conditions of `request`; those that the lane lacks are run now."""
        parts = [self.scores()]
        known = {condition.kept for condition in self.request.conditions}
        missing = tuple(c for c in request.conditions if c.kept not in known)
        if missing:
            parts += scorer.score([replace(request, conditions=(request.conditions[0], *missing))])
        source = {c.kept: (part, row) for part in parts for row, c in enumerate(part.conditions)}
        source |= {c.kept: (parts[0], row) for row, c in enumerate(parts[0].conditions)}
        rows = [source[c.kept] for c in request.conditions]
        return TokenScores(
            request.conditions,
            np.stack([part.log_probs[row] for part, row in rows]),
            np.stack([part.jsd[row] for part, row in rows]),
            sum(part.tokens_computed for part in parts),
        )


class _Work:
    """All of a session but its handle, so that the threads never keep the handle alive.

    `lock` guards what callers and threads share and is never held while anything is scored. The
    lanes and tokens belong to the one turn that is running.
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
        self._seen = -1
        self._judged = 0
        self._lanes: list[_Lane] = []
        self._plan: Prepared | None = None
        self._reserve = 0
        self._sentences: list[Sentence] = []
        self._stream = SentenceStream(
            language=checker.options.language, is_abstention=checker.options.is_abstention
        )
        self._wording = GrowingWording(passages)
        self._growing = GrowingTokens(checker.scorer.tokenize)
        self._fed: list[int] = []
        self._restarts = 0
        self._spent = 0
        self._index: LexicalIndex | None = None

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
        waiting = [] if is_idle else _settled_sentences(text, self.checker.options)[judged:]
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

    def abandon(self) -> None:
        """Cancel, because nobody can ask for the verdicts any more."""
        self.stop("cancelled")

    # called by the threads of the pool

    def turn(self) -> None:
        """Do a bounded amount of what there is to do, and queue the rest behind other sessions."""
        with self._lock:
            if self.phase != "open":
                self._running = False
                self._free()
                return
            text, closing = self.text, self._closing
        failure: BaseException | None = None
        report: Report | None = None
        more = False
        try:
            more = not (closing and self._plan is None) and self._advance(text)
            if closing and not more:
                report = self._finish(text)
        except BaseException as error:
            failure = error  # raised again in the caller's thread, by feed, poll or close
        with self._lock:
            self._running = False
            if self.phase != "open":
                self._free()
            elif failure is not None:
                self._error = failure
                self._closing = False
                self._end("failed")
            elif report is not None:
                self._settle(report)
            else:
                if more or self._closing or len(self.text) > len(text):
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
        lanes, self._lanes = self._lanes, []
        self._plan = self._index = None
        self._growing = GrowingTokens(self.checker.scorer.tokenize)
        self._wording = GrowingWording(self.passages)
        for lane in lanes:
            lane.state.close()

    # the work itself, in the one running turn

    def _advance(self, text: str) -> bool:
        """Score a block of what is settled, judge what is complete; says whether more is to do."""
        if self._plan is None:
            self._open(text, 0)
            return True
        if self._restarts > RESTARTS:
            return False
        if len(text) != self._seen:
            self._seen = len(text)
            self._take_sentences(text)
            self._wording.extend(text, self._sentences)
            if self._lanes:
                self._take_tokens(text)
        if not self._lanes:
            self._judge(text, len(self._sentences))
            return False
        known = self._n_known()
        if self._is_worth_a_turn(known):
            begin = len(self._fed)
            self._extend(self._growing.tokens(begin, min(known, begin + BLOCK)).ids)
        self._judge(text, self._n_complete(self._n_scored()))
        return self._is_worth_a_turn(known)

    def _take_sentences(self, text: str) -> None:
        options = self.checker.options
        if options.splitter == "paper" or options.granularity != "sentence":
            self._sentences = _settled_sentences(text, options)
        else:
            self._sentences += self._stream.feed(text[len(self._stream.text) :])

    def _is_worth_a_turn(self, known: int) -> bool:
        waiting = known - len(self._fed)
        return waiting >= EAGER or (
            waiting > 0 and self._n_complete(len(self._growing)) > self._judged
        )

    def _n_known(self) -> int:
        """Settled tokens that are to be scored."""
        limit = self.checker.options.max_answer_tokens
        return len(self._growing) if limit is None else min(limit, len(self._growing))

    def _n_scored(self) -> int:
        """Settled tokens that need no more scoring, be it that they are beyond the limit."""
        limit = self.checker.options.max_answer_tokens
        return len(self._growing) if len(self._fed) == limit else len(self._fed)

    def _n_complete(self, n_tokens: int) -> int:
        """How many sentences the first `n_tokens` tokens cover."""
        count = self._judged
        while count < len(self._sentences) and self._growing.covers(
            n_tokens, self._wording.text, self._wording.at(self._sentences[count].end)
        ):
            count += 1
        return count

    def _take_tokens(self, text: str) -> None:
        """Settle tokens; begin anew where old ones changed or the windows' plan does not hold."""
        self._growing.settle(self._wording.text)
        changed, self._growing.changed = self._growing.changed, None
        if changed is not None and changed < len(self._fed):
            self._restarts += 1
            self._drop_lanes()
            if self._restarts <= RESTARTS:
                self._open(text, self._n_known())
        elif self._n_known() > self._reserve:
            old = self._plan
            new = self._make_plan(text, self._n_known())
            if old is not None and (new.context, new.groups) != (old.context, old.groups):
                self._drop_lanes()
                self._open(text, self._n_known())

    def _open(self, text: str, n_tokens: int) -> None:
        """Plan for an answer that has `n_tokens` already, and encode the evidence."""
        self._plan = plan = self._make_plan(text, n_tokens)
        if self._index is None:
            self._index = source_index(self.passages)
        for request, group in zip(plan.requests, plan.groups, strict=True):
            state = self.checker.scorer.open(request.question, request.context, request.conditions)
            self._lanes.append(_Lane(request, group, state))

    def _drop_lanes(self) -> None:
        lanes, self._lanes = self._lanes, []
        self._spent += sum(lane.tokens_computed for lane in lanes)
        self._fed = []
        for lane in lanes:
            lane.state.close()

    def _make_plan(self, text: str, n_tokens: int) -> Prepared:
        """Units, windows and conditions for an answer that may become longer than it is."""
        scorer, options = self.checker.scorer, self.checker.options
        tokens = Tokens((), ())
        if all(passage.is_blank for passage in self.passages):
            context = Context(self.passages, ())
            return Prepared(self.question, "", self.passages, context, (), tokens, ())
        reserve = RESERVE if scorer.max_tokens is None else min(RESERVE, scorer.max_tokens // 8)
        sizes = [max(reserve, 2 * n_tokens), n_tokens + EAGER, n_tokens]
        for size in sizes:
            stand_in = Tokens((0,) * size, ((0, 0),) * size)
            words = f"{self.question}\n{text}"
            try:
                context, groups = lay_out(
                    self.question, self.passages, words, stand_in, scorer, options, []
                )
            except ContextLengthError:
                if size == sizes[-1]:
                    raise
                continue
            self._reserve = size
            return Prepared(self.question, "", self.passages, context, (), tokens, groups)
        raise AssertionError("the last size returns or raises")

    def _extend(self, ids: Sequence[int], lanes: Sequence[_Lane] | None = None) -> None:
        for lane in self._lanes if lanes is None else lanes:
            lane.blocks.append(lane.state.extend(ids))
        self._fed += ids

    def _judge(self, text: str, complete: int) -> None:
        """Give out the verdicts up to sentence `complete`."""
        if complete <= self._judged or self._plan is None:
            return
        sentences = self._sentences[:complete]
        end = sentences[-1].end
        count = 0
        if self._lanes:
            count = self._growing.count_before(self._wording.text, self._wording.at(end))
            count = min(count, self._n_known())
        tokens = self._wording.place(self._growing.tokens(0, count))
        reach = max((end, *(stop for _, stop in tokens.offsets[-1:])))
        prepared = replace(
            self._plan,
            answer=text[:reach],
            sentences=tuple(sentences),
            tokens=tokens,
            marked=tuple(self._wording.marked),
        )
        evidence = measure(
            prepared, [lane.scores(count) for lane in self._lanes], index=self._index
        )
        report = build_report(prepared, evidence, self.checker.judge)
        fresh = report.sentences[self._judged :]
        if self._is_provisional(self._plan, evidence.features):
            fresh = tuple(replace(s, extra={**s.extra, "provisional": True}) for s in fresh)
        with self._lock:
            self._ready += fresh
            self._judged = complete
            self._notify()

    def _is_provisional(self, plan: Prepared, features: Sequence[SpanFeatures | None]) -> bool:
        """Whether the rest of the answer can change a verdict or its citations."""
        options = self.checker.options
        return (
            options.refine
            or options.max_extra_passes > 0
            or len(plan.groups) > 1
            or (options.max_units is not None and len(plan.context.units) > options.max_units)
            or _pools(self.checker.judge.detector, [f for f in features if f is not None])
        )

    def _finish(self, text: str) -> Report | None:
        """The report of `check`, from what has been scored where that holds; None: stopped."""
        checker = self.checker
        prepared = prepare(
            Example(self.question, self.passages, text), checker.scorer, checker.options
        )
        ids, fed = prepared.tokens.ids, len(self._fed)
        lanes: list[_Lane | None] = [None] * len(prepared.groups)
        if list(ids[:fed]) == self._fed:
            lanes = [self._lane_of(prepared.context, group) for group in prepared.groups]
        while len(self._fed) < len(ids) and any(lanes):
            if self.phase != "open":
                return None
            begin = len(self._fed)
            self._extend(ids[begin : begin + BLOCK], [lane for lane in lanes if lane])
        scores = [
            lane.scores_of(request, checker.scorer) if lane else checker.scorer.score([request])[0]
            for lane, request in zip(lanes, prepared.requests, strict=True)
        ]
        self._spent += sum(lane.tokens_computed for lane in self._lanes if lane not in lanes)
        if scores:
            total = scores[0].tokens_computed + self._spent
            scores[0] = replace(scores[0], tokens_computed=total)
        return checker.report(prepared, scores)

    def _lane_of(self, context: Context, group: Group) -> _Lane | None:
        """The lane that has scored exactly these units of this evidence."""
        if self._plan is None or self._plan.context != context:
            return None
        return next((lane for lane in self._lanes if lane.group.units == group.units), None)


def _pools(detector: Detector, spans: list[SpanFeatures]) -> bool:
    """Whether two more sentences, a better and a worse one, would change a score."""
    if not spans:
        return False
    last = spans[-1]
    more = [
        replace(
            last,
            surprisal=surprisal,
            surprisal_none=2.0,
            gap=2.0 - surprisal,
            explained=1.0 - surprisal / 2.0,
            explained_content=1.0 - surprisal / 2.0,
            n_tokens=last.n_tokens + 1,
        )
        for surprisal in (0.125, 4.0)
    ]
    return not np.array_equal(detector.score(spans), detector.score([*spans, *more])[: len(spans)])


def _settled_sentences(text: str, options: CheckOptions) -> list[Sentence]:
    """The leading sentences of a growing answer that no continuation can change."""
    found = segment(
        text,
        language=options.language,
        splitter=options.splitter,
        granularity=options.granularity,
        is_abstention=options.is_abstention,
    )
    if options.splitter == "paper":
        return found[:-1]
    count = settled(text, language=options.language)
    if options.granularity == "sentence":
        return found[:count]
    if not count:
        return []
    end = segment(text, language=options.language)[count - 1].end
    return [sentence for sentence in found if sentence.end <= end]
