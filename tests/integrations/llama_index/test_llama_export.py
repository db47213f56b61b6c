"""Exporters: numbered Markdown, chat-ui's markers and sources, citation blocks."""

from __future__ import annotations

import json

import pytest
from llama_index.core.base.llms.types import ChatMessage, CitationBlock
from llama_index.core.base.response.schema import Response
from llama_parts import ANSWER, BOATS, DAM, canned, engine_over, node

from gasp_engine.errors import InputError
from gasp_integrations.llama_index import (
    GroundingQueryEngine,
    citation_blocks,
    cited_markdown,
    sources_part,
)


@pytest.fixture
def response(checker, nodes):
    answer = f"{DAM}\n\n{BOATS} Purple elephants juggle quietly."
    return GroundingQueryEngine(engine_over(nodes, canned(answer)), checker).query("When?")


def test_numbered_markdown(response):
    assert cited_markdown(response) == (
        "The dam opened in 1931.[1]\n"
        "\n"
        "Boats are red.[2] Purple elephants juggle quietly. ⚠\n"
        "\n"
        "[1] a.pdf: “The dam opened in 1931.”\n"
        "[2] n-boats: “Boats are red.”\n"
    )


def test_chat_uis_markers_name_nodes(response):
    assert cited_markdown(response, style="chat-ui", mark_flagged=False) == (
        "The dam opened in 1931. [citation:n-dam]\n"
        "\n"
        "Boats are red. [citation:n-boats] Purple elephants juggle quietly."
    )


def test_without_marks_and_sources_the_answer_is_as_it_was(checker, nodes):
    engine = GroundingQueryEngine(engine_over(nodes[1:], canned()), checker)
    grounding = engine.query("When?").metadata["grounding"]
    assert cited_markdown(grounding, mark_flagged=False) == ANSWER


def test_exporting_changes_neither_answer_nor_metadata(response):
    answer, metadata = response.response, json.dumps(response.metadata)
    cited_markdown(response)
    citation_blocks(response)
    sources_part(response)
    assert response.response == answer
    assert json.dumps(response.metadata) == metadata


def test_citation_blocks_are_llama_indexs_own(response):
    first, second = citation_blocks(response)
    assert isinstance(first, CitationBlock)
    assert (first.source, first.title, first.cited_content.text) == ("n-dam", "a.pdf", DAM)
    assert first.additional_location_info == {
        "source_index": 0,
        "node_start": 0,
        "node_end": 23,
        "doc_start": 100,
        "doc_end": 123,
    }
    assert second.additional_location_info == {"source_index": 1, "node_start": 0, "node_end": 14}
    message = ChatMessage(role="assistant", blocks=[first, second])
    assert ChatMessage.model_validate_json(message.model_dump_json()) == message


def test_the_sources_part_is_what_chat_ui_reads(response):
    part = sources_part(response)
    assert part["type"] == "data-sources"
    assert part["data"]["nodes"][0] == {
        "id": "n-dam",
        "metadata": {"file_name": "a.pdf", "page": 4},
        "score": 0.5,
        "text": DAM,
        "url": "",
    }
    json.dumps(part, allow_nan=False)


def test_the_sources_part_leaves_out_what_was_not_used_and_lists_copies_once(checker):
    class Opaque:
        pass

    items = [
        node(DAM, "a", metadata={"URL": "https://dams.example/1", "pages": [1, 2]}),
        node(BOATS, "b", metadata={}),
    ]
    items[0].node.metadata["hidden"] = Opaque()
    items[0].node.excluded_llm_metadata_keys = ["hidden"]
    response = GroundingQueryEngine(engine_over(items, canned(DAM)), checker).query("When?")
    (used,) = sources_part(response)["data"]["nodes"]
    assert used["url"] == "https://dams.example/1"
    assert used["metadata"] == {"URL": "https://dams.example/1", "pages": [1, 2]}
    everything = sources_part(response, used_only=False)["data"]["nodes"]
    assert [n["id"] for n in everything] == ["a", "b"]


def test_what_was_not_checked_cannot_be_exported(checker, nodes):
    for export in (cited_markdown, citation_blocks, sources_part):
        with pytest.raises(InputError, match="carries no verdicts"):
            export(Response(DAM, nodes))
    with pytest.raises(InputError, match='style must be "numbers" or "chat-ui", got \'html\''):
        cited_markdown({}, style="html")


def test_a_stream_that_is_not_yet_read_cannot_be_exported(checker, nodes):
    response = GroundingQueryEngine(engine_over(nodes, streaming=True), checker).query("When?")
    with pytest.raises(InputError, match="status 'streaming'"):
        cited_markdown(response)
    list(response.response_gen)
    assert "[1]" in cited_markdown(response)
