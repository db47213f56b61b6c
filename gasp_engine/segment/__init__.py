"""Answer -> sentences with exact character spans, and what kind each one is.

    text ── blocks (headings, items, rows, fences, paragraphs) ── sentences ── kinds

Spans are half-open, in code points of the text as given. They are sorted, disjoint and trimmed, and
all that lies outside them is white space: nothing is normalized and nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from ..types import Sentence, as_text

Splitter = Literal["default", "paper"]
Granularity = Literal["sentence", "clause", "token"]

_SPAN = re.compile(r"\S(?:(?!\n\s*\n|[.!?]\s).)*[.!?]?", re.S)


def segment(
    text: str,
    *,
    language: str | None = None,
    splitter: Splitter = "default",
    granularity: Granularity = "sentence",
    is_abstention: Callable[[str], bool] | None = None,
) -> list[Sentence]:
    """The sentences of an answer, in order."""
    text = as_text(text, "answer")
    sentences: list[Sentence] = []
    for match in _SPAN.finditer(text):
        piece = match.group().rstrip()
        kind = "abstention" if is_abstention and is_abstention(piece) else "claim"
        start = match.start()
        sentences.append(Sentence(len(sentences), start, start + len(piece), piece, kind))
    return sentences


def sentence_spans(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """Plain sentence spans of a passage, for cutting it; sorted, disjoint, trimmed."""
    return [(s.start, s.end) for s in segment(text, language=language)]


def settled(text: str, *, closed: bool = False, language: str | None = None) -> int:
    """How many leading sentences of `segment(text)` no continuation of the text can change."""
    count = len(segment(text, language=language))
    return count if closed else max(0, count - 1)


class SentenceStream:
    """Sentences of a text that arrives in pieces; each is given out once, when it is settled."""

    def __init__(
        self,
        *,
        language: str | None = None,
        is_abstention: Callable[[str], bool] | None = None,
    ) -> None:
        self.text = ""
        self._language = language
        self._is_abstention = is_abstention
        self._given = 0

    def feed(self, chunk: str) -> list[Sentence]:
        """Add text; returns the sentences that became settled by it."""
        self.text += chunk
        return self._take(settled(self.text, language=self._language))

    def close(self) -> list[Sentence]:
        """No more text will come; returns the sentences not yet given out."""
        return self._take(None)

    def _take(self, stop: int | None) -> list[Sentence]:
        found = segment(self.text, language=self._language, is_abstention=self._is_abstention)
        new = found[self._given : stop]
        self._given += len(new)
        return new
