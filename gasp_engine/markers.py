"""The answer's own markers, `[1]`, `[2, 3]`, `[doc-2]`, `[^1]`, `(Smith 2020)`: found and resolved.

    answer   "It opened in 1931.[2] It holds 4 km³. [1, 3]"
    markers             [18,21) label 2              [38,44) labels 1 and 3
    wording  "It opened in 1931. It holds 4 km³."

A marker says where a fact is meant to come from and states none, so the scorer reads the answer
without them: an answer and its copy without markers get the same verdicts. A number in brackets
that may be a fact ("the interval [3, 5]") is left where it is, and so are an author and a year that
name no passage. Nothing here ever turns a marker into a citation of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .types import Passage, Sentence

_BRACKET = re.compile(r"\[(?P<square>\^?[^\[\]\n]{1,60})\](?!\()|【(?P<lens>[^【】\n]{1,60})】")
_AUTHOR = re.compile(
    r"\((?P<author>[^\W\d_][\w.’'-]*(?:(?:,? (?:and|und|et|&) |,? )[^\W\d_][\w.’'-]*){0,4}),? "
    r"(?P<year>(?:1[5-9]|20)\d\d[a-z]?)(?:, pp?\. ?[\d–-]+)?\)"
)
_MONTH = re.compile(
    r"\b(jan(uary|uar|vier)?|feb(ruary|ruar)?|février|mar(ch|s)?|märz|apr(il)?|avril|ma[iy]|jun[ei]?|"
    r"juin|jul[iy]?|juillet|aug(ust)?|août|sept?(ember|embre)?|[oO][ck]t(ober|obre)?|nov(ember|embre)?|"
    r"d[eé][cz](ember|embre)?)\b",
    re.I,
)
_RANGE = re.compile(r"(\d{1,3})\s*[-–—]\s*(\d{1,3})")
_NUMBERED = re.compile(
    r"(?:doc|document|source|src|passage|chunk|context|ref|reference|cite|citation)"
    r"[\s:._#-]*(\d{1,3})",
    re.I,
)
_AFTER_SENTENCE = ".!?…。！？\"”»)’'"
_ENDS = re.compile(r"[.!?…。！？]|[ \t]*(?:$|[\r\n\[])")
_BEFORE_VALUE = ":=,;([{<>+-−*/|&~"


@dataclass(frozen=True, slots=True)
class Marker:
    """One pair of brackets and the labels in it."""

    start: int
    """First code point in the text that it was found in."""
    end: int
    """One past the last."""
    text: str
    """As written."""
    labels: tuple[str, ...]
    """What it names: `2`, `doc-2`, `Smith 2020`; a range is spelled out."""
    is_prose: bool = False
    """Whether it can be read as part of the sentence, like `(Smith 2020)`."""


def find_markers(text: str, passages: Sequence[Passage] = ()) -> list[Marker]:
    """All that looks like a marker, in order; words in brackets only where a passage is so called.

    >>> [m.labels for m in find_markers("Yes [1, 3–5]. No [sic]. So (Smith et al., 2020).")]
    [('1', '3', '4', '5'), ('Smith et al. 2020',)]
    """
    found: list[Marker] = []
    for match in _BRACKET.finditer(text):
        inner = match["square"] or match["lens"].split("†")[0]
        labels = _labels(inner, passages)
        if labels:
            found.append(Marker(*match.span(), match.group(), labels))
    for match in _AUTHOR.finditer(text):
        author = match["author"].rstrip(",")
        if not author[0].isupper() or _MONTH.search(author):
            continue
        label = f"{author} {match['year']}"
        found.append(Marker(*match.span(), match.group(), (label,), is_prose=True))
    return sorted(found, key=lambda marker: marker.start)


def resolve(label: str, passages: Sequence[Passage]) -> int | None:
    """Index of the passage that a label names; None when there is no such passage.

    The passages' own ids and titles come first; else a number counts the passages from 1. An author
    and a year name the only passage whose id, title or metadata hold both.

    >>> resolve("2", [Passage("a"), Passage("b")])
    1
    >>> resolve("2", [Passage("a", id="2"), Passage("b", id="7")])
    0
    """
    wanted = _bare(label)
    for names in ((p.id for p in passages), (p.title for p in passages)):
        hits = [i for i, name in enumerate(names) if name is not None and _bare(name) == wanted]
        if hits:
            return hits[0]
    numbered = _NUMBERED.fullmatch(wanted)
    number = numbered[1] if numbered else wanted
    if number.isdecimal():
        index = int(number) - 1
        return index if 0 <= index < len(passages) else None
    *names, year = label.replace(",", " ").split()
    if names and re.fullmatch(r"\d{4}[a-z]?", year):
        hits = [
            i
            for i, p in enumerate(passages)
            if all(part in _described(p) for part in (names[0].casefold(), year))
        ]
        return hits[0] if len(hits) == 1 else None
    return None


def marked_ranges(
    text: str, sentences: Sequence[Sentence], passages: Sequence[Passage]
) -> tuple[tuple[int, int], ...]:
    """Ranges of the answer that hold markers and no wording, with the white space they leave over.

    Args:
        text: the answer.
        sentences: its sentences; nothing inside code is a marker.
        passages: the evidence; a number that counts one of them is a marker almost anywhere.

    Returns:
        Sorted, disjoint ranges. `Ito et al. [2004]` and `1931.[2]` are among them whatever the
        passages are; `the interval [3, 5]` is only where there are five passages.
    """
    code = [(s.start, s.end) for s in sentences if s.kind == "code"]
    ranges: list[tuple[int, int]] = []
    last_end = -1
    for marker in find_markers(text, passages):
        inside_code = any(a <= marker.start < b for a, b in code)
        follows = marker.start == last_end  # `[1][3]`: the second is what the first is
        if inside_code or (marker.is_prose and resolve(marker.labels[0], passages) is None):
            continue
        if not (marker.is_prose or follows or _is_no_fact(text, marker, passages)):
            continue
        last_end = marker.end
        start, end = marker.start, marker.end
        while start > 0 and text[start - 1] in " \t\u00a0\u202f":
            start -= 1
        at_line_start = start == 0 or text[start - 1] in "\r\n"
        if at_line_start:
            start = marker.start
            while end < len(text) and text[end] in " \t\u00a0\u202f":
                end += 1
        if ranges and ranges[-1][1] >= start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return tuple(ranges)


def without_ranges(text: str, ranges: Sequence[tuple[int, int]]) -> tuple[str, list[int]]:
    """The text without some ranges, and for each character left, its position in the text."""
    kept: list[int] = []
    position = 0
    for start, end in ranges:
        kept += range(position, start)
        position = end
    kept += range(position, len(text))
    return "".join(text[i] for i in kept), kept


def _labels(inner: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    if _is_name(inner, passages):
        return (inner.strip(),)
    labels: list[str] = []
    for part in re.split(r"\s*[,;]\s*", inner.strip()):
        label = part.removeprefix("^")
        span = _RANGE.fullmatch(label)
        if span and 0 < int(span[2]) - int(span[1]) < 20:
            labels += [str(n) for n in range(int(span[1]), int(span[2]) + 1)]
        elif (
            re.fullmatch(r"\d{1,4}", label)
            or _NUMBERED.fullmatch(label)
            or _is_name(label, passages)
            or (part != label and re.fullmatch(r"[\w-]+", label))
        ):
            labels.append(label)
        else:
            return ()
    return tuple(labels)


def _is_name(label: str, passages: Sequence[Passage]) -> bool:
    wanted = _bare(label)
    return any(
        name is not None and _bare(name) == wanted for p in passages for name in (p.id, p.title)
    )


def _is_no_fact(text: str, marker: Marker, passages: Sequence[Passage]) -> bool:
    """Whether a marker in brackets can be left out without leaving out a fact."""
    numbers = [label for label in marker.labels if label.isdecimal()]
    if len(numbers) < len(marker.labels) or "^" in marker.text or "†" in marker.text:
        return True
    before = text[: marker.start].rstrip()
    previous = before[-1:] if "\n" not in text[len(before) : marker.start] else ""
    if previous and previous in _BEFORE_VALUE:
        return False
    if previous and previous in _AFTER_SENTENCE and len(numbers) == 1:
        return True
    if len(numbers) == 1 and len(numbers[0]) < 3 and _ENDS.match(text, marker.end):
        return True  # "from May [7]." counts a source, even one that is not there
    if not previous and not re.match(r"[ \t\u00a0]+\w", text[marker.end :]):
        return False
    return all(resolve(label, passages) is not None for label in numbers)


def _bare(name: str) -> str:
    return re.sub(r"\s+", " ", name.strip().strip("[]^").casefold())


def _described(passage: Passage) -> str:
    values = [passage.id or "", passage.title or ""]
    values += [str(v) for v in passage.metadata.values() if isinstance(v, str | int)]
    return " ".join(values).casefold()
