"""Nodes to passages and characters back to nodes and documents."""

from __future__ import annotations

import json

import pytest
from llama_index.core.schema import MediaResource, MetadataMode, Node, QueryBundle, TextNode
from llama_parts import DAM, node, word_checker

from gasp_engine.errors import InputTypeError
from gasp_integrations.llama_index._convert import (
    grounding_of,
    passages_of,
    query_text,
    source_of,
    sources_of,
)


def check(items, answer, **options):
    sources = sources_of(items)
    report = word_checker(**options).check("When?", passages_of(sources), answer)
    return grounding_of(report, sources)


def test_the_passage_is_the_text_that_the_llm_saw():
    item = node(DAM, metadata={"file_name": "a.pdf"})
    assert passages_of(sources_of([item]))[0].text == f"file_name: a.pdf\n\n{DAM}"


def test_metadata_that_is_hidden_from_the_llm_is_no_evidence():
    item = node(DAM, metadata={"file_name": "a.pdf"}, excluded_llm_metadata_keys=["file_name"])
    assert passages_of(sources_of([item]))[0].text == DAM


def test_a_citation_names_the_nodes_own_characters_and_the_documents():
    document = "x" * 100 + DAM
    item = node(DAM, "n", metadata={"file_name": "a.pdf"}, start_char_idx=100, end_char_idx=123)
    (citation,) = check([item], DAM)["sentences"][0]["citations"]
    assert citation["node_id"] == citation["passage_id"] == "n"
    assert (citation["node_start"], citation["node_end"]) == (0, len(DAM))
    assert citation["quote"] == item.node.get_content()[0 : len(DAM)]
    assert document[citation["doc_start"] : citation["doc_end"]] == citation["quote"]
    assert citation["metadata_quote"] == "file_name: a.pdf"


def test_a_citation_has_all_the_fields_that_users_map_back_by(checker, nodes):
    (citation,) = check(nodes, DAM)["sentences"][0]["citations"]
    assert {
        "node_id": "n-dam",
        "source_index": 0,
        "ref_doc_id": None,
        "score": 0.5,
        "node_start": 0,
        "node_end": 23,
        "doc_start": 100,
        "doc_end": 123,
        "quote": DAM,
    }.items() <= citation.items()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"metadata": {"file_name": DAM}},
        {"metadata": {"a": "1"}, "text_template": "<{metadata_str}> {{x}}\n[[{content}]]"},
        {"metadata": {"a": "1"}, "text_template": "{content}\n-- {metadata_str}"},
        {
            "metadata": {"a": " \n"},
            "metadata_template": "{value}",
            "text_template": "{metadata_str}{content}",
        },
    ],
    ids=["plain", "same text in the metadata", "braces", "metadata behind", "white metadata"],
)
@pytest.mark.parametrize("body", [DAM, f"  {DAM}\n", f"Café Zoë 🦦.\r\n{DAM}"])
def test_the_nodes_own_text_is_found_in_what_was_shown(fields, body):
    source = source_of(node(body, **fields), 0)
    start, end = source.body_start, source.body_start + len(body)
    shown = source.text[max(start, 0) : end]
    assert shown.strip() == body.strip()
    assert body.index(shown) == max(start, 0) - start


def test_a_node_of_media_resources_is_read_like_a_text_node():
    item = Node(text_resource=MediaResource(text=DAM), metadata={"k": "v"})
    source = source_of(item, 0)
    assert source.text[source.body_start :] == DAM


def test_a_node_that_lays_out_its_text_itself_is_searched():
    class Shouting(TextNode):
        def get_content(self, metadata_mode: MetadataMode = MetadataMode.NONE) -> str:
            return self.text if metadata_mode == MetadataMode.NONE else f"** {self.text} **"

    assert source_of(Shouting(text=DAM, metadata={"a": "b"}), 0).body_start == 3


def test_a_node_whose_text_was_not_shown_gives_no_positions_in_it():
    class Summary(TextNode):
        def get_content(self, metadata_mode: MetadataMode = MetadataMode.NONE) -> str:
            return "xyz" if metadata_mode == MetadataMode.NONE else DAM

    (citation,) = check([Summary(text="xyz")], DAM)["sentences"][0]["citations"]
    assert citation["quote"] == DAM
    assert citation["node_start"] is None
    assert citation["doc_start"] is None


def test_support_that_stands_only_in_the_metadata_counts():
    item = node("Boats are red.", metadata={"author": "Ingrid Lindqvist"})
    answer = "Ingrid Lindqvist"
    assert check([item], answer)["sentences"][0]["status"] == "grounded"
    bare = node("Boats are red.", metadata={})
    assert check([bare], answer)["sentences"][0]["status"] == "flagged"


def test_a_citation_of_metadata_alone_has_no_position_in_the_node():
    # A unit of at most 14 tokens: the header becomes a unit of its own.
    item = node(
        "Boats are red and the sea is wide and deep today. " * 3,
        metadata={"note": "The reactor failed twice on Monday."},
        start_char_idx=0,
    )
    grounding = check([item], "The reactor failed twice on Monday.", max_unit_tokens=14)
    citation = grounding["sentences"][0]["citations"][0]
    assert citation["quote"] == "note: The reactor failed twice on Monday."
    assert citation["metadata_quote"] == citation["quote"]
    assert citation["node_start"] is citation["doc_start"] is None


def test_copies_of_a_passage_are_listed_by_node_id():
    (citation,) = check([node(DAM, "a"), node(DAM + " ", "b")], DAM)["sentences"][0]["citations"]
    assert (citation["node_id"], citation["duplicate_node_ids"]) == ("a", ["b"])


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), 0.25])
def test_the_grounding_is_plain_json_whatever_the_retrievers_score(score):
    grounding = check([node(DAM, score=score)], DAM)
    text = json.dumps(grounding, allow_nan=False)
    assert json.loads(text) == grounding
    assert grounding["passages"][0]["score"] == (0.25 if score == 0.25 else None)


def test_a_query_is_text_or_a_bundle():
    assert query_text(QueryBundle("When?")) == query_text("When?") == "When?"
    assert query_text(None) == ""
    with pytest.raises(InputTypeError, match="query must be str or QueryBundle, got int"):
        query_text(3)
