"""LangChain's values -> the engine's: messages to text, documents to passages, inputs to examples.

What a chain carries comes in many forms: `Document` objects, the dicts that a checkpointer or a
trace makes of them, plain strings; answers are strings or messages with several content blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage

from gasp_engine import Example, Passage, Report
from gasp_engine.errors import InputTypeError, shorten

QUESTION_KEYS = ("input", "question", "query")
"""Where a question is looked for, in this order."""

_SILENT_BLOCKS = frozenset(
    {
        "reasoning",
        "tool_call",
        "tool_call_chunk",
        "invalid_tool_call",
        "server_tool_call",
        "server_tool_call_chunk",
        "server_tool_result",
    }
)
"""Blocks that are no part of an answer and are never scored."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Under which keys a chain's dict holds what the checker needs."""

    answer: str = "answer"
    """The generated answer."""
    context: str = "context"
    """The retrieved documents."""
    question: str | None = None
    """The question; None: the first of `QUESTION_KEYS` that is there."""

    def question_in(self, values: Mapping[str, Any]) -> str | None:
        """The key that holds the question in `values`, if one does."""
        if self.question is not None:
            return self.question if self.question in values else None
        return next((key for key in QUESTION_KEYS if key in values), None)


def example_of(values: object, keys: Keys) -> Example:
    """The engine's example from a chain's dict.

    Raises:
        InputTypeError: a key is missing, or a value has a form that cannot be read.
    """
    if not isinstance(values, Mapping):
        raise InputTypeError(
            f"the input must be a dict with {keys.answer!r} and {keys.context!r}, "
            f"got {type(values).__name__} {shorten(values)}"
        )
    question = keys.question_in(values)
    expected = {
        keys.answer: keys.answer in values,
        keys.context: keys.context in values,
        keys.question or "/".join(QUESTION_KEYS): question is not None,
    }
    if not all(expected.values()):
        missing = ", ".join(repr(key) for key, there in expected.items() if not there)
        raise InputTypeError(
            f"the input has no {missing}; it has {shorten(sorted(map(str, values)), 200)}. "
            f"Set answer_key, context_key or question_key to the names that the chain uses"
        )
    return Example(
        message_text(values[question], str(question)),
        passages_of(values[keys.context], keys.context),
        message_text(values[keys.answer], keys.answer),
    )


