"""Checked answers for readers: numbered Markdown, chat-ui's markers and sources, citation blocks.

    "It opened in 1931. It is open."  ->  "It opened in 1931.[1] It is open. ⚠"
                                      ->  "It opened in 1931. [citation:node-7] It is open."

These make new text from `metadata["grounding"]`; `response.response` itself is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llama_index.core.base.llms.types import CitationBlock, TextBlock
from llama_index.core.schema import MetadataMode

from gasp_engine.errors import InputError

from ._annotate import grounding_in

Style = Literal["numbers", "chat-ui"]

LOCATIONS = ("source_index", "node_start", "node_end", "doc_start", "doc_end")
"""What goes into a citation block's `additional_location_info`, where it is known."""


def cited_markdown(
    response: Any, *, style: Style = "numbers", mark_flagged: bool = True, sources: bool = True
) -> str:
    """The answer with its citations in the text.

    Args:
        response: a checked response, or its `metadata["grounding"]`.
        style: `"numbers"`: `[1]`, numbered in the order of the answer, one number for one place;
            `"chat-ui"`: `[citation:<node_id>]`, which LlamaIndex's chat-ui turns into links.
        mark_flagged: put ` ⚠` behind sentences that rest on nothing.
        sources: with numbers, add the list of what they stand for.

    Raises:
        InputError: the response was not checked, or its stream is not yet complete.
    """
    if style not in ("numbers", "chat-ui"):
        raise InputError(f'style must be "numbers" or "chat-ui", got {style!r}')
    grounding = _complete(response)
    answer: str = grounding["answer"]
    text = ""
    position = 0
    for sentence in grounding["sentences"]:
        text += answer[position : sentence["end"]]
        position = sentence["end"]
        citations = sentence["citations"]
        if style == "numbers":
            text += "".join(f"[{c['id']}]" for c in citations)
        else:
            names = dict.fromkeys(c["node_id"] for c in citations)
            text += "".join(f" [citation:{name}]" for name in names)
        if mark_flagged and sentence["status"] == "flagged":
            text += " ⚠"
    text += answer[position:]
    listed = _numbered(grounding) if sources and style == "numbers" else []
    if not listed:
        return text
    return text.rstrip() + "\n\n" + "\n".join(_source_line(c) for c in listed) + "\n"


def citation_blocks(response: Any) -> list[CitationBlock]:
    """LlamaIndex's own citation blocks, one for each place that is cited, in order of number.

    `source` is the node's id, `cited_content` the quote; the positions are in
    `additional_location_info`.

    Raises:
        InputError: the response was not checked, or its stream is not yet complete.
    """
    return [
        CitationBlock(
            cited_content=TextBlock(text=citation["quote"]),
            source=citation["node_id"],
            title=citation["title"] or citation["ref_doc_id"] or citation["node_id"],
            additional_location_info={
                name: citation[name] for name in LOCATIONS if citation[name] is not None
            },
        )
        for citation in _numbered(_complete(response))
    ]


def sources_part(response: Any, *, used_only: bool = True) -> dict[str, Any]:
    """The part of a message from which LlamaIndex's chat-ui shows the sources.

    Args:
        response: a checked response.
        used_only: leave out the nodes that no sentence leans on.

    Returns:
        `{"type": "data-sources", "data": {"nodes": [{"id", "metadata", "score", "text", "url"}]}}`;
        a node that was retrieved twice stands there once.

    Raises:
        InputError: the response was not checked, or its stream is not yet complete.
    """
    grounding = _complete(response)
    nodes: dict[str, dict[str, Any]] = {}
    for passage in grounding["passages"]:
        if used_only and not passage["used"]:
            continue
        item = response.source_nodes[passage["source_index"]]
        metadata = {k: v for k, v in item.node.metadata.items() if _is_plain(v)}
        url = metadata.get("URL") or metadata.get("url") or ""
        nodes.setdefault(
            passage["node_id"],
            {
                "id": passage["node_id"],
                "metadata": metadata,
                "score": passage["score"],
                "text": item.node.get_content(metadata_mode=MetadataMode.NONE),
                "url": str(url),
            },
        )
    return {"type": "data-sources", "data": {"nodes": list(nodes.values())}}


def _complete(response: Any) -> dict[str, Any]:
    grounding = response if isinstance(response, Mapping) else grounding_in(response)
    if grounding is None or "sentences" not in grounding:
        raise InputError(
            f"the response carries no verdicts (metadata['grounding']), got "
            f"{type(response).__name__}. Check it first, as with GroundingQueryEngine"
        )
    if not grounding["complete"]:
        raise InputError(
            f"the verdicts are not complete (status {grounding['status']!r}). "
            f"Read the stream to its end first"
        )
    return dict(grounding)


def _numbered(grounding: Mapping[str, Any]) -> list[dict[str, Any]]:
    seen: dict[str, dict[str, Any]] = {}
    for sentence in grounding["sentences"]:
        for citation in sentence["citations"]:
            seen.setdefault(citation["id"], citation)
    return sorted(seen.values(), key=lambda c: int(c["id"]))


def _source_line(citation: Mapping[str, Any]) -> str:
    quote = " ".join(citation["quote"].split())
    title = citation["title"] or citation["node_id"]
    return f"[{citation['id']}] {title}: “{quote}”"


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        items: Sequence[object] = value
        return all(_is_plain(v) for v in items)
    return value is None or isinstance(value, str | int | float | bool)
