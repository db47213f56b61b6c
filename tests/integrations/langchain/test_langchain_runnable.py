from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import (
    ConfigurableField,
    RunnableGenerator,
    RunnableLambda,
    RunnablePassthrough,
)
from langchain_core.runnables.utils import AddableDict
from lc_cases import ANSWER, BOATS, DAM, GROUNDED, INPUT, INVENTED, CountingScorer, ScriptedModel
from pydantic import ValidationError

from gasp_engine import GroundingChecker, InputError
from gasp_engine.errors import InputTypeError, ModelLoadError, NumericalError
from gasp_integrations.langchain import GroundingRunnable
from gasp_integrations.langchain import _engines as engines
from gasp_integrations.langchain._convert import passages_of


def statuses(report: dict[str, Any]) -> list[str]:
    return [sentence["status"] for sentence in report["sentences"]]


def finding(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what it cost: a stream runs the same tokens in another order."""
    return {key: value for key, value in report.items() if key != "usage"}


@pytest.fixture
def runnable(checker: GroundingChecker) -> GroundingRunnable:
    return GroundingRunnable(checker=checker)


@pytest.fixture
def expected(checker: GroundingChecker) -> dict[str, Any]:
    return checker.check(INPUT["input"], passages_of(INPUT["context"]), ANSWER).to_dict()


# --- one report, whichever way it is asked for


def test_the_output_is_the_input_and_a_plain_report(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    before = dict(INPUT)
    output = runnable.invoke(INPUT)
    assert output == {**INPUT, "grounding": expected}
    assert before == INPUT
    assert type(output["grounding"]) is dict
    assert statuses(output["grounding"]) == ["grounded", "flagged"]


async def _collect(runnable: Any, method: str) -> dict[str, Any]:
    if method == "invoke":
        return runnable.invoke(INPUT)
    if method == "ainvoke":
        return await runnable.ainvoke(INPUT)
    if method == "batch":
        return runnable.batch([INPUT, INPUT])[1]
    if method == "abatch":
        return (await runnable.abatch([INPUT, INPUT]))[1]
    total: Any = None
    if method == "stream":
        for chunk in runnable.stream(INPUT):
            total = chunk if total is None else total + chunk
    else:
        async for chunk in runnable.astream(INPUT):
            total = chunk if total is None else total + chunk
    return total


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["invoke", "ainvoke", "batch", "abatch", "stream", "astream"])
async def test_every_way_of_calling_gives_the_report_of_the_engine(
    runnable: GroundingRunnable, expected: dict[str, Any], method: str
) -> None:
    assert (await _collect(runnable, method)) == {**INPUT, "grounding": expected}


@pytest.mark.asyncio
@pytest.mark.model
async def test_every_way_of_calling_gives_the_report_of_the_engine_with_a_real_model(
    embedded_checker: GroundingChecker,
) -> None:
    expected = embedded_checker.check(
        INPUT["input"], passages_of(INPUT["context"]), ANSWER
    ).to_dict()
    for method in ("invoke", "ainvoke", "batch", "abatch", "stream", "astream"):
        report = (await _collect(GroundingRunnable(checker=embedded_checker), method))["grounding"]
        assert statuses(report) == statuses(expected)
        for found, wanted in zip(report["sentences"], expected["sentences"], strict=True):
            assert found["score"] == pytest.approx(wanted["score"], abs=1e-4)
            assert [c["quote"] for c in found["citations"]] == [
                c["quote"] for c in wanted["citations"]
            ]


# --- batches


def answered(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "context": [DAM, BOATS], "answer": ANSWER}


def test_a_chain_over_six_inputs_makes_one_call_of_the_engine(
    runnable: GroundingRunnable, scorer: CountingScorer
) -> None:
    chain = RunnableLambda(answered) | runnable
    outputs = chain.batch([{"input": f"Question {i}?"} for i in range(6)])
    assert scorer.calls == [6]
    assert [o["grounding"]["question"] for o in outputs] == [f"Question {i}?" for i in range(6)]


@pytest.mark.asyncio
async def test_an_asynchronous_chain_over_six_inputs_makes_one_call_of_the_engine(
    runnable: GroundingRunnable, scorer: CountingScorer
) -> None:
    chain = RunnableLambda(answered) | runnable
    await chain.abatch([{"input": f"Question {i}?"} for i in range(6)])
    assert scorer.calls == [6]


def test_max_concurrency_bounds_how_many_answers_go_into_one_call(
    runnable: GroundingRunnable, scorer: CountingScorer
) -> None:
    outputs = runnable.batch([INPUT] * 5, {"max_concurrency": 2})
    assert scorer.calls == [2, 2, 1]
    assert len(outputs) == 5


def test_assign_checks_one_by_one_and_adds_the_report_alone_with_pick(
    runnable: GroundingRunnable, scorer: CountingScorer, expected: dict[str, Any]
) -> None:
    scorer.calls.clear()
    chain = RunnableLambda(answered) | RunnablePassthrough.assign(
        grounding=runnable.pick("grounding")
    )
    outputs = chain.batch([{"input": INPUT["input"]}] * 6)
    assert scorer.calls == [1] * 6
    assert outputs[5]["grounding"] == expected


def test_one_bad_input_does_not_take_the_others_of_its_batch_with_it(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    outputs = runnable.batch([INPUT, {"input": "no answer"}, INPUT], return_exceptions=True)
    assert isinstance(outputs[1], InputTypeError)
    assert outputs[0]["grounding"] == outputs[2]["grounding"] == expected
    with pytest.raises(InputTypeError, match="no 'answer', 'context'"):
        runnable.batch([INPUT, {"input": "no answer"}])


def test_when_a_call_fails_its_answers_are_checked_one_by_one(
    runnable: GroundingRunnable, scorer: CountingScorer
) -> None:
    scorer.error = NumericalError("token 2")
    outputs = runnable.batch([INPUT, INPUT], return_exceptions=True)
    assert all(isinstance(output, NumericalError) for output in outputs)
    assert scorer.calls == [2, 1, 1]


def test_an_empty_batch_is_empty(runnable: GroundingRunnable, scorer: CountingScorer) -> None:
    assert runnable.batch([]) == []
    assert scorer.calls == []


# --- streams


def pieces(text: str) -> list[str]:
    return [text[i : i + 7] for i in range(0, len(text), 7)]


def retrieval_chain_stream(text: str = ANSWER) -> list[AddableDict]:
    """What `create_retrieval_chain` streams: the input, the documents, the answer in pieces."""
    return [
        AddableDict(input=INPUT["input"]),
        AddableDict(context=[DAM, BOATS]),
        *[AddableDict(answer=piece) for piece in pieces(text)],
    ]


def test_every_chunk_goes_through_unchanged_and_before_the_check(
    runnable: GroundingRunnable, scorer: CountingScorer, expected: dict[str, Any]
) -> None:
    scorer.calls.clear()
    events: list[str] = []
    chunks = retrieval_chain_stream()

    def source() -> Iterator[dict[str, Any]]:
        for chunk in chunks:
            events.append("made")
            yield chunk

    outputs = []
    for output in runnable.transform(source()):
        events.append("got")
        outputs.append(output)
        if "grounding" not in output:
            assert len(outputs) == events.count("made"), "a chunk was held back"
    assert outputs[:-1] == chunks
    assert list(outputs[-1]) == ["grounding"]
    assert finding(outputs[-1]["grounding"]) == finding(expected)
    assert "".join(o.get("answer", "") for o in outputs) == ANSWER


@pytest.mark.asyncio
async def test_asynchronous_chunks_go_through_one_by_one(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    made = 0

    async def source() -> AsyncIterator[dict[str, Any]]:
        nonlocal made
        for chunk in retrieval_chain_stream():
            made += 1
            yield chunk

    got: list[dict[str, Any]] = []
    async for output in runnable.atransform(source()):
        got.append(output)
        if "grounding" not in output:
            assert len(got) == made, "a chunk was held back"
    assert list(got[-1]) == ["grounding"]
    assert finding(got[-1]["grounding"]) == finding(expected)


def test_a_streamed_chain_adds_up_to_what_invoke_gives(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    def tokens(_: Iterator[Any]) -> Iterator[str]:
        yield from pieces(ANSWER)

    chain = (
        RunnablePassthrough.assign(context=lambda _: [DAM, BOATS])
        | RunnablePassthrough.assign(answer=RunnableGenerator(tokens))
        | runnable
    )
    total: Any = None
    for chunk in chain.stream({"input": INPUT["input"]}):
        total = chunk if total is None else total + chunk
    total["grounding"]["usage"] = expected["usage"]
    assert total == chain.invoke({"input": INPUT["input"]}) == {**INPUT, "grounding": expected}


def test_assign_streams_the_tokens_and_then_the_report(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    def rag(_: Iterator[Any]) -> Iterator[dict[str, Any]]:
        yield from retrieval_chain_stream()

    chain = RunnableGenerator(rag) | RunnablePassthrough.assign(
        grounding=runnable.pick("grounding")
    )
    chunks = list(chain.stream({}))
    assert [c["answer"] for c in chunks if "answer" in c] == pieces(ANSWER)
    (report,) = [c["grounding"] for c in chunks if "grounding" in c]
    assert finding(report) == finding(expected)


def test_a_stream_of_plain_dicts_is_put_together(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    plain = [dict(chunk) for chunk in retrieval_chain_stream()]
    last = list(runnable.transform(iter(plain)))[-1]
    assert finding(last["grounding"]) == finding(expected)


def test_message_chunks_are_put_together(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    chunks = [dict(INPUT, answer=AIMessageChunk(content=""))]
    chunks += [{"answer": AIMessageChunk(content=piece)} for piece in pieces(ANSWER)]
    last = list(runnable.transform(iter(chunks)))[-1]
    assert finding(last["grounding"]) == finding(expected)


CUT = "The fee is 3.5 EUR. Pay by Friday.\n\nCall us"
CUTS = [
    ["The fee is 3", ".", "5 EUR", ". Pay by Fri", "day.\n", "\nCall us"],
    list(CUT),
    [CUT],
    [CUT[:13], CUT[13:14], CUT[14:30], CUT[30:]],
    [CUT[:1], "", CUT[1:36], CUT[36:]],
]


@pytest.mark.parametrize("cut", CUTS)
def test_where_a_stream_is_cut_changes_nothing(runnable: GroundingRunnable, cut: list[str]) -> None:
    """Hard input 33."""
    first = {"input": "What is the fee?", "context": ["The fee is 3.5 EUR. Pay by Friday."]}
    whole = runnable.invoke({**first, "answer": CUT})["grounding"]
    outputs = list(runnable.transform(iter([first, *[{"answer": piece} for piece in cut]])))
    report = outputs[-1]["grounding"]
    assert [(s["start"], s["end"]) for s in report["sentences"]] == [(0, 19), (20, 34), (36, 43)]
    assert statuses(report) == statuses(whole)
    for found, wanted in zip(report["sentences"], whole["sentences"], strict=True):
        assert found["score"] == pytest.approx(wanted["score"], abs=1e-6)
    assert "".join(o.get("answer", "") for o in outputs) == CUT


def test_a_stream_that_is_no_dict_says_what_to_do(runnable: GroundingRunnable) -> None:
    with pytest.raises(InputTypeError, match=r"got str 'The'.*RunnablePassthrough"):
        list(runnable.transform(iter(["The"])))  # pyright: ignore[reportArgumentType]


def test_an_earlier_report_under_the_same_key_is_replaced(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    chain = runnable | runnable
    total: Any = None
    for chunk in chain.stream(INPUT):
        total = chunk if total is None else total + chunk
    assert total == chain.invoke(INPUT) == {**INPUT, "grounding": expected}


# --- verdicts while the answer is still being written


def slow_stream(sent: list[str], until: int = 1) -> Iterator[dict[str, Any]]:
    """Goes on with the second sentence only when `until` verdicts are out."""
    yield {"input": INPUT["input"], "context": [DAM, BOATS]}
    for piece in pieces(GROUNDED + " Mayor"):
        yield {"answer": piece}
    deadline = time.monotonic() + 20
    while len(sent) < until and time.monotonic() < deadline:
        time.sleep(0.01)
        yield {}
    for piece in pieces(INVENTED.removeprefix("Mayor")):
        yield {"answer": piece}


class Verdicts(BaseCallbackHandler):
    def __init__(self) -> None:
        self.sentences: list[dict[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        if name == "grounding_sentence":
            self.sentences.append(data)


@pytest.mark.asyncio
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_a_verdict_comes_before_the_answer_is_finished(
    runnable: GroundingRunnable,
    scorer: CountingScorer,
    expected: dict[str, Any],
    asynchronous: bool,
) -> None:
    scorer.calls.clear()
    handler = Verdicts()
    config: Any = {"callbacks": [handler]}
    order: list[str] = []
    last: dict[str, Any] = {}

    def note(chunk: dict[str, Any]) -> None:
        nonlocal last
        last = chunk
        order.append(f"{len(handler.sentences)} verdicts, {'text' if 'answer' in chunk else ''}")

    source = slow_stream(handler.sentences)  # pyright: ignore[reportArgumentType]
    if asynchronous:

        async def pieces_of() -> AsyncIterator[dict[str, Any]]:
            for chunk in source:
                yield chunk
                await asyncio.sleep(0)

        async for chunk in runnable.atransform(pieces_of(), config):
            note(chunk)
    else:
        for chunk in runnable.transform(source, config):
            note(chunk)
    assert "1 verdicts, text" in order, "the first verdict is out while the second sentence comes"
    assert [s["text"] for s in handler.sentences] == [GROUNDED, INVENTED]
    assert handler.sentences == expected["sentences"]
    assert finding(last["grounding"]) == finding(expected)
    assert scorer.opened == 1
    assert scorer.calls == [], "what was judged on the way is not scored again"


def test_one_chunk_needs_no_session(runnable: GroundingRunnable, scorer: CountingScorer) -> None:
    list(runnable.stream(INPUT))
    assert (scorer.opened, scorer.calls) == (0, [1])


def test_documents_that_come_after_the_answer_are_still_evidence(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    first: list[dict[str, Any]] = [{"input": INPUT["input"]}]
    text: list[dict[str, Any]] = [{"answer": piece} for piece in pieces(ANSWER)]
    late = [*first, *text, {"context": [DAM, BOATS]}]
    halves = [*first, {"context": [DAM]}, *text, {"context": [BOATS]}]
    for chunks in (late, halves):
        last = list(runnable.transform(iter(chunks)))[-1]
        assert finding(last["grounding"]) == finding(expected)


def test_an_evicted_stream_is_checked_at_its_end(
    scorer: CountingScorer, expected: dict[str, Any]
) -> None:
    runnable = GroundingRunnable(checker=GroundingChecker(scorer, max_sessions=1))
    streams = [runnable.transform(iter(retrieval_chain_stream())) for _ in range(3)]
    lasts: list[dict[str, Any]] = [{}, {}, {}]
    alive = [0, 1, 2]
    while alive:
        for i in list(alive):
            try:
                lasts[i] = next(streams[i])
            except StopIteration:
                alive.remove(i)
    assert [finding(last["grounding"]) for last in lasts] == [finding(expected)] * 3


def test_a_stream_that_is_left_frees_its_session(checker: GroundingChecker) -> None:
    stream = GroundingRunnable(checker=checker).transform(iter(retrieval_chain_stream()))
    while len(checker.sessions) == 0:
        next(stream)
    stream.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert len(checker.sessions) == 0


def test_tokens_do_not_wait_for_the_model_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = threading.Event()

    def load(model: str, **settings: Any) -> GroundingChecker:
        assert loaded.wait(20)
        return GroundingChecker(CountingScorer())

    monkeypatch.setattr(GroundingChecker, "from_pretrained", load)
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    stream = GroundingRunnable(model="embedded").transform(iter(retrieval_chain_stream()))
    got = [next(stream) for _ in retrieval_chain_stream()]
    assert "".join(chunk.get("answer", "") for chunk in got) == ANSWER
    loaded.set()
    assert statuses(next(stream)["grounding"]) == ["grounded", "flagged"]


def test_a_model_that_cannot_be_loaded_is_reported_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(model: str, **settings: Any) -> GroundingChecker:
        raise ModelLoadError("no such model")

    monkeypatch.setattr(GroundingChecker, "from_pretrained", load)
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    got: list[dict[str, Any]] = []
    stream = GroundingRunnable(model="nowhere").transform(iter(retrieval_chain_stream()))
    with pytest.raises(ModelLoadError, match="no such model"):
        got.extend(stream)
    assert "".join(chunk.get("answer", "") for chunk in got) == ANSWER


# --- custom events


@pytest.mark.asyncio
async def test_every_sentence_is_sent_as_a_custom_event(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    found = [
        event["data"]
        async for event in runnable.astream_events(INPUT, version="v2")
        if event["event"] == "on_custom_event" and event["name"] == "grounding_sentence"
    ]
    assert found == expected["sentences"]


@pytest.mark.asyncio
async def test_no_event_ends_inside_a_number_that_the_stream_cuts(
    runnable: GroundingRunnable,
) -> None:
    """Hard input 33."""

    async def source(_: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
        yield {"input": "What is the fee?", "context": ["The fee is 3.5 EUR. Pay by Friday."]}
        for piece in CUTS[0]:
            yield {"answer": piece}

    chain = RunnableGenerator(source) | runnable
    ends = [
        event["data"]["end"]
        async for event in chain.astream_events({}, version="v2")
        if event["event"] == "on_custom_event"
    ]
    assert ends == [19, 34, 43]


# --- what it reads


def test_keys_can_be_chosen(checker: GroundingChecker, expected: dict[str, Any]) -> None:
    runnable = GroundingRunnable(
        checker=checker,
        answer_key="output",
        context_key="docs",
        question_key="q",
        output_key="verdict",
    )
    values = {"q": INPUT["input"], "docs": INPUT["context"], "output": ANSWER, "input": "other"}
    assert runnable.invoke(values) == {**values, "verdict": expected}
    schema = runnable.get_input_jsonschema()
    assert sorted(schema["required"]) == ["docs", "output", "q"]
    assert "verdict" in runnable.get_output_jsonschema()["properties"]


@pytest.mark.parametrize("key", ["input", "question", "query"])
def test_the_question_is_found_under_its_usual_names(runnable: GroundingRunnable, key: str) -> None:
    values = {key: "When?", "context": [DAM], "answer": GROUNDED}
    assert runnable.invoke(values)["grounding"]["question"] == "When?"


def test_the_schemas_name_the_keys(runnable: GroundingRunnable) -> None:
    assert runnable.get_input_jsonschema()["required"] == ["input", "context", "answer"]
    assert runnable.get_output_jsonschema()["properties"]["grounding"]["type"] == "object"
    chain = RunnableLambda(answered) | runnable
    assert "grounding" in chain.get_output_jsonschema()["properties"]


def test_the_input_model_reads_what_the_runnable_reads(runnable: GroundingRunnable) -> None:
    model = runnable.get_input_schema()
    for key in ("input", "question", "query"):
        model.model_validate(
            {key: "When?", "context": [DAM, "text", {"text": "x"}], "answer": "A."}
        )
    with pytest.raises(ValidationError):
        model.model_validate({"context": [], "answer": "A."})


@pytest.mark.parametrize(
    "context",
    [
        [DAM.page_content],
        [{"page_content": DAM.page_content, "metadata": {}, "type": "Document"}],
        [{"text": DAM.page_content}],
        [DAM.to_json()],
        DAM.page_content,
        DAM,
        (DAM,),
    ],
    ids=["str", "trace", "engine", "serialized", "one string", "one document", "tuple"],
)
def test_documents_are_read_in_every_form(runnable: GroundingRunnable, context: Any) -> None:
    report = runnable.invoke({"input": "When?", "context": context, "answer": GROUNDED})[
        "grounding"
    ]
    (citation,) = report["sentences"][0]["citations"]
    assert citation["passage_index"] == 0
    assert DAM.page_content[citation["start"] : citation["end"]] == citation["quote"]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, r"context must be a list .* got NoneType"),
        ([None], r"context\[0\] must be Document, str or a dict .* got NoneType"),
        (["ok", {"title": "x"}], r"context\[1\] must be .* got dict"),
        (AIMessage("x"), r"context must be a list .* got AIMessage"),
        (7, r"context must be a list .* got int"),
    ],
)
def test_a_context_that_cannot_be_read_is_named(
    runnable: GroundingRunnable, context: Any, message: str
) -> None:
    with pytest.raises(InputTypeError, match=message):
        runnable.invoke({"input": "When?", "context": context, "answer": GROUNDED})


def test_documents_keep_their_ids_titles_and_offsets(runnable: GroundingRunnable) -> None:
    document = Document(
        page_content=GROUNDED, metadata={"source": "a.md", "start_index": 100}, id="x"
    )
    report = runnable.invoke({"input": "When?", "context": [document], "answer": GROUNDED})
    (citation,) = report["grounding"]["sentences"][0]["citations"]
    assert citation["passage_id"] == "x"
    assert citation["title"] == "a.md"
    assert citation["document_start"] == 100
    assert citation["document_end"] == 100 + len(GROUNDED)


# --- answers that are messages (hard input 30)

BLOCKS: list[str | dict[str, Any]] = [
    {"type": "reasoning", "reasoning": "hmm"},
    {"type": "text", "text": "The dam opened in 1931. "},
    {"type": "text", "text": "It is open."},
]


@pytest.mark.parametrize("answer", [AIMessage(content=BLOCKS), BLOCKS], ids=["message", "blocks"])
def test_text_blocks_are_joined_and_reasoning_is_never_scored(
    runnable: GroundingRunnable, answer: Any
) -> None:
    report = runnable.invoke({"input": "When?", "context": [DAM], "answer": answer})["grounding"]
    assert report["answer"] == "The dam opened in 1931. It is open."
    assert [(s["start"], s["end"]) for s in report["sentences"]] == [(0, 23), (24, 35)]


def test_streamed_content_blocks_give_the_same_spans(runnable: GroundingRunnable) -> None:
    parts = [
        {"type": "reasoning", "reasoning": "hmm", "index": 0},
        {"type": "text", "text": "The dam opened in 193", "index": 1},
        {"type": "text", "text": "1. ", "index": 1},
        {"type": "text", "text": "It is open.", "index": 2},
    ]
    chunks: list[dict[str, Any]] = [{"input": "When?", "context": [DAM]}]
    chunks += [{"answer": AIMessageChunk(content=[part])} for part in parts]
    report = list(runnable.transform(iter(chunks)))[-1]["grounding"]
    assert report["answer"] == "The dam opened in 1931. It is open."
    assert [(s["start"], s["end"]) for s in report["sentences"]] == [(0, 23), (24, 35)]


def test_an_answer_without_text_names_its_blocks(runnable: GroundingRunnable) -> None:
    image = AIMessage(content=[{"type": "image", "url": "https://example.org/a.png"}])
    with pytest.raises(TypeError, match="no text, only content blocks of type image"):
        runnable.invoke({"input": "When?", "context": [DAM], "answer": image})


def test_an_empty_answer_has_nothing_to_judge(runnable: GroundingRunnable) -> None:
    for answer in ("", AIMessage(content=""), AIMessage(content=[])):
        report = runnable.invoke({"input": "When?", "context": [DAM], "answer": answer})
        assert report["grounding"]["grounded"] is None
        assert report["grounding"]["sentences"] == []


def test_an_answer_of_another_kind_is_refused(runnable: GroundingRunnable) -> None:
    with pytest.raises(InputTypeError, match="answer must be str or a message, got int 7"):
        runnable.invoke({"input": "When?", "context": [DAM], "answer": 7})
    with pytest.raises(InputTypeError, match="the input must be a dict"):
        runnable.invoke("The dam opened.")  # pyright: ignore[reportArgumentType]


# --- errors of the check


def test_an_error_is_raised_by_default(runnable: GroundingRunnable, scorer: CountingScorer) -> None:
    scorer.error = NumericalError("token 2 is not finite")
    with pytest.raises(NumericalError, match="token 2"):
        runnable.invoke(INPUT)


@pytest.mark.parametrize("error", [NumericalError("token 2"), RuntimeError("CUDA out of memory")])
def test_an_error_can_be_written_down_instead(
    checker: GroundingChecker, scorer: CountingScorer, error: Exception
) -> None:
    scorer.error = error
    runnable = GroundingRunnable(checker=checker, on_error="annotate")
    report = runnable.invoke(INPUT)["grounding"]
    assert report["grounded"] is None
    assert report["answer"] == ANSWER
    assert report["error"] == {"type": type(error).__name__, "message": str(error)}
    assert runnable.invoke({"input": "no answer"})["grounding"]["error"]["type"] == "InputTypeError"
    assert [o["grounding"]["error"]["type"] for o in runnable.batch([INPUT, INPUT])] == [
        type(error).__name__
    ] * 2


def test_in_a_stream_the_tokens_are_out_before_the_error(
    checker: GroundingChecker, scorer: CountingScorer
) -> None:
    scorer.error = NumericalError("token 2")
    got: list[dict[str, Any]] = []
    stream = GroundingRunnable(checker=checker).transform(iter(retrieval_chain_stream()))
    with pytest.raises(NumericalError):
        got.extend(stream)
    assert "".join(chunk.get("answer", "") for chunk in got) == ANSWER
    annotating = GroundingRunnable(checker=checker, on_error="annotate")
    last = list(annotating.transform(iter(retrieval_chain_stream())))[-1]
    assert last["grounding"]["error"]["type"] == "NumericalError"


# --- settings, configurable fields, pickle, serialization


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Which models were loaded; the loader gives an engine without a model."""
    made: list[tuple[str, dict[str, Any]]] = []

    def load(model: str, **settings: Any) -> GroundingChecker:
        made.append((model, settings))
        return GroundingChecker(CountingScorer())

    monkeypatch.setattr(GroundingChecker, "from_pretrained", load)
    monkeypatch.setattr(engines, "_engines", type(engines._engines)())
    return made


def test_a_typing_error_in_a_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="anwser_key"):
        GroundingRunnable(model="embedded", anwser_key="x")  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValidationError, match="options has no 'treshold'"):
        GroundingRunnable(model="embedded", options={"treshold": 1})
    with pytest.raises(ValidationError, match="passes must be one of all, two"):
        GroundingRunnable(model="embedded", options={"passes": "three"})


