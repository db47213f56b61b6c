"""The text in front of an answer."""

import pytest

from gasp_engine.errors import InputError
from gasp_engine.prompt import build_prompt


def test_the_papers_prompt_is_spelled_exactly():
    prompt = build_prompt("How long?", "It is 42 km long.\n\nBoats.")
    assert prompt.text == (
        "Context:\nIt is 42 km long.\n\nBoats.\n\nQuestion: How long?\n\nAnswer: "
    )
    assert prompt.text[prompt.context_start : prompt.context_end] == "It is 42 km long.\n\nBoats."


def test_without_evidence_there_is_no_context_line():
    prompt = build_prompt("How long?", "")
    assert prompt.text == "Question: How long?\n\nAnswer: "
    assert prompt.context_start == prompt.context_end


def test_the_chat_prompt_leaves_the_turn_to_the_template():
    prompt = build_prompt("How long?", "It is.", "chat")
    assert prompt.text == "Context:\nIt is.\n\nQuestion: How long?"
    assert build_prompt("How long?", "", "chat").text == "Question: How long?"


def test_braces_and_percent_signs_are_text():
    assert "{q} %s {}" in build_prompt("{q} %s {}", "{context}").text


def test_an_unknown_prompt_is_refused_by_name():
    with pytest.raises(InputError, match=r"'poem'.*paper, chat"):
        build_prompt("q", "c", "poem")
