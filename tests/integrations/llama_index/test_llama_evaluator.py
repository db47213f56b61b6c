"""The evaluator: by hand, under a running loop, in batches, over every type of response."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.evaluation import BatchEvalRunner, EvaluationResult
from llama_parts import (
    ANSWER,
    BOATS,
    DAM,
    NONSENSE,
    VOCABULARY,
    engine_over,
    failing,
    likely_if_in_context,
    node,
    word_checker,
)

from gasp_engine.errors import InputError, InputTypeError
from gasp_integrations.llama_index import (
    GroundingEvaluationResult,
    GroundingEvaluator,
    GroundingQueryEngine,
)


class Fact(BaseModel):
    note: str


@pytest.fixture
def evaluator(checker):
    return GroundingEvaluator(checker=checker)


def evaluate(evaluator, how, *args, **kwargs):
    if how == "sync":
        return evaluator.evaluate(*args, **kwargs)
    return asyncio.run(evaluator.aevaluate(*args, **kwargs))


RUNNER = pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")
"""`BatchEvalRunner` itself calls a function of LlamaIndex that is deprecated."""
HOW = pytest.mark.parametrize("how", ["sync", "async"])


@HOW
def test_a_grounded_answer_passes(evaluator, how):
    result = evaluate(evaluator, how, "When?", DAM, [DAM, BOATS])
    assert isinstance(result, GroundingEvaluationResult)
    assert isinstance(result, EvaluationResult)
    assert (result.passing, result.invalid_result) == (True, False)
    assert (result.query, result.response, result.contexts) == ("When?", DAM, [DAM, BOATS])
    assert result.feedback == "1 of 1 sentences rest on the sources."
    assert [s["status"] for s in result.sentences] == ["grounded"]
    assert result.sentences[0]["citations"][0]["source_index"] == 0


@HOW
def test_an_unsupported_sentence_fails_and_the_feedback_names_it(evaluator, how):
    result = evaluate(evaluator, how, "When?", ANSWER, [DAM, BOATS])
    assert result.passing is False
    assert result.feedback.startswith("1 of 2 sentences do not rest on the sources:\n")
    assert '- "Purple elephants juggle quietly.": ' in result.feedback
    assert [s["text"] for s in result.flagged] == ["Purple elephants juggle quietly."]
    assert result.grounding["complete"] is True


def test_a_higher_score_is_better(evaluator):
    good = evaluator.evaluate("When?", DAM, [DAM])
    mixed = evaluator.evaluate("When?", ANSWER, [DAM])
    bad = evaluator.evaluate("When?", "Purple elephants juggle quietly.", [DAM])
    assert good.score > mixed.score > bad.score
    assert good.score == -good.grounding["score"]


def test_a_calibrated_score_is_the_probability_of_support():
    from gasp_integrations.llama_index.evaluator import _higher_is_better

    assert _higher_is_better({"probability": 0.25, "score": 3.0}) == 0.75
    assert _higher_is_better({"probability": None, "score": None}) is None


# Errors


@HOW
def test_a_runtime_error_is_not_taken_for_a_nested_loop(how):
    broken = GroundingEvaluator(word_checker(failing(RuntimeError("CUDA out of memory"))))
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        evaluate(broken, how, "When?", DAM, [DAM])


def test_a_runtime_error_in_a_running_loop_is_not_taken_for_a_nested_one():
    broken = GroundingEvaluator(word_checker(failing(RuntimeError("CUDA out of memory"))))

    async def run():
        broken.evaluate("When?", DAM, [DAM])

    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        asyncio.run(run())


@pytest.mark.parametrize("missing", ["response", "contexts"])
@HOW
def test_none_is_a_value_error_that_names_the_argument(evaluator, how, missing):
    given = {"query": "When?", "response": DAM, "contexts": [DAM], missing: None}
    with pytest.raises(ValueError, match=f"{missing} must be given, got None"):
        evaluate(evaluator, how, **given)


def test_wrong_types_are_named(evaluator):
    with pytest.raises(InputTypeError, match="contexts must be a list of str, got str"):
        evaluator.evaluate("When?", DAM, DAM)
    with pytest.raises(InputTypeError, match=r"contexts\[1\] must be str, got NoneType"):
        evaluator.evaluate("When?", DAM, [DAM, None])
    with pytest.raises(InputTypeError, match="Use evaluate_response"):
        evaluator.evaluate("When?", Response(DAM), [DAM])
    with pytest.raises(ValueError, match="response must be given, got None"):
        evaluator.evaluate_response("When?", None)


INVALID = [
    (DAM, [], "there is no evidence"),
    (DAM, ["", " \n"], "there is no evidence"),
    ("Empty Response", [], "nothing was retrieved"),
    ("", [DAM], "the answer is empty"),
    (" \r\n\t ", [DAM], "the answer is empty"),
    ("I don't know based on the context.", [DAM], "declines to answer"),
    ("# Heading", [DAM], "no claim"),
]


@HOW
@pytest.mark.parametrize("answer, contexts, reason", INVALID)
def test_what_cannot_be_judged_is_an_invalid_result_and_no_error(
    evaluator, how, answer, contexts, reason
):
    result = evaluate(evaluator, how, "When?", answer, contexts)
    assert result.invalid_result is True
    assert reason in result.invalid_reason
    assert reason in result.feedback
    assert (result.passing, result.score) == (None, None)
    assert result.response == answer


def test_a_refusal_does_not_exempt_the_next_sentence():
    evaluator = GroundingEvaluator(word_checker(lambda *_: np.zeros(VOCABULARY)))
    answer = "I don't know based on the context. The mayor is Ana Ruiz."
    result = evaluator.evaluate("Who is the mayor?", answer, ["The town has a park."])
    assert (result.passing, result.invalid_result) == (False, False)
    assert [(s["start"], s["end"]) for s in result.flagged] == [(35, 57)]


# Responses of every type


def stream():
    yield from ("The dam opened ", "in 1931. ", "Purple elephants juggle quietly.")


async def astream():
    for token in stream():
        yield token


def make(kind, source_nodes):
    return {
        "Response": lambda: Response(ANSWER, source_nodes),
        "PydanticResponse": lambda: PydanticResponse(Fact(note=NONSENSE), source_nodes),
        "StreamingResponse": lambda: StreamingResponse(stream(), source_nodes),
        "AsyncStreamingResponse": lambda: AsyncStreamingResponse(astream(), source_nodes),
        "AgentChatResponse": lambda: AgentChatResponse(ANSWER, source_nodes=source_nodes),
    }[kind]()


KINDS = pytest.mark.parametrize(
    "kind",
    [
        "Response",
        "PydanticResponse",
        "StreamingResponse",
        "AsyncStreamingResponse",
        "AgentChatResponse",
    ],
)


@HOW
@KINDS
def test_a_response_of_every_type_can_be_evaluated(evaluator, nodes, kind, how):
    if how == "sync":
        result = evaluator.evaluate_response("When?", make(kind, nodes))
    else:

        async def run():
            return await evaluator.aevaluate_response("When?", make(kind, nodes))

        result = asyncio.run(run())
    assert result.passing is False
    assert "Purple elephants juggle quietly." in result.flagged[-1]["text"]
    assert result.contexts[0].startswith("file_name: a.pdf")


@KINDS
def test_a_response_can_be_evaluated_twice(evaluator, nodes, kind):
    response = make(kind, nodes)
    assert evaluator.evaluate_response("?", response) == evaluator.evaluate_response("?", response)


def test_support_that_stands_only_in_the_metadata_counts(evaluator):
    items = [node(BOATS, metadata={"author": "Ingrid Lindqvist"})]
    result = evaluator.evaluate_response("Who?", Response("Ingrid Lindqvist", items))
    assert result.passing is True


def test_nodes_that_a_checked_response_marks_as_not_shown_are_left_out(evaluator, checker, nodes):
    from llama_index.core.schema import QueryBundle

    engine = GroundingQueryEngine(engine_over([]), checker)
    extra = [node("Purple elephants juggle quietly.")]
    response = engine.synthesize(QueryBundle("When?"), nodes, extra)
    assert len(response.source_nodes) == 3
    assert evaluator.evaluate_response("When?", response).passing is False
    response.metadata = None
    assert evaluator.evaluate_response("When?", response).passing is True


def test_an_unsupported_answer_never_passes_on_its_own_word(evaluator):
    # run-llama/llama_index#14753, #7883
    answer = "Purple elephants juggle quietly. YES."
    assert evaluator.evaluate("When?", answer, [DAM]).passing is False


# Loops, threads, batches


def test_evaluation_works_in_a_running_loop_as_under_fastapi_or_in_a_notebook(evaluator, nodes):
    # run-llama/llama_index#18049
    async def handler():
        direct = evaluator.evaluate("When?", ANSWER, [DAM])
        response = evaluator.evaluate_response("When?", make("StreamingResponse", nodes))
        later = await evaluator.aevaluate("When?", ANSWER, [DAM])
        return direct, response, later

    direct, response, later = asyncio.run(handler())
    assert direct == later
    assert response.passing is False


def test_an_async_stream_in_a_running_loop_names_the_way_that_works(evaluator, nodes):
    async def handler():
        with pytest.raises(InputError, match=r"await evaluator\.aevaluate_response"):
            evaluator.evaluate_response("When?", make("AsyncStreamingResponse", nodes))

    asyncio.run(handler())


def test_the_event_loop_goes_on_while_an_answer_is_scored():
    def slow(question, context, index, tokens):
        time.sleep(0.005)
        return likely_if_in_context(question, context, index, tokens)

    evaluator = GroundingEvaluator(word_checker(slow))

    async def run():
        task = asyncio.create_task(evaluator.aevaluate("When?", ANSWER, [DAM]))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.002)
            ticks += 1
        return ticks, await task

    ticks, result = asyncio.run(run())
    assert ticks > 5
    assert result.passing is False


@pytest.mark.timeout(300)
def test_sixteen_threads_get_the_serial_results(evaluator):
    long = " ".join([DAM, BOATS] * 20)
    jobs = [("Yes.", [DAM]) if i % 2 else (long, [DAM]) for i in range(16 * 25)]
    expected = [evaluator.evaluate("When?", *jobs[i]) for i in (0, 1)]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda job: evaluator.evaluate("When?", *job), jobs))
    assert all(result == expected[i % 2] for i, result in enumerate(results))


def test_twenty_evaluations_can_be_gathered(evaluator):
    async def run():
        return await asyncio.gather(
            *(evaluator.aevaluate("When?", ANSWER, [DAM]) for _ in range(20))
        )

    results = asyncio.run(run())
    assert all(result == results[0] for result in results)


@pytest.mark.timeout(120)
@RUNNER
def test_batches_give_a_result_for_every_kind_of_answer_without_retries(evaluator, nodes):
    async def run():
        runner = BatchEvalRunner({"grounding": evaluator}, workers=4)
        return await runner.aevaluate_response_strs(
            queries=["When?"] * (2 + len(INVALID)),
            response_strs=[DAM, ANSWER] + [answer for answer, _, _ in INVALID],
            contexts_list=[[DAM], [DAM]] + [contexts for _, contexts, _ in INVALID],
        )

    began = time.monotonic()
    results = asyncio.run(run())["grounding"]
    assert time.monotonic() - began < 4, "a retry waits at least four seconds"
    assert [r.passing for r in results[:2]] == [True, False]
    assert all(r.invalid_result for r in results[2:])


@pytest.mark.timeout(120)
@RUNNER
def test_batches_run_over_a_query_engine(evaluator, nodes):
    async def run():
        runner = BatchEvalRunner({"grounding": evaluator}, workers=2)
        return await runner.aevaluate_queries(engine_over(nodes), queries=["When?", "What?"])

    assert [r.passing for r in asyncio.run(run())["grounding"]] == [False, False]


def test_the_evaluator_has_no_prompts_and_says_what_it_is(evaluator, checker):
    assert evaluator.get_prompts() == {}
    evaluator.update_prompts({})
    assert GroundingEvaluator.class_name() == "GroundingEvaluator"
    assert isinstance(GroundingEvaluator.from_defaults(checker), GroundingEvaluator)


def test_a_result_survives_a_round_trip_with_its_sentences(evaluator):
    result = evaluator.evaluate("When?", ANSWER, [DAM])
    again = GroundingEvaluationResult.model_validate_json(result.model_dump_json())
    assert again == result
    assert len(again.sentences) == 2
