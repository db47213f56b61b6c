"""A block of prose -> its sentences.

One pass over the *gaps*: a terminator and all that follows it up to the next letter or digit. Of
each gap it is decided once whether and where a sentence ends in it, so the cost is linear whatever
the text. A decision reads a bounded stretch ahead: the next word, and for an open bracket or
quotation mark at most `_REACH` code points in search of its partner (`_CODE` for a code span).

    He left “the U.S.” (in 1931). [2] She did not.
                   ^^^^^         ^^^^^^^^          gaps
                                     |            the end: citation markers stay with what they cite
"""

from __future__ import annotations

import re

from .blocks import CJK, NEWLINES
from .language import LanguageGuess
from .stops import ends_sentence, is_abbreviation, is_lettered, points_ahead

Span = tuple[int, int]

_ASCII_STOPS = r".!?\u2026\u203c\u203d\u2047-\u2049\u2024\u2e2e\ufe52\ufe56\ufe57"
_FULL_WIDTH = r"\u3002\uff01\uff1f\uff0e\uff61\ufe12\ufe15\ufe16"
_OTHER_STOPS = (
    r"\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u0f0d\u0f0e"
    r"\u104b\u1362\u1367\u1368\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab"
    r"\u1b5a\u1b5b\u1c3b\u1c3c\u1c7e\u1c7f\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf"
    r"\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\U00011047\U00011048\U000110c0\U000110c1"
    r"\U00011141-\U00011143\U000111c5\U000111c6\U0001144b\U0001144c\U000115c2\U000115c3"
)
_STOPS = _ASCII_STOPS + _FULL_WIDTH + _OTHER_STOPS
_GREEK = r"\u0370-\u03ff\u1f00-\u1fff"
_MARKS = r"\u0300-\u036f\u200b-\u200f\u2060\ufeff\ufe00-\ufe0f\u20e3\U000e0020-\U000e007f"
_CLOSERS = r"\"'’”“»«›‹)\]}」』）】》〉〕*_~`"
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"

