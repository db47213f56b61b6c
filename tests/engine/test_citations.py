"""Citations quote the very characters, whatever the passages are made of."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gasp_engine import GroundingChecker, Passage
from gasp_engine.scorers.table import TableScorer

DAM = "The dam opened in 1931."
BOATS = "Boats are red."


def needs(text, high=-0.01, low=-5.0):
    return TableScorer.from_log_prob(lambda q, context, i, t: high if text in context else low)


def by_length():
    """Every context makes the answer likelier by its length, so that most units are cited."""
    return TableScorer.from_log_prob(lambda q, context, i, t: -5.0 / (1 + len(context)))


pieces = st.sampled_from(
    [
        "The dam opened. ",
        "cafe\u0301 Zoe\u0308! ",
        "👩‍🔬 saw 👍🏽 it.\r\n",
        "\u00a0\u202f",
        "水库于1931年建成。",
        "title: Dams\nfile_path: /a/b.md\n\n",
        "\r\n\r\n",
        "word ",
        "It’s “shut.” ",
        "\t",
        "1,200.5 km² ",
    ]
)
texts = st.lists(st.one_of(pieces, st.text(max_size=12)), max_size=12).map("".join)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(texts, min_size=1, max_size=4),
    st.sampled_from([None, 3, 8, 200]),
    st.booleans(),
    st.sampled_from([None, 3]),
    st.integers(0, 9),
)
@example(["e\u0301" * 9 + "\r\n" + "👩‍🔬" * 9] * 2, 3, True, None, 5)
def test_every_citation_is_the_text_between_its_ends(passages, size, refine, groups, passes):
    checker = GroundingChecker(
        by_length(),
        max_unit_tokens=size,
        refine=refine,
        n_groups=groups,
        max_extra_passes=passes,
        threshold=9.0,
    )
    given_passages = [Passage(text, metadata={"start_index": 100}) for text in passages]
    report = checker.check("?", given_passages, "It opened. It is shut now.")
    for sentence in report.sentences:
        for citation in sentence.citations:
            text = passages[citation.passage_index]
            assert text[citation.start : citation.end] == citation.quote
            assert citation.quote == citation.quote.strip() != ""
            assert citation.document_start == 100 + citation.start
            assert citation.document_end == 100 + citation.end
            assert citation.passage_index not in citation.duplicates


@pytest.mark.parametrize(
    "metadata, expected",
    [
        ({"start_index": 40}, 40),
        ({"start_char_idx": 40}, 40),
        ({"start_index": 0}, 0),
        ({"start_index": -1}, None),
        ({"start_index": -1, "start_char_idx": 7}, 7),
        ({"start_index": True}, None),
        ({"start_index": "40"}, None),
        ({}, None),
    ],
)
def test_the_offset_in_the_document_is_read_where_it_means_one(metadata, expected):
    passage = Passage("  " + DAM, metadata=metadata)
    report = GroundingChecker(needs(DAM)).check("?", [BOATS, passage], DAM)
    (citation,) = report.citations
    assert (citation.start, citation.quote) == (2, DAM)
    assert citation.document_start == (None if expected is None else expected + 2)


@pytest.mark.parametrize(
    "passages, index, duplicates",
    [
        ([DAM, BOATS], 0, ()),
        ([DAM, DAM, BOATS], 0, (1,)),
        ([DAM, BOATS, DAM], 0, (2,)),
        ([DAM + "  ", DAM, BOATS], 0, (1,)),
        ([BOATS, DAM, DAM], 1, (2,)),
    ],
)
def test_copies_are_cited_once_with_the_lowest_index(passages, index, duplicates):
    report = GroundingChecker(needs(DAM, high=0.0)).check("?", passages, DAM)
    (sentence,) = report.sentences
    (citation,) = sentence.citations
    assert sentence.status == "grounded"
    assert (citation.passage_index, citation.duplicates) == (index, duplicates)
    assert citation.drop == pytest.approx(5.0)
    assert citation.quote == DAM


def test_numbers_follow_first_use_and_a_source_keeps_its_own():
    def log_prob(question, context, index, tokens):
        needed = [BOATS, DAM, BOATS][sum(tokens.offsets[index][0] >= end for end in (14, 31))]
        return -0.01 if needed in context else -5.0

    answer = "Boats are red. It opened early. So are all the boats."
    scorer = TableScorer.from_log_prob(log_prob)
    report = GroundingChecker(scorer).check("?", [DAM, BOATS], answer)
    assert [[c.id for c in s.citations] for s in report.sentences] == [["1"], ["2"], ["1"]]
    assert [c.passage_index for c in report.citations] == [1, 0]


PARAGRAPH = "It lies in the hills. The dam opened in 1931. Many birds live there. Fish too."


def test_refinement_narrows_a_unit_to_the_sentence_that_matters():
    plain, fine = (
        GroundingChecker(needs(DAM), refine=refine).check("?", [BOATS, PARAGRAPH], "In 1931.")
        for refine in (False, True)
    )
    assert [c.quote for c in plain.citations] == [PARAGRAPH]
    (citation,) = fine.citations
    assert (citation.passage_index, citation.quote) == (1, DAM)
    assert citation.drop == pytest.approx(4.99, abs=1e-4)
    assert fine.usage["extra_passes"] == 2 + 4


def test_refinement_sees_through_copies_of_the_unit():
    passages = [PARAGRAPH, BOATS, PARAGRAPH.replace(" ", "  ").upper()]

    def log_prob(question, context, index, tokens):
        return -0.01 if "the dam opened in 1931." in context.casefold().replace("  ", " ") else -5.0

    checker = GroundingChecker(TableScorer.from_log_prob(log_prob), refine=True)
    (citation,) = checker.check("?", passages, "In 1931.").citations
    assert (citation.quote, citation.duplicates) == (DAM, (2,))


def test_refinement_leaves_the_unit_whole_where_no_sentence_of_it_matters_alone():
    checker = GroundingChecker(needs("i"), refine=True)
    report = checker.check("?", ["Zzz.", "It is. It is in. It is it."], "In 1931.")
    assert [c.quote for c in report.citations] == ["It is. It is in. It is it."]


def test_refinement_of_short_units_costs_no_pass():
    report = GroundingChecker(needs(DAM), refine=True).check("?", [BOATS, DAM], "In 1931.")
    assert report.usage["extra_passes"] == 0


def test_a_unit_that_speaks_against_a_sentence_is_a_hint_and_no_citation():
    def log_prob(question, context, index, tokens):
        return -0.5 + (-4.0 if DAM not in context else 0.0) + (-1.0 if BOATS in context else 0.0)

    report = GroundingChecker(TableScorer.from_log_prob(log_prob)).check("?", [BOATS, DAM], DAM)
    (sentence,) = report.sentences
    assert [c.passage_index for c in sentence.citations] == [1]
    (against,) = sentence.extra["against"]
    assert (against["passage_index"], against["start"], against["end"]) == (0, 0, len(BOATS))
    assert against["drop"] == pytest.approx(-1.0)


def test_a_sentence_that_is_likely_by_itself_is_called_parametric():
    answer = "Paris is in France."
    for low, expected in ((-0.5, True), (-5.0, None)):
        report = GroundingChecker(needs(DAM, low=low)).check("?", [DAM], answer)
        assert report.sentences[0].extra.get("parametric") is expected


def test_passages_say_how_much_of_the_answer_leans_on_them():
    report = GroundingChecker(needs(DAM)).check("?", [BOATS, DAM, "Cats purr."], DAM)
    assert [(p.used, p.share, p.sentences) for p in report.passages] == [
        (False, 0.0, ()),
        (True, 1.0, (0,)),
        (False, 0.0, ()),
    ]


def test_token_values_cover_the_sentence_and_add_up_to_its_numbers():
    report = GroundingChecker(needs(DAM), token_values=True).check("?", [BOATS, DAM], DAM)
    (sentence,) = report.sentences
    tokens = sentence.extra["tokens"]
    assert "".join(DAM[t["start"] : t["end"]] for t in tokens) == DAM
    mean = sum(t["gap"] for t in tokens) / len(tokens)
    assert mean == pytest.approx(sentence.features["gap"], abs=1e-6)
    assert [t["drop"] for t in tokens] == pytest.approx([4.99] * len(tokens), abs=1e-4)


@pytest.mark.parametrize(
    "answer, expected",
    [
        ("It opened in 1931.[2]", [("right", 1)]),
        ("It opened in 1931.[1]", [("wrong passage", 0)]),
        ("It opened in 1931 [1, 2].", [("wrong passage", 0), ("right", 1)]),
        ("It opened in 1931.[9]", [("wrong passage", None)]),
        ("It opened in 1931 [dams].", [("right", 1)]),
        ("It opened in 1931 (Ruiz 2001).", [("right", 1)]),
        ("It opened in 1931.", None),
    ],
)
def test_each_marker_of_a_grounded_sentence_is_checked_against_the_evidence(answer, expected):
    passages = [BOATS, Passage(DAM, id="dams", title="Ruiz (2001)"), "Cats purr."]
    checker = GroundingChecker(needs(DAM), check_markers=True)
    (sentence,) = checker.check("?", passages, answer).sentences
    found = sentence.extra.get("markers")
    if expected is None:
        assert found is None
        return
    assert [(m["verdict"], m["passage_index"]) for m in found] == expected
    assert all(answer[m["start"] : m["end"]][0] in "[(" for m in found)
    assert [c.passage_index for c in sentence.citations] == [1]


def test_a_marker_on_a_flagged_sentence_is_unsupported():
    checker = GroundingChecker(needs("nowhere"), check_markers=True)
    report = checker.check("?", [BOATS, DAM], "It is blue.[1] It is big.")
    assert [s.status for s in report.sentences] == ["flagged", "flagged"]
    assert [m["verdict"] for m in report.sentences[0].extra["markers"]] == ["unsupported"]
    assert "markers" not in report.sentences[1].extra
    assert report.usage["extra_passes"] == 0


def test_a_marker_to_one_of_two_passages_that_say_the_same_is_right():
    other = "In 1931 the dam went into service."

    def log_prob(question, context, index, tokens):
        return -0.01 if DAM in context or other in context else -5.0

    checker = GroundingChecker(TableScorer.from_log_prob(log_prob), check_markers=True)
    report = checker.check("?", [BOATS, DAM, "Cats purr.", other], "It opened in 1931.[4]")
    assert [m["verdict"] for m in report.sentences[0].extra["markers"]] == ["right"]
    assert report.sentences[0].extra["markers"][0]["share"] == pytest.approx(1.0)


def test_the_answer_s_support_is_shared_out_among_passages_by_what_they_explain():
    def log_prob(question, context, index, tokens):
        needed = BOATS if tokens.offsets[index][0] < 14 else DAM
        return -0.01 if needed in context else -5.0

    checker = GroundingChecker(TableScorer.from_log_prob(log_prob))
    report = checker.check("?", [DAM, BOATS, "Cats purr."], "Boats are red. It opened in 1931.")
    shares = [p.share for p in report.passages]
    assert shares == pytest.approx([5 / 9, 4 / 9, 0.0])
    assert sum(shares) == pytest.approx(1.0)
