"""Events and spans: what an observer of LlamaIndex's instrumentation sees."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_parts import canned, engine_over, failing, word_checker

from gasp_integrations.llama_index import (
    GroundingEndEvent,
    GroundingQueryEngine,
    GroundingSentenceEvent,
    GroundingStartEvent,
    GroundingSynthesizer,
)

seen: list = []


class Recorder(BaseEventHandler):
    @classmethod
    def class_name(cls) -> str:
        return "Recorder"

    def handle(self, event, **kwargs):
        seen.append(event)


@pytest.fixture
def observed():
    """Events of the test and a span handler, taken off again at its end."""
    root = get_dispatcher()
    events, spans = list(root.event_handlers), list(root.span_handlers)
    handler = SimpleSpanHandler()
    root.add_event_handler(Recorder())
    root.add_span_handler(handler)
    seen.clear()
    yield seen, handler
    root.event_handlers, root.span_handlers = events, spans


def ours(events):
    return [e for e in events if e.class_name().startswith("Grounding")]


def names(events):
    return [e.class_name() for e in ours(events)]


WHOLE = [
    "GroundingStartEvent",
    "GroundingSentenceEvent",
    "GroundingSentenceEvent",
    "GroundingEndEvent",
]


def test_a_check_sends_its_beginning_each_sentence_and_its_end(checker, nodes, observed):
    events, _ = observed
    response = GroundingQueryEngine(engine_over(nodes), checker).query("When?")
    assert names(events) == WHOLE
    start, first, second, end = ours(events)
    assert isinstance(start, GroundingStartEvent)
    assert (start.query, start.node_ids) == ("When?", ["n-dam", "n-boats"])
    assert isinstance(first, GroundingSentenceEvent)
    assert (first.sentence["status"], second.sentence["status"]) == ("grounded", "flagged")
    assert isinstance(end, GroundingEndEvent)
    assert end.grounding == response.metadata["grounding"] | {"synthesis": None}
    assert end.model_dump()["class_name"] == "GroundingEndEvent"


def test_the_check_is_a_span_inside_the_query(checker, nodes, observed):
    events, handler = observed
    GroundingQueryEngine(engine_over(nodes), checker).query("When?")
    spans = {span.id_.split("-")[0]: span for span in handler.completed_spans}
    check = spans["Annotator.ground"]
    assert check.parent_id == spans["GroundingQueryEngine._query"].id_
    assert {e.span_id for e in ours(events)} == {check.id_}


@pytest.mark.parametrize("how", ["sync", "async"])
def test_events_of_a_stream_carry_the_span_that_began_it(checker, nodes, observed, how):
    events, handler = observed
    inner = get_response_synthesizer(llm=canned(), streaming=True)
    synthesizer = GroundingSynthesizer(inner, checker)
    if how == "sync":
        response = synthesizer.synthesize("When?", nodes)
        assert "Grounding" in synthesizer.class_name()
        assert names(events) == ["GroundingStartEvent"]
        list(response.response_gen)
        method = "GroundingSynthesizer.synthesize"
    else:

        async def run():
            response = await synthesizer.asynthesize("When?", nodes)
            await response.get_response()

        asyncio.run(run())
        method = "GroundingSynthesizer.asynthesize"
    assert names(events) == WHOLE
    (span,) = [s for s in handler.completed_spans if s.id_.startswith(f"{method}-")]
    assert {e.span_id for e in ours(events)} == {span.id_}


def test_two_streams_that_are_read_in_turn_keep_their_own_spans(checker, nodes, observed):
    events, _ = observed
    inner = get_response_synthesizer(llm=canned(), streaming=True)
    synthesizer = GroundingSynthesizer(inner, checker)
    streams = [synthesizer.synthesize(f"Question {i}?", nodes).response_gen for i in range(2)]
    for _ in zip(*streams, strict=True):
        pass
    spans = {}
    for event in ours(events):
        if isinstance(event, GroundingStartEvent):
            spans[event.span_id] = event.query
    assert sorted(spans.values()) == ["Question 0?", "Question 1?"]
    for event in ours(events):
        if isinstance(event, GroundingEndEvent):
            assert event.grounding["question"] == spans[event.span_id]


def test_a_failed_check_ends_with_its_error(nodes, observed):
    events, _ = observed
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    with pytest.raises(RuntimeError):
        GroundingQueryEngine(engine_over(nodes), broken).query("When?")
    assert names(events) == ["GroundingStartEvent", "GroundingEndEvent"]
    assert ours(events)[-1].grounding["error"]["message"] == "CUDA out of memory"


def test_a_stream_that_is_left_ends_with_status_closed(checker, nodes, observed):
    events, _ = observed
    engine = GroundingQueryEngine(engine_over(nodes, streaming=True), checker)
    tokens = engine.query("When?").response_gen
    next(tokens)
    tokens.close()
    assert ours(events)[-1].grounding["status"] == "closed"


def test_the_listener_is_added_once_and_is_quiet_outside_a_call(checker, nodes):
    for _ in range(3):
        GroundingQueryEngine(engine_over(nodes), checker).query("When?")
    handlers = [h.class_name() for h in get_dispatcher().event_handlers]
    assert handlers.count("GroundingListener") == 1
    engine_over(nodes).query("When?")
