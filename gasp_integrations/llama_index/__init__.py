"""Grounding verdicts and source-node citations for LlamaIndex, in `response.metadata["grounding"]`.

    from gasp_integrations.llama_index import GroundingSynthesizer
    synthesizer = GroundingSynthesizer.from_defaults(inner, checker=checker)

LlamaIndex is loaded when the first name is used, not when this package is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chat_engine import GroundingChatEngine
    from .evaluation_result import GroundingEvaluationResult
    from .evaluator import GroundingEvaluator
    from .events import GroundingEndEvent, GroundingSentenceEvent, GroundingStartEvent
    from .export import citation_blocks, cited_markdown, sources_part
    from .postprocessor import GroundingPostprocessor
    from .query_engine import GroundingQueryEngine
    from .synthesizer import GroundingSynthesizer

_HOMES = {
    "GroundingChatEngine": "chat_engine",
    "GroundingEndEvent": "events",
    "GroundingEvaluationResult": "evaluation_result",
    "GroundingEvaluator": "evaluator",
    "GroundingPostprocessor": "postprocessor",
    "GroundingQueryEngine": "query_engine",
    "GroundingSentenceEvent": "events",
    "GroundingStartEvent": "events",
    "GroundingSynthesizer": "synthesizer",
    "citation_blocks": "export",
    "cited_markdown": "export",
    "sources_part": "export",
}

__all__ = [
    "GroundingChatEngine",
    "GroundingEndEvent",
    "GroundingEvaluationResult",
    "GroundingEvaluator",
    "GroundingPostprocessor",
    "GroundingQueryEngine",
    "GroundingSentenceEvent",
    "GroundingStartEvent",
    "GroundingSynthesizer",
    "citation_blocks",
    "cited_markdown",
    "sources_part",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "llama_index":
            raise
        from gasp_engine.errors import MissingExtraError

        raise MissingExtraError(
            f"{name} needs llama-index-core, which is not installed. "
            f'Install it with: pip install "gasp-integrations[llamaindex]"'
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
