"""The synthesizer: verdicts on every kind of response, and nothing else changed."""

from __future__ import annotations

import asyncio
import copy
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from llama_index.core import PromptTemplate
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks import CallbackManager
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_parts import (
    ANSWER,
    DAM,
    VOCABULARY,
    FixedRetriever,
    canned,
    failing,
    node,
    statuses,
    word_checker,
)

from gasp_engine import Report
from gasp_engine.errors import InputError
from gasp_integrations.llama_index import GroundingSynthesizer


class Fact(BaseModel):
    """What the structured synthesizer returns."""

    year: int
    note: str


class FactSynthesizer(BaseSynthesizer):
    """A real synthesizer whose answer is a pydantic object."""

    def __init__(self, fact, **options):
        super().__init__(llm=canned(), output_cls=Fact, **options)
        self._fact = fact

    def get_response(self, query_str, text_chunks, **kwargs):
        return self._fact

    async def aget_response(self, query_str, text_chunks, **kwargs):
        return self._fact

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass


def grounded(checker, llm=None, on_error="raise", on_sentence=None, **options):
    inner = get_response_synthesizer(llm=llm or canned(), **options)
    return GroundingSynthesizer.from_defaults(
        inner, checker=checker, on_error=on_error, on_sentence=on_sentence
    )


def both(synthesizer, nodes, how, **more):
    """The response by the synchronous or the asynchronous way, streams read to their end."""
    if how == "sync":
        response = synthesizer.synthesize("When?", nodes, **more)
        if isinstance(response, StreamingResponse):
            assert "".join(response.response_gen)
        return response

    async def run():
        response = await synthesizer.asynthesize("When?", nodes, **more)
        if isinstance(response, AsyncStreamingResponse):
            assert [t async for t in response.async_response_gen()]
        return response

    return asyncio.run(run())


HOW = pytest.mark.parametrize("how", ["sync", "async"])


@HOW
def test_a_plain_response_carries_verdicts_and_node_citations(checker, nodes, how):
    response = both(grounded(checker), nodes, how)
    assert type(response) is Response
    grounding = response.metadata["grounding"]
    assert response.response == ANSWER
    assert statuses(grounding) == ["grounded", "flagged"]
    assert [c["node_id"] for c in grounding["sentences"][0]["citations"]] == ["n-dam"]
    assert grounding["sentences"][1]["citations"] == []
    assert (grounding["status"], grounding["complete"]) == ("ok", True)


@HOW
def test_a_pydantic_response_is_checked_as_json(checker, how):
    fact = Fact(year=1931, note="Opened.")
    synthesizer = GroundingSynthesizer(FactSynthesizer(fact), checker)
    response = both(synthesizer, [node('year 1931 note Opened . { } : , "')], how)
    assert type(response) is PydanticResponse
    assert response.response == fact
    assert response.metadata["grounding"]["answer"] == '{"year":1931,"note":"Opened."}'
    assert response.metadata["grounding"]["grounded"] is True


@HOW
def test_a_streaming_response_fills_its_metadata_while_it_is_read(checker, nodes, how):
    response = both(grounded(checker, streaming=True), nodes, how)
    kind = StreamingResponse if how == "sync" else AsyncStreamingResponse
    assert type(response) is kind
    grounding = response.metadata["grounding"]
    assert statuses(grounding) == ["grounded", "flagged"]
    assert (grounding["status"], grounding["complete"]) == ("ok", True)
    assert response.response_txt == ANSWER
    assert len(response.source_nodes) == 2


@HOW
def test_a_stream_ends_with_the_report_of_the_whole_answer(checker, nodes, how):
    whole = both(grounded(checker), nodes, how).metadata["grounding"]
    stream = both(grounded(checker, streaming=True), nodes, how).metadata["grounding"]
    for key in ("usage", "synthesis"):
        whole.pop(key), stream.pop(key)
    assert stream == whole


