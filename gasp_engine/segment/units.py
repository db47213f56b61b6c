"""Text -> units with their forms, and how many are settled: blocks and sentences put together."""

from __future__ import annotations

from typing import NamedTuple

from .blocks import Block, Form, scan
from .json_answer import member_spans
from .language import LanguageGuess
from .sentences import cut

Unit = tuple[int, int, Form]
"""Start, end and form of one span, before it has a kind."""


_LEAST_TO_CUT = 3
"""Two sentences take a terminator and a word character on each side of it."""


class Found(NamedTuple):
    """What is known of a text that may still grow."""

    units: list[Unit]
    n_settled: int
    """Leading units that no continuation can change."""
    resume: int
    """Where to scan from next time."""
    n_before: int
    """Units that end before `resume`; all are settled."""


def find(text: str, language: str | None, *, closed: bool = True, resume: int = 0) -> Found:
    """The units of `text[resume:]`.

    Args:
        text: the answer as far as it is known.
        language: ISO 639 code; None: judged from the text.
        closed: False while the text may grow.
        resume: 0, or `Found.resume` of an earlier call for a beginning of this text.
    """
    if resume == 0:
        members = member_spans(text)
        if members is not None:
            # While it is open, one more character can make it prose that begins with a bracket.
            units: list[Unit] = [(start, end, "member") for start, end in members]
            return Found(units, len(units) if closed else 0, 0, 0)
    ahead, guess = LanguageGuess(language), LanguageGuess(language)

    def first_end(start: int, end: int) -> int:
        return cut(text, start, start, end, ahead)[0][0][1]

    blocks = scan(text, resume, closed=closed, first_end=first_end)
    units: list[Unit] = []
    n_settled = n_before = 0
    is_settled = True
    for block in blocks:
        if block.fresh and is_settled and not closed:
            resume, n_before = block.start, len(units)
        n_here = _add(units, text, block, guess)
        if is_settled:
            n_settled += n_here
            is_settled = not block.open
    return Found(units, n_settled, resume, n_before)


def _add(units: list[Unit], text: str, block: Block, guess: LanguageGuess) -> int:
    """Add the units of a block; returns how many of them are settled."""
    if block.form != "prose":
        units.append((block.start, block.end, block.form))
        return 0 if block.open else 1
    if block.end - block.body < _LEAST_TO_CUT:
        units.append((block.start, block.end, "prose"))
        return 0 if block.open else 1
    spans, n_settled = cut(text, block.start, block.body, block.end, guess, open_end=block.open)
    units.extend([(start, end, "prose") for start, end in spans])
    return n_settled
