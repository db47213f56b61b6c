"""Report -> Markdown: the answer with citation marks, flagged sentences marked, sources below.

The answer's own characters between sentences are kept, so its paragraphs and lists survive.
"""

from __future__ import annotations

import re

from ..report import Citation, Report
from .text import QUOTE_LIMIT, visible


def to_markdown(report: Report, *, flag: str = "⚠") -> str:
    """The answer with `[^n]` footnotes after grounded sentences and `flag` after flagged ones.

    Args:
        report: what to show.
        flag: the mark of a flagged sentence.
    """
    text = ""
    position = 0
    for sentence in report.sentences:
        text += report.answer[position : sentence.end]
        position = sentence.end
        if sentence.status == "flagged":
            text += f" {flag}"
        text += "".join(f"[^{c.id}]" for c in sentence.citations)
    text += report.answer[position:]
    notes = [_note(c) for c in report.citations]
    flagged = [f"- {flag} “{_inline(s.text)}”: {_inline(s.reason)}" for s in report.flagged]
    blocks = [text.rstrip()]
    if flagged:
        blocks.append("**Not supported by the sources**\n\n" + "\n".join(flagged))
    if notes:
        blocks.append("\n".join(notes))
    return visible("\n\n".join(blocks)) + "\n"


def _note(citation: Citation) -> str:
    quote = _inline(citation.quote)
    if len(quote) > QUOTE_LIMIT:
        quote = quote[: QUOTE_LIMIT - 1] + "…"
    name = citation.title or citation.passage_id or f"passage {citation.passage_index + 1}"
    return f"[^{citation.id}]: {_inline(name)}, {citation.start}–{citation.end}: “{quote}”"


def _inline(text: str) -> str:
    """One line whose characters have no meaning in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", re.sub(r"\s+", " ", text).strip())
