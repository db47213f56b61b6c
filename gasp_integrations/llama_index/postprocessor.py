"""Checks finished responses, and wraps engines: what a user looks for as a postprocessor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NoReturn, overload

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import BaseComponent, NodeWithScore, QueryBundle

from gasp_engine import CheckOptions, GroundingChecker
from gasp_engine.errors import InputTypeError

from ._annotate import Annotator, OnError, OnSentence
from ._convert import query_text, sources_of
from .chat_engine import GroundingChatEngine
from .query_engine import GroundingQueryEngine
from .synthesizer import GroundingSynthesizer

NOT_A_HOOK = (
    "GroundingPostprocessor checks answers, and node_postprocessors run before there is one: here "
    "it would do nothing. Use: engine = GroundingPostprocessor(...).attach(engine)"
)


class GroundingPostprocessor(BaseComponent):
    """Checks responses after they were made: `postprocess_response`, or `attach` for every one.

    >>> engine = GroundingPostprocessor(checker=checker).attach(engine)  # doctest: +SKIP

    `to_dict` holds the model's name and the options; `from_dict` loads the model at first use.
    """

    model: str = Field(default="embedded", description="Name or path of the scorer's model")
    options: dict[str, Any] = Field(
        default_factory=dict, description="Fields of CheckOptions that differ from the defaults"
    )
    on_error: str = Field(default="raise", description="'raise' or 'record' when a check fails")

    _annotator: Annotator = PrivateAttr()

    def __init__(
        self,
        checker: GroundingChecker | None = None,
        *,
        model: str | None = None,
        options: dict[str, Any] | None = None,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
    ) -> None:
        """A postprocessor.

        Args:
            checker: the engine; None: one on `model` with `options`, loaded at the first check.
            model: name or path of a model; None: the checker's, or `"embedded"`.
            options: fields of `CheckOptions`; None: the checker's.
            on_sentence: called with each sentence's verdict as soon as there is one.
            on_error: `"raise"` or `"record"` when a check fails.
        """
        if checker is not None:
            model = model or checker.scorer.info.name
            options = _changed(checker.options) if options is None else options
        values: dict[str, Any] = {
            "model": model or "embedded",
            "options": options or {},
            "on_error": on_error,
        }
        super().__init__(**values)
        self._annotator = Annotator(
            checker or self._load, on_sentence=on_sentence, on_error=on_error
        )

    @classmethod
    def from_defaults(
        cls, checker: GroundingChecker | None = None, **options: Any
    ) -> GroundingPostprocessor:
        """See the constructor."""
        return cls(checker, **options)

    @classmethod
    def class_name(cls) -> str:
        """Name of the component."""
        return "GroundingPostprocessor"

    def _load(self) -> GroundingChecker:
        return GroundingChecker.from_pretrained(self.model, **self.options)

    def postprocess_response(
        self,
        response: Any,
        query: str | QueryBundle | None = None,
        nodes: Sequence[NodeWithScore] | None = None,
    ) -> Any:
        """Check a response.

        Args:
            response: of any of LlamaIndex's response types.
            query: the user's question.
            nodes: what the LLM was shown; None: the response's source nodes.

        Returns:
            The same response, with `metadata["grounding"]`.
        """
        sources = sources_of(response.source_nodes if nodes is None else nodes)
        return self._annotator.annotate(response, query_text(query), sources)

    async def apostprocess_response(
        self,
        response: Any,
        query: str | QueryBundle | None = None,
        nodes: Sequence[NodeWithScore] | None = None,
    ) -> Any:
        """`postprocess_response` without blocking the event loop."""
        sources = sources_of(response.source_nodes if nodes is None else nodes)
        return await self._annotator.aannotate(response, query_text(query), sources)

    @overload
    def attach(self, engine: BaseQueryEngine) -> GroundingQueryEngine: ...
    @overload
    def attach(self, engine: BaseChatEngine) -> GroundingChatEngine: ...
    @overload
    def attach(self, engine: BaseSynthesizer) -> GroundingSynthesizer: ...
    def attach(self, engine: Any) -> Any:
        """A query engine, chat engine or synthesizer around the given one that checks every answer.

        The given one is not changed.

        Raises:
            InputTypeError: it is none of these.
        """
        wrappers = (
            (BaseQueryEngine, GroundingQueryEngine),
            (BaseChatEngine, GroundingChatEngine),
            (BaseSynthesizer, GroundingSynthesizer),
        )
        for kind, wrapper in wrappers:
            if isinstance(engine, kind):
                wrapped: Any = wrapper(engine)  # pyright: ignore[reportArgumentType]
                wrapped._annotator = self._annotator
                return wrapped
        raise InputTypeError(
            f"attach needs a query engine, a chat engine or a synthesizer, "
            f"got {type(engine).__name__}"
        )

    # What LlamaIndex does to node postprocessors, the first of it when an engine is constructed.
    @property
    def callback_manager(self) -> NoReturn:
        """A node postprocessor would have one."""
        raise InputTypeError(NOT_A_HOOK)

    @callback_manager.setter
    def callback_manager(self, value: object) -> None:
        raise InputTypeError(NOT_A_HOOK)

    def postprocess_nodes(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises, with a pointer to `attach`."""
        raise InputTypeError(NOT_A_HOOK)

    async def apostprocess_nodes(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises, with a pointer to `attach`."""
        raise InputTypeError(NOT_A_HOOK)


def _changed(options: CheckOptions) -> dict[str, Any]:
    """The options that differ from the defaults, without those that are code."""
    default = CheckOptions()
    values = {f.name: getattr(options, f.name) for f in fields(options)}
    return {
        name: value
        for name, value in values.items()
        if value != getattr(default, name) and not callable(value)
    }
