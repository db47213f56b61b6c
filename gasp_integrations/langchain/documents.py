"""What an agent's tools retrieved, found in its messages.

A tool may keep its documents as an *artifact* of its message (`response_format=
"content_and_artifact"`) or give its text alone; after a checkpointer an artifact's documents are
dicts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from ._convert import as_document, documents_in

FEEDBACK = "grounding_feedback"
"""Marks, in `additional_kwargs`, a message that asks the model to answer again."""


def documents_from_messages(
    messages: Sequence[BaseMessage],
    *,
    tools: Collection[str] | None = None,
    scope: Literal["turn", "conversation"] = "turn",
) -> list[Document]:
    """The documents that the tools handed to the model, in the order of their messages.

    A tool message with documents as its artifact gives those; any other gives its text as one
    document. Messages of tools that failed are no evidence and are left out.

    Args:
        messages: the conversation.
        tools: names of the tools whose results count; None: all.
        scope: `"turn"`: what came after the last question; `"conversation"`: everything.

    Returns:
        Documents; empty when nothing was retrieved.

    Example:
        >>> from langchain_core.messages import HumanMessage, ToolMessage
        >>> found = documents_from_messages([
        ...     HumanMessage("When?"), ToolMessage("In 1931.", tool_call_id="1", name="search")])
        >>> found[0].page_content, found[0].metadata["tool"]
        ('In 1931.', 'search')
    """
    documents: list[Document] = []
    for message in messages[turn_start(messages) if scope == "turn" else 0 :]:
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        if tools is None or message.name in tools:
            documents += _documents(message)
    return documents


def turn_start(messages: Sequence[BaseMessage]) -> int:
    """Index of the last question; 0 without one. Requests to answer again are no question."""
    for index in range(len(messages) - 1, -1, -1):
        if is_question(messages[index]):
            return index
    return 0


def is_question(message: BaseMessage) -> bool:
    """Whether a person said this."""
    return isinstance(message, HumanMessage) and FEEDBACK not in message.additional_kwargs


def _documents(message: ToolMessage) -> list[Document]:
    artifact: Any = message.artifact
    single = as_document(artifact)
    if single is not None:
        return [single]
    if isinstance(artifact, (list, tuple)):
        if not artifact:
            # a retriever that found nothing: its text, such as "no results", is no evidence
            return []
        found = documents_in(artifact)
        if found is not None:
            return found
    text = message.text
    if not text.strip():
        return []
    metadata = {"title": message.name, "tool": message.name} if message.name else {}
    return [Document(page_content=str(text), metadata=metadata, id=message.tool_call_id)]