def test_tokens_pass_at_once_and_unmodified(nodes):
    asked: list[int] = []

    def pieces():
        for i in range(0, len(ANSWER), 3):
            asked.append(i)
            yield ANSWER[i : i + 3]

    class Piecewise(FactSynthesizer):
        def get_response(self, query_str, text_chunks, **kwargs):
            return pieces()

    slow = word_checker(failing(RuntimeError("never reached in time")))
    synthesizer = GroundingSynthesizer(Piecewise(None, streaming=True), slow)
    response = synthesizer.synthesize("When?", nodes)
    assert asked == []
    tokens = response.response_gen
    assert next(tokens) == ANSWER[:3]
    assert asked == [0]
    assert ANSWER[:3] + "".join(tokens) == ANSWER


def test_verdicts_appear_while_the_answer_is_still_being_written(checker, nodes):
    told = []
    synthesizer = grounded(checker, streaming=True, on_sentence=told.append)
    llm = canned("The dam opened in 1931. " + "The dam opened in 1931. " * 3, piece=1)
    synthesizer._inner = get_response_synthesizer(llm=llm, streaming=True)
    response = synthesizer.synthesize("When?", nodes)
    grounding = response.metadata["grounding"]
    assert (grounding["status"], grounding["complete"]) == ("streaming", False)
    early = None
    for i, _ in enumerate(response.response_gen):
        json.dumps(grounding, allow_nan=False)
        if i >= 40 and early is None:
            # A generator takes longer for a token than this engine for a sentence.
            import time

            time.sleep(0.01)
        if grounding["sentences"] and early is None:
            early = i
            assert grounding["complete"] is False
            assert grounding["sentences"][0]["text"] == DAM
            assert grounding["sentences"][0]["citations"][0]["node_id"] == "n-dam"
    assert early is not None
    assert [s["index"] for s in told] == [0, 1, 2, 3]


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 8, 100])
def test_a_stream_cut_anywhere_gives_the_same_sentences(nodes, piece):
    answer = "The fee is 3.5 EUR. Pay by Friday.\n\nCall us"
    items = [node("The fee is 3.5 EUR. Pay by Friday.")]
    told = []
    synthesizer = grounded(
        word_checker(),
        llm=canned(answer, piece=piece),
        streaming=True,
        on_sentence=told.append,
    )
    response = synthesizer.synthesize("What?", items)
    assert "".join(response.response_gen) == answer
    spans = [(s["start"], s["end"]) for s in response.metadata["grounding"]["sentences"]]
    assert spans == [(0, 19), (20, 34), (36, 43)]
    assert [(s["start"], s["end"]) for s in told] == spans


def test_str_of_a_stream_is_its_answer_also_after_it_was_iterated(checker, nodes):
    response = grounded(checker, streaming=True).synthesize("When?", nodes)
    assert "".join(response.response_gen) == ANSWER
    assert str(response) == ANSWER
    unread = grounded(checker, streaming=True).synthesize("When?", nodes)
    assert str(unread) == ANSWER
    assert unread.metadata["grounding"]["complete"] is True
    assert unread.get_response().metadata["grounding"] is unread.metadata["grounding"]


def test_a_stream_that_is_closed_early_is_not_complete(checker, nodes):
    closed = []

    class Watched(FactSynthesizer):
        def get_response(self, query_str, text_chunks, **kwargs):
            def pieces():
                try:
                    yield from ("The dam ", "opened ", "in 1931.")
                finally:
                    closed.append(True)

            return pieces()

    synthesizer = GroundingSynthesizer(Watched(None, streaming=True), checker)
    response = synthesizer.synthesize("When?", nodes)
    tokens = response.response_gen
    next(tokens)
    tokens.close()
    grounding = response.metadata["grounding"]
    assert (grounding["status"], grounding["complete"]) == ("closed", False)
    assert grounding["grounded"] is None
    assert closed == [True]
    assert str(response) == "The dam "


