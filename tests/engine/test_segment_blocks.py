"""The block layer against markdown-it-py, on well-formed Markdown where both mean the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gasp_engine.segment import segment

markdown_it = pytest.importorskip("markdown_it")

BLOCKS = [
    "# Title",
    "### Another title ##",
    "Underlined\n======",
    "A line of prose\nthat goes on.",
    "The dam opened. It holds water.",
    "- one\n- two\n  - three",
    "1. one\n2. two. More\n3. three",
    "* one\n\n* two",
    "> quoted\n> text",
    "> - quoted item",
    "```py\nx = 1. Y\n\n# no heading\n- no item\n```",
    "~~~\n```\n| a |\n~~~",
    "| Part | Mass |\n|---|---|\n| Arm | 3.2 kg |\n| Leg | 4 |",
    "Part | Mass\n--- | ---\nArm | 3.2 kg",
    "***",
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_every_leaf_block_begins_a_unit_and_no_unit_crosses_one(
    blocks: list[str], newline: str
) -> None:
    text = "\n\n".join(blocks).replace("\n", newline)
    lines = text.split(newline)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + len(newline))
    units = segment(text)
    parser = markdown_it.MarkdownIt("commonmark").enable("table")
    leaves = ("heading_open", "paragraph_open", "fence", "hr", "tr_open")
    for token in parser.parse(text):
        if token.type not in leaves or token.map is None:
            continue
        first, last = token.map
        begin, end = starts[first], starts[last]
        inside = [u for u in units if u.start < end and u.end > begin]
        assert inside, token
        assert inside[0].start < starts[first + 1]
        assert begin <= inside[0].start
        assert inside[-1].end <= end
        if token.type == "fence":
            assert [u.kind for u in inside] == ["code"]
        if token.type == "heading_open":
            assert [u.kind for u in inside] == ["heading"]
        if token.type == "tr_open":
            assert len(inside) == 1
