"""The sessions of one checker: which are open, and the threads that take turns for them."""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

from .errors import InputError

MAX_SESSIONS = 8
"""Sessions of one checker that keep their state at a time, unless it is told otherwise."""


class Evictable(Protocol):
    """What a pool keeps count of."""

    def evict(self) -> None:
        """Give up, because too many are open."""
        ...

    def abandon(self) -> None:
        """Give up, because nobody can ask for the verdicts any more."""
        ...


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
        self._open: OrderedDict[int, Evictable] = OrderedDict()
        # A SimpleQueue may be put to from a finalizer, whatever locks its thread holds just then.
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def __len__(self) -> int:
        return len(self._open)

    def __reduce__(self) -> tuple[Any, ...]:
        return _new_pool, (self.limit, self._n_threads > 1)

    def add(self, work: Evictable) -> None:
        """Count a new session in; evicts another one if there are too many."""
        with self._lock:
            self._open[id(work)] = work
            evicted = self._open.popitem(last=False)[1] if len(self._open) > self.limit else None
            if not self._threads:
                self._start()
        if evicted is not None:
            evicted.evict()

    def touch(self, work: Evictable) -> None:
        """Note that a session was used just now."""
        with self._lock:
            if id(work) in self._open:
                self._open.move_to_end(id(work))

    def remove(self, work: Evictable) -> None:
        """Forget a session that keeps no state any more."""
        with self._lock:
            self._open.pop(id(work), None)

    def submit(self, job: Callable[[], None]) -> None:
        """Queue a job behind those of the other sessions."""
        self._jobs.put(job)

    def stop_soon(self, work: Evictable) -> None:
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