# A full stop before a letter or digit is left out: file names and numbers cost nothing.
_GAP = re.compile(
    rf"(?:\.(?![a-zA-Z0-9])|[{_STOPS[1:]}]|(?<=[{_GREEK}]);)[\W_]*+"  # _STOPS[0] is the full stop
)
_STOP_RUN = rf"[{_STOPS};]+[{_STOPS}{_MARKS}{_CLOSERS}]*+"
_HEAD = re.compile(
    rf"{_STOP_RUN}(?:[ \t\u00a0]*+{_STOP_RUN})*+"
    rf"(?:[ \t\u00a0\u202f]++[»›”)\]」』）】》](?=[\W_])[{_MARKS}{_CLOSERS}]*+)*+"
)
_LAST_STOP = re.compile(rf"[{_STOPS};](?=[^{_STOPS};]*\Z)")
_CITATIONS = re.compile(
    r"(?:[ \t\u00a0]?(?:\[(?:\^|[a-zA-Z]{1,10}[ :#_-]{0,2})?\d{1,4}(?:[,;–-][ ]?\d{1,4})*\]"
    r"|【[^】\n]{1,40}】))++"
    rf"|[{_SUPERSCRIPTS}]++"
)
_MAYBE_CITATION = re.compile(
    r"[ \t\u00a0]?(?:\[(?:\^|[a-zA-Z]{0,10}[ :#_-]{0,2})[\d,;– -]{0,40}|【[^】]{0,40})?\Z"
    rf"|[{_SUPERSCRIPTS}]*\Z"
)
_NON_WORDS = re.compile(r"[\W_]*+")
_WORD = re.compile(r"\w[\w\u0300-\u036f'’]{0,39}")
_TOKEN = re.compile(r"\S{1,60}")
_IDENTIFIER = re.compile(r".\d|://|\Awww\.|\w_\w|\w\.\w\w")
_SYMBOL = re.compile("[\u2190-\u2bff\U0001f000-\U0001faff]")
_BEFORE = re.compile(r"[^\s(\[{<\"“”„«»‹›'’*_`~|/—–,;:：，；（!?…=+-]*")
_PAIRED = re.compile(r"[()\[\]{}（）［］「」『』【】《》“”„‟\"«»]|`+")
_OPENERS = {"(": ")", "[": "]", "{": "}", "（": "）", "［": "］", "【": "】", "《": "》"}
_QUOTES = {"“": "”", "„": "“”", "‟": "”", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
_ALL_CLOSERS = frozenset("".join([*_OPENERS.values(), *_QUOTES.values()]))
_BRACKETS = frozenset(_OPENERS.values())
_TWO_FACED = frozenset('"»`')
_IS_STOP = frozenset(".!?…‼‽⁇⁈⁉․。！？")
_CJK_CHAR = re.compile(rf"[{CJK}]")
_PARTICLES = (
    "と",
    "って",
    "は",
    "が",
    "を",
    "に",
    "の",
    "も",
    "で",
    "な",
    "か",
    "や",
    "へ",
    "という",
)
_FULL_STOPS = frozenset("。！？．｡︒︕︖")
_BREAK = re.compile(rf"[{NEWLINES}]")

_REACH = 400
"""Code points within which a bracket or a quotation mark has to close to count."""
_CODE = 160
"""Likewise for a code span. An open one holds up the verdicts of a stream until then."""
_DEPTH = 8
"""Brackets open at a time that are followed."""


def cut(
    text: str, start: int, body: int, end: int, guess: LanguageGuess, *, open_end: bool = False
) -> tuple[list[Span], int]:
    """The sentences of one block of prose, and how many of them are settled.

    Args:
        text: the answer.
        start: where the block begins, markers included.
        body: where its words begin.
        end: where it ends.
        guess: the language so far.
        open_end: whether the block may still grow.

    Returns:
        Spans that cover all of the block but white space, and the number of leading ones that no
        continuation can change (all of them, unless `open_end`).
    """
    if _GAP.search(text, body, end) is None:
        return [(start, end)], 0 if open_end else 1
    return _Cutter(text, body, end, guess, open_end).run(start)


class _Cutter:
    def __init__(
        self, text: str, body: int, end: int, guess: LanguageGuess, open_end: bool
    ) -> None:
        self.text = text
        self.body = body
        self.end = end
        self.guess = guess
        self.open_end = open_end
        self.sentence = body  # where the words of the current sentence begin
        self.pairs: _Pairs | None = None

    def run(self, start: int) -> tuple[list[Span], int]:
        text, end = self.text, self.end
        spans: list[Span] = []
        skip = 0
        for match in _GAP.finditer(text, self.body, end):
            low, high = match.span()
            if low < skip:
                continue
            if high >= end:
                break
            boundary = self._boundary(low, high)
            if boundary is None:
                break
            stop, begin = boundary
            if stop < 0:
                continue
            spans.append((start, stop))
            start = self.sentence = begin
            skip = stop
        spans.append((start, end))
        return spans, len(spans) - 1 if self.open_end else len(spans)

    def _boundary(self, low: int, high: int) -> tuple[int, int] | None:
        """Where the sentence ends and the next one begins; (-1, -1): here none ends; None: unknown.

        `low` is the terminator, `high` the next letter or digit.
        """
        text, end, open_end = self.text, self.end, self.open_end
        none = (-1, -1)
        if high - low == 2 and text[low] in ".!?" and text[low + 1] == " ":
            return self._decide(low, low + 1, high, text[low], text[low])
        head = _HEAD.match(text, low, high)
        assert head is not None
        stop = head.end()
        following = high
        cited = False
        if open_end and _MAYBE_CITATION.match(text, stop, end):
            return None
        citation = _CITATIONS.match(text, stop, end)
        if citation:
            stop = citation.end()
            if open_end and _MAYBE_CITATION.match(text, stop, end):
                return None
            rest = _NON_WORDS.match(text, stop, end)
            assert rest is not None
            following, cited = rest.end(), True
            if following >= end:
                return None if open_end else none
            if _GAP.match(text, stop, end):
                return none  # the sentence goes on to a terminator of its own
        spaced = text[stop].isspace()
        stops = head.group()
        last = _LAST_STOP.search(stops)
        assert last is not None
        mark = last.group()
        if not (spaced or _is_caseless(mark) or (cited and text[following].isupper())):
            # No white space: in CJK text an ASCII terminator still ends a sentence.
            around = stop == following and low > 0 and mark != "…"
            if not (around and _CJK_CHAR.match(text, low - 1) and _CJK_CHAR.match(text, following)):
                return none
        return self._decide(low, stop, following, mark, stops[: last.start() + 1])

    def _decide(
        self, low: int, stop: int, following: int, mark: str, stops: str
    ) -> tuple[int, int] | None:
        """As `_boundary`, for a candidate end `stop` whose last terminator is `mark`."""
        if not self._has_words(low):
            return -1, -1
        verdict = self._ends(low, stop, following, mark, stops)
        if verdict:
            inside = self._is_inside(low + len(stops) - 1, stop, following)
            verdict = None if inside is None else not inside
        if verdict is None:
            return None
        return self._place(stop, following) if verdict else (-1, -1)

    def _place(self, stop: int, following: int) -> tuple[int, int]:
        """Symbols up to the end of the line stay with the sentence; the next begins after them."""
        text = self.text
        if following == stop + 1 and text[stop].isspace():
            return stop, following
        line_end = _BREAK.search(text, stop, following)
        if line_end and text[stop : line_end.start()].strip():
            stop += len(text[stop : line_end.start()].rstrip())
        begin = stop
        while text[begin].isspace():
            begin += 1
        return stop, begin

    def _has_words(self, low: int) -> bool:
        if self.sentence < low and self.text[self.sentence].isalnum():
            return True
        words = _NON_WORDS.match(self.text, self.sentence, low)
        return words is not None and words.end() < low

    def _ends(self, low: int, stop: int, following: int, mark: str, stops: str) -> bool | None:
        """Whether the terminator ends a sentence, as far as the words around it say."""
        text, end = self.text, self.end
        if _is_caseless(mark):
            if mark in "．﹒" and text[low - 1 : low].isdigit() and text[following].isdigit():
                return False
            if mark in "།༎" and not text[stop].isspace():
                return False
            if text[stop - 1] in "」』”’）)" and text[stop - 1] != mark and stop == following:
                if not self._known(following, 4):
                    return None
                return not text.startswith(_PARTICLES, following)
            return True
        first = text[following]
        word = _WORD.match(text, following, end)
        assert word is not None
        if first.islower():
            verdict = self._begins_in_lower_case(low, following, mark)
            if verdict is not True:
                return verdict
            if mark != ".":
                return True
        if mark != "." or sum(map(_IS_STOP.__contains__, stops)) > 1:
            return True
        previous = self._word_before(low)
        if not previous:
            return True
        if self._is_part_of_number(low, previous):
            return True
        if self._is_number_of_item(low, previous):
            return False
        if text[stop - 1] == "]" and points_ahead(previous):
            return False  # “et al. [2004]”, “Ref. [4]”: no citation of what stands before
        language = self.guess.at(text, low, previous)
        is_short = is_abbreviation(previous, language)
        if first.islower() or not (is_short or (len(previous) <= 2 and previous.isdigit())):
            return not is_short
        if len(previous) == 1 and is_lettered(text[max(self.sentence, low - 20) : low - 1]):
            return True
        if not self._known(following, word.end() - following + 1):
            return None
        return ends_sentence(previous, word.group(), language)

    def _begins_in_lower_case(self, low: int, following: int, mark: str) -> bool | None:
        """Whether a sentence may begin with the lower-case letter at `following`."""
        text = self.text
        if text[following - 1] in "`@#$" or _SYMBOL.search(text, low, following):
            return True
        token = _TOKEN.match(text, following, self.end)
        if self.open_end and token and token.end() == self.end:
            return None
        name = token.group().rstrip(".,;:!?)\"'”’") if token else ""
        rest = name[1:]
        if rest != rest.lower() or _IDENTIFIER.search(name):
            return True
        if mark != ".":
            return False
        # A text that is written without capitals.
        if low - self.sentence > _REACH:
            return False
        sentence = text[self.sentence : low]
        return sentence[:1].islower() and sentence == sentence.lower()

    def _word_before(self, low: int) -> str:
        match = _BEFORE.match(self.text[max(self.sentence, low - 40) : low][::-1])
        return match.group()[::-1] if match else ""

    def _is_part_of_number(self, low: int, word: str) -> bool:
        """The end of `23:00.`, `8,50.` or `3/4.`: neither an ordinal nor the number of an item."""
        begin = low - len(word)
        joint = self.text[max(self.sentence, begin - 2) : begin]
        return word.isdigit() and len(joint) == 2 and joint[0].isdigit() and joint[1] in ":,/"

    def _is_number_of_item(self, low: int, word: str) -> bool:
        """`1.` or `a.` at the start of a sentence or after a colon numbers what follows."""
        if not ((len(word) <= 3 and word.isdigit()) or len(word) == 1):
            return False
        begin = low - len(word)
        if begin == self.sentence:
            return True
        before = self.text[max(self.sentence, begin - 8) : begin].rstrip(" \t*(")
        if not before:
            return begin - 8 <= self.sentence
        return before[-1] in ":;：" and word.isdigit()

    def _known(self, position: int, length: int) -> bool:
        """Whether the next characters cannot change any more."""
        return not self.open_end or position + length <= self.end

    def _is_inside(self, mark_at: int, stop: int, following: int) -> bool | None:
        """Whether `stop` lies inside a bracket, quotation or code span of the current sentence."""
        if self.pairs is None:
            self.pairs = _Pairs(self.text, self.body, self.end, self.open_end)
        if stop > self.pairs.unknown_from:
            return None
        if not self.pairs:
            return False
        text = self.text
        caseless = not (text[following].isupper() or text[following].islower())
        for opened, closed, kind in self.pairs.around(mark_at, stop):
            if closed < stop:
                # The bracket closes with this terminator: （…。） inside a sentence goes on.
                digit = text[following].isdigit()
                if kind == "bracket" and caseless and not digit and self._has_words(opened):
                    return True
            elif kind == "code" or (kind == "bracket" and self._has_words(opened)):
                return True
            elif kind == "quote" and (text[opened] in "「『" or self._has_words(opened)):
                goes_on = self._goes_on_after(closed)
                if goes_on is not False:
                    return goes_on
        return False

    def _goes_on_after(self, closed: int) -> bool | None:
        """Whether the sentence around a quotation goes on after its closing mark."""
        text = self.text
        if text[closed - 1] not in ".!?…" and text[closed - 1] not in _FULL_STOPS:
            return True
        position = closed + 1
        while position < self.end and (text[position].isspace() or text[position] in ")]*_）"):
            position += 1
        if not self._known(position, 4):
            return None
        if position >= self.end:
            return False
        char = text[position]
        return char.islower() or char in ",;:，；、" or text.startswith(_PARTICLES, position)


class _Pairs:
    """Brackets, quotation marks and code spans of a block, matched in one pass.

    Whether an opener has a partner depends on the `_REACH` code points after it and on nothing else
    to its right; `unknown_from` is the first opener for which these have not all arrived.
    """

    def __init__(self, text: str, body: int, end: int, open_end: bool) -> None:
        if open_end and text[end - 1] in _TWO_FACED:
            end -= 1  # what comes next says on which side it stands
        self._pairs = sorted(self._match(text, body, end))
        self._next = 0
        self._active: list[tuple[int, int, str]] = []
        self.unknown_from = end
        if open_end:
            unknown = [position for position in self._unmatched if position + _REACH >= end]
            self.unknown_from = min(unknown, default=end)

    def __len__(self) -> int:
        return len(self._pairs)

    def _match(self, text: str, body: int, end: int) -> list[tuple[int, int, str]]:
        pairs: list[tuple[int, int, str]] = []
        unmatched: set[int] = set()
        stack: list[tuple[int, str]] = []
        code_end = -1
        for match in _PAIRED.finditer(text, body, end):
            position, char = match.start(), match.group()
            if position < code_end:
                continue
            if char[0] == "`":
                if text[match.end() : match.end() + 1].isspace() and len(char) == 1:
                    continue  # a quotation mark of old, or a slip: `code` begins at once
                partner = _code_end(text, match.end(), min(end, position + _CODE), len(char))
                if (partner < 0 and position + _CODE >= end) or partner + len(char) == end:
                    unmatched.add(position)
                if partner >= 0:
                    pairs.append((position, partner, "code"))
                    code_end = partner + len(char)
                continue
            while stack and position - stack[0][0] > _REACH:
                stack.pop(0)
            closing = -1
            if char in _ALL_CLOSERS and not (char == '"' and _opens(text, position, body, end)):
                for index in range(len(stack) - 1, -1, -1):
                    if char in stack[index][1]:
                        closing = index
                        break
            if closing >= 0:
                opened, closers = stack[closing]
                pairs.append((opened, position, "bracket" if closers in _BRACKETS else "quote"))
                unmatched.difference_update(p for p, _ in stack[closing:])
                del stack[closing:]
                continue
            closers = _OPENERS.get(char) or _QUOTES.get(char)
            if closers and len(stack) < _DEPTH:
                if char in '"»' and not _opens(text, position, body, end):
                    continue
                stack.append((position, closers))
                unmatched.add(position)
        self._unmatched = unmatched
        return pairs

    def around(self, low: int, stop: int) -> list[tuple[int, int, str]]:
        """Pairs that open before `stop` and close at or after `low`; `low` never decreases."""
        pairs = self._pairs
        self._active = [pair for pair in self._active if pair[1] >= low]
        while self._next < len(pairs) and pairs[self._next][0] < stop:
            if pairs[self._next][1] >= low:
                self._active.append(pairs[self._next])
            self._next += 1
        return self._active


def _is_caseless(mark: str) -> bool:
    """Whether a terminator ends sentences without white space and without a capital after it."""
    return not ("!" <= mark <= "?" or "\u2024" <= mark <= "\u2049")


def _code_end(text: str, begin: int, end: int, length: int) -> int:
    """Position of the run of exactly `length` backticks that closes a code span, or -1."""
    run = "`" * length
    position = text.find(run, begin, end)
    while position >= 0:
        stop = position + length
        while stop < end and text[stop] == "`":
            stop += 1
        if stop - position == length:
            return position
        position = text.find(run, stop, end)
    return -1


def _opens(text: str, position: int, body: int, end: int) -> bool:
    """Whether a quotation mark that looks the same on both sides stands where one opens."""
    before = text[position - 1] if position > body else " "
    after = text[position + 1] if position + 1 < end else " "
    return (before.isspace() or before in "([{（—–-*_/:“„") and not after.isspace()
