"""The examples run as they are: on a canned generator, and with a real one on the real scorer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from llama_parts import CannedLLM, canned, word_checker

sys.path.insert(0, str(Path(__file__).parents[3]))

from examples import (
    llama_index_batch_eval,
    llama_index_chat,
    llama_index_query_engine,
    llama_index_subquestion,
    llama_index_workflow,
)

RUNNER = pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")


def lines_with(text: str, mark: str) -> list[str]:
    return [line for line in text.splitlines() if mark in line]


def test_the_query_engine_prints_verdicts_and_then_the_sources(capsys):
    llm = canned(
        "Line 2 runs from Quarry Gate to the Salt Market. Purple elephants juggle quietly."
    )
    llama_index_query_engine.main(llm=llm, checker=word_checker())
    out = capsys.readouterr().out
    assert len(lines_with(out, "    [grounded] Line 2 runs")) == 1
    assert len(lines_with(out, "    [flagged] Purple elephants")) == 1
    assert "[1] Velmora tram" in out


def test_the_chat_prints_the_verdicts_of_every_turn(capsys):
    llm = canned("The Korbel hut stands at 2,340 metres.")
    llama_index_chat.main(llm=llm, checker=word_checker())
    out = capsys.readouterr().out
    assert len(lines_with(out, "> ")) >= 2
    # The second turn's passages do not say it.
    assert [line.split("]")[0].strip() for line in lines_with(out, "    [")] == [
        "[grounded",
        "[flagged",
    ]


@RUNNER
def test_the_batch_evaluation_prints_one_result_an_answer(capsys):
    llama_index_batch_eval.main(word_checker())
    assert len(lines_with(capsys.readouterr().out, "score ")) == 5


def test_the_sub_question_engine_checks_the_parts_and_the_whole(capsys):
    class Answers(CannedLLM):
        def complete(self, prompt, formatted=False, **kwargs):
            is_hut = "How are beds in the Korbel hut booked?\n" in prompt + "\n"
            self.text = "Beds are booked by telephone." if is_hut else "A ticket costs 2.60 crowns."
            return super().complete(prompt, formatted, **kwargs)

    llm = Answers()
    llama_index_subquestion.main(llm=llm, checker=word_checker())
    parts, whole = capsys.readouterr().out.split("The answer, against the sub-answers:")
    assert "velmora-tram/fares" in parts
    assert "[grounded]" in whole
    assert "source_nodes[1]" in whole


def test_the_workflow_writes_an_unsupported_answer_anew_once():
    llm = canned("Purple elephants juggle quietly.")
    response = asyncio.run(llama_index_workflow.run(llm, word_checker()))
    assert response.metadata["grounding"]["grounded"] is False
    assert len(llm.calls) == 2
    good = canned("Tarn Hollow observatory.")
    response = asyncio.run(llama_index_workflow.run(good, word_checker()))
    assert response.metadata["grounding"]["grounded"] is True
    assert len(good.calls) == 1


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_query_engine_runs_with_a_local_generator_and_the_real_scorer(embedded_checker, capsys):
    pytest.importorskip("llama_index.llms.huggingface")
    llama_index_query_engine.main(checker=embedded_checker)
    out = capsys.readouterr().out
    assert lines_with(out, "    [grounded] ") or lines_with(out, "    [flagged] ")


@RUNNER
@pytest.mark.model
@pytest.mark.slow
def test_the_planted_faults_are_named_in_the_feedback(embedded_checker, capsys):
    llama_index_batch_eval.main(embedded_checker)
    out = capsys.readouterr().out
    assert len(lines_with(out, "fails, score ")) >= 4
