from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("langchain.agents.middleware", reason="needs the extra `agents`")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from lc_cases import ANSWER, BOATS, DAM, GROUNDED, INPUT, INVENTED, CountingScorer, ScriptedModel

from gasp_engine import GroundingChecker, InputError
from gasp_engine.errors import InputTypeError, NumericalError
from gasp_integrations.langchain import GroundingMiddleware, GroundingRunnable
from gasp_integrations.langchain.documents import FEEDBACK
from gasp_integrations.langchain.middleware import BLOCKED


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Any]]:
    """Finds passages."""
    return f"{DAM.page_content}\n\n{BOATS.page_content}", [DAM, BOATS]


@tool
def look(query: str) -> str:
    """Finds passages and gives their text alone."""
    return f"{DAM.page_content}\n\n{BOATS.page_content}"


def call(name: str = "search", identifier: str = "c1") -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": {"query": "dam"}, "id": identifier}])


def make(checker: Any, *answers: AIMessage | str, **options: Any) -> tuple[Any, ScriptedModel]:
    script = [AIMessage(a) if isinstance(a, str) else a for a in answers]
    model = ScriptedModel(script=script)
    agent_options = {k: options.pop(k) for k in ("checkpointer",) if k in options}
    middleware = GroundingMiddleware(checker, **options)
    agent = create_agent(model, [search, look], middleware=[middleware], **agent_options)
    return agent, model


ASK = {"messages": [("user", INPUT["input"])]}


def run(agent: Any, asynchronous: bool, values: Any = ASK, **options: Any) -> dict[str, Any]:
    if asynchronous:
        return asyncio.run(agent.ainvoke(values, **options))
    return agent.invoke(values, **options)


both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


def marks(message: Any) -> list[str]:
    return [a["type"] for block in message.content_blocks for a in block.get("annotations", [])]


# --- annotate


@both
def test_the_answer_is_annotated_and_the_report_is_in_the_state(
    checker: GroundingChecker, scorer: CountingScorer, asynchronous: bool
) -> None:
    """And the agent ends (docs #1435: a guardrail in `after_agent` loops)."""
    agent, model = make(checker, call(), ANSWER)
    state = run(agent, asynchronous)
    answer = state["messages"][-1]
    assert [type(m).__name__ for m in state["messages"]] == [
        "HumanMessage",
        "AIMessage",
        "ToolMessage",
        "AIMessage",
    ]
    assert answer.text == ANSWER
    assert marks(answer) == ["citation", "non_standard_annotation"]
    assert answer.content_blocks[0]["annotations"][0]["url"] == DAM.metadata["source"]
    assert state["grounding"]["grounded"] is False
    assert state["grounding"]["question"] == INPUT["input"]
    assert scorer.calls == [1]
    assert len(model.seen) == 2, "the agent ended after its answer"
    json.dumps(state["grounding"], allow_nan=False)


def test_annotations_can_be_left_off(checker: GroundingChecker) -> None:
    agent, _ = make(checker, call(), ANSWER, annotate=False)
    state = agent.invoke(ASK)
    assert state["messages"][-1].content == ANSWER
    assert state["grounding"]["grounded"] is False


def test_small_talk_gets_no_sources_and_no_verdict(
    checker: GroundingChecker, scorer: CountingScorer
) -> None:
    """langchain #12263."""
    agent, _ = make(checker, "Hello, how are you?")
    state = agent.invoke(ASK)
    assert state["grounding"] is None
    assert state["messages"][-1].content == "Hello, how are you?"
    assert scorer.calls == []


def test_an_answer_without_documents_can_be_checked_all_the_same(
    checker: GroundingChecker,
) -> None:
    agent, _ = make(checker, ANSWER, without_documents="check")
    state = agent.invoke(ASK)
    assert [s["status"] for s in state["grounding"]["sentences"]] == ["flagged", "flagged"]


def test_the_text_of_a_tool_is_evidence_when_it_kept_no_documents(
    checker: GroundingChecker,
) -> None:
    agent, _ = make(checker, call("look"), ANSWER)
    state = agent.invoke(ASK)
    assert [s["status"] for s in state["grounding"]["sentences"]] == ["grounded", "flagged"]
    assert len(state["grounding"]["passages"]) == 1


def test_documents_come_from_the_state_or_from_a_function(checker: GroundingChecker) -> None:
    class WithDocuments(GroundingMiddleware):
        class State(GroundingMiddleware.state_schema):
            docs: list[Any]

        state_schema = State

    for source in ("docs", lambda state: state["docs"]):
        model = ScriptedModel(script=[AIMessage(ANSWER)])
        agent = create_agent(model, middleware=[WithDocuments(checker, documents=source)])
        state = agent.invoke({**ASK, "docs": [DAM.page_content]})
        assert len(state["grounding"]["passages"]) == 1
        assert state["grounding"]["grounded"] is False


