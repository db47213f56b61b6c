"""Invariants on generated Markdown, scripts, white space, emoji; and the cost of hostile text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gasp_engine.segment import SentenceStream, segment, settled
from gasp_engine.types import Sentence

WORDS = [
    *[
        "The dam opened",
        "It holds water",
        "it",
        "She",
        "Monday",
        "I",
        "A",
        "a",
        "but",
        "ana",
        "iPhone",
    ],
    *[
        "e.g.",
        "Dr.",
        "U.S.",
        "Fig.",
        "p. 4",
        "3.5",
        "1931",
        "et al.",
        "z.B.",
        "3. Mai",
        "Der Damm ist",
    ],
    *["大坝建成", "はい", "と", "السد", "है", "Cafe\u0301", "🦦", "👍🏽", "👨‍👩‍👧"],
    *["https://a.org/b.html?x=1", "setup.cfg", "Name: x", "I don't know"],
]
STOPS = [
    *[".", "!", "?", "...", "…", "。", "！", "？", "؟", "।", "?!", ":", ";"],
    *[".[1]", ". [2][3]", ".¹"],
]
PAIRS = [
    "“",
    "”",
    '"',
    "'",
    "(",
    ")",
    "[",
    "]",
    "「",
    "」",
    "„",
    "«",
    "»",
    " »",
    "`",
    "``",
    "{",
    "}",
]
SPACES = [
    *[" ", "  ", "\n", "\n\n", "\r\n", "\r", "\t"],
    *["\u00a0", "\u202f", "\u200b", "\u2028", "\u3000"],
]
LINES = [
    *["\n- ", "\n* ", "\n1. ", "\n2) ", "\na) ", "\nA. ", "\n• ", "\n- [ ] ", "\n-\n", "\n[1] "],
    *["\n# ", "\n## H\n", "\n---\n", "\n===\n", "\n**Bold**\n", "\n**Bold:** "],
    *["\n> ", "\n>\n", "\n> > ", "\n```\n", "\n```py\n", "\n~~~\n", "\n    ", "  \n", "\\\n"],
]
TABLES = ["\n| a | b |\n", "|---|---|\n", "|", "a | b\n", "---|---\n", " | "]
JSON = ['{"a": 1', ', "b": "x. Y"', "}", "[1", ", null", '"', "\\"]

atoms = st.one_of(*(st.sampled_from(group) for group in (WORDS, STOPS, PAIRS, SPACES, LINES)))
letters = st.characters(exclude_categories=["Cs"])  # halves of surrogate pairs are refused
others = st.one_of(st.sampled_from(TABLES), st.sampled_from(JSON), letters)
texts = st.lists(st.one_of(atoms, atoms, atoms, others), max_size=24).map("".join)
plain = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(STOPS)), max_size=8).map(
    lambda parts: " ".join(word + stop for word, stop in parts)
)
answers = st.one_of(texts, texts, plain)


def rows(sentences: list[Sentence]) -> list[tuple[int, int, int, str, str]]:
    return [(s.index, s.start, s.end, s.kind, s.text) for s in sentences]


def assert_covers(text: str, sentences: list[Sentence]) -> None:
    position = 0
    for index, sentence in enumerate(sentences):
        assert sentence.index == index
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.text
        assert sentence.text == sentence.text.strip()
        assert sentence.start >= position
        assert not text[position : sentence.start].strip()
        position = sentence.end
    assert not text[position:].strip()


@settings(max_examples=600, deadline=None)
@given(answers)
def test_spans_are_sorted_disjoint_trimmed_and_lose_nothing(text: str) -> None:
    assert_covers(text, segment(text))


@settings(max_examples=150, deadline=None)
@given(answers, st.sampled_from(["clause", "token"]), st.sampled_from(["default", "paper"]))
def test_finer_spans_and_the_papers_lose_nothing_either(
    text: str, granularity: str, splitter: str
) -> None:
    found = segment(text, granularity=granularity, splitter=splitter)  # pyright: ignore
    assert_covers(text, found)


@settings(max_examples=800, deadline=None)
@given(answers, answers)
def test_no_continuation_changes_a_settled_sentence(text: str, more: str) -> None:
    n_settled = settled(text)
    assert rows(segment(text + more))[:n_settled] == rows(segment(text))[:n_settled]


@settings(max_examples=250, deadline=None)
@given(answers, st.lists(st.integers(1, 9), min_size=1))
def test_a_stream_gives_the_sentences_of_the_whole_text_for_every_cut(
    text: str, steps: list[int]
) -> None:
    stream = SentenceStream()
    given_out: list[Sentence] = []
    position = step = 0
    while position < len(text):
        size = steps[step % len(steps)]
        given_out += stream.feed(text[position : position + size])
        position, step = position + size, step + 1
    given_out += stream.close()
    assert stream.text == text
    assert rows(given_out) == rows(segment(text))


@settings(max_examples=150, deadline=None)
@given(plain)
def test_more_text_never_settles_fewer_sentences(text: str) -> None:
    counts = [settled(text[:length]) for length in range(len(text) + 1)]
    assert counts == sorted(counts)


def test_closed_text_is_settled_as_a_whole() -> None:
    text = "The fee is 3.5 EUR. Pay by Friday.\n\nCall us"
    assert settled(text, closed=True) == 3
    assert settled(text) == 2


def test_a_stream_never_ends_a_sentence_at_a_point_that_turns_out_to_be_a_decimal() -> None:
    stream = SentenceStream()
    pieces = ["The fee is 3", ".", "5 EUR", ". Pay by Fri", "day.\n", "\nCall us"]
    ends = [[s.end for s in stream.feed(piece)] for piece in pieces]
    assert ends == [[], [], [], [19], [], [34]]
    assert [s.end for s in stream.close()] == [43]
    assert stream.close() == []


@pytest.mark.parametrize(
    "before, needed",
    [
        ("The dam opened in 1931. ", "It"),
        ("Is it open? ", "Y"),
        ("He left the U.S. ", "She di"),
        ("大坝建成。", "它"),
        ("It is open.\n\n", "N"),
        ("- Drain the tank\n", "- Re"),
        ("```\nx. Y\n```\n", ""),
    ],
)
def test_a_sentence_is_settled_once_a_word_or_two_of_the_next_are_there(
    before: str, needed: str
) -> None:
    assert settled(before + needed) == 1
    assert settled(before.rstrip()) == 0


MEGABYTE = 1_000_000
HOSTILE = {
    **{f"only {char!r}": char for char in '.a[`|(" \n>-#*{1。\u0301🦦'},
    "prose": "The dam opened in 1931. It holds 4 km³ of water. ",
    "short lines": "ab cd.\nEf\n",
    "paragraphs": "ab\n\n",
    "items": "- ab\n",
    "rows": "| ab | c |\n",
    "quotes": "> ab\n",
    "abbreviations": "Dr. X. e.g. Y. ",
    "initials": "A. b. ",
    "open brackets": "( a. B ",
    "brackets": "(a. B) ",
    "quotation marks": '" A. B ',
    "guillemets": "« a. B » ",
    "code spans": "` a. B `` ",
    "fences": "```\nx\n",
    "citations": "w. [1] ",
    "spaced stops": ". ",
    "refusals": "I don't know. ",
    "introductions": "Sure, here is a ",
    "fields": "Name: x\n",
    "nested lists": "- - 1. ",
    "JSON": '["a",',
    "JSON objects": '{"a":',
    "no capitals": "ab cd. ",
    "line ends": "\r\n",
}


def process_seconds(text: str) -> float:
    """Of this process: other work on the machine hardly counts."""
    begin = time.process_time()
    segment(text)
    return time.process_time() - begin


@pytest.mark.parametrize("name", HOSTILE)
def test_cost_grows_with_the_length_and_not_with_its_square(name: str) -> None:
    """Eight times the text would take 64 times as long; `benchmarks/segmenting.py` has times."""
    unit = HOSTILE[name]
    small, large = (process_seconds(unit * (n // len(unit))) for n in (MEGABYTE // 8, MEGABYTE))
    assert large < 24 * max(small, 0.1)


def test_streaming_a_long_answer_token_by_token_is_near_linear() -> None:
    def seconds(n_paragraphs: int) -> float:
        text = "The dam opened in 1931. It holds 4 km³ of water.\n\n" * n_paragraphs
        begin = time.process_time()
        stream = SentenceStream()
        for start in range(0, len(text), 4):
            stream.feed(text[start : start + 4])
        stream.close()
        return time.process_time() - begin

    assert seconds(800) < 24 * max(seconds(100), 0.05)


def test_an_open_code_span_holds_sentences_up_for_a_while_only() -> None:
    text = "Run `make and wait. It is slow. "
    assert settled(text) == 0
    assert settled(text + "The tank is clean. " * 9) >= 2
    assert settled("` Quoted,' says she. It is slow. The") == 2
