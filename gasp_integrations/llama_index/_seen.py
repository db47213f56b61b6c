"""What the LLM was shown while an answer was made, learnt from LlamaIndex's own events.

An engine's response does not say which of its `source_nodes` the LLM saw, nor in how many calls.
Its events do: the last synthesis that began before the engine returned wrote the answer.

    SynthesizeStart        a new synthesis: forget the last one's text
    GetResponseStart       text_chunks: what (compact and) refine goes through, one call each
    LLMPredictStart        the context of each call, for synthesizers that send no GetResponseStart
    RetrievalEnd           the nodes that the retriever gave, before anybody cut them up
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.instrumentation import (
    get_dispatcher,  # pyright: ignore[reportPrivateImportUsage]
)
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import NodeWithScore

from ._convert import Origin, Source, sources_of

EDGE = 80
"""So many characters at the beginning or end of a node, white space left out, recognize it."""


@dataclass
class Seen:
    """What one watched call has shown to the LLM so far."""

    chunks: list[str] = field(default_factory=list[str])
    """Text of the last synthesis, as its synthesizer packed it."""
    contexts: list[str] = field(default_factory=list[str])
    """Text of the LLM calls of the last synthesis that had any."""
    retrieved: list[NodeWithScore] = field(default_factory=list[NodeWithScore])
    """Nodes that retrievers gave, in order."""
    outer: Seen | None = None
    """The watch around this one; it sees the same."""

    @property
    def calls(self) -> int:
        """How many LLM calls wrote the answer; 0 when no event told."""
        return len(self.chunks) or len(self.contexts)

    def take(self, event: BaseEvent) -> None:
        """Note what an event tells, here and in the watches around."""
        match event.class_name():
            case "SynthesizeStartEvent":
                self.chunks.clear()
                self.contexts.clear()
            case "GetResponseStartEvent":
                self.chunks[:] = _field(event, "text_chunks")
            case "GetMessageResponseStartEvent":
                self.chunks[:] = [m.content or "" for m in _field(event, "message_chunks")]
            case "LLMPredictStartEvent":
                arguments = getattr(event, "template_args", None) or {}
                context = arguments.get("context_str", arguments.get("context_msg"))
                if isinstance(context, str):
                    self.contexts.append(context)
                elif isinstance(context, list | tuple):
                    self.contexts.append("\n".join(str(part) for part in context))
            case "RetrievalEndEvent":
                self.retrieved.extend(_field(event, "nodes"))
            case _:
                return
        if self.outer is not None:
            self.outer.take(event)

    def evidence(self, nodes: Sequence[NodeWithScore]) -> tuple[Source, ...]:
        """Of a response's source nodes, those that the LLM saw; chunks with where they are from."""
        sources = sources_of(nodes)
        shown = self.shown(sources)
        if shown is not None:
            sources = tuple(sources[i] for i in shown)
        placed: list[Source] = []
        after = (0, 0)
        for source in sources:
            origin = self.origin_of(source, after) or self.origin_of(source)
            after = (origin.index, origin.start + 1) if origin else after
            placed.append(replace(source, origin=origin))
        return tuple(placed)

    def shown(self, sources: Sequence[Source]) -> list[int] | None:
        """Positions of the sources that the LLM saw; None when that cannot be told.

        Sources are looked for in order, each after the one before: a sub-question's answer that
        quotes a passage word for word does not make the passage itself shown.
        """
        text = _dense("".join(self.chunks or self.contexts))
        found: list[int] = []
        position = 0
        for i, source in enumerate(sources):
            dense = _dense(source.text)
            if not dense:
                continue
            head, tail = dense[:EDGE], dense[-EDGE:]
            at = text.find(head, position)
            at = at if at >= 0 else text.find(tail, position)
            if at >= 0:
                found.append(i)
                position = at + len(head)
        return found or None

    def synthesis(self, sources: Sequence[Source]) -> dict[str, Any] | None:
        """How the answer was made: LLM calls, and nodes that were cut; None when no event told."""
        if not self.calls:
            return None
        cut: list[int] = []
        if self.calls == 1:
            text = _dense((self.chunks or self.contexts)[0])
            cut = [s.index for s in sources if _dense(s.text)[-EDGE:] not in text]
        return {"calls": self.calls, "cut": cut if len(cut) < len(sources) else []}

    def origin_of(self, source: Source, after: tuple[int, int] = (0, 0)) -> Origin | None:
        """Where a chunk's text was cut from: the first place at or after (node, character)."""
        text = source.body[source.label :].strip()
        if not text or source.number is None:
            return None
        for index in range(after[0], len(self.retrieved)):
            node = self.retrieved[index].node
            body = node.get_content()
            at = body.find(text, after[1] if index == after[0] else 0)
            if at >= 0:
                start = getattr(node, "start_char_idx", None)
                shift = at - source.body.index(text, source.label)
                begin = start if isinstance(start, int) else None
                return Origin(node.node_id, index, at, shift, begin)
        return None


_watching: ContextVar[Seen | None] = ContextVar("gasp_watching", default=None)


class _Listener(BaseEventHandler):
    """Hands events to the watch of the context that they are sent in."""

    @classmethod
    def class_name(cls) -> str:
        return "GroundingListener"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        seen = _watching.get()
        if seen is not None:
            seen.take(event)


_listener = _Listener()


@contextmanager
def watch() -> Generator[Seen]:
    """Note what the LLM is shown inside the block; blocks nest, tasks and threads stay apart.

    The listener is added to LlamaIndex's root dispatcher on first use and stays there; outside a
    block it does nothing.
    """
    root = get_dispatcher()
    if not any(handler is _listener for handler in root.event_handlers):
        root.add_event_handler(_listener)
    seen = Seen(outer=_watching.get())
    token = _watching.set(seen)
    try:
        yield seen
    finally:
        _watching.reset(token)


def _field(event: BaseEvent, name: str) -> list[Any]:
    return list(getattr(event, name, None) or ())


def _dense(text: str) -> str:
    return "".join(text.split())
