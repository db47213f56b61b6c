"""What a scorer reads of an answer that is still being written: its wording, then its tokens.

    text so far   It opened in 1931.[2] It is op [1
    wording       It opened in 1931. It is op          (markers gone; what may be one is held back)

    wording       The dam opened in 1931. It is op
    tokens        The| dam| opened| in| 1931|.| It| is| op
    settled       ──────────────────────────────┤        ┊
                                    last run of characters of one kind: still open

A tokenizer decides on a token by what follows it, so the tokens at the edge of a growing text may
still change. A token is *settled* when it ends before the last run of letters, of marks or of white
space, and before the marks or white space that the run may yet attract. Only a tail is tokenized
again, so that all pieces together cost no more than a few times the whole text.

No rule holds for every tokenizer, so none is trusted. Each new tail has to repeat the settled
tokens that it covers; when it does not, the whole text is tokenized, and `changed` says from which
token on the settled ones were wrong.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence

from .markers import marked_ranges
from .types import Passage, Sentence, Tokens

OVERLAP = 4
"""Settled tokens that a new tail has to repeat before its further ones are believed."""
LEAD = 8
"""Tokens in front of those, which may come out otherwise at the beginning of a text."""
REACH = 6
"""Characters at the end of a run in a script without spaces that may still change."""

_BRACKETS = "[【"
_BLANKS = " \t\u00a0\u202f"

_UNSPACED = (
    ("\u0e00", "\u0eff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\U00020000", "\U0003ffff"),
)


class GrowingWording:
    """A growing answer without its own citation markers, see `markers`.

    Args:
        passages: the evidence, which says what a marker can name.

    Example:
        >>> growing = GrowingWording(())
        >>> growing.extend("It opened in 1931.[", [])
        >>> growing.text
        'It opened in 1931.'
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self.text = ""
        """The wording so far; only ever grows."""
        self.marked: list[tuple[int, int]] = []
        """Ranges of the answer that were left out."""
        self._positions: list[int] = []
        self._taken = 0
        self._settled = 0

    def extend(self, text: str, sentences: Sequence[Sentence]) -> None:
        """Take in a longer answer.

        Whether brackets are a marker is known once their sentence is settled; until then they and
        all that follows them are held back, as are blanks at the end.

        Args:
            text: the answer so far; begins with the text of the last call.
            sentences: its settled sentences.
        """
        settled = sentences[-1].end if sentences else 0
        if settled > self._settled:
            if any(bracket in text[self._settled : settled] for bracket in _BRACKETS):
                for start, end in marked_ranges(text, sentences, self._passages):
                    if end > self._taken and start < settled:
                        self._take(text, max(start, self._taken))
                        self.marked.append((start, end))
                        self._taken = end
            self._take(text, settled)
            self._settled = settled
        found = [at for b in _BRACKETS if (at := text.find(b, self._taken)) >= 0]
        end = min(found, default=len(text))
        while end > self._taken and text[end - 1] in _BLANKS:  # a marker would take them along
            end -= 1
        self._take(text, end)

    def at(self, position: int) -> int:
        """How many characters of the wording stand in front of a position of the answer."""
        return bisect_left(self._positions, position)

    def place(self, tokens: Tokens) -> Tokens:
        """Tokens of the wording, with offsets into the answer."""
        if not self.marked:
            return tokens
        places = [*self._positions, self._taken]
        offsets = [
            (places[a], places[b - 1] + 1 if b > a else places[a]) for a, b in tokens.offsets
        ]
        return Tokens(tokens.ids, tuple(offsets))

    def _take(self, text: str, end: int) -> None:
        if end > self._taken:
            self.text += text[self._taken : end]
            self._positions += range(self._taken, end)
            self._taken = end


