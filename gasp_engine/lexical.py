"""Words of a text, and what an answer says that no passage does: evidence that costs nothing.

Words are found without a language model: runs of letters and digits, and for scripts that are
written without spaces, pairs of neighbouring characters. A *content* word is one that is not among
the most frequent function words of a few European languages; every number is content.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

import numpy as np

from .types import Sentence, SpanSplitter, Tokens

_NUMBER = r"\d+(?:[.,:/]\d+)*(?:(?:st|nd|rd|th)\b)?"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(
    rf"{_NUMBER}|[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W\d_])+(?:[’'](?:[^\W\d_])+)*"
)
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")


@cache
def _function_words() -> frozenset[str]:
    text = files("gasp_engine").joinpath("function_words.txt").read_text("utf-8")
    return frozenset(text.split("\n", 1)[1].split())


_JOINT = re.compile(r"(\d[.,])\s(\d)")
"""Digits parted by a space after a point or comma, as some tokenized sources write them."""
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_NUMBER_WORDS: dict[str, tuple[str, ...]] = {
    **{str(n): (word, *_ORDINALS[n - 1 : n]) for n, word in enumerate(_SMALL)},
    **{word: (str(n),) for n, word in enumerate(_SMALL)},
    **{word: (str(n),) for n, word in enumerate(_ORDINALS, 1)},
}
"""English words of small numbers and their digits, either way."""
_STOP = re.compile(r"[.!?:;。！？\n]")
_JSON_KEY = re.compile(r"""(?:^|[{,\[])\s*("(?:[^"\\\n]|\\.)*")\s*:""")


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it stands."""

    start: int
    """First code point."""
    end: int
    """One past the last."""
    key: str
    """What it is compared by: folded case, without accents' variants, plural and digit grouping."""
    is_content: bool
    """Whether it can carry a fact."""
    is_number: bool
    """Whether it begins with a digit."""
    is_name: bool
    """Whether it is capitalized and not the first word."""


def words(text: str) -> list[Word]:
    """The words of a text, in order.

    >>> [w.key for w in words("The 1,200 dams opened.") if w.is_content]
    ['1200', 'dam', 'opened']
    """
    found: list[Word] = []
    labels = _labels(text)
    fresh = True
    last_end = 0
    for match in _WORD.finditer(text):
        start, end, raw = match.start(), match.end(), match.group()
        if _STOP.search(text, last_end, start):
            fresh = True
        last_end = end
        if _IS_UNSPACED.match(raw):
            steps = range(max(1, len(raw) - 1))
            found += [
                Word(start + i, min(start + i + 2, end), raw[i : i + 2], True, False, False)
                for i in steps
            ]
        else:
            is_number = raw[0].isdigit()
            key = _number_key(raw) if is_number else _word_key(raw)
            is_content = is_number or (len(key) > 1 and raw.casefold() not in _function_words())
            is_content = is_content and start not in labels
            is_name = not fresh and raw[0].isupper() and is_content and not is_number
            found.append(Word(start, end, key, is_content, is_number, is_name))
        fresh = False
    return found