def test_either_a_checker_or_a_model_is_needed(checker: GroundingChecker) -> None:
    with pytest.raises(ValidationError, match="got neither"):
        GroundingRunnable()
    with pytest.raises(ValidationError, match="got both"):
        GroundingRunnable(checker=checker, model="embedded")
    with pytest.raises(ValidationError, match="mode cannot be changed"):
        GroundingRunnable(checker=checker, mode="mask")


def test_the_model_is_loaded_once_and_only_when_it_is_needed(
    loads: list[tuple[str, dict[str, Any]]],
) -> None:
    one = GroundingRunnable(model="embedded", device="cpu")
    two = GroundingRunnable(model="embedded", device="cpu", threshold=5.0)
    assert loads == []
    assert one.invoke(INPUT)["grounding"]["grounded"] is False
    assert two.invoke(INPUT)["grounding"]["grounded"] is True
    assert loads == [("embedded", {"device": "cpu"})]


def test_threads_that_start_together_load_the_model_once(
    loads: list[tuple[str, dict[str, Any]]],
) -> None:
    barrier = threading.Barrier(8)
    reports: list[dict[str, Any]] = []

    def work() -> None:
        runnable = GroundingRunnable(model="embedded")
        barrier.wait()
        reports.append(runnable.invoke(INPUT)["grounding"])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(loads) == 1
    assert reports == [reports[0]] * 8


