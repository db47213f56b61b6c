"""The whole engine on a table instead of a model: laws that hold with any scorer."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gasp_engine import CheckOptions, Example, GroundingChecker, InputError, Passage
from gasp_engine.errors import InputTypeError, NumericalError
from gasp_engine.scorers.table import TableScorer

DAM = "The dam opened in 1931."
BOATS = "Boats are red."


def needs(*texts, high=-0.01, low=-5.0, **options):
    """A scorer to which every token is likely when all `texts` stand in the context."""

    def log_prob(question, context, index, tokens):
        return high if all(text in context for text in texts) else low

    return TableScorer.from_log_prob(log_prob, **options)


def checker(*texts, **options):
    return GroundingChecker(needs(*texts), **options)


class Counting(TableScorer):
    """Counts the calls that reach the model."""

    calls = 0

    def score(self, requests):
        type(self).calls += 1
        return super().score(requests)


def test_a_sentence_that_needs_a_passage_cites_its_very_characters():
    report = checker(DAM).check("When?", [BOATS, Passage(DAM, id="d", title="Dam")], DAM)
    (sentence,) = report.sentences
    (citation,) = sentence.citations
    assert (sentence.status, citation.passage_index, citation.passage_id) == ("grounded", 1, "d")
    assert citation.quote == DAM
    assert report.grounded is True
    assert [p.used for p in report.passages] == [False, True]


def test_a_sentence_that_no_passage_changes_is_flagged_and_cites_nothing():
    report = checker("nowhere").check("When?", [BOATS, DAM], "It is painted white.")
    (sentence,) = report.sentences
    assert (sentence.status, sentence.citations, report.grounded) == ("flagged", (), False)
    assert "same with and without the sources" in sentence.reason


@pytest.mark.parametrize("answer", ["", " \r\n\t ", "\u00a0"])
def test_an_empty_answer_gives_no_sentences_and_calls_no_model(answer):
    scorer = Counting(lambda *_: np.zeros(64))
    report = GroundingChecker(scorer).check("When?", [DAM], answer)
    assert (report.sentences, report.score, report.grounded, report.citations) == (
        (),
        None,
        None,
        (),
    )
    assert Counting.calls == 0


@pytest.mark.parametrize("passages", [[], [""], ["  \n"], ["", " "]])
def test_without_sources_claims_are_flagged_without_any_pass(passages):
    scorer = Counting(lambda *_: np.zeros(64))
    report = GroundingChecker(scorer).check("Who?", passages, "The mayor is Ana Ruiz.")
    (sentence,) = report.sentences
    assert (sentence.status, sentence.citations, sentence.score) == ("flagged", (), None)
    assert "no sources" in sentence.reason
    assert report.grounded is False
    assert Counting.calls == 0


def test_a_refusal_is_no_claim_and_does_not_exempt_the_next_sentence():
    answer = "I don't know based on the context. The mayor is Ana Ruiz."
    report = checker("nowhere").check("Who is the mayor?", ["The town has a park."], answer)
    assert [(s.start, s.end, s.status) for s in report.sentences] == [
        (0, 34, "abstention"),
        (35, 57, "flagged"),
    ]
    alone = checker("nowhere").check("Who?", ["The town has a park."], answer[:34])
    assert (alone.grounded, alone.flagged, alone.citations) == (None, (), ())


@pytest.mark.parametrize(
    "question, passages, answer, named",
    [
        ("q", "one string", "a", ["passages", "list"]),
        ("q", [None, "ok"], "a", ["passages[0]", "NoneType"]),
        ("q", ["ok", 3], "a", ["passages[1]", "int"]),
        ("q", [{"txt": "a"}], "a", ['passages[0]["text"]', "NoneType"]),
        ("q", {"text": "a"}, "a", ["passages", "list"]),
        ("q", None, "a", ["passages", "list"]),
        ("q", ["ok"], None, ["answer", "NoneType"]),
        (None, ["ok"], "a", ["question", "NoneType"]),
        ("q", ["ok"], b"a", ["answer", "bytes"]),
    ],
)
def test_wrong_shapes_are_type_errors_that_name_the_argument(question, passages, answer, named):
    with pytest.raises(TypeError) as caught:
        checker(DAM).check(question, passages, answer)
    assert all(name in str(caught.value) for name in named)
    assert isinstance(caught.value, InputTypeError)


@pytest.mark.parametrize(
    "passages, lowest, duplicates",
    [
        ([DAM, BOATS], 0, ()),
        ([DAM, DAM, BOATS], 0, (1,)),
        ([DAM, BOATS, DAM], 0, (2,)),
        ([DAM + "  ", DAM, BOATS], 0, (1,)),
        ([BOATS, DAM.upper(), DAM], 1, (2,)),
    ],
)
def test_copies_of_a_passage_are_removed_together(passages, lowest, duplicates):
    def log_prob(question, context, index, tokens):
        return 0.0 if DAM.casefold() in context.casefold() else -5.0

    report = GroundingChecker(TableScorer.from_log_prob(log_prob)).check("When?", passages, DAM)
    (sentence,) = report.sentences
    (citation,) = sentence.citations
    assert sentence.status == "grounded"
    assert citation.drop == pytest.approx(5.0)
    assert (citation.passage_index, citation.duplicates) == (lowest, duplicates)


@pytest.mark.parametrize("n_filler", [20, 4000])
@pytest.mark.parametrize("year, status", [("1999", "flagged"), ("1931", "grounded")])
def test_evidence_longer_than_the_window_is_never_cut_in_silence(n_filler, year, status):
    def log_prob(question, context, index, tokens):
        return -0.01 if f"opened in {year}" in context else -5.0

    scorer = TableScorer.from_log_prob(log_prob, max_tokens=256)
    passages = ["filler " * n_filler, "The tower opened in 1931."]
    report = GroundingChecker(scorer).check("When?", passages, f"The tower opened in {year}.")
    (sentence,) = report.sentences
    assert sentence.status == status
    assert sentence.features["n_tokens"] == 6
    assert [c.passage_index for c in sentence.citations] == ([1] if status == "grounded" else [])
    if n_filler == 4000:
        assert any("passages[0]" in w and "4000 tokens" in w for w in report.warnings)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_an_error_that_names_token_condition_and_dtype(value):
    def logits(question, context, index, tokens):
        row = np.zeros(64)
        if index == 2 and not context:
            row[:] = value
        return row

    with pytest.raises(NumericalError) as caught:
        GroundingChecker(TableScorer(logits, dtype=np.float16)).check("q", [DAM], DAM)
    assert all(part in str(caught.value) for part in ("token 2", "none", "float16"))


def test_single_batch_and_async_give_the_same_report():
    check = checker(DAM)
    examples = [Example("q", [BOATS, DAM], DAM), Example("q", [DAM], BOATS), Example("q", [], DAM)]
    single = [check.check(e.question, e.passages, e.answer) for e in examples]
    assert check.check_many(examples) == single
    assert asyncio.run(check.acheck_many(examples)) == single

    async def gathered():
        inside = check.check("q", [DAM], DAM)
        many = await asyncio.gather(*(check.acheck("q", [DAM], DAM) for _ in range(20)))
        return [inside, *many]

    assert set(r.to_json() for r in asyncio.run(gathered())) == {
        check.check("q", [DAM], DAM).to_json()
    }


def test_many_threads_get_the_serial_results():
    check = checker(DAM)
    answers = ["Yes.", f"{DAM} " * 40] * 12
    serial = [check.check("q", [BOATS, DAM], a).to_json() for a in answers]
    with ThreadPoolExecutor(16) as pool:
        jobs = [pool.submit(check.check, "q", [BOATS, DAM], a) for a in answers * 4]
    assert [j.result().to_json() for j in jobs] == serial * 4


def test_permuting_passages_permutes_the_citations():
    texts = [BOATS, DAM, "Cats sleep."]
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        report = checker(DAM).check("q", [texts[i] for i in order], DAM)
        assert report.sentences[0].citations[0].passage_index == order.index(1)


def test_two_passes_give_the_verdict_without_leaving_anything_out():
    report = checker(DAM, passes="two").check("q", [BOATS, DAM], DAM)
    (sentence,) = report.sentences
    assert sentence.status == "grounded"
    assert report.usage["conditions"] == 2
    assert sentence.features["drop_max"] is None


def test_the_callers_passages_are_never_changed():
    passages = [{"text": DAM, "id": 7, "metadata": {"start_index": 100}}]
    report = checker(DAM).check("q", passages, DAM)
    assert passages == [{"text": DAM, "id": 7, "metadata": {"start_index": 100}}]
    citation = report.sentences[0].citations[0]
    assert (citation.document_start, citation.document_end) == (100, 123)
    assert citation.passage_id == "7"


def test_long_passages_are_cut_at_sentence_ends_and_cited_in_part():
    filler = "Nothing happens here at all today. " * 30
    text = filler + DAM + " " + filler
    report = checker(DAM, max_unit_tokens=40).check("q", [text], DAM)
    (citation,) = report.sentences[0].citations
    assert DAM in citation.quote
    assert len(citation.quote) < 400
    assert text[citation.start : citation.end] == citation.quote


def test_the_paper_profile_cuts_what_the_paper_cuts_and_says_so():
    options = CheckOptions.paper(max_context_tokens=50)
    report = checker(DAM, options=options).check("q", [DAM, "word " * 300], DAM)
    assert any("passages[1] was cut" in w for w in report.warnings)
    short = checker(DAM, options=options).check("q", [DAM], "Yes. " + DAM)
    assert [s.status for s in short.sentences] == ["unscored", "grounded"]


@pytest.mark.parametrize("changes", [{"passes": "three"}, {"max_units": 0}, {"n_groups": -1}])
def test_options_out_of_range_are_refused(changes):
    with pytest.raises(InputError, match=next(iter(changes))):
        CheckOptions(**changes)


def test_a_scorer_without_a_profile_says_how_to_calibrate():
    report = checker(DAM).check("q", [DAM], DAM)
    assert any("gasp-engine calibrate" in w for w in report.warnings)
    assert report.detector["profile"] is None


def test_every_report_is_strict_json():
    for passages in ([], [DAM], [DAM, BOATS, DAM]):
        for answer in ("", DAM, "# Head\n\n- a\n- b\n\n```\nx\n```\nI cannot tell."):
            text = checker(DAM).check("q", passages, answer).to_json()
            assert json.loads(text)["version"] == 1