def test_an_async_stream_that_is_closed_early_is_not_complete(checker, nodes):
    async def run():
        response = await grounded(checker, streaming=True).asynthesize("When?", nodes)
        async for _ in response.response_gen:
            break
        await response.response_gen.aclose()
        return response

    grounding = asyncio.run(run()).metadata["grounding"]
    assert (grounding["status"], grounding["complete"]) == ("closed", False)


def test_a_generator_that_fails_raises_its_own_error_and_leaves_a_record(checker, nodes):
    class Broken(FactSynthesizer):
        def get_response(self, query_str, text_chunks, **kwargs):
            def pieces():
                yield "The dam "
                raise ConnectionError("the server has gone away")

            return pieces()

    response = GroundingSynthesizer(Broken(None, streaming=True), checker).synthesize("?", nodes)
    with pytest.raises(ConnectionError, match="gone away"):
        list(response.response_gen)
    grounding = response.metadata["grounding"]
    assert (grounding["status"], grounding["complete"]) == ("error", False)
    assert grounding["error"] == {"type": "ConnectionError", "message": "the server has gone away"}


@HOW
def test_a_failing_scorer_does_not_take_a_streamed_answer_away(nodes, how):
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    response = both(grounded(broken, streaming=True), nodes, how)
    assert response.response_txt == ANSWER
    grounding = response.metadata["grounding"]
    assert (grounding["status"], grounding["complete"]) == ("error", False)
    assert grounding["error"] == {"type": "RuntimeError", "message": "CUDA out of memory"}
    json.dumps(grounding, allow_nan=False)


@HOW
def test_an_out_of_memory_error_surfaces_as_itself(nodes, how):
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        both(grounded(broken), nodes, how)


@HOW
def test_a_failure_can_be_recorded_instead(nodes, how):
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    response = both(grounded(broken, on_error="record"), nodes, how)
    assert response.response == ANSWER
    assert response.metadata["grounding"]["error"]["message"] == "CUDA out of memory"


def test_more_streams_than_the_engine_keeps_are_checked_at_their_end(nodes):
    checker = word_checker(max_sessions=1)
    synthesizer = grounded(checker, streaming=True)
    responses = [synthesizer.synthesize("When?", nodes) for _ in range(4)]
    for response in responses:
        assert "".join(response.response_gen) == ANSWER
        assert statuses(response.metadata["grounding"]) == ["grounded", "flagged"]
        assert response.metadata["grounding"]["complete"] is True


@HOW
@pytest.mark.parametrize("streaming", [False, True])
def test_an_empty_retrieval_is_an_abstention(checker, how, streaming):
    response = both(grounded(checker, streaming=streaming), [], how)
    grounding = response.metadata["grounding"]
    assert grounding["answer"] == "Empty Response"
    assert statuses(grounding) == ["abstention"]
    assert grounding["grounded"] is None
    assert grounding["complete"] is True


@HOW
def test_empty_nodes_never_support_and_cost_no_scoring(how):
    untouched = word_checker(failing(AssertionError("the scorer was called")))
    items = [node(""), node("  \n")]
    llm = canned("The mayor is Ana Ruiz.")
    grounding = both(grounded(untouched, llm=llm), items, how).metadata["grounding"]
    assert statuses(grounding) == ["flagged"]
    assert grounding["sentences"][0]["citations"] == []


@HOW
@pytest.mark.parametrize("streaming", [False, True])
def test_additional_source_nodes_are_no_evidence(checker, nodes, how, streaming):
    more = [node("Purple elephants juggle quietly.", "n-extra")]
    synthesizer = grounded(checker, streaming=streaming)
    response = both(synthesizer, nodes, how, additional_source_nodes=more)
    assert [n.node.node_id for n in response.source_nodes] == ["n-dam", "n-boats", "n-extra"]
    grounding = response.metadata["grounding"]
    assert statuses(grounding) == ["grounded", "flagged"]
    assert [p["node_id"] for p in grounding["passages"]] == ["n-dam", "n-boats"]


