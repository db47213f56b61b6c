"""The paper's splitter: at white space after `.`, `!` or `?`, and nowhere else. For reproduction.

It splits inside abbreviations and joins list items, rows and headings; every span is a claim.
"""

from __future__ import annotations

import re

from .blocks import Form

_BREAK = re.compile(r"(?<=[.!?])\s+")


def paper_units(text: str) -> list[tuple[int, int, Form]]:
    """Trimmed spans between the breaks; those of nothing but white space are left out.

    >>> [unit[:2] for unit in paper_units("Dr. Osei left. It is 3.5 km")]
    [(0, 3), (4, 14), (15, 27)]
    """
    units: list[tuple[int, int, Form]] = []
    start = len(text) - len(text.lstrip())
    size = len(text.rstrip())
    for match in _BREAK.finditer(text, start, size):
        units.append((start, match.start(), "member"))
        start = match.end()
    if start < size:
        units.append((start, size, "member"))
    return units
