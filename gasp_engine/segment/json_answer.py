"""An answer that is itself JSON -> one span per member of the outermost object or array.

    {"year": 1931, "note": "Opened. See p. 4."}
    ^^^^^^^^^^^^^^ ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
Braces and commas go with the member beside them, so that nothing is left over, and no span ends
inside a string. An answer that breaks off is still JSON as far as it goes.
"""

from __future__ import annotations

import re
from typing import Literal

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_ESCAPE_CUT = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_ATOM = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_ATOM_CUT = re.compile(
    r"(?:-|-?(?:0|[1-9]\d*)\.|-?(?:0|[1-9]\d*)(?:\.\d+)?[eE][+-]?"
    r"|t|tr|tru|f|fa|fal|fals|n|nu|nul)\Z"
)
_CLOSES = {"{": "}", "[": "]"}


def member_spans(text: str) -> list[tuple[int, int]] | None:
    """Spans of the outermost members, or None when the text is not JSON from its first character.

    >>> member_spans('{"year": 1931, "note": "Opened. See p. 4."}')
    [(0, 14), (15, 43)]
    >>> member_spans("[1] The dam opened in 1931.") is None
    True
    """
    size = len(text.rstrip())
    start = len(text) - len(text.lstrip())
    if start >= size or text[start] not in _CLOSES:
        return None
    cuts = _Reader(text, size).cuts(start)
    if cuts is None:
        return None
    spans: list[tuple[int, int]] = []
    for stop in [*cuts, size]:
        while start < stop and text[start].isspace():
            start += 1
        if stop > start:
            spans.append((start, stop))
        start = stop
    return spans


_Expected = Literal["value", "first", "key", "first_key", "colon", "next", "done"]


class _Reader:
    """A JSON reader without recursion, so that no depth of brackets can exhaust the stack."""

    def __init__(self, text: str, size: int) -> None:
        self.text = text
        self.size = size

    def cuts(self, position: int) -> list[int] | None:
        """Ends of the outermost commas; None when the text is not (the beginning of) JSON."""
        text, size = self.text, self.size
        stack: list[str] = []
        cuts: list[int] = []
        # value · first: value or close · key · first_key: key or close · colon
        # next: comma or close · done
        expect: _Expected = "value"
        while True:
            space = _SPACE.match(text, position, size)
            assert space is not None
            position = space.end()
            if position >= size:
                return cuts
            char = text[position]
            if expect == "done":
                return None
            if expect == "next":
                if char == ",":
                    position += 1
                    if len(stack) == 1:
                        cuts.append(position)
                    expect = "key" if stack[-1] == "{" else "value"
                elif char == _CLOSES[stack[-1]]:
                    position += 1
                    stack.pop()
                    expect = "next" if stack else "done"
                else:
                    return None
            elif expect == "colon":
                if char != ":":
                    return None
                position += 1
                expect = "value"
            elif (expect == "first" and char == "]") or (expect == "first_key" and char == "}"):
                position += 1
                stack.pop()
                expect = "next" if stack else "done"
            elif char == '"':
                end = self._string(position)
                if end is None:
                    return None
                if end < 0:
                    return cuts
                position = end
                expect = "colon" if expect in ("key", "first_key") else "next"
            elif expect in ("key", "first_key"):
                return None
            elif char in _CLOSES:
                stack.append(char)
                position += 1
                expect = "first_key" if char == "{" else "first"
            else:
                atom = _ATOM.match(text, position, size)
                if atom and atom.end() < size:
                    position = atom.end()
                    expect = "next"
                elif atom or _ATOM_CUT.match(text, position, size):
                    return cuts
                else:
                    return None

    def _string(self, position: int) -> int | None:
        """End of the string literal; -1 when the text breaks off in it, None when it is wrong."""
        match = _STRING.match(self.text, position, self.size)
        assert match is not None
        end = match.end()
        if end >= self.size or _ESCAPE_CUT.match(self.text, end, self.size):
            return -1
        return end + 1 if self.text[end] == '"' else None