def _labels(text: str) -> frozenset[int]:
    """Code points of JSON keys: they name a value and claim nothing that a source could hold."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return frozenset()
    return frozenset(i for match in _JSON_KEY.finditer(text) for i in range(*match.span(1)))


def _number_key(raw: str) -> str:
    """Grouping commas are dropped: `1,200` and `1200` are one number; `1,5` stays."""
    folded = unicodedata.normalize("NFKC", raw).rstrip("sthndr")
    return re.sub(r"[,.](?=\d{3}(?:\D|$))", "", folded) if re.search(r"[,]", folded) else folded


def _word_key(raw: str) -> str:
    key = unicodedata.normalize("NFKC", raw).casefold().replace("’", "'")
    key = key.removesuffix("'s")
    if len(key) > 4 and key.endswith("ies"):
        return key[:-3] + "y"
    if len(key) > 3 and key.endswith("s") and not key.endswith("ss"):
        return key[:-1]
    return key


@dataclass(frozen=True, slots=True)
class LexicalEvidence:
    """What one sentence says that the sources do not."""

    n_content: int
    """Content words of the sentence."""
    novelty: float
    """Share of them that stand in no source, in [0, 1]; 0 when there are none."""
    novel_bigrams: float
    """Share of pairs of neighbouring content words that no source holds as neighbours; a pair
    lies within a sentence; 0 when there are none."""
    overlap: float
    """Share of content words that one place in the sources holds, in [0, 1]: the mean of the best
    sentence's share and the best two neighbouring sentences'; 1 when there are no content words."""
    missing_numbers: tuple[str, ...]
    """Numbers, as written, that stand in no source."""
    distant_numbers: tuple[str, ...]
    """Numbers that a source holds, but not within a sentence of the place of best overlap: what a
    sentence looks like that puts the figure of one thing to another."""
    missing_names: tuple[str, ...]
    """Capitalized words, as written, that stand in no source."""


class LexicalIndex:
    """The words of all sources, to look sentences up in.

    Args:
        texts: the sources.
        split: finds the sentences of a source; None: a source is one.
    """

    def __init__(self, texts: Iterable[str], split: SpanSplitter | None = None) -> None:
        self._pairs: set[tuple[str, str]] = set()
        self._places: dict[str, list[int]] = {}
        place = 0
        for text in texts:
            whole = _JOINT.sub(r"\1\2", text)
            self._pairs.update(pairwise(w.key for w in words(whole) if w.is_content))
            for start, end in split(text) if split else [(0, len(text))]:
                for key in _keys_of(text[start:end]):
                    self._places.setdefault(key, []).append(place)
                place += 1
            for key in _keys_of(text):  # a number may lie across what looks like a sentence's end
                self._places.setdefault(key, [])
            place += 1  # the last sentence of one source is no neighbour of the next one's first

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def _overlap(self, keys: set[str]) -> tuple[float, int | None]:
        """Mean of the best sentence's and the best two neighbours' share of `keys`, and where."""
        single: Counter[int] = Counter()
        double: Counter[int] = Counter()
        for key in keys:
            places = self._places.get(key, [])
            single.update(places)
            double.update({p - 1 for p in places} | set(places))
        if not double:
            return (0.0, None) if keys else (1.0, None)
        place, most = min(double.items(), key=lambda item: (-item[1], item[0]))
        return (max(single.values()) + most) / (2 * len(keys)), place

    def _is_distant(self, key: str, place: int | None) -> bool:
        """Whether a source holds `key`, but not from one sentence before `place` to two after."""
        places = self._places.get(key)
        return bool(places) and place is not None and not any(-1 <= p - place <= 2 for p in places)

    def evidence(self, text: str) -> LexicalEvidence:
        """Compare one sentence with the sources."""
        content = [w for w in words(text) if w.is_content]
        missing = [w for w in content if w.key not in self]
        pairs = [
            (a.key, b.key) for a, b in pairwise(content) if not _STOP.search(text, a.end, b.start)
        ]
        overlap, place = self._overlap({w.key for w in content})
        numbers = [w for w in content if w.is_number or w.key in _SMALL]
        novel = sum(pair not in self._pairs for pair in pairs)
        return LexicalEvidence(
            n_content=len(content),
            novelty=len(missing) / len(content) if content else 0.0,
            novel_bigrams=novel / len(pairs) if pairs else 0.0,
            overlap=overlap,
            missing_numbers=tuple(text[w.start : w.end] for w in missing if w.is_number),
            distant_numbers=tuple(
                text[w.start : w.end] for w in numbers if self._is_distant(w.key, place)
            ),
            missing_names=tuple(text[w.start : w.end] for w in missing if w.is_name),
        )


def _keys_of(text: str) -> set[str]:
    """Content keys of a source; numbers in every way in which an answer may write them."""
    keys: set[str] = set()
    for form in {text, _JOINT.sub(r"\1\2", text)}:
        for word in words(form):
            if word.is_content:
                keys.add(word.key)
            keys.update(_NUMBER_WORDS.get(word.key, ()))
    return keys


def content_tokens(tokens: Tokens, text: str) -> np.ndarray:
    """[T] bool: whether a token's first character that is not white space is in a content word."""
    inside = np.zeros(len(text) + 1, dtype=bool)
    for word in words(text):
        if word.is_content:
            inside[word.start : word.end] = True
    mask = np.zeros(len(tokens), dtype=bool)
    for t, (start, end) in enumerate(tokens.offsets):
        position = start
        while position < end and text[position].isspace():
            position += 1
        mask[t] = bool(inside[min(position, len(text))]) if position < end else False
    return mask


def overlap(sentence: Sentence | str, text: str) -> float:
    """Share of the sentence's content words that `text` holds, in [0, 1]."""
    body = sentence if isinstance(sentence, str) else sentence.text
    keys = {w.key for w in words(body) if w.is_content}
    if not keys:
        return 0.0
    return len(keys & {w.key for w in words(text)}) / len(keys)
