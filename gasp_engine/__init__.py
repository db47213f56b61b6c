"""Which parts of a RAG answer rest on the retrieved passages, and on which characters of them.

>>> from gasp_engine import GroundingChecker
>>> checker = GroundingChecker.from_pretrained("embedded")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checker import GroundingChecker
    from .errors import GaspError, InputError
    from .options import CheckOptions
    from .prepare import Example
    from .report import Citation, Report, SentenceReport
    from .session import GroundingSession
    from .types import Passage

_HOMES = {
    "CheckOptions": "options",
    "Citation": "report",
    "Example": "prepare",
    "GaspError": "errors",
    "GroundingChecker": "checker",
    "GroundingSession": "session",
    "InputError": "errors",
    "Passage": "types",
    "Report": "report",
    "SentenceReport": "report",
}

__all__ = [
    "CheckOptions",
    "Citation",
    "Example",
    "GaspError",
    "GroundingChecker",
    "GroundingSession",
    "InputError",
    "Passage",
    "Report",
    "SentenceReport",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
