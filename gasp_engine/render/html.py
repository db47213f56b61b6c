"""Report -> one self-contained HTML page: click a sentence, land on the characters it leans on.

No script, no style and no image is loaded from anywhere. All text of users is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as html_escape
from itertools import pairwise

from ..report import Citation, Report, SentenceReport
from ..types import Passage
from .text import visible

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.6 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
main{display:grid;grid-template-columns:1fr 1fr;gap:2rem}
@media(max-width:48rem){main{grid-template-columns:1fr}}
.answer,.passage{white-space:pre-wrap;overflow-wrap:anywhere}
.s{border-bottom:2px solid transparent;border-radius:2px}
.grounded{border-color:#2a9d5c}
.flagged{background:#d0312d22;border-color:#d0312d}
.abstention,.unscored{border-color:#8886;border-bottom-style:dotted}
.s:focus,.s:hover{outline:2px solid #8886}
sup a{text-decoration:none;padding:0 .15em}
.passage{border:1px solid #8884;border-radius:6px;padding:.75rem;margin:0 0 1rem;font-size:.9rem}
.passage h3{margin:0 0 .4rem;font-size:.85rem;font-weight:600}
.passage.unused{opacity:.65}
mark{background:#2a9d5c33;color:inherit;border-radius:2px}
mark:target{background:#ffb70388;outline:2px solid #ffb703}
.reasons{font-size:.85rem}
.note{font-size:.85rem;opacity:.8}
""".strip()


def escape(text: str, quote: bool = True) -> str:
    """Text of users as HTML text: no markup, no control characters."""
    return html_escape(visible(text), quote)


def to_html(report: Report, passages: Sequence[Passage | str] | None = None) -> str:
    """A page with the answer on one side and the sources on the other.

    Args:
        report: what to show.
        passages: the passages that were checked, for their full text; None: quotes alone.
    """
    verdict = {
        True: "Grounded in the sources",
        False: "Not fully grounded in the sources",
        None: "Nothing to judge",
    }[report.grounded]
    warnings = "".join(f"<li>{escape(w)}</li>" for w in report.warnings)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(verdict)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(verdict)}</h1><p><strong>Question.</strong> {escape(report.question)}</p>"
        f'<main><section><h2>Answer</h2><div class="answer">{_answer(report)}</div>'
        f'<h2>Why</h2><ol class="reasons">{_reasons(report)}</ol></section>'
        f"<section><h2>Sources</h2>{_sources(report, passages)}</section></main>"
        + (f'<h2>Warnings</h2><ul class="note">{warnings}</ul>' if warnings else "")
        + '<p class="note">Measured is dependence on the given sources, not truth. '
        f"Scorer: {escape(str(report.scorer.get('name')))}.</p></body></html>\n"
    )


def _answer(report: Report) -> str:
    parts: list[str] = []
    position = 0
    for sentence in report.sentences:
        parts.append(escape(report.answer[position : sentence.start]))
        position = sentence.end
        title = escape(f"{sentence.status}: {sentence.reason}", quote=True)
        marks = "".join(
            f'<sup><a href="#c{escape(c.id)}">[{escape(c.id)}]</a></sup>'
            for c in sentence.citations
        )
        parts.append(
            f'<span class="s {sentence.status}" id="s{sentence.index}" tabindex="0" '
            f'title="{title}">{escape(sentence.text)}</span>{marks}'
        )
    parts.append(escape(report.answer[position:]))
    return "".join(parts)


def _reasons(report: Report) -> str:
    return "".join(_reason(s) for s in report.sentences)


def _reason(sentence: SentenceReport) -> str:
    return (
        f'<li value="{sentence.index + 1}"><a href="#s{sentence.index}">{sentence.status}</a>: '
        f"{escape(sentence.reason)}</li>"
    )


def _sources(report: Report, passages: Sequence[Passage | str] | None) -> str:
    by_passage: dict[int, list[Citation]] = {}
    for citation in report.citations:
        by_passage.setdefault(citation.passage_index, []).append(citation)
    blocks: list[str] = []
    for row in report.passages:
        citations = sorted(by_passage.get(row.index, []), key=lambda c: (c.start, c.end))
        if passages is not None:
            passage = passages[row.index]
            text = passage if isinstance(passage, str) else passage.text
            body = _marked(text, citations)
        else:
            body = " … ".join(
                f'<mark id="c{escape(c.id)}">{escape(c.quote)}</mark>' for c in citations
            )
        name = f"Passage {row.index + 1}"
        label = row.title or row.id
        if label:
            name += f": {label}"
        css = "passage" if row.used else "passage unused"
        blocks.append(f'<div class="{css}"><h3>{escape(name)}</h3>{body}</div>')
    return "".join(blocks)


def _marked(text: str, citations: Sequence[Citation]) -> str:
    """The passage with every cited range marked; ranges may overlap or lie in one another."""
    edges = sorted({0, len(text), *(c.start for c in citations), *(c.end for c in citations)})
    anchored: set[str] = set()
    parts: list[str] = []
    for a, b in pairwise(edges):
        inside = [c for c in citations if c.start <= a and b <= c.end]
        piece = escape(text[a:b])
        for citation in inside:
            anchor = "" if citation.id in anchored else f' id="c{escape(citation.id)}"'
            anchored.add(citation.id)
            piece = f"<mark{anchor}>{piece}</mark>"
        parts.append(piece)
    return "".join(parts)
