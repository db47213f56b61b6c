"""LangChain and LangGraph: verdicts and citations where their users already look.

>>> from gasp_integrations.langchain import GroundingRunnable  # doctest: +SKIP
>>> chain = rag | GroundingRunnable(model="embedded")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gasp_engine.errors import MissingExtraError

if TYPE_CHECKING:
    from .annotate import annotate_message
    from .documents import documents_from_messages
    from .evaluator import grounding_evaluator
    from .middleware import GroundingMiddleware
    from .rendering import to_html, to_markdown
    from .runnable import GroundingRunnable
    from .schema import GroundingInput, GroundingOutput

_HOMES = {
    "GroundingInput": "schema",
    "GroundingMiddleware": "middleware",
    "GroundingOutput": "schema",
    "GroundingRunnable": "runnable",
    "annotate_message": "annotate",
    "documents_from_messages": "documents",
    "grounding_evaluator": "evaluator",
    "to_html": "rendering",
    "to_markdown": "rendering",
}
_EXTRAS = {"langchain_core": "langchain", "langchain": "agents", "langgraph": "agents"}

__all__ = [
    "GroundingInput",
    "GroundingMiddleware",
    "GroundingOutput",
    "GroundingRunnable",
    "annotate_message",
    "documents_from_messages",
    "grounding_evaluator",
    "to_html",
    "to_markdown",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        module = import_module(f".{_HOMES[name]}", __name__)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        raise MissingExtraError(
            f"{name} needs {error.name}, which is not installed. "
            f'Install it with: pip install "gasp-integrations[{extra}]"'
        ) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
