"""What happens during a check, for LlamaIndex's instrumentation.

    GroundingStartEvent ── GroundingSentenceEvent × S ── GroundingEndEvent

A streamed answer's events carry the span in which the answer was begun, also when they are sent
from another thread long after that span has ended.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.events import BaseEvent


class GroundingStartEvent(BaseEvent):
    """A check begins."""

    query: str
    """The user's question."""
    node_ids: list[str]
    """The nodes that the answer is checked against, in order."""

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "GroundingStartEvent"


class GroundingSentenceEvent(BaseEvent):
    """One sentence has its verdict."""

    sentence: dict[str, Any]
    """As in `metadata["grounding"]["sentences"]`."""

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "GroundingSentenceEvent"


class GroundingEndEvent(BaseEvent):
    """A check has ended, with `status` `ok`, `closed` or `error`."""

    grounding: dict[str, Any]
    """As in `metadata["grounding"]`."""

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "GroundingEndEvent"
