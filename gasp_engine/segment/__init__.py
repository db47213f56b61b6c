"""Answer -> sentences with exact character spans, and what kind each one is.

    text ── blocks (headings, items, rows, fences, prose) ── sentences ── kinds

Spans are half-open, in code points of the text as given. They are sorted, disjoint and trimmed, and
all that lies outside them is white space: nothing is normalized and nothing is lost.

Every decision reads only a bounded stretch ahead, which makes the cost linear and lets an answer be
judged while it is being written: `settled` and `SentenceStream` give out a sentence once no
continuation can change it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..errors import InputError
from ..types import Sentence, as_text
from .finer import clauses, words
from .kinds import classify
from .paper import paper_units
from .units import Unit, find

__all__ = [
    "Granularity",
    "SentenceStream",
    "Splitter",
    "segment",
    "sentence_spans",
    "settled",
]

Splitter = Literal["default", "paper"]
Granularity = Literal["sentence", "clause", "token"]
AbstentionTest = Callable[[str], bool]


def segment(
    text: str,
    *,
    language: str | None = None,
    splitter: Splitter = "default",
    granularity: Granularity = "sentence",
    is_abstention: AbstentionTest | None = None,
) -> list[Sentence]:
    """The sentences of an answer, in order.

    Headings, list items, table rows and fenced code are units of their own; the items and the prose
    are cut into sentences. Citation markers stay with the sentence before them. An answer that is
    JSON is cut into its outermost members.

    Args:
        text: the answer.
        language: ISO 639 code; None: judged from the text, without any download.
        splitter: `paper` splits at white space after `.!?` and calls everything a claim.
        granularity: `clause` and `token` cut each sentence of prose further; the parts keep its
            kind. A token is a word, or one character in scripts without spaces.
        is_abstention: says which sentences abstain, in place of the built-in patterns.

    Returns:
        Sorted, disjoint, trimmed spans; all outside them is white space. Empty for blank text.

    Raises:
        InputTypeError: `text` is not a string.
        InputError: `splitter` or `granularity` is unknown.

    >>> [(s.start, s.end, s.kind) for s in segment("I don't know. The mayor is Ana Ruiz.")]
    [(0, 13, 'abstention'), (14, 36, 'claim')]
    """
    text = as_text(text, "answer")
    _require(splitter, "splitter", ("default", "paper"))
    _require(granularity, "granularity", ("sentence", "clause", "token"))
    units = paper_units(text) if splitter == "paper" else find(text, language).units
    sentences: list[Sentence] = []
    for start, end, form in units:
        piece = text[start:end]
        kind = classify(piece, form, is_abstention)
        if granularity == "sentence" or kind in ("code", "heading"):
            sentences.append(Sentence(len(sentences), start, end, piece, kind))
        else:
            cut = clauses if granularity == "clause" else words
            for low, high in cut(text, start, end):
                sentences.append(Sentence(len(sentences), low, high, text[low:high], kind))
    return sentences


def sentence_spans(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """Spans of the sentences of a passage, for cutting it; as of `segment`, without kinds.

    >>> sentence_spans("See Fig. 2. It shows the dam.")
    [(0, 11), (12, 29)]
    """
    return [(start, end) for start, end, _ in find(text, language).units]


def settled(text: str, *, closed: bool = False, language: str | None = None) -> int:
    """How many leading sentences of `segment(text)` no continuation of the text can change.

    Each of them has the same span and kind in `segment(text + more)`, whatever `more` is. For text
    that arrives in many pieces use `SentenceStream`, which does not start over each time.

    Args:
        text: the beginning of an answer.
        closed: whether the answer ends here; then all are settled.
        language: as for `segment`.

    >>> settled("The fee is 3."), settled("The fee is 3.5 EUR. Pay by")
    (0, 1)
    """
    found = find(as_text(text, "answer"), language, closed=closed)
    return len(found.units) if closed else found.n_settled


class SentenceStream:
    """Sentences of an answer that arrives in pieces; each is given out once, when it is settled.

    What `feed` and `close` return, put together, equals `segment` of the whole text, however it
    was cut. Each call looks again only at the last paragraph, so the cost stays near linear.

    >>> stream = SentenceStream()
    >>> [s.text for piece in ("The fee is 3", ".", "5 EUR", ". Pay") for s in stream.feed(piece)]
    ['The fee is 3.5 EUR.']
    >>> [s.text for s in stream.close()]
    ['Pay']
    """

    def __init__(
        self, *, language: str | None = None, is_abstention: AbstentionTest | None = None
    ) -> None:
        self._pieces: list[str] = []
        self._language = language
        self._is_abstention = is_abstention
        self._resume = 0
        self._n_before = 0
        self._n_given = 0
        self._looked_at = 0
        self._text = ""

    @property
    def text(self) -> str:
        """All text so far."""
        if self._pieces:
            self._text += "".join(self._pieces)
            self._pieces.clear()
        return self._text

    def feed(self, chunk: str) -> list[Sentence]:
        """Add text; returns the sentences that became settled by it."""
        self._pieces.append(as_text(chunk, "chunk"))
        text = self.text
        # A paragraph of very many characters is looked at every time it has grown by a part.
        if len(text) - self._looked_at < (self._looked_at - self._resume) // _PART:
            return []
        self._looked_at = len(text)
        found = find(text, self._language, closed=False, resume=self._resume)
        sentences = self._give(found.units, found.n_settled)
        self._resume = found.resume
        self._n_before += found.n_before
        return sentences

    def close(self) -> list[Sentence]:
        """No more text will come; returns the sentences that were not yet given out."""
        found = find(self.text, self._language, resume=self._resume)
        return self._give(found.units, len(found.units))

    def _give(self, units: list[Unit], n_known: int) -> list[Sentence]:
        text = self.text
        sentences: list[Sentence] = []
        for start, end, form in units[self._n_given - self._n_before : n_known]:
            piece = text[start:end]
            kind = classify(piece, form, self._is_abstention)
            sentences.append(Sentence(self._n_given, start, end, piece, kind))
            self._n_given += 1
        return sentences


_PART = 256
"""A paragraph longer than this is looked at again when it has grown by one part in so many."""


def _require(value: str, name: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}")
