"""Nodes -> passages, and a report's characters back to nodes and documents.

    shown to the LLM   "file_name: a.pdf⏎⏎The dam opened in 1931."   MetadataMode.LLM: perturbed
                        0                 18
    the node's own                       "The dam opened in 1931."   MetadataMode.NONE
                                          0
    the document                  … start_char_idx …                 indexes the node's own text

A citation that covers metadata and text is cut to the text; what stood in the metadata is kept
beside it. Nothing here changes a node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from string import Formatter
from typing import Any, cast

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from gasp_engine import Passage, Report, SentenceReport
from gasp_engine.errors import InputTypeError

TITLE_KEYS = ("title", "file_name", "filename", "source", "url", "file_path")
"""Metadata that a reader would call the source, best first."""

_LABEL = re.compile(r"Source (\d+):\n")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where in a retrieved node the text of a chunk of it stands."""

    node_id: str
    """Id of the retrieved node."""
    index: int
    """Index among the retrieved nodes."""
    start: int
    """Where the chunk's text begins in the retrieved node's own."""
    shift: int
    """What takes a position in the chunk's own text to one in the retrieved node's."""
    document_start: int | None
    """Where the retrieved node's own text begins in the document."""


@dataclass(frozen=True, slots=True)
class Source:
    """One node as evidence."""

    index: int
    """Index in the response's `source_nodes`."""
    node_id: str
    """Id of the node."""
    ref_doc_id: str | None
    """Id of the document that the node was cut from."""
    score: float | None
    """The retriever's score."""
    title: str | None
    """What a reader would call it."""
    text: str
    """What the LLM was shown."""
    body: str
    """The node's own text."""
    body_start: int | None
    """Where the own text begins in what was shown; negative when its white space was stripped;
    None when it does not stand there."""
    document_start: int | None
    """Where the own text begins in the document."""
    number: str | None = None
    """The 2 of the `Source 2:` that `CitationQueryEngine` writes before a chunk's own text."""
    label: int = 0
    """Length of that label in the node's own text."""
    origin: Origin | None = None
    """For a chunk made by `CitationQueryEngine`: the node that it was cut from."""


def source_of(item: NodeWithScore | BaseNode, index: int) -> Source:
    """A node as evidence.

    Raises:
        InputTypeError: the item is not a node.
    """
    node, score = (item.node, item.score) if isinstance(item, NodeWithScore) else (item, None)
    if not isinstance(node, BaseNode):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputTypeError(f"nodes[{index}] must be a NodeWithScore, got {type(node).__name__}")
    text = node.get_content(metadata_mode=MetadataMode.LLM)
    body = node.get_content(metadata_mode=MetadataMode.NONE)
    start = getattr(node, "start_char_idx", None)
    label = _LABEL.match(body)
    return Source(
        index,
        node.node_id,
        node.ref_doc_id,
        None if score is None or not math.isfinite(score) else float(score),
        _title(node),
        text,
        body,
        _body_start(node, text, body),
        # A labelled chunk has the offset of the node that it was cut from, or none.
        start if isinstance(start, int) and not label else None,
        label[1] if label else None,
        label.end() if label else 0,
    )


def sources_of(
    nodes: Sequence[NodeWithScore | BaseNode], shown: Iterable[int] | None = None
) -> tuple[Source, ...]:
    """The nodes that are evidence: all, or those at the indices `shown`."""
    chosen = range(len(nodes)) if shown is None else shown
    return tuple(source_of(nodes[i], i) for i in chosen)


def passages_of(sources: Sequence[Source]) -> list[Passage]:
    """Evidence as the engine takes it: the text that the LLM saw.

    A labelled chunk goes by the number in its label, so that the answer's `[2]` means `Source 2`
    whatever the nodes are called.
    """
    return [Passage(s.text, s.number or s.node_id, s.title) for s in sources]


def query_text(query: object) -> str:
    """A query as text; None is the empty question.

    Raises:
        InputTypeError: it is neither text nor a query bundle.
    """
    if query is None:
        return ""
    if isinstance(query, QueryBundle):
        return query.query_str
    if isinstance(query, str):
        return query
    raise InputTypeError(f"query must be str or QueryBundle, got {type(query).__name__}")


def grounding_of(report: Report, sources: Sequence[Source]) -> dict[str, Any]:
    """A report as `metadata["grounding"]`: plain JSON, with citations that name nodes."""
    values = report.to_dict()
    values["sentences"] = [_sentence(s, sources) for s in values["sentences"]]
    values["passages"] = [
        {**passage, "id": source.node_id, **_identity(source)}
        for passage, source in zip(values["passages"], sources, strict=True)
    ]
    return {**values, "status": "ok", "complete": True, "error": None, "synthesis": None}


def pending_grounding(question: str, sources: Sequence[Source]) -> dict[str, Any]:
    """What stands in the metadata before the first verdict; has every key of the last form."""
    empty = Report(question, "", None, None, None, {}, {}, (), ())
    values = grounding_of(empty, ())
    values["passages"] = [
        {"index": i, "id": s.node_id, "title": s.title, "used": None, **_identity(s)}
        for i, s in enumerate(sources)
    ]
    return {**values, "status": "streaming", "complete": False}


