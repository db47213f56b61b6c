"""Chat engines, streaming included; source nodes are never lost."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_parts import (
    ANSWER,
    FixedRetriever,
    canned,
    engine_over,
    failing,
    statuses,
    word_checker,
)

from gasp_integrations.llama_index import (
    GroundingChatEngine,
    GroundingEvaluator,
    GroundingSynthesizer,
    cited_markdown,
)

WAYS = pytest.mark.parametrize("way", ["chat", "achat", "stream_chat", "astream_chat"])


def memory():
    # LlamaIndex's default memory leaves its database connection open, which is a warning.
    return ChatMemoryBuffer.from_defaults(token_limit=2000)


def context_engine(nodes, **_):
    return ContextChatEngine.from_defaults(
        retriever=FixedRetriever(nodes), llm=canned(), memory=memory()
    )


def condense_plus_context_engine(nodes, **_):
    return CondensePlusContextChatEngine.from_defaults(
        retriever=FixedRetriever(nodes), llm=canned(), memory=memory()
    )


def condense_question_engine(nodes, **_):
    return CondenseQuestionChatEngine.from_defaults(
        query_engine=engine_over(nodes), llm=canned(), memory=memory()
    )


ENGINES = pytest.mark.parametrize(
    "make", [context_engine, condense_plus_context_engine, condense_question_engine]
)


def talk(engine, way, message="When?", read=True):
    """One turn by one of the four ways, streams read to their end; the response and its tokens."""
    if way == "chat":
        return engine.chat(message), None
    if way == "stream_chat":
        response = engine.stream_chat(message)
        return response, list(response.response_gen)

    async def run():
        if way == "achat":
            return await engine.achat(message), None
        response = await engine.astream_chat(message)
        return response, [token async for token in response.async_response_gen()]

    return asyncio.run(run())


@WAYS
@ENGINES
def test_every_engine_and_way_gives_verdicts_and_source_nodes(checker, nodes, make, way):
    engine = GroundingChatEngine(make(nodes), checker)
    response, tokens = talk(engine, way)
    kind = StreamingAgentChatResponse if "stream" in way else AgentChatResponse
    assert isinstance(response, kind)
    assert "".join(tokens or [str(response)]) == ANSWER
    assert response.response == ANSWER
    grounding = response.metadata["grounding"]
    assert (grounding["status"], grounding["complete"]) == ("ok", True)
    assert statuses(grounding) == ["grounded", "flagged"]
    assert grounding["sentences"][0]["citations"][0]["node_id"] == "n-dam"
    # run-llama/llama_index#15323: condense-question's astream_chat forgets them
    assert [n.node.node_id for n in response.source_nodes] == ["n-dam", "n-boats"]
    assert [m.content for m in engine.chat_history] == ["When?", ANSWER]


@pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])
def test_condense_question_streams_with_a_checking_synthesizer_inside(checker, nodes, way):
    told = []
    inner = GroundingSynthesizer(
        get_response_synthesizer(llm=canned()), checker, on_sentence=told.append
    )
    engine = GroundingChatEngine(
        CondenseQuestionChatEngine.from_defaults(
            query_engine=RetrieverQueryEngine(FixedRetriever(nodes), inner),
            llm=canned(),
            memory=memory(),
        ),
        word_checker(failing(AssertionError("checked twice"))),
    )
    response, tokens = talk(engine, way)
    assert "".join(tokens) == ANSWER
    assert statuses(response.metadata["grounding"]) == ["grounded", "flagged"]
    assert [s["status"] for s in told] == ["grounded", "flagged"]
    assert len(response.source_nodes) == 2


def test_the_question_is_the_one_that_the_engine_asked(checker, nodes):
    engine = GroundingChatEngine(
        CondenseQuestionChatEngine.from_defaults(
            query_engine=engine_over(nodes),
            llm=canned("When did the dam open?"),
            memory=memory(),
        ),
        checker,
    )
    first = engine.chat("Hello?")
    assert first.metadata["grounding"]["question"] == "Hello?"
    second = engine.chat("And it?")
    assert second.metadata["grounding"]["question"] == "When did the dam open?"


def test_citations_reach_the_users_of_chat_engines(checker, nodes):
    # run-llama/llama_index#13552, #8015
    response = GroundingChatEngine(context_engine(nodes), checker).chat("When?")
    assert cited_markdown(response).startswith("The dam opened in 1931.[1] Purple")


@pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])
def test_a_chat_that_is_left_early_is_not_complete(checker, nodes, way):
    engine = GroundingChatEngine(context_engine(nodes), checker)
    if way == "stream_chat":
        response = engine.stream_chat("When?")
        tokens = response.response_gen
        next(tokens)
        tokens.close()
    else:

        async def run():
            response = await engine.astream_chat("When?")
            tokens = response.async_response_gen()
            await tokens.__anext__()
            await tokens.aclose()
            return response

        response = asyncio.run(run())
    grounding = response.metadata["grounding"]
    assert (grounding["status"], grounding["complete"]) == ("closed", False)


@pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])
def test_a_failing_scorer_does_not_take_a_streamed_chat_away(nodes, way):
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    engine = GroundingChatEngine(context_engine(nodes), broken)
    response, tokens = talk(engine, way)
    assert "".join(tokens) == ANSWER
    grounding = response.metadata["grounding"]
    assert grounding["error"] == {"type": "RuntimeError", "message": "CUDA out of memory"}
    assert grounding["complete"] is False
    assert engine.chat_history[-1].content == ANSWER


@pytest.mark.parametrize("way", ["chat", "achat"])
def test_an_out_of_memory_error_surfaces_as_itself(nodes, way):
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        talk(GroundingChatEngine(context_engine(nodes), broken), way)


@WAYS
def test_without_retrieval_no_claim_is_supported(way):
    untouched = word_checker(failing(AssertionError("the scorer was called")))
    engine = GroundingChatEngine(
        SimpleChatEngine.from_defaults(llm=canned(), memory=memory()), untouched
    )
    response, _ = talk(engine, way)
    assert statuses(response.metadata["grounding"]) == ["flagged", "flagged"]
    assert response.metadata["grounding"]["complete"] is True


@WAYS
def test_an_empty_retrieval_is_an_abstention(checker, way):
    response, _ = talk(GroundingChatEngine(context_engine([]), checker), way)
    assert statuses(response.metadata["grounding"]) == ["abstention"]


def test_a_conversation_can_be_given_read_and_reset(checker, nodes):
    inner = ContextChatEngine.from_defaults(
        retriever=FixedRetriever(nodes),
        llm=canned(),
        memory=memory(),
    )
    engine = GroundingChatEngine.from_defaults(inner, checker)
    engine.chat("When?")
    assert len(engine.chat_history) == 2
    engine.reset()
    assert engine.chat_history == []
    assert engine.class_name() == "GroundingChatEngine"


def test_a_streamed_chat_can_be_evaluated(checker, nodes):
    evaluator = GroundingEvaluator(word_checker())
    response = GroundingChatEngine(context_engine(nodes), checker).stream_chat("When?")
    result = evaluator.evaluate_response("When?", response)
    assert (result.passing, result.response) == (False, ANSWER)
    assert evaluator.evaluate_response("When?", response).response == ANSWER


def test_str_and_print_of_a_streamed_chat_give_the_answer(checker, nodes, capsys):
    response = GroundingChatEngine(context_engine(nodes), checker).stream_chat("When?")
    response.print_response_stream()
    assert capsys.readouterr().out == ANSWER
    assert str(response) == ANSWER
    assert response.metadata["grounding"]["complete"] is True


def test_several_conversations_at_a_time_get_their_own_verdicts(checker, nodes):
    async def one():
        engine = GroundingChatEngine(context_engine(nodes), checker)
        response = await engine.astream_chat("When?")
        text = "".join([token async for token in response.async_response_gen()])
        return text, response.metadata["grounding"]

    async def run():
        return await asyncio.gather(*(one() for _ in range(12)))

    for text, grounding in asyncio.run(run()):
        assert text == ANSWER
        assert statuses(grounding) == ["grounded", "flagged"]