@HOW
@pytest.mark.parametrize("streaming", [False, True])
def test_nodes_and_answer_are_unchanged_byte_for_byte(checker, nodes, how, streaming):
    before = copy.deepcopy([n.model_dump() for n in nodes])
    response = both(grounded(checker, streaming=streaming), nodes, how)
    assert [n.model_dump() for n in nodes] == before
    text = response.response_txt if streaming else response.response
    assert text.encode() == ANSWER.encode()
    assert [n.node for n in response.source_nodes] == [n.node for n in nodes]
    assert all(a is b for a, b in zip(response.source_nodes, nodes, strict=True))


def test_the_responses_own_metadata_is_kept_and_not_shared(checker, nodes):
    response = grounded(checker).synthesize("When?", nodes)
    assert response.metadata["n-dam"] == {"file_name": "a.pdf", "page": 4}
    assert "grounding" not in nodes[0].node.metadata


def test_the_grounding_is_json_and_a_report_again(checker, nodes):
    grounding = grounded(checker).synthesize("When?", nodes).metadata["grounding"]
    assert json.loads(json.dumps(grounding, allow_nan=False)) == grounding
    assert [s.status for s in Report.from_dict(grounding).sentences] == ["grounded", "flagged"]


def test_the_question_is_the_querys_text(checker, nodes):
    from llama_index.core.schema import QueryBundle

    response = grounded(checker).synthesize(QueryBundle("When did it open?"), nodes)
    assert response.metadata["grounding"]["question"] == "When did it open?"


def test_a_refine_over_several_calls_is_reported(checker):
    items = [node(f"{DAM} " + f"Filler number {i} goes here. " * 25, f"n{i}") for i in range(4)]
    llm = canned(window=900)
    synthesizer = grounded(checker, llm=llm)
    grounding = synthesizer.synthesize("When?", items).metadata["grounding"]
    assert grounding["synthesis"]["calls"] == len(llm.calls) > 1
    assert any("calls of the LLM" in warning for warning in grounding["warnings"])


@pytest.mark.parametrize("mode", [ResponseMode.TREE_SUMMARIZE, ResponseMode.SIMPLE_SUMMARIZE])
def test_one_call_is_one_call_in_every_mode(checker, nodes, mode):
    llm = canned()
    grounding = (
        grounded(checker, llm=llm, response_mode=mode).synthesize("?", nodes).metadata["grounding"]
    )
    assert grounding["synthesis"] == {"calls": len(llm.calls), "cut": []}
    assert len(llm.calls) == 1
    assert not any("calls of the LLM" in warning for warning in grounding["warnings"])


def test_streaming_can_be_switched_from_outside_as_chat_engines_do(checker, nodes):
    synthesizer = grounded(checker, streaming=True)
    assert synthesizer._streaming is True
    synthesizer._streaming = False
    assert synthesizer._inner._streaming is False
    assert isinstance(synthesizer.synthesize("When?", nodes), Response)


def test_prompts_are_the_inner_synthesizers_and_can_be_changed(checker, nodes):
    synthesizer = grounded(checker)
    engine = RetrieverQueryEngine(FixedRetriever(nodes), synthesizer)
    assert set(synthesizer.get_prompts()) >= {"text_qa_template", "refine_template"}
    assert "response_synthesizer:text_qa_template" in engine.get_prompts()
    changed = PromptTemplate("HERE {context_str} AND {query_str}")
    engine.update_prompts({"response_synthesizer:text_qa_template": changed})
    llm = synthesizer._inner._llm
    engine.query("When?")
    assert llm.calls[-1].startswith("HERE file_name: a.pdf")


