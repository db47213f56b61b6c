"""Text -> blocks: headings, list items, table rows, fenced code, and runs of prose.

One pass over the lines, with the constructs of CommonMark and of GFM tables that matter to
sentences, and three departures that answers of language models call for: any list marker may open
an item where the line before has ended (`2.`, `b)`, `•`); indentation alone never makes code, since
that would let a claim pass as code; a row that begins with a pipe is a row without a separator too.

Everything that is not white space lies in some block. With `closed=False` the text may still grow:
blocks that a continuation could change are marked `open`, and a last line whose form is not
yet certain is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Form = Literal["prose", "heading", "row", "table_head", "rule", "code", "marker", "label", "member"]

NEWLINES = "\n\r\x0b\x0c\x85\u2028\u2029"
CJK = "\u2e80-\u2fdf\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9d"

_LINE = re.compile(rf"\S[^{NEWLINES}]*")
_QUOTE = re.compile(r"(?:>\s*+)++")
_END = r"(?=\s|\Z)"
_ROMAN = r"[ivxIVX]{2,5}"
_BULLET = rf"(?:[-*+•‣◦▪▫●○■□·∙]|[➤➢➔→⇒✓✔✅❌☑★☆◆◇►▶👉🔹🔸]\ufe0f?){_END}"
_ORDERED = (
    rf"(?:\d{{1,3}}|[a-zA-Z]|{_ROMAN})[.)]{_END}"
    rf"|\((?:\d{{1,3}}|[a-zA-Z]|{_ROMAN})\){_END}"
    rf"|\*\*\d{{1,3}}[.)]\*\*{_END}"
    rf"|\d{{1,3}}(?:[、）]|[.．)](?=[{CJK}]))"
    r"|[一二三四五六七八九十]{1,3}、|[（(][一二三四五六七八九十\d]{1,3}）"
    r"|[\u2460-\u2473]|\d\ufe0f?\u20e3"
    rf"|\[\^?\d{{1,3}}\]:?{_END}"
    rf"|[–—]{_END}"
)
_CLASS = re.compile(
    r"(?P<fence>`{3,}+(?!.*`)|~{3,}+)"
    rf"|(?P<heading>\#{{1,6}}{_END})"
    r"|(?P<rule>(?:-[ \t]*+){3,}+\Z|(?:\*[ \t]*+){3,}+\Z|(?:_[ \t]*+){3,}+\Z)"
    r"|(?P<row>\|)"
    rf"|(?P<bullet>{_BULLET})"
    rf"|(?P<ordered>{_ORDERED})"
    r"|(?P<label>(?:\*\*(?![*\s])[^*]+\*\*|__(?![_\s])[^_]+__)[:：]?[ \t]*\Z)",
    re.S,
)
_NESTED = re.compile(rf"\s*+(?:(?:[-*+•]|\d{{1,3}}[.)]){_END}\s*+)*+(?:\[[ xX]\]{_END})?\s*+")
_UNDERLINE = re.compile(r"(?:=+|-{2,})[ \t]*\Z")
_SEPARATOR = re.compile(r"(?=[^|]*\|)\|?(?:[ \t]*+:?-++:?[ \t]*+(?:\||\Z))++\Z")
_MAYBE_RULED = re.compile(r"[-=_*|:+\s]*+\Z")
_MAYBE_LABEL = re.compile(r"(?:\*\*[^*]*+\*{0,2}|__[^_]*+_{0,2})[:：]?\s*\Z")
_FIELD_NOT = (
    "(?:The|It|He|She|They|We|This|That|These|Those|In|On|At|A|An|I|You|But|And|However|For|As|By)"
)
_FIELD = re.compile(
    rf"\*{{0,2}}(?!{_FIELD_NOT}[ -])"
    r"(?=[^\W\d_a-zà-ÿ])\w{1,20}(?:[ -]\w{1,20}){0,2}\*{0,2}(?:[:：]\*{0,2}(?:\s|\Z)|：)"
)
_MAYBE_FIELD = re.compile(
    rf"\*{{0,2}}(?!{_FIELD_NOT}[ -])(?![a-zà-ÿ\d])"
    r"\w{1,20}(?:[ -]\w{0,20}){0,2}\*{0,2}[:：]?\*{0,2}\Z"
)
_NO_MARKER = re.compile(r"\w{6}|[^\W\d]{1,5}[^\w.)、．）:：\]\ufe0f\u20e3]")
_ANSWER = re.compile(r"\W*(?:\d{2,3}|[a-zA-Z])\W*")
_TERMINAL = frozenset('.!?:;…。！？：；؟۔।)]”"’»」*')
_FIRST_TOKEN = 12
"""Code points of the longest list marker and what must follow it."""
_LABEL_WORDS = 5


@dataclass(slots=True)
class Block:
    """A stretch of text that no sentence crosses; `[start, end)` is trimmed."""

    start: int
    """First code point, list and quote markers included."""
    body: int
    """First code point after the markers."""
    end: int
    """One past the last code point."""
    form: Form
    """What it is; only prose is cut further."""
    fresh: bool = False
    """Whether a blank line, or nothing, stands before it: a place from which to scan anew."""
    open: bool = False
    """Whether a continuation of the text can change it."""


def scan(
    text: str, start: int = 0, *, closed: bool = True, first_end: Callable[[int, int], int]
) -> list[Block]:
    """The blocks of `text[start:]`, in order.

    Args:
        text: the answer.
        start: 0 or the start of a fresh block.
        closed: False while the text can still grow.
        first_end: where the first sentence of a range ends; a line in which a sentence ends before
            its first pipe is no head of a table, one with two sentences is not underlined into a
            heading. (Else no sentence could be settled before the next line is known.)
    """
    return _Scanner(text, closed, first_end).run(start)


class _Scanner:
    def __init__(self, text: str, closed: bool, first_end: Callable[[int, int], int]) -> None:
        self.text = text
        self.closed = closed
        self.first_end = first_end
        self.blocks: list[Block] = []
        self.prose: Block | None = None  # the run of lines that is being collected
        self.n_lines = 0
        self.is_item = False
        self.bare = -1  # start of markers that wait for their content
        self.bare_end = -1
        self.bare_fresh = False
        self.bare_quote = False
        self.in_table = False
        self.first_row = False  # whether the last block is a row that a separator may follow
        self.depth = 0
        self.fence: Block | None = None
        self.fence_mark = ""
        self.fence_depth = 0

    def run(self, start: int) -> list[Block]:
        text, closed = self.text, self.closed
        size = len(text)
        if not closed and text.endswith("\r"):
            size -= 1  # half of a line end, perhaps
        previous = start
        fresh = True
        certain = True
        for match in _LINE.finditer(text, start, size):
            begin, end = match.span()
            gap = text[previous:begin]
            if begin > start and gap != "\n":
                fresh = fresh or _breaks(gap) > 1
            previous = end
            raw_end = None if closed or end < size else end
            while text[end - 1].isspace():
                end -= 1
            if raw_end is None and self._is_plain_line(begin):
                self._plain_line(begin, end, fresh)
            elif not self._line(begin, end, raw_end, fresh):
                certain = False
                break
            fresh = False
        # A line of uncertain form below a blank one leaves what stands above as it is.
        blank_after = _breaks(text[previous:size]) > 1 if certain else fresh
        return self._finish(blank_after)

    def _is_plain_line(self, begin: int) -> bool:
        """Whether a line is prose at first sight: most lines are, and the rest costs more."""
        if self.fence is not None or self.bare >= 0 or self.in_table or self.first_row:
            return False
        head = self.text[begin : begin + 6]
        return head[0].isalpha() and head.isascii() and "." not in head and ")" not in head

    def _plain_line(self, begin: int, end: int, fresh: bool) -> None:
        prose = self.prose
        if prose is None or fresh or self.depth or self._breaks_before(begin, end):
            self._flush()
            self.depth = 0
            self.prose = Block(begin, begin, end, "prose", fresh)
            self.n_lines, self.is_item = 1, False
        else:
            prose.end = end
            self.n_lines += 1

    def _line(self, begin: int, end: int, raw_end: int | None, fresh: bool) -> bool:
        """Take in one line; False when its form is not certain yet.

        `raw_end` is the end with trailing white space, for a line that may still grow.
        """
        text, complete = self.text, raw_end is None
        if self.fence is not None and self.fence_depth == 0:
            return self._fence_line(begin, end, complete)
        body, depth = begin, 0
        if text[begin] == ">":
            quote = _QUOTE.match(text, begin, end)
            assert quote is not None
            body = quote.end()
            depth = text.count(">", begin, body)
        if raw_end is not None and body >= end:
            return False
        if self.fence is not None:
            if depth >= self.fence_depth and not fresh:
                return self._fence_line(body, end, complete)
            self._end_fence()
        if raw_end is not None and self.in_table and not fresh:
            return False
        if raw_end is not None and not _is_certain(text, body, raw_end, self.prose and not fresh):
            return False
        if fresh or depth != self.depth:
            self._flush()
            self.in_table = self.first_row = False
            self.depth = depth
        if body >= end:
            self._flush()
            self._wait(begin, end, fresh, quote=True)
            return True
        self._classify(begin, body, end, fresh, depth)
        return True

    def _classify(self, begin: int, body: int, end: int, fresh: bool, depth: int) -> None:
        text = self.text
        match = _CLASS.match(text, body, end)
        name = match.lastgroup if match else None
        prose = self.prose
        if (self.first_row or prose) and text[body] in "-=|:" and self._underlines(body, end):
            return
        if name == "ordered" and prose is not None and not self._may_interrupt(body, match):
            name = None
        if name is None:
            if self.in_table and "|" in text[body:end]:
                self._emit(begin, body, end, "row", fresh)
            elif prose is None or self._breaks_before(body, end):
                self._start_prose(begin, body, end, fresh, item=False)
            else:
                prose.end = end
                self.n_lines += 1
            return
        assert match is not None
        self._flush(keep_bare=self.bare_quote and depth > 0)
        if name in ("bullet", "ordered"):
            nested = _NESTED.match(text, match.end(), end)
            content = nested.end() if nested else match.end()
            self.in_table = self.first_row = False
            if content >= end:
                self._wait(begin, end, fresh, quote=False)
                return
            inner = _CLASS.match(text, content, end)
            if inner and inner.lastgroup == "fence":
                self._open_fence(begin, content, end, inner.group(), fresh, depth)
            elif inner and inner.lastgroup == "heading":
                self._emit(begin, content, end, "heading", fresh)
            else:
                self._start_prose(begin, content, end, fresh, item=True)
        elif name == "fence":
            self.in_table = self.first_row = False
            self._open_fence(begin, body, end, match.group(), fresh, depth)
        elif name == "row":
            self._emit(begin, body, end, "row", fresh)
            self.first_row = not self.in_table
        else:
            self.in_table = self.first_row = False
            self._emit(begin, body, end, name, fresh)  # pyright: ignore[reportArgumentType]

    def _underlines(self, body: int, end: int) -> bool:
        """Whether the line turns the one before into a heading or into the head of a table."""
        text, prose = self.text, self.prose
        if _SEPARATOR.match(text, body, end):
            if self.first_row:
                self.blocks[-1].form = "table_head"
            elif prose is not None and self.n_lines == 1 and not self.is_item:
                pipe = text.find("|", prose.body, prose.end)
                if pipe < 0 or self.first_end(prose.body, prose.end) <= pipe:
                    return False
                prose.form = "table_head"
                self._flush()
            else:
                return False
            self._emit(body, body, end, "rule", False)
            self.in_table, self.first_row = True, False
            return True
        if prose is None or self.n_lines != 1 or self.is_item or self.depth:
            return False
        if not _UNDERLINE.match(text, body, end) or text[prose.end - 1] in ".!?…。！？:：":
            return False
        if self.first_end(prose.body, prose.end) < prose.end:
            return False
        prose.end, prose.form = end, "heading"
        self._flush()
        return True

    def _may_interrupt(self, body: int, match: re.Match[str] | None) -> bool:
        """Whether an ordered marker opens an item directly below a line of prose."""
        assert match is not None
        assert self.prose is not None
        # `1.` and `a)` begin a list; `A.` may be an initial.
        first = re.fullmatch(r"\W*(?:1\W|[aAi①一][^.\w])\W*", match.group()) is not None
        return first or self.is_item or self.text[self.prose.end - 1] in _TERMINAL

    def _breaks_before(self, body: int, end: int) -> bool:
        """Whether a line of prose begins a unit of its own below another line of prose."""
        text, prose = self.text, self.prose
        assert prose is not None
        tail = text[prose.end : prose.end + 2]
        return (
            tail == "  "
            or (text[prose.end - 1] == "\\")
            or _FIELD.match(text, body, end) is not None
        )

    def _start_prose(self, begin: int, body: int, end: int, fresh: bool, *, item: bool) -> None:
        self._flush(keep_bare=not item or self.bare_quote)
        begin, fresh = self._claim(begin, fresh)
        self.first_row = self.in_table = False
        self.prose = Block(begin, body, end, "prose", fresh)
        self.n_lines, self.is_item = 1, item

    def _open_fence(
        self, begin: int, body: int, end: int, mark: str, fresh: bool, depth: int
    ) -> None:
        begin, fresh = self._claim(begin, fresh)
        self.fence = Block(begin, body, end, "code", fresh)
        self.fence_mark, self.fence_depth = mark, depth

    def _fence_line(self, body: int, end: int, complete: bool) -> bool:
        assert self.fence is not None
        self.fence.end = end
        mark = self.fence_mark
        if end - body >= len(mark) and self.text[body:end] == mark[0] * (end - body):
            if not complete:
                return False
            self._end_fence()
        return True

    def _end_fence(self) -> None:
        if self.fence is not None:
            self.blocks.append(self.fence)
            self.fence = None

    def _emit(self, begin: int, body: int, end: int, form: Form, fresh: bool) -> None:
        self._flush(keep_bare=True)
        begin, fresh = self._claim(begin, fresh)
        self.blocks.append(Block(begin, body, end, form, fresh))

    def _wait(self, begin: int, end: int, fresh: bool, *, quote: bool) -> None:
        """Keep markers without content for the block that follows."""
        if self.bare >= 0 and not (quote and self.bare_quote):
            self._drop_bare()
        if self.bare < 0:
            self.bare, self.bare_fresh, self.bare_quote = begin, fresh, quote
        self.bare_end = end

    def _claim(self, begin: int, fresh: bool) -> tuple[int, bool]:
        """Start of a block, with the markers that wait for it."""
        if self.bare < 0:
            return begin, fresh
        if fresh or (self.bare_quote and not self.depth):
            self._drop_bare()
            return begin, fresh
        begin, fresh = self.bare, self.bare_fresh
        self.bare = -1
        return begin, fresh

    def _drop_bare(self) -> None:
        if self.bare >= 0:
            # `42.` and `B.` on a line of their own are answers; `2.` has lost its content.
            is_answer = _ANSWER.fullmatch(self.text, self.bare, self.bare_end) is not None
            form: Form = "prose" if is_answer else "marker"
            self.blocks.append(
                Block(self.bare, self.bare_end, self.bare_end, form, self.bare_fresh)
            )
            self.bare = -1

    def _flush(self, *, keep_bare: bool = True) -> None:
        if self.prose is not None:
            self.blocks.append(self.prose)
            self.prose = None
        if not keep_bare:
            self._drop_bare()

    def _finish(self, blank_after: bool) -> list[Block]:
        blocks = self.blocks
        n_final = len(blocks) - (1 if self.first_row and not blank_after else 0)
        if blank_after and self.fence is None:
            self._flush(keep_bare=False)
            n_final = len(blocks)
        self._flush(keep_bare=False)
        self._end_fence()
        last = len(blocks) - 1
        if blocks and blocks[last].form in ("label", "marker"):
            # Whether it is a title, or the number of an item, depends on what follows.
            n_final = min(n_final, last)
            if any(map(str.isalnum, self.text[blocks[last].start : blocks[last].end])):
                blocks[last].form = "prose"
        for index, block in enumerate(blocks):
            if block.form == "label":
                block.form = "heading" if index < last and self._is_title(block) else "prose"
            block.open = not self.closed and index >= n_final
        return blocks

    def _is_title(self, block: Block) -> bool:
        """Whether a line all in bold names what follows, rather than saying something."""
        line = self.text[block.body : block.end].strip("*_:： \t")
        return (
            len(line.split()) <= _LABEL_WORDS
            and line[-1:] not in (".", "!", "?", "。", "！", "？")
            and not any(char.isdigit() for char in line)
        )


def _is_certain(text: str, body: int, end: int, continues: object) -> bool:
    """Whether an unfinished line can no longer change its form or its marker.

    `continues`: whether it stands directly below a line of prose.
    """
    if body >= end or _MAYBE_RULED.match(text, body, end) or text[body] == "|":
        return False
    if _MAYBE_LABEL.match(text, body, end) or (continues and _MAYBE_FIELD.match(text, body, end)):
        return False
    match = _CLASS.match(text, body, end)
    if match and match.lastgroup in ("bullet", "ordered"):
        nested = _NESTED.match(text, match.end(), end)
        body = nested.end() if nested else match.end()
        if body >= end or (text[body] == "[" and end - body < 5):
            return False
        if text[body].isalpha():
            return True
    first = text[body]
    if first in "`~":
        run = end - body - len(text[body:end].lstrip(first))
        return run < 3 and run < end - body
    if first == "#":
        return text[body : body + 7].lstrip("#")[:1] not in ("", " ", "\t", "\u00a0")
    if _NO_MARKER.match(text, body, end):
        return True
    token = text[body : min(end, body + _FIRST_TOKEN + 1)]
    return len(token) > _FIRST_TOKEN or token[-1].isspace() or len(token.split()) > 1


def _breaks(gap: str) -> int:
    """How many line ends a stretch of white space holds."""
    if gap in _COMMON_GAPS:
        return _COMMON_GAPS[gap]
    return gap.replace("\r\n", "\n").translate(_TO_NEWLINE).count("\n")


_TO_NEWLINE = {ord(char): "\n" for char in NEWLINES} | {0x2029: "\n\n"}
_COMMON_GAPS = {"": 0, "\n": 1, "\n\n": 2, "\r\n": 1, "\r\n\r\n": 2}