def sentence_values(sentence: SentenceReport, sources: Sequence[Source]) -> dict[str, Any]:
    """One verdict, as it stands in `metadata["grounding"]["sentences"]`."""
    return _sentence(_plain(asdict(sentence)), sources)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in cast(Sequence[Any], value)]
    return value


def _sentence(values: dict[str, Any], sources: Sequence[Source]) -> dict[str, Any]:
    values = {**values, "citations": [_citation(c, sources) for c in values["citations"]]}
    markers = values["extra"].get("markers")
    if markers:
        named = [{**m, **_named(m.get("passage_index"), sources)} for m in markers]
        values["extra"] = {**values["extra"], "markers": named}
    return values


def _named(index: int | None, sources: Sequence[Source]) -> dict[str, Any]:
    """What a marker of the answer's own stands for; all None when there is no such passage."""
    keys = ("node_id", "source_index", "retrieved_node_id")
    identity = {} if index is None else _identity(sources[index])
    return {key: identity.get(key) for key in keys}


def _identity(source: Source) -> dict[str, Any]:
    return {
        "node_id": source.node_id,
        "source_index": source.index,
        "ref_doc_id": source.ref_doc_id,
        "score": source.score,
        "retrieved_node_id": source.origin.node_id if source.origin else None,
    }


def _citation(values: dict[str, Any], sources: Sequence[Source]) -> dict[str, Any]:
    source = sources[values["passage_index"]]
    start, end = values["start"], values["end"]
    aside: str | None = None
    node: tuple[int, int] | None = None
    if source.body_start is not None:
        first, last = source.body_start, source.body_start + len(source.body)
        around = (source.text[start : max(start, first)], source.text[min(end, last) : end])
        aside = " ".join(part.strip() for part in around if part.strip()) or None
        own = _trim(source.text, max(start, first + source.label), min(end, last))
        if own is not None:
            start, end = own
            node = (start - first, end - first)
    document = _document_range(source, node)
    return {
        **values,
        "passage_id": source.node_id,
        "start": start,
        "end": end,
        "quote": source.text[start:end],
        "document_start": document[0] if document else None,
        "document_end": document[1] if document else None,
        **_identity(source),
        "node_start": node[0] if node else None,
        "node_end": node[1] if node else None,
        "doc_start": document[0] if document else None,
        "doc_end": document[1] if document else None,
        **_retrieved_range(source, node),
        "metadata_quote": aside,
        "duplicate_node_ids": [sources[i].node_id for i in values["duplicates"]],
    }


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The range without white space at its edges; None when nothing is left."""
    part = text[start:end] if start < end else ""
    if not part.strip():
        return None
    return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip()))


def _document_range(source: Source, node: tuple[int, int] | None) -> tuple[int, int] | None:
    if node is None:
        return None
    if source.document_start is not None:
        return source.document_start + node[0], source.document_start + node[1]
    if source.origin is not None and source.origin.document_start is not None:
        begin = source.origin.document_start + source.origin.shift
        return begin + node[0], begin + node[1]
    return None


def _retrieved_range(source: Source, node: tuple[int, int] | None) -> dict[str, int | None]:
    if source.origin is None or node is None:
        return {"retrieved_start": None, "retrieved_end": None}
    shift = source.origin.shift
    return {"retrieved_start": node[0] + shift, "retrieved_end": node[1] + shift}


def _title(node: BaseNode) -> str | None:
    for key in TITLE_KEYS:
        value = node.metadata.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _body_start(node: BaseNode, text: str, body: str) -> int | None:
    """Where the node's own text begins in what the LLM is shown.

    Worked out from the node's template, because the own text may also stand in the metadata; looked
    up only for nodes that lay out their text in another way.
    """
    if text == body:
        return 0
    template = getattr(node, "text_template", None)
    if isinstance(template, str) and "{content}" in template:
        metadata = node.get_metadata_str(mode=MetadataMode.LLM)
        for shown in (metadata.strip(), metadata):
            parts = _render(template, shown, body)
            if parts is None:
                break
            before, whole = parts
            if whole.strip() == text:
                return before - (len(whole) - len(whole.lstrip()))
    found = text.find(body.strip()) if body.strip() else -1
    return found - (len(body) - len(body.lstrip())) if found >= 0 else None


def _render(template: str, metadata: str, body: str) -> tuple[int, str] | None:
    """Where the first `{content}` begins in the filled template, and the filled template."""
    text = ""
    begin: int | None = None
    for literal, name, _, _ in Formatter().parse(template):
        text += literal
        if name == "content":
            begin = len(text) if begin is None else begin
            text += body
        elif name == "metadata_str":
            text += metadata
        elif name is not None:
            return None
    return None if begin is None else (begin, text)


def require_methods(value: object, methods: Sequence[str], name: str, example: str) -> None:
    """Refuse an argument that is something else than the object to be wrapped.

    Raises:
        InputTypeError: it lacks one of `methods`; names the argument and what to pass.
    """
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing or isinstance(value, type):
        what = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise InputTypeError(f"{name} must be an object such as {example} gives, got {what}")
