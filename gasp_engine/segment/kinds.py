"""What a unit is: a claim that can be unsupported, or something that makes no claim.

A wrong "claim" costs a flag that should not be; a wrong "abstention" hides an unsupported claim. So
the patterns are narrow, and a sentence that refuses and then goes on to claim is a claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files

from ..types import SentenceKind
from .blocks import Form

_LONGEST = 400
"""Code points of the longest sentence that can be an abstention or boilerplate."""
_SHORT = 16
"""Code points of the longest sentence whose kind is remembered: `Yes.`, `- [x]`, `Note:`."""
_LABEL_WORDS = 3
_KIND_OF_FORM: dict[Form, SentenceKind] = {
    "code": "code",
    "heading": "heading",
    "table_head": "heading",
    "marker": "list_marker",
    "member": "claim",
    "rule": "boilerplate",
}
_CLAIM_LEAST = 4
"""Code points of the shortest claim after a refusal."""

_QUESTION = re.compile(
    r"[?？؟⁇⁈‽⸮፧\u037e](?:[\s\"'’”»)\]」』）】*_~`!！]|\[\^?\d{1,4}(?:, ?\d{1,4})*\])*\Z"
)
_GREEK_QUESTION = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff][»\"”)]*;\Z")
_WORD_CHARACTER = re.compile(r"[^\W_]")
_MARKERS = re.compile(
    r"(?:>[ \t]*)*(?:(?:[-*+•‣◦▪·∙]|\(?(?:\d{1,3}|[a-zA-Z])[.)])[ \t]+)?"
    r"(?:\[[ xX]\][ \t]+)?[*_\"“„«]{0,3}"
)


class _Patterns:
    """The regular expressions of a text file: `name := …` definitions, and the rest as one."""

    def __init__(self, name: str) -> None:
        package = __name__.rpartition(".")[0]
        text = files(package).joinpath(name).read_text(encoding="utf-8")
        self.named: dict[str, str] = {}
        patterns: list[str] = []
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            for known in reversed(self.named):
                line = line.replace(f"@{known}@", self.named[known])
            name, is_definition, value = line.partition(" := ")
            if is_definition:
                self.named[name] = value
            else:
                patterns.append(f"(?:{line})")
        self.any = "|".join(patterns)


class _Abstention:
    def __init__(self) -> None:
        patterns = _Patterns("abstention.txt")
        named = patterns.named
        self.hint = re.compile(named["hints"])
        self.pattern = re.compile(patterns.any, re.I)
        self.concedes = re.compile(rf"(?:{named['concedes']})(?!\w)", re.I)
        self.goes_on = re.compile(
            rf"(?:(?:[,;:–—-]\s*|\s|^)(?:{named['goes_on']})\b[\s,]+"
            rf"|(?:{named['goes_on_unspaced']}))(?P<rest>.*)",
            re.I,
        )


@cache
def _abstention() -> _Abstention:
    return _Abstention()


@cache
def _boilerplate() -> re.Pattern[str]:
    patterns = _Patterns("boilerplate.txt").any
    return re.compile(rf"(?:{patterns})[\s*_\"”)]*\Z", re.I | re.S)


def classify(text: str, form: Form, is_abstention: Callable[[str], bool] | None) -> SentenceKind:
    """The kind of one unit.

    Args:
        text: the unit, markers included.
        form: the form of its block.
        is_abstention: takes the place of the built-in patterns.

    >>> classify("I don't know based on the context.", "prose", None)
    'abstention'
    >>> classify("The context does not say it, but the mayor is Ana Ruiz.", "prose", None)
    'claim'
    """
    fixed = _KIND_OF_FORM.get(form)
    if fixed is not None:
        return fixed
    if form == "row" or len(text) > _LONGEST:
        return "claim" if _has_content(text) else "boilerplate"
    if is_abstention is None:
        return _kind_of_short(text) if len(text) <= _SHORT else _kind_of_prose(text, True)
    return "abstention" if is_abstention(text) else _kind_of_prose(text, False)


def _kind_of_prose(text: str, has_patterns: bool) -> SentenceKind:
    if not _has_content(text):
        return "boilerplate"
    last = text[-1]
    is_question = (
        last not in ".。"
        and not last.isalpha()
        and (_QUESTION.search(text[-60:]) or _GREEK_QUESTION.search(text[-6:]))
    )
    if has_patterns and not is_question and _abstains(text):
        return "abstention"
    if last.isalnum():
        return "claim"  # boilerplate ends with a mark
    bare = _bare(text)
    if _boilerplate().match(bare):
        return "boilerplate"
    if is_question:
        return "question"
    is_label = last in ":：" and len(bare.split()) <= _LABEL_WORDS
    return "heading" if is_label and not any(map(str.isdigit, bare)) else "claim"


@lru_cache(maxsize=4096)
def _kind_of_short(text: str) -> SentenceKind:
    return _kind_of_prose(text, True)


def _has_content(text: str) -> bool:
    return text[0].isalnum() or _WORD_CHARACTER.search(text) is not None


def _bare(text: str) -> str:
    match = _MARKERS.match(text)
    return text[match.end() :] if match else text


def _abstains(text: str) -> bool:
    known = _abstention()
    if known.hint.search(text.lower()) is None:
        return False
    text = " ".join(_bare(text).replace("*", "").split())
    found = known.pattern.search(text)
    if not found or known.concedes.match(text):
        return False
    claim = known.goes_on.search(text, found.start())
    if claim is None:
        return True
    rest = claim["rest"].strip()
    return len(rest) < _CLAIM_LEAST or _abstains(rest)
