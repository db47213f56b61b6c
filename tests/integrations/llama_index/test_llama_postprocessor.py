"""The postprocessor: after the fact, attached, serialized, and never a silent no-op."""

from __future__ import annotations

import asyncio
import json

import pytest
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_parts import (
    ANSWER,
    DAM,
    NONSENSE,
    FixedRetriever,
    canned,
    engine_over,
    failing,
    statuses,
    word_checker,
)

from gasp_engine.errors import InputTypeError
from gasp_integrations.llama_index import (
    GroundingChatEngine,
    GroundingPostprocessor,
    GroundingQueryEngine,
    GroundingSynthesizer,
)


class Fact(BaseModel):
    note: str


def stream():
    yield from ("The dam opened ", "in 1931. ", "Purple elephants juggle quietly.")


async def astream():
    for token in stream():
        yield token


MAKERS = {
    "Response": lambda n: Response(ANSWER, n),
    "PydanticResponse": lambda n: PydanticResponse(Fact(note=NONSENSE), n, {"n": {}}),
    "StreamingResponse": lambda n: StreamingResponse(stream(), n),
    "AsyncStreamingResponse": lambda n: AsyncStreamingResponse(astream(), n),
    "AgentChatResponse": lambda n: AgentChatResponse(ANSWER, source_nodes=n),
}


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_response_of_every_type_can_be_checked_after_the_fact(checker, nodes, kind, how):
    postprocessor = GroundingPostprocessor(checker)

    async def run():
        response = MAKERS[kind](nodes)
        if how == "sync":
            checked = postprocessor.postprocess_response(response, "When?")
        else:
            checked = await postprocessor.apostprocess_response(response, "When?")
        assert checked is response
        if isinstance(response, StreamingResponse):
            list(response.response_gen)
        if isinstance(response, AsyncStreamingResponse):
            await response.get_response()
        return response

    response = asyncio.run(run())
    grounding = response.metadata["grounding"]
    assert grounding["complete"] is True
    assert grounding["sentences"][-1]["status"] == "flagged"
    assert grounding["question"] == "When?"
    assert json.loads(json.dumps(grounding, allow_nan=False)) == grounding


def test_a_stream_that_was_already_read_is_checked_too(checker, nodes):
    response = StreamingResponse(stream(), nodes)
    assert str(response) == ANSWER
    GroundingPostprocessor(checker).postprocess_response(response, "When?")
    assert statuses(response.metadata["grounding"]) == ["grounded", "flagged"]
    assert str(response) == ANSWER


def test_the_nodes_that_the_llm_was_shown_can_be_given(checker, nodes):
    response = Response(DAM, nodes)
    GroundingPostprocessor(checker).postprocess_response(response, nodes=nodes[1:])
    assert response.metadata["grounding"]["passages"][0]["node_id"] == "n-boats"
    assert response.metadata["grounding"]["question"] == ""


def test_attach_wraps_query_engines_chat_engines_and_synthesizers(checker, nodes):
    postprocessor = GroundingPostprocessor.from_defaults(checker)
    engine = postprocessor.attach(engine_over(nodes))
    assert type(engine) is GroundingQueryEngine
    assert statuses(engine.query("When?").metadata["grounding"]) == ["grounded", "flagged"]
    chat = postprocessor.attach(
        ContextChatEngine.from_defaults(
            retriever=FixedRetriever(nodes),
            llm=canned(),
            memory=ChatMemoryBuffer.from_defaults(token_limit=2000),
        )
    )
    assert type(chat) is GroundingChatEngine
    assert statuses(chat.chat("When?").metadata["grounding"]) == ["grounded", "flagged"]
    synthesizer = postprocessor.attach(get_response_synthesizer(llm=canned()))
    assert type(synthesizer) is GroundingSynthesizer
    response = synthesizer.synthesize("When?", nodes)
    assert statuses(response.metadata["grounding"]) == ["grounded", "flagged"]


def test_attach_leaves_the_engine_as_it_was(checker, nodes):
    engine = engine_over(nodes)
    GroundingPostprocessor(checker).attach(engine)
    assert "grounding" not in engine.query("When?").metadata


def test_attach_refuses_what_it_cannot_wrap(checker):
    with pytest.raises(InputTypeError, match="a synthesizer, got str"):
        GroundingPostprocessor(checker).attach("engine")


def test_among_the_node_postprocessors_it_raises_a_pointer_to_attach(checker, nodes):
    with pytest.raises(InputTypeError, match=r"Use: engine = .*\.attach\(engine\)"):
        RetrieverQueryEngine(
            FixedRetriever(nodes),
            get_response_synthesizer(llm=canned()),
            node_postprocessors=[GroundingPostprocessor(checker)],
        )


def test_where_it_is_called_as_a_node_postprocessor_it_raises_too(checker, nodes):
    postprocessor = GroundingPostprocessor(checker)
    with pytest.raises(InputTypeError, match="attach"):
        postprocessor.postprocess_nodes(nodes, query_str="When?")
    with pytest.raises(InputTypeError, match="attach"):
        asyncio.run(postprocessor.apostprocess_nodes(nodes))


def test_it_survives_a_round_trip_through_a_dict(nodes):
    checker = word_checker(max_units=7, flag_kinds=("claim", "heading"))
    postprocessor = GroundingPostprocessor(checker, on_error="record")
    values = postprocessor.to_dict()
    assert values == {
        "model": "table",
        "options": {"max_units": 7, "flag_kinds": ("claim", "heading")},
        "on_error": "record",
        "class_name": "GroundingPostprocessor",
    }
    json.dumps(values)
    again = GroundingPostprocessor.from_dict(values)
    assert again.to_dict() == values
    assert GroundingPostprocessor.from_json(postprocessor.to_json()).options["max_units"] == 7


@pytest.mark.model
def test_a_restored_postprocessor_loads_its_model_at_first_use(embedded, nodes):
    original = GroundingPostprocessor(model="embedded", options={"max_units": 4})
    again = GroundingPostprocessor.from_dict(original.to_dict())
    response = again.postprocess_response(Response(DAM, nodes), "When did the dam open?")
    assert response.metadata["grounding"]["sentences"][0]["status"] == "grounded"
    assert again._annotator.checker.options.max_units == 4


def test_a_failure_can_be_recorded(nodes):
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    response = Response(DAM, nodes)
    GroundingPostprocessor(broken, on_error="record").postprocess_response(response)
    assert response.metadata["grounding"]["status"] == "error"
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        GroundingPostprocessor(broken).postprocess_response(Response(DAM, nodes))
