"""What a unit is: a claim that can be unsupported, or something that makes no claim.

A wrong "claim" costs a flag that should not be; a wrong "abstention" hides an unsupported claim. So
the patterns are narrow, and a sentence that refuses and then goes on to claim is a claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from ..types import SentenceKind
from .blocks import Form

_LONGEST = 400
"""Code points of the longest sentence that can be an abstention or boilerplate."""
_LABEL_WORDS = 3

_QUESTION = re.compile(
    r"[?？؟⁇⁈‽⸮፧\u037e](?:[\s\"'’”»)\]」』）】*_~`!！]|\[\^?\d{1,4}(?:, ?\d{1,4})*\])*\Z"
)
_GREEK_QUESTION = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff][»\"”)]*;\Z")
_MARKERS = re.compile(
    r"(?:>[ \t]*)*(?:(?:[-*+•‣◦▪·∙]|\(?(?:\d{1,3}|[a-zA-Z])[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?[*_\"“„«]{0,3}"
)

_HINTS = (
    "n't n’t not no unable unsure unclear unknown uncertain unanswerable insufficient lack silent never "
    "nicht kein pas aucun rien não non niet geen inte ikke ingen nie bilm bulama yanıtla cevapla bilgi "
    "belirtil bahsed almıyor не нет недостаточно немає لا لم ليس نم نشد नहीं 不 无 無 没 沒 未 ません ない 不明 없 않 못 모르 "
    "n/a none"
).split()
_HINT = re.compile("|".join(map(re.escape, _HINTS)))
_GOES_ON = re.compile(
    r"(?:[,;:–—-]\s*|\s|^)(?:but|however|although|though|yet|still|nevertheless|nonetheless|except|"
    r"while|whereas|instead|so|therefore|aber|jedoch|allerdings|sondern|obwohl|mais|cependant|toutefois|"
    r"pero|sino|aunque|mas|porém|embora|ma|però|tuttavia|maar|echter|men|ale|jednak|ama|ancak|fakat|но|"
    r"однако|зато|але)\b[\s,]+(?P<rest>[^\n]*)",
    re.I,
)
_GOES_ON_CJK = re.compile(
    r"[，、](?:但|但是|不过|不過|然而|可是|却|而是|ただし|しかし|하지만)(?P<rest>[^\n]*)|(?:が|けど)、(?P<rest2>.*)"
)
_CONCESSION = re.compile(
    r"(?:while|although|though|even though|even if|whereas|despite|obwohl|zwar|bien que|aunque|embora|"
    r"sebbene|benché|hoewel|chociaż|хотя|虽然|雖然|尽管|儘管)\b",
    re.I,
)


def _read_patterns(name: str) -> str:
    """One alternation of the patterns in a text file, with its definitions put in."""
    lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    definitions: dict[str, str] = {}
    patterns: list[str] = []
    for line in lines:
        if not line or line.startswith("#"):
            continue
        name, is_definition, value = line.partition(" := ")
        for known in reversed(definitions):
            line = line.replace(f"@{known}@", definitions[known])
            value = value.replace(f"@{known}@", definitions[known])
        if is_definition:
            definitions[name] = value
        else:
            patterns.append(f"(?:{line})")
    return "|".join(patterns)


@cache
def _abstention() -> re.Pattern[str]:
    return re.compile(_read_patterns("abstention.txt"), re.I)


@cache
def _boilerplate() -> re.Pattern[str]:
    pattern = _read_patterns("boilerplate.txt")
    return re.compile(rf"(?:{pattern})[\s*_\"”)]*\Z", re.I | re.S)


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
    if form == "code":
        return "code"
    if form in ("heading", "table_head"):
        return "heading"
    if form == "marker":
        return "list_marker"
    if form == "member":
        return "claim"
    if form == "rule" or not _has_content(text):
        return "boilerplate"
    if form == "prose" and is_abstention is not None and is_abstention(text):
        return "abstention"
    last = text[-1]
    if (
        last not in ".。"
        and not last.isalpha()
        and (_QUESTION.search(text[-60:]) or _GREEK_QUESTION.search(text[-6:]))
    ):
        if len(text) <= _LONGEST and _boilerplate().match(_bare(text)):
            return "boilerplate"
        return "question"
    if form != "prose" or len(text) > _LONGEST:
        return "claim"
    bare = _bare(text)
    if is_abstention is None and _abstains(bare):
        return "abstention"
    if last in ":：" and len(bare.split()) <= _LABEL_WORDS and not any(map(str.isdigit, bare)):
        return "boilerplate" if _boilerplate().match(bare) else "heading"
    return "boilerplate" if _boilerplate().match(bare) else "claim"


def _has_content(text: str) -> bool:
    return text[:1].isalnum() or any(char.isalnum() for char in text)


def _bare(text: str) -> str:
    match = _MARKERS.match(text)
    return text[match.end() :] if match else text


def _abstains(text: str) -> bool:
    low = text.lower()
    if _HINT.search(low) is None:
        return False
    text = " ".join(text.replace("*", "").split())
    found = _abstention().search(text)
    if not found or _CONCESSION.match(text):
        return False
    for pattern in (_GOES_ON, _GOES_ON_CJK):
        rest = pattern.search(text, found.start())
        if rest:
            groups = [group for group in rest.groups() if group]
            tail = groups[0].strip() if groups else ""
            if len(tail) > 8 and not _abstains(tail):
                return False
    return True
