"""Real LlamaIndex parts, a canned generator, and a scorer whose verdicts can be told in advance."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

with warnings.catch_warnings():
    # LlamaIndex's oldest supported release warns about its own fields while it is imported.
    warnings.simplefilter("ignore")
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.llms import CustomLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from gasp_engine import GroundingChecker
from gasp_engine.scorers.table import TableScorer
from gasp_engine.types import Tokens

VOCABULARY = 2048
NONSENSE = "Purple elephants juggle quietly."
DAM = "The dam opened in 1931."
BOATS = "Boats are red."
ANSWER = "The dam opened in 1931. Purple elephants juggle quietly."
"""One sentence that rests on `DAM`, and one that rests on nothing."""

_words: dict[str, int] = {}


def words(text: str) -> Tokens:
    """Words and marks; the same word has the same id, whatever stands around it."""
    spans = [m.span() for m in re.finditer(r"\s*(?:\w+|[^\w\s])", text)]
    if spans and spans[-1][1] < len(text):
        spans[-1] = (spans[-1][0], len(text))
    ids = [_words.setdefault(text[a:b].strip().lower(), len(_words)) for a, b in spans]
    assert len(_words) < VOCABULARY
    return Tokens(tuple(ids), tuple(spans))


def likely_if_in_context(question: str, context: str, index: int, tokens: Tokens) -> np.ndarray:
    """A word is likely when the evidence holds it, and unlikely otherwise."""
    log_prob = -0.05 if tokens.ids[index] in words(context).ids else -6.0
    row = np.full(VOCABULARY, np.log(-np.expm1(log_prob) / (VOCABULARY - 1)))
    row[tokens.ids[index]] = log_prob
    return row


def failing(error: BaseException) -> Callable[..., np.ndarray]:
    """A scorer's function that raises."""

    def function(*_: Any) -> np.ndarray:
        raise error

    return function


def word_checker(
    function: Callable[..., Any] = likely_if_in_context, **options: Any
) -> GroundingChecker:
    """An engine on the word scorer."""
    return GroundingChecker(TableScorer(function, tokenize=words), **options)


class CannedLLM(CustomLLM):
    """Answers with a text given in advance, as a whole or in pieces; counts its calls."""

    text: str = ANSWER
    piece: int = 7
    calls: list[str] = Field(default_factory=list)
    window: int = 4096

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self.window, num_output=64)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        self.calls.append(prompt)
        return CompletionResponse(text=self.text)

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        self.calls.append(prompt)

        def pieces() -> Any:
            for i in range(0, len(self.text), self.piece):
                delta = self.text[i : i + self.piece]
                yield CompletionResponse(text=self.text[: i + self.piece], delta=delta)

        return pieces()


class FixedRetriever(BaseRetriever):
    """Returns the same nodes for every question."""

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        self._nodes = list(nodes)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(self._nodes)


def node(text: str, id_: str | None = None, score: float | None = 0.5, **fields: Any) -> Any:
    """A retrieved node."""
    more = {"id_": id_} if id_ else {}
    return NodeWithScore(node=TextNode(text=text, **more, **fields), score=score)


def canned(text: str = ANSWER, **fields: Any) -> CannedLLM:
    """A fresh canned generator."""
    return CannedLLM(text=text, **fields)


def engine_over(
    nodes: Sequence[NodeWithScore], llm: CannedLLM | None = None, **synthesizer: Any
) -> RetrieverQueryEngine:
    """LlamaIndex's own query engine over given nodes."""
    inner = get_response_synthesizer(llm=llm or canned(), **synthesizer)
    return RetrieverQueryEngine(FixedRetriever(nodes), inner)


def statuses(grounding: dict[str, Any]) -> list[str]:
    """The verdicts, in order."""
    return [sentence["status"] for sentence in grounding["sentences"]]
