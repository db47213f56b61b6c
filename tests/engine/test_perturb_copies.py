"""Copies of the same text are one unit, removed together; other evidence never is."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_engine.perturb import build_context, cut
from gasp_engine.segment import sentence_spans
from gasp_engine.types import as_passages

DAM = "The dam opened in 1931 and holds four cubic kilometres of water for the valley."
LONG = " ".join(f"Gate number {n} was closed on day {n * 3} by the keeper." for n in range(1, 30))


def units(*texts, **options):
    return build_context(as_passages(list(texts)), **options).units


@pytest.mark.parametrize(
    "copy",
    [
        DAM,
        DAM + "  ",
        "\n" + DAM.upper(),
        DAM.replace(" ", "\u00a0"),
        DAM.rstrip("."),
        "“" + DAM + "”",
        DAM.replace(" and", ", and"),
        DAM.replace("cubic\u0020", "cubic\r\n"),
        DAM.replace("for the valley", "for a valley"),
        "**" + DAM + "**",
    ],
)
def test_a_copy_joins_the_unit_of_its_original(copy):
    found = units(DAM, "Boats are red.", copy)
    assert len(found) == 2
    assert [s.passage for s in found[0].copies] == [2]


@pytest.mark.parametrize(
    "other",
    [
        DAM.replace("1931", "1913"),
        DAM.replace("four", "five"),
        DAM.replace("opened", "closed"),
        DAM.replace("holds", "does not hold"),
        DAM.replace("and holds", "and never holds"),
        DAM.replace("The dam", "The Osei dam"),
    ],
)
def test_a_text_that_says_something_else_is_a_unit_of_its_own(other):
    assert len(units(DAM, other)) == 2


@pytest.mark.parametrize(
    "one, two", [("It was -5 C.", "It was 5 C."), ("x < 3", "x > 3"), ("a = b", "a != b")]
)
def test_signs_are_not_punctuation(one, two):
    assert len(units(one, two)) == 2


def test_the_parts_of_a_long_copy_meet_the_parts_of_its_original():
    copy = LONG.replace("Gate", "gate").replace(" ", "  ")
    found = units(LONG, "Boats are red.", copy, max_unit_chars=300, split=sentence_spans)
    originals = [u for u in found if u.spans[0].passage == 0]
    assert len(originals) > 3
    assert all([s.passage for s in u.copies] == [2] for u in originals)
    assert len(found) == len(originals) + 1
    assert "".join(copy[s.start : s.end] for u in originals for s in u.copies) == copy


@given(st.text(max_size=80), st.integers(1, 20))
def test_cutting_loses_no_character(text, limit):
    ranges = cut(text, limit, sentence_spans)
    assert "".join(text[a:b] for a, b in ranges) == text
    assert all(b > a for a, b in ranges) or not text


@pytest.mark.parametrize("text", ["e\u0301" * 30, "👍🏽" * 30, "👩‍🔬" * 30, "a\r\n" * 30])
def test_a_cut_parts_no_accent_or_emoji_from_its_base(text):
    ranges = cut(text, 10, None)
    assert len(ranges) > 1
    for (_, end), _next in itertools.pairwise(ranges):
        assert text[end] not in "\u0301\u200d\n🏽"
        assert text[end - 1] not in "\u200d\r"