def message_text(value: object, name: str = "answer") -> str:
    """The text of a string, a message or a list of content blocks; reasoning is left out.

    Text blocks are joined as they stand, as LangChain's own `.text` does. Of a list of messages it
    is the last human one's, which is the question of a chat.

    Raises:
        InputTypeError: not one of these, or a message that holds no text but, say, an image.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(m, BaseMessage) for m in value):
        spoken = [m for m in value if m.type == "human"]
        value = (spoken or value)[-1]
    if isinstance(value, list):
        value = AIMessage(content=value)
    if not isinstance(value, BaseMessage):
        raise InputTypeError(
            f"{name} must be str or a message, got {type(value).__name__} {shorten(value)}"
        )
    if isinstance(value.content, str):
        return value.content
    blocks = content_blocks(value)
    texts = [block.get("text", "") for block in blocks if block["type"] == "text"]
    others = sorted({block["type"] for block in blocks} - {"text"} - _SILENT_BLOCKS)
    if others and not texts:
        raise InputTypeError(
            f"{name} holds no text, only content blocks of type {', '.join(others)}: "
            f"there is nothing to check. Pass the text of the answer"
        )
    return "".join(texts)


def content_blocks(message: BaseMessage) -> list[dict[str, Any]]:
    """The message's standard content blocks, without the faults of some translators; copies.

    Text that claims to be v1 comes back as a bare string from older versions of langchain-core, and
    the translator for Groq answers with nothing when the content is a list: then the blocks are
    those of a message of no known provider.
    """
    metadata = dict(message.response_metadata)
    if isinstance(message.content, str):
        metadata.pop("output_version", None)
    blocks = _translated(message, metadata)
    if _text_of(blocks) != message.text:
        metadata.pop("model_provider", None)
        blocks = _translated(message, metadata)
    return blocks


def text_of_chunk(value: object) -> str:
    """The text that a streamed piece of an answer adds; empty for what is no text."""
    if isinstance(value, BaseMessage):
        return value.content if isinstance(value.content, str) else _text_of(content_blocks(value))
    return value if isinstance(value, str) else ""


def _translated(message: BaseMessage, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = message.model_copy(update={"response_metadata": metadata}).content_blocks
    return [dict(block) for block in blocks]


def _text_of(blocks: Iterable[Mapping[str, Any]]) -> str:
    return "".join(block.get("text", "") for block in blocks if block["type"] == "text")


def passages_of(context: object, name: str = "context") -> list[Passage]:
    """The engine's passages from documents, dicts or strings.

    One string is one passage: a prompt that was already formatted is scored as a whole, and what
    is cited are characters of it.
    """
    if isinstance(context, (str, Document, Mapping)):
        context = [context]
    if isinstance(context, BaseMessage) or not isinstance(context, Iterable):
        raise InputTypeError(
            f"{name} must be a list of Document, dict or str, or one str, "
            f"got {type(context).__name__} {shorten(context)}"
        )
    return [_passage(item, f"{name}[{i}]") for i, item in enumerate(context)]


def _passage(item: object, name: str) -> Passage:
    if isinstance(item, Passage):
        return item
    if isinstance(item, str):
        return Passage(item)
    document = as_document(item)
    if document is None:
        raise InputTypeError(
            f"{name} must be Document, str or a dict with page_content (or text), "
            f"got {type(item).__name__} {shorten(item)}"
        )
    title = document.metadata.get("title") or document.metadata.get("source")
    return Passage(
        document.page_content,
        document.id,
        None if title is None else str(title),
        dict(document.metadata),
    )


def as_document(item: object) -> Document | None:
    """A `Document` from itself or a dict that was one; None for anything else.

    Dicts have the form of a trace (`page_content`, `metadata`), of LangChain's own serialization
    (`lc`, `kwargs`), or of the engine (`text`, `id`, `title`).
    """
    if isinstance(item, Document):
        return item
    if not isinstance(item, Mapping):
        return None
    fields: Mapping[str, Any] = item
    if "lc" in fields and isinstance(fields.get("kwargs"), Mapping):
        fields = fields["kwargs"]
    text = fields.get("page_content", fields.get("text"))
    if not isinstance(text, str):
        return None
    metadata = dict(fields.get("metadata") or {})
    if fields.get("title") is not None:
        metadata.setdefault("title", fields["title"])
    identifier = fields.get("id")
    return Document(
        page_content=text,
        metadata=metadata,
        id=None if identifier is None else str(identifier),
    )


def as_report(value: object) -> Report:
    """A `Report` from itself, its dict, or a chain's output that holds one under `grounding`."""
    if isinstance(value, Report):
        return value
    if isinstance(value, Mapping):
        values: Mapping[str, Any] = value
        nested = values.get("grounding")
        return Report.from_dict(nested if isinstance(nested, Mapping) else values)
    raise InputTypeError(
        f"a report must be a Report, its dict or the output of a GroundingRunnable, "
        f"got {type(value).__name__} {shorten(value)}"
    )


def failed_report(error: Exception, example: Example | None) -> dict[str, Any]:
    """What stands in a report's place when the check failed: no verdict, and why.

    It has the form of a report, so that whatever reads reports reads this too, and says
    `grounded: null`; `error` holds the type and the message.
    """
    message = f"the check failed: {type(error).__name__}: {error}"
    report = Report(
        question=example.question if example else "",
        answer=example.answer if example else "",
        grounded=None,
        score=None,
        probability=None,
        scorer={},
        detector={},
        sentences=(),
        passages=(),
        warnings=(message,),
    )
    return {**report.to_dict(), "error": {"type": type(error).__name__, "message": str(error)}}


def merge_chunks(total: dict[str, Any], chunk: Mapping[str, Any]) -> None:
    """Add one chunk of a streamed dict to `total`, in place.

    Text and lists grow and message chunks are merged; of anything else the last one counts. Plain
    dicts do not add up in LangChain, and its AddableDict refuses values that do not.
    """
    for key, value in chunk.items():
        before = total.get(key)
        if before is None:
            total[key] = value
        elif value is not None:
            total[key] = before + value if _adds_up(before, value) else value


def _adds_up(before: object, value: object) -> bool:
    from langchain_core.messages import BaseMessageChunk

    return (
        (isinstance(before, str) and isinstance(value, str))
        or (isinstance(before, list) and isinstance(value, list))
        or (isinstance(before, BaseMessageChunk) and isinstance(value, BaseMessageChunk))
    )


def documents_in(items: Sequence[object]) -> list[Document] | None:
    """The items as documents, or None when one of them is something else."""
    documents = [as_document(item) for item in items]
    found = [document for document in documents if document is not None]
    return found if found and len(found) == len(documents) else None
