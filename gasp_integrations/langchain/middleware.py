"""The checker inside `create_agent`: annotate the answer, ask for a better one, or hold it back.

    on_flagged   where it is checked   what the user sees
    annotate     after the agent       the answer, with citations and flags on its text
    retry        after each answer     tokens of every attempt; the state keeps the last one
    block        around the model      nothing before the check; then the answer or a notice

The report is in the state under `grounding`, and in the custom stream. Between the check and the
end of the run it travels on the message, in `response_metadata`: no answer is checked twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.middleware.types import (
    AgentState,
    ModelRequest,
    ModelResponse,
    OmitFromInput,
    PrivateStateAttr,
)
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.channels.untracked_value import UntrackedValue

from gasp_engine import GroundingChecker, InputError

from ._convert import QUESTION_KEYS, message_text
from .annotate import annotate_message, remove_annotations
from .documents import FEEDBACK, documents_from_messages, is_question, turn_start
from .evaluator import as_runnable
from .runnable import GroundingRunnable

OnFlagged = Literal["annotate", "retry", "block"]
Documents = Sequence[Document | Mapping[str, Any] | str]

BLOCKED = (
    "I could not find support for my answer in the documents, so I am holding it back. "
    "Please ask in another way, or look at the sources."
)
"""What stands in place of an answer that was blocked."""

_REPORT = "grounding"
"""Where the report is in the state, and on a message between the check and the end of the run."""


class GroundingState(AgentState[Any]):
    """The agent's state with the report on its last answer."""

    grounding: NotRequired[Annotated[dict[str, Any] | None, OmitFromInput]]
    """`Report.to_dict()`; None when the last answer was not checked."""
    grounding_retries: NotRequired[Annotated[int, UntrackedValue, PrivateStateAttr]]
    """How often the model was asked again in this run."""


