"""The primary hook: a synthesizer sees the question, the nodes and the answer together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryType

from gasp_engine import GroundingChecker

from ._annotate import Annotator, OnError, OnSentence
from ._convert import query_text, require_methods, sources_of
from ._seen import watch


class GroundingSynthesizer(BaseSynthesizer):
    """Any response synthesizer, with the verdicts on its answers in `metadata["grounding"]`.

    >>> from llama_index.core.response_synthesizers import get_response_synthesizer
    >>> inner = get_response_synthesizer(llm=llm)  # doctest: +SKIP
    >>> synthesizer = GroundingSynthesizer.from_defaults(inner, checker=checker)  # doctest: +SKIP
    >>> engine = index.as_query_engine(response_synthesizer=synthesizer)  # doctest: +SKIP
    """

    def __init__(
        self,
        inner: BaseSynthesizer,
        checker: GroundingChecker | str | None = None,
        *,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
    ) -> None:
        """A synthesizer around another.

        Args:
            inner: writes the answers.
            checker: the engine, or the name or path of a model; None: `"embedded"`.
            on_sentence: called with each sentence's verdict as soon as there is one.
            on_error: `"raise"` or `"record"` when a check fails; a stream always records.

        Raises:
            InputTypeError: an argument is no such object; names it and what to pass.
            InputError: `on_error` is neither.
        """
        require_methods(inner, ("synthesize", "asynthesize"), "inner", "get_response_synthesizer()")
        # First, because the base class sets `_streaming`, which is the inner one's (see below).
        self._inner = inner
        super().__init__(
            llm=getattr(inner, "_llm", None),
            prompt_helper=getattr(inner, "_prompt_helper", None),
            streaming=inner._streaming,
            output_cls=getattr(inner, "_output_cls", None),
        )
        self._multimodal = getattr(inner, "_multimodal", False)
        self._annotator = Annotator(
            checker,
            on_sentence=on_sentence,
            on_error=on_error,
            empty_response=getattr(inner, "_empty_response", None),
        )

    @classmethod
    def from_defaults(
        cls,
        inner: BaseSynthesizer | None = None,
        checker: GroundingChecker | str | None = None,
        *,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
        **synthesizer: Any,
    ) -> GroundingSynthesizer:
        """A synthesizer around another, or around LlamaIndex's default one.

        Args:
            inner: writes the answers; None: `get_response_synthesizer(**synthesizer)`.
            checker: see the constructor.
            on_sentence: see the constructor.
            on_error: see the constructor.
            synthesizer: `llm`, `response_mode`, `streaming`, … for the default one.
        """
        inner = inner or get_response_synthesizer(**synthesizer)
        return cls(inner, checker, on_sentence=on_sentence, on_error=on_error)

    @classmethod
    def class_name(cls) -> str:
        """Name of the component."""
        return "GroundingSynthesizer"

    # Chat engines switch streaming by setting this attribute from outside.
    @property
    def _streaming(self) -> bool:
        return self._inner._streaming

    @_streaming.setter
    def _streaming(self, value: bool) -> None:
        self._inner._streaming = value

    @property
    def _callback_manager(self) -> CallbackManager:
        return self._inner.callback_manager

    @_callback_manager.setter
    def _callback_manager(self, value: CallbackManager) -> None:
        # The base class sets a default while it is constructed; the inner one has its own.
        pass

    @property
    def callback_manager(self) -> CallbackManager:
        """The inner synthesizer's."""
        return self._inner.callback_manager

    @callback_manager.setter
    def callback_manager(self, callback_manager: CallbackManager) -> None:
        self._inner.callback_manager = callback_manager

    def _get_prompts(self) -> dict[str, Any]:
        # Flat: as a sub-module, names would nest ("a:b:c"), which LlamaIndex cannot take apart.
        return self._inner.get_prompts()

    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        self._inner.update_prompts(prompts_dict)

    def get_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> Any:
        """The inner synthesizer's text; there are no nodes here, so nothing is checked."""
        return self._inner.get_response(query_str, text_chunks, **kwargs)

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> Any:
        """`get_response`, asynchronously."""
        return await self._inner.aget_response(query_str, text_chunks, **kwargs)

    def synthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """The inner synthesizer's response, checked against `nodes`, which are what the LLM saw."""
        with watch() as seen:
            response = self._inner.synthesize(
                query, nodes, additional_source_nodes, **response_kwargs
            )
        sources = sources_of(nodes)
        return self._annotator.annotate(
            response, query_text(query), sources, seen.synthesis(sources)
        )

    async def asynthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """`synthesize`, asynchronously; scoring runs in a worker thread."""
        with watch() as seen:
            response = await self._inner.asynthesize(
                query, nodes, additional_source_nodes, **response_kwargs
            )
        sources = sources_of(nodes)
        return await self._annotator.aannotate(
            response, query_text(query), sources, seen.synthesis(sources)
        )