def test_the_next_turn_sends_no_annotation_to_the_model(checker: GroundingChecker) -> None:
    """langchainjs #9894; and models that take text content alone go on working."""
    agent, model = make(
        checker, call(), ANSWER, call(identifier="c2"), GROUNDED, checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "1"}}
    first = agent.invoke(ASK, config)
    assert marks(first["messages"][-1])
    second = agent.invoke(ASK, config)
    shown = [m for m in model.seen[-1] if isinstance(m, AIMessage) and not m.tool_calls]
    assert [m.content for m in shown] == [ANSWER]
    assert marks(second["messages"][3]), "the stored message keeps its annotations"
    assert second["grounding"]["grounded"] is True
    assert len(second["grounding"]["passages"]) == 2, "only what this turn retrieved"


def test_a_report_of_an_earlier_turn_does_not_stay(checker: GroundingChecker) -> None:
    agent, _ = make(checker, call(), ANSWER, "You are welcome.", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    assert agent.invoke(ASK, config)["grounding"] is not None
    assert agent.invoke({"messages": [HumanMessage("Thanks!")]}, config)["grounding"] is None


def test_artifacts_read_back_from_a_checkpoint_are_documents(checker: GroundingChecker) -> None:
    """The agent stops between tool and answer, and what it goes on with was stored."""
    agent, _ = make(checker, call(), ANSWER, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    agent.invoke(ASK, config, interrupt_after=["tools"])
    kept = agent.get_state(config).values["messages"][-1]
    assert isinstance(kept, ToolMessage)
    state = agent.invoke(None, config)
    assert [p["id"] for p in state["grounding"]["passages"]] == ["doc-dam", None]


@both
def test_the_report_is_streamed_as_a_custom_event(
    checker: GroundingChecker, asynchronous: bool
) -> None:
    agent, _ = make(checker, call(), ANSWER)

    async def collect() -> list[Any]:
        return [event async for event in agent.astream(ASK, stream_mode="custom")]

    events = (
        asyncio.run(collect()) if asynchronous else list(agent.stream(ASK, stream_mode="custom"))
    )
    (event,) = events
    assert event["type"] == "grounding"
    assert event["outcome"] == "annotated"
    assert event["report"]["answer"] == ANSWER
    assert event["message_id"]


# --- retry


@both
def test_a_flagged_answer_is_asked_for_again(
    checker: GroundingChecker, scorer: CountingScorer, asynchronous: bool
) -> None:
    agent, model = make(checker, call(), ANSWER, GROUNDED, on_flagged="retry")
    state = run(agent, asynchronous)
    assert [m.text for m in state["messages"][2:]] == [
        f"{DAM.page_content}\n\n{BOATS.page_content}",
        GROUNDED,
    ]
    assert state["grounding"]["grounded"] is True
    assert marks(state["messages"][-1]) == ["citation"]
    assert scorer.calls == [1, 1], "each answer is checked once"
    request = model.seen[-1][-1]
    assert FEEDBACK in request.additional_kwargs
    assert INVENTED in request.text
    assert GROUNDED not in request.text


@both
def test_asking_again_is_bounded(
    checker: GroundingChecker, scorer: CountingScorer, asynchronous: bool
) -> None:
    agent, model = make(checker, call(), *[ANSWER] * 9, on_flagged="retry", max_retries=2)
    state = run(agent, asynchronous)
    assert len(model.seen) == 1 + 3
    assert scorer.calls == [1, 1, 1]
    assert state["grounding"]["grounded"] is False
    assert len(state["messages"]) == 4, "requests and rejected answers are taken out again"
    assert not any(FEEDBACK in m.additional_kwargs for m in state["messages"])
    assert "grounding" not in state["messages"][-1].response_metadata


def test_retries_are_bounded_when_the_model_retrieves_again(checker: GroundingChecker) -> None:
    answers = [call(), ANSWER, call(identifier="c2"), ANSWER, call(identifier="c3"), ANSWER]
    agent, model = make(checker, *answers, on_flagged="retry", max_retries=1)
    state = agent.invoke(ASK)
    assert len(model.seen) == 4
    assert state["grounding"]["grounded"] is False


def test_each_run_may_ask_again(checker: GroundingChecker) -> None:
    script = [call(), ANSWER, GROUNDED, call(identifier="c2"), ANSWER, GROUNDED]
    agent, model = make(checker, *script, on_flagged="retry", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    agent.invoke(ASK, config)
    state = agent.invoke(ASK, config)
    assert len(model.seen) == 6
    assert [m.text for m in state["messages"] if isinstance(m, HumanMessage)] == [
        INPUT["input"]
    ] * 2


def test_outcomes_of_a_retry_are_streamed(checker: GroundingChecker) -> None:
    agent, _ = make(checker, call(), ANSWER, GROUNDED, on_flagged="retry")
    events = list(agent.stream(ASK, stream_mode="custom"))
    assert [e["outcome"] for e in events] == ["retried", "kept"]


def test_the_request_for_another_answer_can_be_written_by_the_user(
    checker: GroundingChecker,
) -> None:
    agent, model = make(
        checker, call(), ANSWER, GROUNDED, on_flagged="retry", feedback=lambda report: "Nope."
    )
    agent.invoke(ASK)
    assert model.seen[-1][-1].text == "Nope."


# --- block


def streamed(agent: Any, asynchronous: bool) -> list[str]:
    async def collect() -> list[Any]:
        return [pair async for pair in agent.astream(ASK, stream_mode="messages")]

    pairs = (
        asyncio.run(collect()) if asynchronous else list(agent.stream(ASK, stream_mode="messages"))
    )
    return [m.text for m, _ in pairs if isinstance(m, (AIMessage, AIMessageChunk)) and m.text]


@both
def test_a_flagged_answer_is_held_back(
    checker: GroundingChecker, scorer: CountingScorer, asynchronous: bool
) -> None:
    agent, _ = make(checker, call(), ANSWER, on_flagged="block")
    state = run(agent, asynchronous)
    assert state["messages"][-1].content == BLOCKED
    assert INVENTED not in "".join(m.text for m in state["messages"])
    assert state["grounding"]["grounded"] is False
    assert scorer.calls == [1]


@both
def test_a_grounded_answer_is_let_through_with_its_citations(
    checker: GroundingChecker, scorer: CountingScorer, asynchronous: bool
) -> None:
    agent, _ = make(checker, call(), GROUNDED, on_flagged="block")
    state = run(agent, asynchronous)
    assert state["messages"][-1].text == GROUNDED
    assert marks(state["messages"][-1]) == ["citation"]
    assert "grounding" not in state["messages"][-1].response_metadata
    assert scorer.calls == [1]


@both
def test_streaming_lets_nothing_unverified_out(
    checker: GroundingChecker, asynchronous: bool
) -> None:
    """langchain #35011: streaming goes around a guardrail that works on the whole message."""
    agent, _ = make(checker, call(), ANSWER, on_flagged="block")
    assert set(streamed(agent, asynchronous)) == {BLOCKED}
    agent, _ = make(checker, call(), GROUNDED, on_flagged="block")
    assert "".join(dict.fromkeys(streamed(agent, asynchronous))) == GROUNDED
    agent, _ = make(checker, call(), ANSWER)
    assert len(streamed(agent, asynchronous)) > 5, "without block the words are streamed"


def test_an_answer_that_cannot_be_checked_is_held_back(
    checker: GroundingChecker, scorer: CountingScorer
) -> None:
    scorer.error = NumericalError("token 2")
    runnable = GroundingRunnable(checker=checker, on_error="annotate")
    agent, _ = make(runnable, call(), GROUNDED, on_flagged="block")
    state = agent.invoke(ASK)
    assert state["messages"][-1].content == BLOCKED
    assert state["grounding"]["error"]["type"] == "NumericalError"


# --- errors, settings


@both
def test_an_error_of_the_check_is_raised_or_written_down(
    checker: GroundingChecker, scorer: CountingScorer, asynchronous: bool
) -> None:
    scorer.error = NumericalError("token 2")
    agent, _ = make(checker, call(), ANSWER)
    with pytest.raises(NumericalError):
        run(agent, asynchronous)
    runnable = GroundingRunnable(checker=checker, on_error="annotate")
    agent, _ = make(runnable, call(), ANSWER)
    state = run(agent, asynchronous)
    assert state["messages"][-1].text == ANSWER
    assert state["grounding"]["error"]["message"] == "token 2"


def test_a_runnable_with_keys_of_its_own_serves_too(checker: GroundingChecker) -> None:
    runnable = GroundingRunnable(
        checker=checker, answer_key="a", context_key="c", question_key="q", output_key="o"
    )
    agent, _ = make(runnable, call(), ANSWER)
    assert agent.invoke(ASK)["grounding"]["question"] == INPUT["input"]


def test_settings_that_cannot_be_are_refused(checker: GroundingChecker) -> None:
    with pytest.raises(InputError, match="annotate, retry or block, got 'stop'"):
        GroundingMiddleware(checker, on_flagged="stop")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="max_retries must be 0 or more"):
        GroundingMiddleware(checker, max_retries=-1)
    with pytest.raises(InputTypeError, match="a model's name, got int"):
        GroundingMiddleware(7)  # pyright: ignore[reportArgumentType]