class GroundingMiddleware(AgentMiddleware[GroundingState, Any]):
    """Checks an agent's final answer against what its tools retrieved.

    Answers that call tools are no final answers and are never checked. An error of the check
    follows the runnable's `on_error`; in block mode an answer that could not be checked is held
    back.

    Example:
        >>> agent = create_agent(                                     # doctest: +SKIP
        ...     model, tools=[search], middleware=[GroundingMiddleware("embedded")])
        >>> agent.invoke({"messages": "When?"})["grounding"]["grounded"]  # doctest: +SKIP
        True
    """

    state_schema = GroundingState

    def __init__(
        self,
        checker: GroundingChecker | GroundingRunnable | str,
        *,
        on_flagged: OnFlagged = "annotate",
        documents: str | Callable[[Mapping[str, Any]], Documents] | None = None,
        tools: Collection[str] | None = None,
        scope: Literal["turn", "conversation"] = "turn",
        without_documents: Literal["skip", "check"] = "skip",
        annotate: bool = True,
        max_retries: int = 1,
        feedback: Callable[[dict[str, Any]], str] | None = None,
        blocked: str = BLOCKED,
    ) -> None:
        """A middleware on a checker.

        Args:
            checker: an engine, a runnable, or the name of a model.
            on_flagged: `"annotate"`; `"retry"`: ask the model again, at most `max_retries` times
                a run; `"block"`: replace a flagged answer by `blocked`.
            documents: where the evidence is: a key of the state, or a function of the state; None:
                what the tools returned.
            tools: names of the tools whose results count; None: all.
            scope: results since the last question, or of the whole conversation.
            without_documents: what to do when nothing was retrieved: `"skip"` leaves the answer
                unchecked, which small talk wants; `"check"` flags every claim.
            annotate: write citations and flags onto the message; its content becomes a list of
                content blocks.
            max_retries: see `on_flagged`.
            feedback: makes the request for another answer from the report; None: it names the
                flagged sentences.
            blocked: see `on_flagged`.
        """
        super().__init__()
        if on_flagged not in ("annotate", "retry", "block"):
            raise InputError(f"on_flagged must be annotate, retry or block, got {on_flagged!r}")
        if max_retries < 0:
            raise InputError(f"max_retries must be 0 or more, got {max_retries!r}")
        self.runnable = as_runnable(checker)
        self.on_flagged = on_flagged
        self.documents = documents
        self.tool_names = tools
        self.scope: Literal["turn", "conversation"] = scope
        self.without_documents = without_documents
        self.annotate = annotate
        self.max_retries = max_retries
        self.feedback = feedback or ask_again
        self.blocked = blocked

    # --- around the model: nothing of ours goes to the provider; block mode checks here

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Take our annotations off what the model reads; in block mode, check its answer."""
        response = handler(self._quiet(request))
        values = self._to_block(request, response)
        return self._let_through(request, response, self._check(values)) if values else response

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """As `wrap_model_call`."""
        response = await handler(self._quiet(request))
        values = self._to_block(request, response)
        if not values:
            return response
        return self._let_through(request, response, await self._acheck(values))

    # --- after the model: retry mode checks here

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: GroundingState, runtime: Any) -> dict[str, Any] | None:
        """In retry mode, check the answer and ask again when it is flagged."""
        values = self._to_retry(state)
        return self._again(state, runtime, self._check(values)) if values else None

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: GroundingState, runtime: Any) -> dict[str, Any] | None:
        """As `after_model`."""
        values = self._to_retry(state)
        return self._again(state, runtime, await self._acheck(values)) if values else None

    # --- after the agent: annotate mode checks here; every mode hands out the report

    def after_agent(self, state: GroundingState, runtime: Any) -> dict[str, Any]:
        """Put the report into the state and onto the answer."""
        values = self._to_annotate(state)
        return self._finish(state, runtime, self._check(values) if values else None)

    async def aafter_agent(self, state: GroundingState, runtime: Any) -> dict[str, Any]:
        """As `after_agent`."""
        values = self._to_annotate(state)
        return self._finish(state, runtime, await self._acheck(values) if values else None)

    # --- what is checked

    def _check(self, values: dict[str, Any]) -> dict[str, Any]:
        return self.runnable.invoke(values)[self.runnable.output_key]

    async def _acheck(self, values: dict[str, Any]) -> dict[str, Any]:
        return (await self.runnable.ainvoke(values))[self.runnable.output_key]

    def _to_block(self, request: ModelRequest, response: ModelResponse) -> dict[str, Any] | None:
        if self.on_flagged != "block":
            return None
        return self._values({**request.state, "messages": [*request.messages, *response.result]})

    def _to_retry(self, state: GroundingState) -> dict[str, Any] | None:
        return self._values(state) if self.on_flagged == "retry" else None

    def _to_annotate(self, state: GroundingState) -> dict[str, Any] | None:
        answer = final_answer(state["messages"])
        if answer is None or _REPORT in answer.response_metadata:
            return None
        return self._values(state)

    def _values(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """The runnable's input, or None when there is no final answer or nothing to hold it to."""
        messages = state["messages"]
        answer = final_answer(messages)
        if answer is None or not message_text(answer).strip():
            return None
        documents = self._documents(state)
        if not documents and self.without_documents == "skip":
            return None
        asked = messages[turn_start(messages)]
        keys = self.runnable
        return {
            keys.question_key or QUESTION_KEYS[0]: message_text(asked)
            if is_question(asked)
            else "",
            keys.context_key: list(documents),
            keys.answer_key: answer,
        }

    def _documents(self, state: Mapping[str, Any]) -> Documents:
        if self.documents is None:
            return documents_from_messages(
                state["messages"], tools=self.tool_names, scope=self.scope
            )
        if callable(self.documents):
            return self.documents(state)
        return state.get(self.documents) or []

    # --- what follows from a report

    def _quiet(self, request: ModelRequest) -> ModelRequest:
        messages = [
            remove_annotations(m) if isinstance(m, AIMessage) else m for m in request.messages
        ]
        if self.on_flagged != "block":
            return request.override(messages=messages)
        return request.override(messages=messages, model=without_streaming(request.model))

    def _let_through(
        self, request: ModelRequest, response: ModelResponse, report: dict[str, Any]
    ) -> ModelResponse:
        answer = cast(AIMessage, response.result[-1])
        blocked = is_flagged(report) or "error" in report
        if blocked:
            answer = AIMessage(content=self.blocked, id=answer.id)
        _tell(request.runtime, "blocked" if blocked else "passed", answer, report)
        result: list[BaseMessage] = [*response.result[:-1], _carrying(answer, report)]
        structured = None if blocked else response.structured_response
        return replace(response, result=result, structured_response=structured)

    def _again(self, state: GroundingState, runtime: Any, report: dict[str, Any]) -> dict[str, Any]:
        answer = cast(AIMessage, state["messages"][-1])
        retries = state.get("grounding_retries", 0)
        if not is_flagged(report) or retries >= self.max_retries:
            _tell(runtime, "kept", answer, report)
            return {"messages": [_carrying(answer, report)]}
        _tell(runtime, "retried", answer, report)
        request = HumanMessage(
            content=self.feedback(report), additional_kwargs={FEEDBACK: {"rejected": answer.id}}
        )
        return {"messages": [request], "grounding_retries": retries + 1, "jump_to": "model"}

    def _finish(
        self, state: GroundingState, runtime: Any, report: dict[str, Any] | None
    ) -> dict[str, Any]:
        messages = state["messages"]
        answer = final_answer(messages)
        update: list[BaseMessage] = [RemoveMessage(id=i) for i in _rejected(messages)]
        if answer is None:
            return {"messages": update, _REPORT: None}
        if report is not None:
            _tell(runtime, "annotated", answer, report)
        else:
            report = answer.response_metadata.get(_REPORT)
        metadata = {k: v for k, v in answer.response_metadata.items() if k != _REPORT}
        final = answer.model_copy(update={"response_metadata": metadata})
        if self.annotate and report is not None and report["answer"] == message_text(answer):
            final = annotate_message(final, report, self._documents(state))
        if final.response_metadata != answer.response_metadata or final.content != answer.content:
            update.append(final)
        return {"messages": update, _REPORT: report}


