"""Sentence -> clauses, or words: finer spans for those who ask for them."""

from __future__ import annotations

import re

from .blocks import CJK

_CLAUSE = re.compile(
    r"[;:](?=\s)|\s[–—](?=\s)|,(?=\s+(?:and|but|or|so|yet|which|who|whose|where|when|while|because|"
    r"although|though|whereas|und|oder|aber|denn|sondern|weil|dass|obwohl|während|der|die|das|et|"
    r"mais|ou|car|qui|que|dont|où|y|pero|o|porque|aunque|donde|e|ma|perché|che|mas|pois|embora|en|"
    r"maar|want|omdat|dat|а|но|и|что|который|которая|которые|потому)\s)|[，；]|[،؛](?=\s)"
)
_WORDS_LEAST = 3
_WORD = re.compile(rf"[{CJK}][^\w\s]*|[^\s{CJK}]+")


def clauses(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut one sentence after `;`, `:`, dashes, and commas before a conjunction.

    A clause has at least three words (or six characters where there are no spaces).

    >>> clauses("The dam opened in 1931, and it holds 4 km³ of water.", 0, 52)
    [(0, 23), (24, 52)]
    """
    cuts = [match.end() for match in _CLAUSE.finditer(text, start, end)]
    spans: list[tuple[int, int]] = []
    for stop in [*cuts, end]:
        if stop < end and not (_is_long(text[start:stop]) and _is_long(text[stop:end])):
            continue
        while text[start].isspace():
            start += 1
        spans.append((start, stop))
        start = stop
    return spans


def words(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut one sentence at white space, and around every character of scripts without it.

    >>> words("Cafe\\u0301 大坝。", 0, 9)
    [(0, 5), (6, 7), (7, 9)]
    """
    return [match.span() for match in _WORD.finditer(text, start, end)]


def _is_long(part: str) -> bool:
    head = part[:200]
    return len(head.split(None, _WORDS_LEAST)) >= _WORDS_LEAST or (
        len(head.strip()) >= 6 and re.search(f"[{CJK}]", head) is not None
    )