class GrowingTokens:
    """Settled tokens of a text that only grows.

    Args:
        tokenize: text -> tokens, as the scorer does it.

    Example:
        >>> from gasp_engine.scorers.table import split_words
        >>> growing = GrowingTokens(split_words)
        >>> growing.settle("It opened in 1931. It is op")
        7
    """

    def __init__(self, tokenize: Callable[[str], Tokens]) -> None:
        self._tokenize = tokenize
        self._ids: list[int] = []
        self._offsets: list[tuple[int, int]] = []
        self.changed: int | None = None
        """Index of the first settled token that turned out otherwise; None: all held."""
        self.characters_read = 0
        """Characters given to the tokenizer so far."""

    def __len__(self) -> int:
        return len(self._ids)

    def tokens(self, begin: int, end: int) -> Tokens:
        """The settled tokens `begin` to `end`, with offsets into the whole text."""
        return Tokens(tuple(self._ids[begin:end]), tuple(self._offsets[begin:end]))

    def covers(self, count: int, text: str, end: int) -> bool:
        """Whether the first `count` tokens hold everything visible in front of `end`."""
        if count < len(self):
            return _visible(text, self._offsets[count][0]) >= end
        return not text[self.reach : end].strip()

    def count_before(self, text: str, end: int) -> int:
        """How many tokens have their first visible character in front of `end`."""
        count = len(self)
        while count and _visible(text, self._offsets[count - 1][0]) >= end:
            count -= 1
        return count

    @property
    def reach(self) -> int:
        """One past the last character that a settled token covers."""
        return self._offsets[-1][1] if self._offsets else 0

    def settle(self, text: str) -> int:
        """Take in a longer text, which begins with the text of the last call.

        Returns:
            How many tokens are settled now.
        """
        limit = settled_end(text)
        if limit <= self.reach and self._ids:
            return len(self)
        tail = self._tail(text)
        if tail is not None:
            count = _count_before(tail.offsets, limit)
            self._ids += tail.ids[:count]
            self._offsets += tail.offsets[:count]
            return len(self)
        tokens = self._read(text, 0)
        self._replace(tokens, _count_before(tokens.offsets, limit))
        return len(self)

    def _replace(self, tokens: Tokens, count: int) -> None:
        same = 0
        while same < min(len(self), count) and (
            (self._ids[same], self._offsets[same]) == (tokens.ids[same], tokens.offsets[same])
        ):
            same += 1
        if same < len(self):
            self.changed = same if self.changed is None else min(same, self.changed)
        self._ids = list(tokens.ids[:count])
        self._offsets = list(tokens.offsets[:count])

    def _tail(self, text: str) -> Tokens | None:
        """The tokens after the settled ones; None: only the whole text can tell."""
        n = len(self)
        start = self._anchor(text, n - OVERLAP - LEAD)
        if start <= 0:
            return None
        tokens = self._read(text, start)
        expected = list(zip(self._ids[-OVERLAP:], self._offsets[-OVERLAP:], strict=True))
        found = list(zip(tokens.ids, tokens.offsets, strict=True))
        for at in range(min(len(found) - OVERLAP, 2 * (OVERLAP + LEAD) + 32) + 1):
            if found[at : at + OVERLAP] == expected:
                at += OVERLAP
                return Tokens(tokens.ids[at:], tokens.offsets[at:])
        return None

    def _anchor(self, text: str, token: int) -> int:
        """Where a token starts a word, at `token` or up to 32 tokens before it; 0 if nowhere."""
        for i in range(token, max(0, token - 32), -1):
            start, end = self._offsets[i]
            previous = self._offsets[i - 1][1]
            at_word = text[start].isspace() or not text[start - 1].isalnum()
            if end > start >= previous > 0 and at_word and not _joins(text, start):
                return start
        return 0

    def _read(self, text: str, start: int) -> Tokens:
        self.characters_read += len(text) - start
        tokens = self._tokenize(text[start:])
        if not start:
            return tokens
        return Tokens(tokens.ids, tuple((a + start, b + start) for a, b in tokens.offsets))


def _visible(text: str, at: int) -> int:
    """The first position from `at` on that is not white space."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _count_before(offsets: tuple[tuple[int, int], ...], limit: int) -> int:
    """How many leading tokens end at `limit` or before; bytes of one character share an end."""
    return next((i for i, (_, end) in enumerate(offsets) if end > limit), len(offsets))


def settled_end(text: str) -> int:
    r"""One past the last character whose token no continuation of the text should change.

    >>> text = "It opened in 1931. It is op"
    >>> text[: settled_end(text)]
    'It opened in 1931. It is'
    >>> text = "Limits:\n\nMa"
    >>> text[: settled_end(text)]
    'Limits:\n\n'
    """
    if not text:
        return 0
    last = _run_start(text, len(text))
    if last == 0:
        return 0 if not _is_unspaced(text[-1]) else max(0, len(text) - REACH)
    kind = _kind(text, last)
    if kind == "space":
        return last
    if kind == "word" and _is_unspaced(text[-1]) and len(text) - REACH > last:
        return len(text) - REACH
    if kind == "word" and text[last - 1] in "\r\n":
        return last
    return _run_start(text, last)


def _run_start(text: str, end: int) -> int:
    """Where the run of one kind that ends at `end` begins."""
    start = end - 1
    kind = _kind(text, start)
    while start > 0 and _kind(text, start - 1) == kind:
        start -= 1
    return start


def _kind(text: str, at: int) -> str:
    while at > 0 and _joins(text, at):
        at -= 1
    character = text[at]
    if character.isspace():
        return "space"
    return "word" if character.isalnum() else "mark"


def _joins(text: str, at: int) -> bool:
    """Whether the character at `at` is one with the character before it."""
    if at <= 0 or at >= len(text):
        return False
    if text[at - 1 : at + 1] == "\r\n" or text[at - 1] == "\u200d":
        return True
    return text[at] == "\u200d" or unicodedata.category(text[at])[0] == "M"


def _is_unspaced(character: str) -> bool:
    return any(first <= character <= last for first, last in _UNSPACED)
