from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from langsmith.evaluation import EvaluationResult, run_evaluator
from langsmith.schemas import Example, Run
from lc_cases import ANSWER, BOATS, DAM, GROUNDED, INPUT, INVENTED, CountingScorer

from gasp_engine import GroundingChecker
from gasp_engine.errors import InputTypeError
from gasp_integrations.langchain import GroundingRunnable, grounding_evaluator

QUESTION = {"input": INPUT["input"]}
OUTPUTS = {"context": [DAM, BOATS], "answer": ANSWER}
TRACED = {
    "context": [
        {"page_content": d.page_content, "metadata": d.metadata, "type": "Document"}
        for d in (DAM, BOATS)
    ],
    "answer": ANSWER,
}


def run_of(inputs: dict[str, Any], outputs: dict[str, Any] | None) -> Run:
    now = datetime.now(UTC)
    identifier = uuid.uuid4()
    return Run(
        id=identifier,
        name="rag",
        run_type="chain",
        start_time=now,
        end_time=now,
        inputs=inputs,
        outputs=outputs,
        trace_id=identifier,
    )


def check_feedback(feedback: list[dict[str, Any]]) -> None:
    assert [f["key"] for f in feedback] == ["grounded", "sentence_grounded", "sentence_grounded"]
    assert [f["score"] for f in feedback] == [False, True, False]
    assert INVENTED in feedback[0]["comment"]
    assert feedback[1]["comment"].startswith(GROUNDED)
    assert feedback[1]["metadata"]["passages"] == [0]
    for item in feedback:
        EvaluationResult(**item)  # LangSmith refuses fields that it does not know


def test_inputs_and_outputs_are_enough(checker: GroundingChecker) -> None:
    check_feedback(grounding_evaluator(checker)(inputs=QUESTION, outputs=OUTPUTS))


def test_documents_of_a_trace_are_dicts(checker: GroundingChecker) -> None:
    check_feedback(grounding_evaluator(checker)(inputs=QUESTION, outputs=TRACED))


def test_a_run_is_enough(checker: GroundingChecker) -> None:
    check_feedback(grounding_evaluator(checker)(run=run_of(QUESTION, TRACED)))


def test_context_may_be_given_apart_and_the_output_may_be_text(checker: GroundingChecker) -> None:
    """The form of openevals."""
    evaluator = grounding_evaluator(checker)
    check_feedback(evaluator(inputs=QUESTION, outputs=ANSWER, context=[DAM, BOATS]))


@pytest.mark.parametrize("with_example", [False, True])
def test_langsmith_calls_it_by_the_names_of_its_arguments(
    checker: GroundingChecker, with_example: bool
) -> None:
    """Without an example LangSmith hands over `{}` as the inputs."""
    example = Example(id=uuid.uuid4(), inputs=QUESTION, outputs={"answer": "In 1931."})
    evaluator = run_evaluator(grounding_evaluator(checker))
    result: Any = evaluator.evaluate_run(
        run_of(QUESTION, TRACED), example if with_example else None
    )
    found = result["results"]
    assert [(r.key, r.score) for r in found] == [
        ("grounded", False),
        ("sentence_grounded", True),
        ("sentence_grounded", False),
    ]
    found = asyncio.run(evaluator.aevaluate_run(run_of(QUESTION, TRACED), None))["results"]  # pyright: ignore
    assert len(found) == 3


def test_the_reference_answer_is_not_mistaken_for_the_answer(checker: GroundingChecker) -> None:
    example = SimpleNamespace(inputs=QUESTION, outputs={"answer": GROUNDED})
    check_feedback(grounding_evaluator(checker)(run=run_of(QUESTION, TRACED), example=example))


def test_a_report_that_is_there_is_not_made_again(
    checker: GroundingChecker, scorer: CountingScorer
) -> None:
    outputs = GroundingRunnable(checker=checker).invoke(INPUT)
    scorer.calls.clear()
    check_feedback(grounding_evaluator(checker)(inputs=QUESTION, outputs=outputs))
    assert scorer.calls == []


def test_sentences_can_be_left_out_and_the_key_named(checker: GroundingChecker) -> None:
    evaluator = grounding_evaluator(checker, per_sentence=False, key="faithful")
    assert [f["key"] for f in evaluator(inputs=QUESTION, outputs=OUTPUTS)] == ["faithful"]


def test_an_answer_with_nothing_to_judge_has_no_score(checker: GroundingChecker) -> None:
    outputs = {"context": [DAM], "answer": "I don't know based on the context."}
    (feedback,) = grounding_evaluator(checker)(inputs=QUESTION, outputs=outputs)
    assert feedback["score"] is None
    assert feedback["comment"] == "there was nothing to judge"


def test_a_run_without_documents_says_what_is_missing(checker: GroundingChecker) -> None:
    with pytest.raises(InputTypeError, match="no 'context'"):
        grounding_evaluator(checker)(inputs=QUESTION, outputs={"answer": ANSWER})
