"""Grounding as a LlamaIndex evaluation: for `BatchEvalRunner`, retry engines and by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.schema import TextNode

from gasp_engine import GroundingChecker
from gasp_engine.errors import InputError, InputTypeError

from ._annotate import Annotator, answer_of, grounding_in
from ._convert import Source, query_text, sources_of
from .evaluation_result import GroundingEvaluationResult

NO_EVIDENCE = "there is no evidence to check the answer against"
NO_ANSWER = "the answer is empty"
PLACEHOLDER = "LlamaIndex answered by itself, because nothing was retrieved"
DECLINED = "the answer declines to answer and claims nothing"
NO_CLAIM = "the answer holds no claim that could be scored"


class GroundingEvaluator(BaseEvaluator):
    """Whether an answer rests on its contexts, sentence by sentence; calls no LLM but the scorer.

    A result that is neither good nor bad (nothing retrieved, a refusal, no claim) has
    `invalid_result` set and says why, instead of raising: `BatchEvalRunner` would try again.

    >>> evaluator = GroundingEvaluator(checker=checker)  # doctest: +SKIP
    >>> result = evaluator.evaluate_response(query, response)  # doctest: +SKIP
    >>> result.passing, result.feedback  # doctest: +SKIP
    """

    def __init__(self, checker: GroundingChecker | str | None = None) -> None:
        """An evaluator.

        Args:
            checker: the engine, or the name or path of a model; None: `"embedded"`.
        """
        self._annotator = Annotator(checker)

    @classmethod
    def from_defaults(cls, checker: GroundingChecker | str | None = None) -> GroundingEvaluator:
        """See the constructor."""
        return cls(checker)

    @classmethod
    def class_name(cls) -> str:
        """Name of the component."""
        return "GroundingEvaluator"

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        """There are no prompts: the scorer reads, it is not asked."""

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> GroundingEvaluationResult:
        """The verdict on an answer.

        Not through `aevaluate` as in the base class: that one takes every RuntimeError, such as an
        out-of-memory, for a nested event loop, and reports that instead.

        Args:
            query: the user's question.
            response: what the generator wrote.
            contexts: what it was shown.
            kwargs: ignored, for the interface's sake.

        Raises:
            InputError: response or contexts is None.
        """
        answer, sources = _inputs(response, contexts)
        return self._evaluate(query, answer, sources)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> GroundingEvaluationResult:
        """`evaluate` in a worker thread; the event loop goes on."""
        answer, sources = _inputs(response, contexts)
        return await asyncio.to_thread(self._evaluate, query, answer, sources)

    def evaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> GroundingEvaluationResult:
        """The verdict on a response of any of LlamaIndex's types; a stream is read to its end.

        The contexts are what the LLM saw (metadata included), not the nodes' bare text. Nodes that
        a checked response marks as not shown to the LLM are left out.

        Args:
            query: the user's question.
            response: of any of LlamaIndex's response types.
            kwargs: ignored, for the interface's sake.

        Raises:
            InputError: the response is None, or an asynchronous stream in a running event loop.
        """
        return self._evaluate(query, _read(response), _evidence(response))

    async def aevaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> GroundingEvaluationResult:
        """`evaluate_response` without blocking the event loop."""
        answer = await _aread(response)
        return await asyncio.to_thread(self._evaluate, query, answer, _evidence(response))

    def _evaluate(
        self, query: str | None, answer: str, sources: Sequence[Source]
    ) -> GroundingEvaluationResult:
        question = query_text(query)
        given: dict[str, Any] = {
            "query": question,
            "response": answer,
            "contexts": [source.text for source in sources],
        }
        reason = self._why_invalid(answer, sources)
        if reason is not None:
            return _invalid(reason, given)
        grounding = self._annotator.ground(question, sources, answer)
        sentences = grounding["sentences"]
        more: dict[str, Any] = {"sentences": sentences, "grounding": grounding}
        if grounding["grounded"] is None:
            declined = any(s["status"] == "abstention" for s in sentences)
            return _invalid(DECLINED if declined else NO_CLAIM, {**given, **more})
        return GroundingEvaluationResult(
            passing=grounding["grounded"],
            score=_higher_is_better(grounding),
            feedback=_feedback(sentences),
            **given,
            **more,
        )

    def _why_invalid(self, answer: str, sources: Sequence[Source]) -> str | None:
        if self._annotator.is_placeholder(answer, sources):
            return PLACEHOLDER
        if not answer.strip():
            return NO_ANSWER
        if not any(source.text.strip() for source in sources):
            return NO_EVIDENCE
        return None


def _higher_is_better(grounding: dict[str, Any]) -> float | None:
    """The engine's scores rise with doubt; LlamaIndex's fall. Turned round here and nowhere else.

    The calibrated probability that all is supported; without calibration, the negative score.
    """
    if grounding["probability"] is not None:
        return 1.0 - grounding["probability"]
    return None if grounding["score"] is None else -grounding["score"]


def _feedback(sentences: Sequence[dict[str, Any]]) -> str:
    flagged = [s for s in sentences if s["status"] == "flagged"]
    claims = [s for s in sentences if s["status"] in ("flagged", "grounded")]
    if not flagged:
        return f"{len(claims)} of {len(claims)} sentences rest on the sources."
    lines = [f"{len(flagged)} of {len(claims)} sentences do not rest on the sources:"]
    return "\n".join(lines + [f'- "{s["text"]}": {s["reason"]}' for s in flagged])


def _invalid(reason: str, fields: dict[str, Any]) -> GroundingEvaluationResult:
    return GroundingEvaluationResult(
        passing=None,
        score=None,
        feedback=f"Not evaluated: {reason}.",
        invalid_result=True,
        invalid_reason=reason,
        **fields,
    )


def _inputs(response: object, contexts: object) -> tuple[str, tuple[Source, ...]]:
    if response is None or contexts is None:
        missing = "response" if response is None else "contexts"
        raise InputError(f"{missing} must be given, got None")
    if not isinstance(response, str):
        raise InputTypeError(
            f"response must be str, got {type(response).__name__}. "
            f"Use evaluate_response for a response object"
        )
    if isinstance(contexts, str) or not isinstance(contexts, Sequence):
        raise InputTypeError(f"contexts must be a list of str, got {type(contexts).__name__}")
    nodes: list[TextNode] = []
    for i, context in enumerate(contexts):
        if not isinstance(context, str):
            raise InputTypeError(f"contexts[{i}] must be str, got {type(context).__name__}")
        nodes.append(TextNode(text=context, id_=f"contexts[{i}]"))
    return response, sources_of(nodes)


def _evidence(response: Any) -> tuple[Source, ...]:
    sources = sources_of(response.source_nodes)
    grounding = grounding_in(response)
    if grounding is None:
        return sources
    shown = {passage["source_index"] for passage in grounding["passages"]}
    return tuple(source for source in sources if source.index in shown)


def _read(response: Any) -> str:
    if response is None:
        raise InputError("response must be given, got None")
    if isinstance(response, AsyncStreamingResponse):
        if response.response_txt is not None:
            return response.response_txt
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(_aread(response))
        raise InputError(
            "an asynchronous stream cannot be read inside a running event loop. "
            "Use: await evaluator.aevaluate_response(...)"
        )
    if isinstance(response, StreamingResponse):
        return response.get_response().response or ""
    if isinstance(response, StreamingAgentChatResponse):
        return _read_chat(response)
    return answer_of(response)


async def _aread(response: Any) -> str:
    if isinstance(response, AsyncStreamingResponse):
        return (await response.get_response()).response or ""
    if isinstance(response, StreamingAgentChatResponse) and response.achat_stream is not None:
        if not response.is_done or not response.unformatted_response:
            async for _ in response.async_response_gen():
                pass
        return response.unformatted_response or response.response
    if isinstance(response, StreamingResponse | StreamingAgentChatResponse):
        return await asyncio.to_thread(_read, response)
    return _read(response)


def _read_chat(response: StreamingAgentChatResponse) -> str:
    if response.chat_stream is None and response.achat_stream is not None:
        raise InputError(
            "an asynchronous chat stream cannot be read here. "
            "Use: await evaluator.aevaluate_response(...)"
        )
    if not response.is_done or not response.queue.empty() or not response.unformatted_response:
        for _ in response.response_gen:
            pass
    return response.unformatted_response or response.response