def test_a_configurable_field_changes_the_verdict_without_loading_again(
    loads: list[tuple[str, dict[str, Any]]],
) -> None:
    runnable = GroundingRunnable(model="embedded").configurable_fields(
        threshold=ConfigurableField(id="threshold"), options=ConfigurableField(id="options")
    )
    assert runnable.invoke(INPUT)["grounding"]["grounded"] is False
    lenient = runnable.with_config(configurable={"threshold": 5.0})
    assert lenient.invoke(INPUT)["grounding"]["grounded"] is True
    two = runnable.invoke(INPUT, {"configurable": {"options": {"passes": "two"}}})["grounding"]
    assert all(not sentence["citations"] for sentence in two["sentences"])
    assert len(loads) == 1


def test_a_configurable_field_works_on_a_checker_too(checker: GroundingChecker) -> None:
    runnable = GroundingRunnable(checker=checker).configurable_fields(
        threshold=ConfigurableField(id="threshold")
    )
    lenient = {"configurable": {"threshold": 5.0}}
    assert runnable.invoke(INPUT)["grounding"]["grounded"] is False
    assert runnable.invoke(INPUT, lenient)["grounding"]["grounded"] is True
    assert runnable.batch([INPUT], lenient)[0]["grounding"]["grounded"] is True