def test_wrapping_leaves_the_generators_callbacks_alone(checker):
    manager = CallbackManager([])
    inner = get_response_synthesizer(llm=canned(), callback_manager=manager)
    synthesizer = GroundingSynthesizer(inner, checker)
    assert synthesizer.callback_manager is inner.callback_manager is manager
    assert inner._llm.callback_manager is manager
    other = CallbackManager([])
    synthesizer.callback_manager = other
    assert inner.callback_manager is other


def test_without_an_inner_synthesizer_llama_indexs_default_one_is_used(checker, nodes):
    synthesizer = GroundingSynthesizer.from_defaults(checker=checker, llm=canned(), streaming=True)
    assert isinstance(synthesizer.synthesize("When?", nodes), StreamingResponse)
    assert GroundingSynthesizer.class_name() == "GroundingSynthesizer"


def test_get_response_is_the_inner_synthesizers(checker):
    synthesizer = grounded(checker)
    assert synthesizer.get_response("When?", [DAM]) == ANSWER
    assert asyncio.run(synthesizer.aget_response("When?", [DAM])) == ANSWER


def test_an_unknown_way_to_handle_errors_is_refused(checker):
    with pytest.raises(InputError, match="got 'ignore'"):
        grounded(checker, on_error="ignore")


def test_many_queries_at_a_time_get_their_own_verdicts(checker):
    texts = [f"Item {i} weighs {i} kilograms." for i in range(12)]

    def one(i: int):
        items = [node(texts[i], f"n{i}")]
        synthesizer = grounded(checker, llm=canned(texts[i]), streaming=i % 2 == 0)
        response = synthesizer.synthesize("What?", items)
        if isinstance(response, StreamingResponse):
            list(response.response_gen)
        return response.metadata["grounding"]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(one, range(12)))
    for i, grounding in enumerate(results):
        assert grounding["answer"] == texts[i]
        assert [p["node_id"] for p in grounding["passages"]] == [f"n{i}"]
        assert statuses(grounding) == ["grounded"]


def test_many_async_queries_at_a_time_get_their_own_verdicts(checker):
    async def one(i: int):
        items = [node(f"Item {i} weighs {i} kilograms.", f"n{i}")]
        synthesizer = grounded(checker, llm=canned(items[0].node.text), streaming=i % 2 == 0)
        response = await synthesizer.asynthesize("What?", items)
        if isinstance(response, AsyncStreamingResponse):
            await response.get_response()
        return response.metadata["grounding"]

    async def run():
        return await asyncio.gather(*(one(i) for i in range(20)))

    for i, grounding in enumerate(asyncio.run(run())):
        assert [p["node_id"] for p in grounding["passages"]] == [f"n{i}"]
        assert statuses(grounding) == ["grounded"]


def test_a_node_that_the_prompt_had_no_room_for_is_reported(checker):
    items = [node(DAM, "a"), node("Filler goes here and there. " * 150 + "The end is nigh.", "b")]
    synthesizer = grounded(
        checker, llm=canned(window=600), response_mode=ResponseMode.SIMPLE_SUMMARIZE
    )
    grounding = synthesizer.synthesize("When?", items).metadata["grounding"]
    assert grounding["synthesis"] == {"calls": 1, "cut": [1]}
    assert any("did not see the whole of source_nodes[1]" in w for w in grounding["warnings"])


def test_a_refusal_is_an_abstention_and_exempts_nothing_after_it():
    checker = word_checker(lambda *_: np.zeros(VOCABULARY))
    items = [node("The town has a park.")]
    first = grounded(checker, llm=canned("I don't know based on the context."))
    assert statuses(first.synthesize("Who is the mayor?", items).metadata["grounding"]) == [
        "abstention"
    ]
    both_said = canned("I don't know based on the context. The mayor is Ana Ruiz.")
    grounding = grounded(checker, llm=both_said).synthesize("Who?", items).metadata["grounding"]
    assert statuses(grounding) == ["abstention", "flagged"]
