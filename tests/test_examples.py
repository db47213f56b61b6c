"""The examples: the corpus holds together, the chains run, the demo finds what was planted."""

from __future__ import annotations

from collections import Counter

import pytest

from examples import demo
from examples.documents import KeywordSearch, load_corpus, prepared_answers, words
from gasp_engine import GroundingChecker, Report


@pytest.fixture(scope="module")
def search() -> KeywordSearch:
    """The index over the whole corpus."""
    return KeywordSearch(load_corpus())


def test_the_corpus_is_thirty_titled_passages_on_five_subjects() -> None:
    passages = load_corpus()
    assert len(passages) == 30
    assert len({p.id for p in passages}) == 30
    assert Counter((p.id or "").split("/")[0] for p in passages) == {
        "korbel-hut": 6,
        "lumaro-c4": 6,
        "museum-of-tides": 6,
        "tarn-hollow": 6,
        "velmora-tram": 6,
    }
    assert all(p.title and p.text and "\n" not in p.text for p in passages)


def test_prepared_answers_name_passages_that_exist_and_that_the_search_finds(
    search: KeywordSearch,
) -> None:
    for prepared in prepared_answers():
        found = {p.id for p, _ in search.search(prepared.question)}
        needed = {source for s in prepared.sentences for source in s.sources}
        assert needed <= found, prepared.question


def test_a_prepared_sentence_is_planted_or_has_a_source_and_never_both() -> None:
    for prepared in prepared_answers():
        for sentence in prepared.sentences:
            assert bool(sentence.sources) != bool(sentence.fault), sentence
        assert any(s.fault == "invented" for s in prepared.sentences)


def test_the_best_passage_for_its_own_title_is_that_passage(search: KeywordSearch) -> None:
    for passage in search.passages:
        assert search.search(passage.title or "", 1)[0][0] is passage


def test_words_fold_case_and_plurals() -> None:
    assert words("Trams, a TRAM; as is") == ["tram", "a", "tram", "as", "is"]


@pytest.mark.model
def test_planted_sentences_rank_lowest_and_grounded_ones_cite_the_right_passage(
    search: KeywordSearch, embedded_checker: GroundingChecker
) -> None:
    tallies: list[demo.Tally] = []
    for prepared in prepared_answers():
        passages = [p for p, _ in search.search(prepared.question)]
        report = embedded_checker.check(prepared.question, passages, prepared.text)
        tallies.append(demo.tally(prepared, report))
    for result in tallies:
        assert result.ranked
        assert result.count("invented", "flagged") == result.count("invented")
        assert result.cited == result.count("grounded", "grounded")
        assert result.cited >= result.grounded - 1
    assert sum(t.cited for t in tallies) >= 18
    assert sum(t.grounded for t in tallies) == 20


@pytest.mark.model
@pytest.mark.slow
def test_both_chains_answer_and_carry_a_report(
    search: KeywordSearch, embedded_checker: GroundingChecker
) -> None:
    from examples import langchain_rag, llama_index_rag, local_llm

    chain = langchain_rag.build_checked_chain(
        local_llm.langchain_llm(), langchain_rag.KeywordRetriever(index=search), embedded_checker
    )
    result = chain.invoke({"input": demo.QUESTION})
    assert [d.id for d in result["context"]] == [p.id for p, _ in search.search(demo.QUESTION, 4)]
    report = Report.from_dict(result["grounding"])
    assert report.answer == result["answer"]
    assert any(s.citations for s in report.sentences)

    engine = llama_index_rag.build_query_engine(
        local_llm.llama_index_llm(), llama_index_rag.KeywordRetriever(search), embedded_checker
    )
    response = engine.query(demo.QUESTION)
    report = Report.from_dict(response.metadata["grounding"])
    assert report.answer == response.response
    assert [n.node_id for n in response.source_nodes] == [p.id for p in report.passages]


@pytest.mark.model
def test_the_demo_says_how_many_of_each_kind_it_got(
    search: KeywordSearch,
    embedded_checker: GroundingChecker,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tallies = demo.show_prepared(search, embedded_checker)
    shown = capsys.readouterr().out
    first = tallies[0]
    assert f"{first.count('invented', 'flagged')} of 2 planted sentences flagged" in shown
    assert f"{first.count('grounded', 'grounded')} of 4 grounded ones kept" in shown
    assert f"{sum(t.cited for t in tallies)} of 20 grounded sentences cite" in shown
    assert f"{sum(t.count('changed', 'flagged') for t in tallies)} of  2 changed sentences" in shown
    assert shown.count("<- planted: invented") == 2
