"""A streamed answer, put together from its chunks and judged while it comes.

    chunk -> total (what invoke would have got) -> session.feed(new text) -> verdicts so far
    end   -> the session's report, or None: check the total as a whole

The session works beside the stream and never holds a chunk back. Nothing depends on it: where it
cannot be used (one chunk, documents that come after the answer, an eviction, an error) the answer
is checked at the end, and an error is raised there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from gasp_engine import (
    Example,
    GroundingChecker,
    GroundingSession,
    InputError,
    Report,
    SentenceReport,
)

from ._convert import Keys, example_of, merge_chunks, text_of_chunk


class AnswerStream:
    """Chunks of a chain's dict. A context manager: leaving it frees the session.

    Args:
        keys: where question, documents and answer are.
        loaded: the engine if it is loaded, else None.
        load: loads the engine.
    """

    def __init__(
        self,
        keys: Keys,
        loaded: Callable[[], GroundingChecker | None],
        load: Callable[[], GroundingChecker],
    ) -> None:
        self.total: dict[str, Any] = {}
        """The chunks so far, added up."""
        self._keys = keys
        self._loaded = loaded
        self._load = load
        self._loader: threading.Thread | None = None
        self._session: GroundingSession | None = None
        self._example: Example | None = None
        self._pieces = 0
        self._is_over = False

    def add(self, chunk: Mapping[str, Any]) -> list[SentenceReport]:
        """Take a chunk; gives the verdicts that have become available."""
        merge_chunks(self.total, chunk)
        piece = text_of_chunk(chunk.get(self._keys.answer))
        self._pieces += bool(piece)
        if self._is_over:
            return []
        try:
            if self._session is not None:
                return self._session.feed(piece)
            # an answer that comes as one piece is cheaper to check as a whole
            if self._pieces > 1:
                return self._begin()
        except Exception:
            # whatever it was, the whole answer is checked at the end, and is raised there
            self._give_up()
        return []

    def close(self) -> Report | None:
        """The report on the whole answer; None when it has to be checked as a whole."""
        session = self._session
        if session is None or self._is_over:
            return None
        try:
            example = example_of(self.total, self._keys)
            if example != self._with_answer(session.text):
                # more documents came, or blocks that do not add up piece by piece
                self._give_up()
                return None
            return session.close()
        except Exception:
            self._give_up()  # as in `add`
            return None

    def _begin(self) -> list[SentenceReport]:
        try:
            self._example = example_of(self.total, self._keys)
        except InputError:
            return []  # the documents may still come
        engine = self._loaded()
        if engine is None:
            if self._loader is None:
                # loading takes seconds: the tokens must not wait for it
                self._loader = threading.Thread(target=self._warm, daemon=True)
                self._loader.start()
            return []
        self._session = engine.session(self._example.question, self._example.passages)
        return self._session.feed(self._example.answer)

    def _warm(self) -> None:
        try:
            self._load()
        except Exception:
            self._is_over = True  # the check at the end loads again and raises

    def _with_answer(self, text: str) -> Example | None:
        first = self._example
        return first and Example(first.question, first.passages, text)

    def _give_up(self) -> None:
        self._is_over = True
        if self._session is not None:
            self._session.cancel()

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._give_up()
