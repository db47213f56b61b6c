"""Any query engine, checked from outside: routers, sub-questions, citations, your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import NodeWithScore, QueryBundle

from gasp_engine import GroundingChecker

from ._annotate import Annotator, OnError, OnSentence, grounding_in
from ._convert import require_methods
from ._seen import Seen, watch


class GroundingQueryEngine(BaseQueryEngine):
    """A query engine whose answers carry their verdicts in `metadata["grounding"]`.

    The evidence is what the LLM saw while it wrote the answer, as LlamaIndex's events tell: of a
    sub-question engine's source nodes these are the sub-questions' answers. An answer that the
    engine's own synthesizer has checked is not checked again.

    >>> engine = GroundingQueryEngine(index.as_query_engine(), checker)  # doctest: +SKIP
    >>> engine.query("When?").metadata["grounding"]["grounded"]  # doctest: +SKIP
    """

    def __init__(
        self,
        query_engine: BaseQueryEngine,
        checker: GroundingChecker | str | None = None,
        *,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
    ) -> None:
        """An engine around another.

        Args:
            query_engine: answers the queries.
            checker: the engine, or the name or path of a model; None: `"embedded"`.
            on_sentence: called with each sentence's verdict as soon as there is one.
            on_error: `"raise"` or `"record"` when a check fails; a stream always records.

        Raises:
            InputTypeError: an argument is no such object; names it and what to pass.
            InputError: `on_error` is neither.
        """
        require_methods(
            query_engine, ("query", "aquery"), "query_engine", "index.as_query_engine()"
        )
        self._inner = query_engine
        self._annotator = Annotator(checker, on_sentence=on_sentence, on_error=on_error)
        super().__init__(callback_manager=query_engine.callback_manager)

    @classmethod
    def from_defaults(
        cls,
        query_engine: BaseQueryEngine,
        checker: GroundingChecker | str | None = None,
        *,
        on_sentence: OnSentence | None = None,
        on_error: OnError = "raise",
    ) -> GroundingQueryEngine:
        """See the constructor."""
        return cls(query_engine, checker, on_sentence=on_sentence, on_error=on_error)

    @classmethod
    def class_name(cls) -> str:
        """Name of the component."""
        return "GroundingQueryEngine"

    def __getattr__(self, name: str) -> Any:
        # `retriever`, `aretrieve`, `with_retriever`, …: what only some engines have.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def get_prompts(self) -> dict[str, Any]:
        """The inner engine's, under their own names."""
        # Not through `_get_prompts`: the base class refuses the colons in nested names.
        return self._inner.get_prompts()

    def update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        """Change the inner engine's prompts."""
        self._inner.update_prompts(prompts_dict)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The inner engine's nodes."""
        return self._inner.retrieve(query_bundle)

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """The inner engine's answer from given nodes, checked."""
        with watch() as seen:
            response = self._inner.synthesize(query_bundle, nodes, additional_source_nodes)
        return self._check(response, query_bundle, seen)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """`synthesize`, asynchronously; scoring runs in a worker thread."""
        with watch() as seen:
            response = await self._inner.asynthesize(query_bundle, nodes, additional_source_nodes)
        return await self._acheck(response, query_bundle, seen)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with watch() as seen:
            response = self._inner.query(query_bundle)
        return self._check(response, query_bundle, seen)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with watch() as seen:
            response = await self._inner.aquery(query_bundle)
        return await self._acheck(response, query_bundle, seen)

    def _check(self, response: RESPONSE_TYPE, query: QueryBundle, seen: Seen) -> RESPONSE_TYPE:
        if grounding_in(response) is not None:
            return response
        sources = seen.evidence(response.source_nodes)
        made = seen.synthesis(sources)
        return self._annotator.annotate(response, query.query_str, sources, made)

    async def _acheck(
        self, response: RESPONSE_TYPE, query: QueryBundle, seen: Seen
    ) -> RESPONSE_TYPE:
        if grounding_in(response) is not None:
            return response
        sources = seen.evidence(response.source_nodes)
        made = seen.synthesis(sources)
        return await self._annotator.aannotate(response, query.query_str, sources, made)
