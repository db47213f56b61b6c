"""The answer's own markers are found, resolved, and never read as evidence or as wording."""

import re

import pytest

from gasp_engine import GroundingChecker, Passage
from gasp_engine.markers import find_markers, marked_ranges, resolve, without_ranges
from gasp_engine.scorers.table import TableScorer
from gasp_engine.segment import segment
from gasp_engine.types import as_passages

DAM = "The dam opened in 1931."
MARKED = (
    "The dam opened in 1931.[2] It holds 4 km³ of water. [1][3] Ito et al. [2004] measured silt."
)


def wording(text, n=3, **names):
    passages = [Passage("x", id=names.get("id"), title=names.get("title")) for _ in range(n)]
    return without_ranges(text, marked_ranges(text, segment(text), passages))[0]


@pytest.mark.parametrize(
    "text, labels",
    [
        ("So [1].", [("1",)]),
        ("So [2, 3] and [1][2].", [("2", "3"), ("1",), ("2",)]),
        ("So [1-3; 5].", [("1", "2", "3", "5")]),
        ("So [^1] and [^note].", [("1",), ("note",)]),
        ("So [doc-2] and [Source 3].", [("doc-2",), ("Source 3",)]),
        ("So 【4†source】.", [("4",)]),
        ("So (Smith 2020) and (Smith et al., 2019a).", [("Smith 2020",), ("Smith et al. 2019a",)]),
        ("So [sic], [a link](x), (in March 2020), (May 2019), (see p. 4), [...].", []),
    ],
)
def test_markers_are_found_and_other_brackets_are_not(text, labels):
    found = find_markers(text)
    assert [m.labels for m in found] == labels
    assert all(text[m.start : m.end] == m.text for m in found)


def test_a_passage_s_own_name_in_brackets_is_a_marker():
    passages = [Passage("a", title="Annual Report"), Passage("b", id="handbook")]
    found = find_markers("So [annual report] and [handbook], not [manual].", passages)
    assert [m.labels for m in found] == [("annual report",), ("handbook",)]
    assert [resolve(m.labels[0], passages) for m in found] == [0, 1]


def test_ids_come_before_counting_and_counting_starts_at_one():
    plain = [Passage("a"), Passage("b")]
    assert [resolve(label, plain) for label in ("0", "1", "2", "3")] == [None, 0, 1, None]
    assert [resolve(label, plain) for label in ("doc-2", "Source 1", "nothing")] == [1, 0, None]
    named = [Passage("a", id="2"), Passage("b", id="doc-1")]
    assert [resolve(label, named) for label in ("2", "doc-1", "1")] == [0, 1, 0]


def test_an_author_and_a_year_name_the_one_passage_that_holds_both():
    passages = [
        Passage("a", title="Smith (2020): Dams"),
        Passage("b", metadata={"author": "Ito", "year": 2004}),
        Passage("c", title="Ito 2005"),
    ]
    assert resolve("Smith et al. 2020", passages) == 0
    assert resolve("Ito 2004", passages) == 1
    assert resolve("Jones 2004", passages) is None
    assert resolve("Ito 2004", [*passages, passages[1]]) is None


@pytest.mark.parametrize(
    "text, expected",
    [
        (MARKED, "The dam opened in 1931. It holds 4 km³ of water. Ito et al. measured silt."),
        ("It opened [1], then shut [2, 3].", "It opened, then shut."),
        ("[1] The dam opened.", "The dam opened."),
        ("It opened in 1931 [doc-9].", "It opened in 1931."),
        ("It opened.【7†source】 So", "It opened. So"),
        ("Smith (Smith 2020) says so.", "Smith (Smith 2020) says so."),
    ],
)
def test_markers_are_no_wording(text, expected):
    assert wording(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The interval is [3, 5] here.",
        '{"years": [1, 2], "n": [3]}',
        "x = [1]",
        "arr[0] is the first.",
        "He waited [7] years.",
        "See [the manual](https://example.org/1) [sic].",
        "```py\nx[1] = y[2]\n```",
    ],
)
def test_brackets_that_may_hold_a_fact_stay(text):
    assert wording(text) == text


def test_an_author_and_a_year_are_no_wording_where_they_name_a_passage():
    answer = "Silt is rising (Ito et al., 2004)."
    for title, expected in (("Ito 2004", "Silt is rising."), ("Ito 2005", answer)):
        passages = [Passage("x", title=title)]
        ranges = marked_ranges(answer, segment(answer), passages)
        assert without_ranges(answer, ranges)[0] == expected


def needs(text, low=-5.0):
    def log_prob(question, context, index, tokens):
        return -0.01 if text in context else low

    return TableScorer.from_log_prob(log_prob)


def test_an_answer_and_its_copy_without_markers_get_the_same_verdicts_and_numbers():
    plain = re.sub(r" ?\[\d+\]", "", MARKED)
    passages = ["The dam opened in 1931."]
    one, two = (GroundingChecker(needs("1931")).check("?", passages, a) for a in (MARKED, plain))
    assert one.sentences[0].text == "The dam opened in 1931.[2]"
    for a, b in zip(one.sentences, two.sentences, strict=True):
        assert (a.status, a.score, dict(a.features)) == (b.status, b.score, dict(b.features))
    assert {c.passage_index for c in one.citations} <= {0}


def test_an_answer_of_markers_alone_is_scored_by_nobody_and_raises_nothing():
    report = GroundingChecker(needs("1931")).check("?", [DAM, DAM + " Yes."], "[^1]")
    assert [s.status for s in report.sentences] == ["unscored"]
    assert report.grounded is None


@pytest.mark.parametrize(
    "answer", ["Boats may cross from May [7].", "Boats may cross from May [7]"]
)
def test_a_mark_at_a_sentences_end_is_a_mark_even_where_no_passage_has_its_number(answer):
    passages = as_passages(["Cross from May."])
    ranges = marked_ranges(answer, segment(answer), passages)
    assert [answer[a:b] for a, b in ranges] == [" [7]"]
    fact = "The value [7] is odd."
    assert marked_ranges(fact, segment(fact), passages) == ()
