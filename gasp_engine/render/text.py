"""Report -> plain lines of text; control characters of users' text never reach the reader raw."""

from __future__ import annotations

import re
import unicodedata

from ..report import Citation, Report, SentenceReport

MARKS = {"grounded": "✔", "flagged": "✘", "abstention": "–", "unscored": "·"}
"""One sign a status."""
QUOTE_LIMIT = 160
"""Characters of a quote that are shown."""


def to_text(report: Report) -> str:
    """The report as text: a sentence a line, then sources, then warnings."""
    lines = [summary(report), ""]
    for sentence in report.sentences:
        lines += _sentence(sentence)
    if report.citations:
        lines += ["", "Sources", *(citation_line(c) for c in report.citations)]
    lines += [f"\n{line}" for line in notes(report)]
    return "\n".join(lines) + "\n"


def summary(report: Report) -> str:
    """One line: the verdict on the answer, and how many sentences have which status."""
    counts = dict.fromkeys(MARKS, 0)
    for sentence in report.sentences:
        counts[sentence.status] += 1
    verdict = {
        True: "grounded in the sources",
        False: "not fully grounded in the sources",
        None: "nothing to judge",
    }[report.grounded]
    parts = [f"{n} {status}" for status, n in counts.items() if n]
    return f"Answer: {verdict}" + (f" ({', '.join(parts)})" if parts else "")


def score_of(sentence: SentenceReport) -> str:
    """The score with two decimals, or blanks."""
    return "     " if sentence.score is None else f"{sentence.score:5.2f}"


def citation_line(citation: Citation) -> str:
    """`[1] passage 2 (title) 0–23, drop 0.98: “quote”`."""
    quote = printable(citation.quote)
    if len(quote) > QUOTE_LIMIT:
        quote = quote[: QUOTE_LIMIT - 1] + "…"
    name = _name(citation.passage_index, citation.title or citation.passage_id)
    drop = "" if citation.drop is None else f", drop {citation.drop:.2f}"
    return f"[{citation.id}] {printable(name)} {citation.start}–{citation.end}{drop}: “{quote}”"


def notes(report: Report) -> list[str]:
    """Unused passages, and warnings."""
    unused = [_name(p.index, p.title or p.id) for p in report.passages if not p.used]
    lines: list[str] = []
    if unused and report.citations:
        lines.append(f"Not used: {printable(', '.join(unused))}")
    return lines + [f"warning: {printable(w)}" for w in report.warnings]


def _sentence(sentence: SentenceReport) -> list[str]:
    marks = " ".join(f"[{c.id}]" for c in sentence.citations)
    head = f"{MARKS[sentence.status]} {sentence.status:<10}"
    line = f"{head} {score_of(sentence)}  {printable(sentence.text)}"
    lines = [f"{line} {marks}" if marks else line]
    if sentence.status != "grounded":
        lines.append(f"{'':20}{printable(sentence.reason)}")
    return lines + [f"{'':20}{line}" for line in marker_lines(sentence)]


def marker_lines(sentence: SentenceReport) -> list[str]:
    """What was found of the answer's own markers, where they were checked."""
    return [
        printable(f"its mark [{m['label']}]: {m['verdict']}")
        for m in sentence.extra.get("markers", ())
    ]


def _name(index: int, title: str | None) -> str:
    return f"passage {index + 1}" + (f" ({title})" if title else "")


def printable(text: str) -> str:
    """One line without control characters: white space is folded, the rest shown as `\\x1b`.

    >>> printable("a\\n b\\x1b[2J")
    'a b\\\\x1b[2J'
    """
    return visible(re.sub(r"\s+", " ", text))


def visible(text: str) -> str:
    """The text with its lines kept and other control characters shown as `\\x1b`.

    >>> visible("a\\n\\x1b[2J")
    'a\\n\\\\x1b[2J'
    """
    return "".join(
        c if c in "\t\n\r" or unicodedata.category(c) not in ("Cc", "Cs") else f"\\x{ord(c):02x}"
        for c in text
    )
