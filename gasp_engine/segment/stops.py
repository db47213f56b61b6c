"""Whether a full stop before a capital, a digit or a caseless letter ends its sentence.

`abbreviations.txt` holds the classes that behave differently. What is merely an abbreviation in
one of some three hundred languages is asked of `sentencex`, word by word, with the neighbours
hidden: so its knowledge is used, while every decision stays local: text far away cannot change it.
"""

from __future__ import annotations

import re
from functools import lru_cache

import sentencex

from .language import FUNCTION_WORDS, read_words, script_language

_LISTS = read_words("abbreviations.txt")
_NEVER = _LISTS["never"]
_TITLES_IF_CAPITALISED = _LISTS["never_capitalised"]
_REFERENCE = _LISTS["reference"]
_MAYBE = _LISTS["maybe"]
_ENDS = _LISTS["ends"]
_AFTER_TIME = _LISTS["after_time"]
_MONTHS = _LISTS["months"]
_ORDINAL_LANGUAGES = _LISTS["ordinal_languages"]
_ORDINARY = _LISTS["ordinary"]
_LETTERED = _LISTS["lettered"]
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_ROMAN = re.compile(r"[IVXLC]+\Z")
_LONGEST = 12
"""Code points of the longest word that is looked up as an abbreviation."""


def ends_sentence(word: str, following: str, language: str) -> bool:
    """Whether `word` + `.` ends a sentence when `following` is the next word.

    Args:
        word: what stands directly before the full stop, inner full stops included; may be empty.
        following: the next word; begins with a capital, a digit or a caseless letter.
        language: ISO 639 code.

    >>> ends_sentence("Fig", "2", "en"), ends_sentence("U.S", "She", "en")
    (False, True)
    >>> ends_sentence("U.S", "Army", "en"), ends_sentence("3", "Mai", "de")
    (False, False)
    """
    if not word:
        return True
    folded = word.lower()
    digit = following[0].isdigit()
    if len(word) <= 2 and word.isdigit():
        if language not in _ORDINAL_LANGUAGES:
            return True
        return not digit and following.lower() not in _MONTHS and _begins(following, language)
    if word == "EE" and following == "UU":
        return False
    if word.isupper() and len(word) > 1 and "." not in word and not digit:
        return True  # CA, NATO: capitals have no need of a full stop
    if folded in _NEVER or word in _TITLES_IF_CAPITALISED:
        return False
    if folded in _ENDS:
        return not (digit or following.lower() in _AFTER_TIME)
    if digit and len(word) == 1 and word.isupper():
        return language == "en"
    if digit:
        return not (
            folded in _REFERENCE
            or folded in _MAYBE
            or folded.endswith("str")
            or _is_abbreviation(word, language)
        )
    if len(word) == 1 and word.isalpha():
        return _begins(following, language) and not (len(following) == 1 and following != "A")
    if folded in _REFERENCE:
        is_label = len(following) == 1 and following.isupper()
        return not (is_label or _ROMAN.match(following))
    if folded in _MAYBE or _ACRONYM.match(word):
        return _begins(following, language)
    if _is_abbreviation(word, language):
        return _begins(following, language)
    return True


@lru_cache(maxsize=65536)
def is_abbreviation(word: str, language: str) -> bool:
    """Whether `word` + `.` is an abbreviation of any class."""
    folded = word.lower()
    return (
        (len(word) == 1 and word.isalpha())
        or folded in _NEVER
        or word in _TITLES_IF_CAPITALISED
        or folded in _REFERENCE
        or folded in _MAYBE
        or folded in _ENDS
        or folded.endswith("str")
        or word == "EE"
        or _ACRONYM.match(word) is not None
        or _is_abbreviation(word, language)
    )


def points_ahead(word: str) -> bool:
    """Whether a number in brackets after `word` + `.` belongs to the word: `Ref. [4]`."""
    folded = word.lower()
    return folded in _NEVER or folded in _REFERENCE or folded == "al"


def is_lettered(before: str) -> bool:
    """Whether a single capital after these words is a label, not an initial: `Plan B.`

    >>> is_lettered("They chose plan "), is_lettered("He met ")
    (True, False)
    """
    words = before.split()
    return bool(words) and words[-1].lower() in _LETTERED


def _begins(word: str, language: str) -> bool:
    """Whether a capitalised word is one that begins sentences: an article, a pronoun, …"""
    folded = word.lower()
    return folded in FUNCTION_WORDS["en"] or folded in FUNCTION_WORDS.get(language, ())


def _is_abbreviation(word: str, language: str) -> bool:
    return len(word) <= _LONGEST and _known(word, language)


@lru_cache(maxsize=65536)
def _known(word: str, language: str) -> bool:
    if word.lower() in _ORDINARY or not any(char.isalpha() for char in word):
        return False
    # The probe's own words are capitalised and known to no list; in a script of its own the
    # neighbour has to be of that script, or the rule of sentencex for Latin capitals decides.
    neighbour = "Абв" if script_language(word) in ("ru", "uk", "bg") else "Xyz"
    probe = f"Xx {word}. {neighbour}"
    return len(sentencex.segment(language, probe)) == 1  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
