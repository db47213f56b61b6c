"""A chain's output as Markdown or HTML, through the engine's renderers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from gasp_engine import Report
from gasp_engine.render import to_html as _to_html
from gasp_engine.render import to_markdown as _to_markdown

from ._convert import as_report, passages_of


def to_markdown(output: Report | Mapping[str, Any]) -> str:
    """The answer with footnotes and flags.

    Args:
        output: what a `GroundingRunnable` gave, its report, or a `Report`.
    """
    return _to_markdown(as_report(output))


def to_html(
    output: Report | Mapping[str, Any],
    documents: Sequence[Document | Mapping[str, Any] | str] | None = None,
) -> str:
    """A self-contained page: the answer beside its sources.

    Args:
        output: what a `GroundingRunnable` gave, its report, or a `Report`.
        documents: the sources' text; None: the `context` of the output, where it has one.
    """
    if documents is None and isinstance(output, Mapping):
        documents = output.get("context")
    passages = None if documents is None else passages_of(documents)
    return _to_html(as_report(output), passages)