def test_only_so_many_engines_are_kept(loads: list[tuple[str, dict[str, Any]]]) -> None:
    names = [f"model-{i}" for i in range(engines.MAX_ENGINES + 1)]
    for name in [*names, names[-1], names[0]]:
        GroundingRunnable(model=name).invoke(INPUT)
    assert [model for model, _ in loads] == [*names, names[0]]


def test_a_runnable_on_settings_goes_through_pickle(
    loads: list[tuple[str, dict[str, Any]]],
) -> None:
    runnable = GroundingRunnable(model="embedded", threshold=5.0, answer_key="output")
    values = {"input": "When?", "context": [DAM], "output": ANSWER}
    before = runnable.invoke(values)
    copy = pickle.loads(pickle.dumps(runnable))
    assert copy.model_dump() == runnable.model_dump()
    assert copy.invoke(values) == before
    assert len(loads) == 1


def test_a_runnable_on_a_checker_says_why_it_cannot_be_pickled(
    runnable: GroundingRunnable,
) -> None:
    with pytest.raises(InputError, match="build it with model="):
        pickle.dumps(runnable)


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_a_runnable_on_settings_goes_through_dumps_and_loads() -> None:
    import inspect

    from langchain_core.load import dumps, loads

    runnable = GroundingRunnable(model="embedded", threshold=0.5, options={"passes": "two"})
    known: dict[str, Any] = {"valid_namespaces": ["gasp_integrations"]}
    if "allowed_objects" in inspect.signature(loads).parameters:
        known["allowed_objects"] = [GroundingRunnable]
    assert loads(dumps(runnable), **known) == runnable


def test_a_runnable_on_a_checker_says_that_it_cannot_be_serialized(
    runnable: GroundingRunnable,
) -> None:
    from langchain_core.load import dumpd

    assert dumpd(runnable)["type"] == "not_implemented"


def test_it_stands_behind_a_chat_model_in_a_chain(
    runnable: GroundingRunnable, expected: dict[str, Any]
) -> None:
    model = ScriptedModel(script=[AIMessage(ANSWER)])
    chain = (
        RunnablePassthrough.assign(context=lambda _: [DAM, BOATS])
        | RunnablePassthrough.assign(answer=RunnableLambda(lambda v: v["input"]) | model)
        | runnable
    )
    output = chain.invoke({"input": INPUT["input"]})
    assert output["answer"].text == ANSWER
    assert output["grounding"] == expected
    assert [s["text"] for s in output["grounding"]["sentences"]] == [GROUNDED, INVENTED]
