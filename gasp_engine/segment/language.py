"""Which language a text is in, judged from nothing but what stands before a given position.

The judgement is causal: it never looks ahead, so a sentence end that was found while an answer was
being written is still there when the answer is complete. No model, no download: function words for
languages in Latin script, letters for the others.
"""

from __future__ import annotations

import re
from importlib.resources import files

from ..types import as_language

_WINDOW = 3000
"""Code points from the start of the text that are looked at; later text cannot change the guess."""


def read_words(name: str) -> dict[str, frozenset[str]]:
    """Word lists from a text file of this package, each `name: word word …` on one line."""
    text = files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")
    lists: dict[str, frozenset[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, words = line.partition(": ")
            lists[key] = lists.get(key, frozenset()) | frozenset(words.split())
    return lists


FUNCTION_WORDS = read_words("function_words.txt")
"""By language: articles, pronouns, prepositions, conjunctions, forms of to be."""

_CYRILLIC = ("ru", "uk", "bg")
_LATIN = tuple(language for language in FUNCTION_WORDS if language not in (*_CYRILLIC, "el"))
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language in (*_LATIN, *_CYRILLIC, "el"):
    for _word in FUNCTION_WORDS[_language]:
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS: tuple[tuple[str, str, str], ...] = (
    ("\u0370", "\u03ff", "el"),
    ("\u0400", "\u052f", "ru"),
    ("\u0530", "\u058f", "hy"),
    ("\u0590", "\u05ff", "he"),
    ("\u0600", "\u06ff", "ar"),
    ("\u0900", "\u097f", "hi"),
    ("\u0980", "\u09ff", "bn"),
    ("\u0a00", "\u0a7f", "pa"),
    ("\u0a80", "\u0aff", "gu"),
    ("\u0b80", "\u0bff", "ta"),
    ("\u0c00", "\u0c7f", "te"),
    ("\u0c80", "\u0cff", "kn"),
    ("\u0d00", "\u0d7f", "ml"),
    ("\u0e00", "\u0e7f", "th"),
    ("\u10a0", "\u10ff", "ka"),
    ("\u1200", "\u137f", "am"),
    ("\u3040", "\u30ff", "ja"),
    ("\u4e00", "\u9fff", "zh"),
    ("\uac00", "\ud7a3", "ko"),
)


def script_language(word: str) -> str | None:
    """The usual language of the script that a word is written in; None for Latin."""
    for char in word:
        if char < "\u0370":
            continue
        for first, last, language in _SCRIPTS:
            if first <= char <= last:
                return language
    return None


class LanguageGuess:
    """The language of a text up to a position; asked at ever later positions of one text.

    >>> guess = LanguageGuess()
    >>> guess.at("Der Damm wurde im Jahr 1931 eröffnet und ist ", 45)
    'de'
    """

    def __init__(self, given: str | None = None) -> None:
        self._given = as_language(given)
        self._counts = dict.fromkeys(FUNCTION_WORDS, 0)
        self._done = 0
        self._latin, self._cyrillic = "en", "ru"

    def at(self, text: str, position: int, word: str = "") -> str:
        """The language of `text[:position]`, `en` while nothing speaks for another one.

        Args:
            text: the whole text so far; only what stands before `position` is read.
            position: never less than in the call before.
            word: decides by its script when it is not in Latin letters.
        """
        if self._given:
            return self._given
        by_script = None if word.isascii() else script_language(word)
        if by_script and by_script != "ru":
            return by_script
        stop = min(position, _WINDOW)
        if self._done < stop:
            for match in _WORD.finditer(text, self._done, stop):
                if match.end() == stop < len(text) and stop == _WINDOW:
                    break
                for language in _LANGUAGES_OF.get(match.group().lower(), ()):
                    self._counts[language] += 1
            self._done = stop
            self._latin = self._best(_LATIN, "en")
            self._cyrillic = self._best(_CYRILLIC, "ru")
        return self._cyrillic if by_script else self._latin

    def _best(self, candidates: tuple[str, ...], default: str) -> str:
        best = max(candidates, key=self._counts.__getitem__)
        return best if self._counts[best] > self._counts[default] else default
