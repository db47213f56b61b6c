"""The paper's splitter: at white space after `.`, `!` or `?`, and nowhere else. For reproduction.

It splits inside abbreviations and joins list items, rows and headings; every span is a claim.
"""

from __future__ import annotations

import re

_BREAK = re.compile(r"(?<=[.!?])\s+")


def paper_spans(text: str) -> list[tuple[int, int]]:
    """Trimmed spans between the breaks; those of nothing but white space are left out.

    >>> paper_spans("Dr. Osei left. It is 3.5 km")
    [(0, 3), (4, 14), (15, 27)]
    """
    spans: list[tuple[int, int]] = []
    start = len(text) - len(text.lstrip())
    size = len(text.rstrip())
    for match in _BREAK.finditer(text, start, size):
        spans.append((start, match.start()))
        start = match.end()
    if start < size:
        spans.append((start, size))
    return spans
