"""A report, written onto the message that it is about, as LangChain's own annotations.

    text block   "The dam opened in 1931. It was painted red."
    annotations   |------ citation ------| |- non_standard -|   [start_index, end_index)

Indices are code points of the text of one content block, half open; a sentence that runs over
two blocks is annotated in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar, cast

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.messages.content import create_citation

from gasp_engine import Citation, InputError, Report, SentenceReport
from gasp_engine.errors import shorten

from ._convert import as_document, as_report, content_blocks

MessageT = TypeVar("MessageT", bound=AIMessage)

ID_PREFIX = "grounding-"
"""How the ids of our annotations begin, so that they can be found and replaced."""
_WAS_TEXT = "grounding_was_text"
"""Marks, in `response_metadata`, a message whose content was a plain string before."""


def annotate_message(
    message: MessageT,
    report: Report | Mapping[str, Any],
    documents: Sequence[Document | Mapping[str, Any] | str] | None = None,
) -> MessageT:
    """A copy of `message` whose text carries the report's citations and flags.

    The id and the text stay; the content becomes a list of standard content blocks. Annotations
    of an earlier call are replaced, those of the provider are kept.

    Args:
        message: the answer; its text must be the one that was checked.
        report: a `Report`, its dict, or the output of a `GroundingRunnable`.
        documents: what was retrieved, for `url`, `source` and `page`; the report alone knows ids
            and titles.

    Returns:
        A message of the same class with `output_version` v1.

    Raises:
        InputError: the report is about another text.

    Example:
        >>> out = chain.invoke({"input": "When?"})                        # doctest: +SKIP
        >>> annotate_message(out["answer"], out, out["context"])          # doctest: +SKIP
    """
    report = as_report(report)
    blocks = content_blocks(message)
    texts = [block.get("text", "") if block["type"] == "text" else "" for block in blocks]
    if "".join(texts) != report.answer:
        raise InputError(
            f"the report is about {shorten(report.answer)}, the message says "
            f"{shorten(''.join(texts))}: pass the message whose text was checked"
        )
    start = 0
    for block, text in zip(blocks, texts, strict=True):
        if block["type"] != "text":
            continue
        kept = [a for a in block.get("annotations") or [] if not _is_ours(a)]
        annotations = [*kept, *_annotations(report, start, start + len(text), documents)]
        block.pop("annotations", None)
        if annotations:
            block["annotations"] = annotations
        start += len(text)
    metadata = {**message.response_metadata, "output_version": "v1"}
    if isinstance(message.content, str):
        metadata[_WAS_TEXT] = True
    return message.model_copy(update={"content": blocks, "response_metadata": metadata})


def remove_annotations(message: MessageT) -> MessageT:
    """The message as it was before `annotate_message`, to send it back to a provider.

    Providers take their own annotations and refuse others, and some take text content alone.
    A message without our annotations is returned as it is.
    """
    if not isinstance(message.content, list):
        return message
    metadata = dict(message.response_metadata)
    was_text = metadata.pop(_WAS_TEXT, False)
    if was_text:
        metadata.pop("output_version", None)
        text = "".join(block["text"] for block in message.content if _is_text(block))
        return message.model_copy(update={"content": text, "response_metadata": metadata})
    blocks = [_without_ours(block) for block in message.content]
    if blocks == message.content:
        return message
    return message.model_copy(update={"content": blocks})


def _annotations(
    report: Report,
    start: int,
    end: int,
    documents: Sequence[Document | Mapping[str, Any] | str] | None,
) -> Iterator[dict[str, Any]]:
    """The annotations of the block that holds `answer[start:end]`."""
    for sentence in report.sentences:
        first, last = max(sentence.start, start), min(sentence.end, end)
        if first >= last:
            continue
        # the second half of a sentence that runs over two blocks gets ids of its own
        name = f"{ID_PREFIX}{sentence.index}" + (f"+{first}" if first > sentence.start else "")
        for citation in sentence.citations:
            yield _citation(citation, sentence, (first - start, last - start), name, documents)
        if sentence.status == "flagged":
            yield {
                "type": "non_standard_annotation",
                "id": name,
                "value": {
                    "kind": "grounding",
                    "status": sentence.status,
                    "reason": sentence.reason,
                    "score": sentence.score,
                    "probability": sentence.probability,
                    "start_index": first - start,
                    "end_index": last - start,
                },
            }


def _citation(
    citation: Citation,
    sentence: SentenceReport,
    span: tuple[int, int],
    name: str,
    documents: Sequence[Document | Mapping[str, Any] | str] | None,
) -> dict[str, Any]:
    index = citation.passage_index
    document = as_document(documents[index]) if documents and index < len(documents) else None
    metadata = document.metadata if document else {}
    source = metadata.get("source")
    is_link = isinstance(source, str) and source.startswith(("http://", "https://"))
    given = create_citation(
        id=f"{name}-{citation.id}",
        url=source if is_link else None,
        # some interfaces drop a citation that has neither link nor title
        title=citation.title or f"Document {index + 1}",
        start_index=span[0],
        end_index=span[1],
        cited_text=citation.quote,
        document_id=citation.passage_id or str(index),
        document_index=index,
        source=source,
        page=metadata.get("page"),
        source_start=citation.start,
        source_end=citation.end,
        document_start=citation.document_start,
        document_end=citation.document_end,
        number=citation.id,
        score=citation.share,
        status=sentence.status,
    )
    return cast("dict[str, Any]", given)


def _is_ours(annotation: Mapping[str, Any]) -> bool:
    return str(annotation.get("id", "")).startswith(ID_PREFIX)


def _is_text(block: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(block, dict) and block.get("type") == "text"


def _without_ours(block: Any) -> Any:
    if not _is_text(block) or not block.get("annotations"):
        return block
    kept = [a for a in block["annotations"] if not _is_ours(a)]
    if len(kept) == len(block["annotations"]):
        return block
    return {**{k: v for k, v in block.items() if k != "annotations"}, "annotations": kept}