def ask_again(report: Mapping[str, Any]) -> str:
    """The default request for another answer: it names the sentences that rest on nothing."""
    flagged = [s["text"] for s in report["sentences"] if s["status"] == "flagged"]
    return (
        "These sentences of your answer have no support in the retrieved documents:\n"
        + "\n".join(f"- {text}" for text in flagged)
        + "\nAnswer the question again from the documents alone. Leave out what they do not say, "
        "and say so if they do not answer the question."
    )


def final_answer(messages: Sequence[BaseMessage]) -> AIMessage | None:
    """The last message, if it is an answer and not a call of a tool."""
    last = messages[-1] if messages else None
    return last if isinstance(last, AIMessage) and not last.tool_calls else None


def is_flagged(report: Mapping[str, Any]) -> bool:
    """Whether a sentence of the answer rests on nothing."""
    return report["grounded"] is False


def without_streaming(model: BaseChatModel) -> BaseChatModel:
    """The model with LangGraph's tag that keeps its tokens out of `stream_mode="messages"`.

    `disable_streaming` would not do: the whole message is streamed all the same.
    """
    tags = [*(model.tags or []), "nostream"]
    return model.model_copy(update={"tags": tags})


def _carrying(answer: AIMessage, report: dict[str, Any]) -> AIMessage:
    metadata = {**answer.response_metadata, _REPORT: report}
    return answer.model_copy(update={"response_metadata": metadata})


def _rejected(messages: Sequence[BaseMessage]) -> list[str]:
    """Ids of this run's requests to answer again and of the answers they are about."""
    requests = [m for m in messages if FEEDBACK in m.additional_kwargs]
    about = {r.additional_kwargs[FEEDBACK]["rejected"] for r in requests} | {r.id for r in requests}
    return [m.id for m in messages if m.id is not None and m.id in about]


def _tell(runtime: Any, outcome: str, answer: AIMessage, report: dict[str, Any]) -> None:
    runtime.stream_writer(
        {"type": _REPORT, "outcome": outcome, "message_id": answer.id, "report": report}
    )
