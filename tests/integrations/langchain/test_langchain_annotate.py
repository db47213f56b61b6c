from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from lc_cases import ANSWER, BOATS, DAM, GROUNDED, INVENTED

from gasp_engine import GroundingChecker, InputError
from gasp_integrations.langchain import annotate_message
from gasp_integrations.langchain._convert import message_text, passages_of
from gasp_integrations.langchain.annotate import remove_annotations

DOCUMENTS = [DAM, BOATS]


def check(checker: GroundingChecker, answer: str) -> dict[str, Any]:
    return checker.check("When did it open?", passages_of(DOCUMENTS), answer).to_dict()


def annotations(message: AIMessage) -> list[list[dict[str, Any]]]:
    return [
        block.get("annotations", [])  # pyright: ignore[reportAttributeAccessIssue]
        for block in message.content_blocks
        if block["type"] == "text"
    ]


def test_a_grounded_sentence_gets_a_citation_and_a_flagged_one_a_flag(
    checker: GroundingChecker,
) -> None:
    message = annotate_message(AIMessage(ANSWER, id="m1"), check(checker, ANSWER), DOCUMENTS)
    ((citation, flag),) = annotations(message)
    assert message.id == "m1"
    assert message.text == ANSWER
    assert citation == {
        "type": "citation",
        "id": "grounding-0-1",
        "url": "https://example.org/dam",
        "title": "The dam",
        "start_index": 0,
        "end_index": len(GROUNDED),
        "cited_text": DAM.page_content,
        "extras": {
            "document_id": "doc-dam",
            "document_index": 0,
            "source": "https://example.org/dam",
            "page": 4,
            "source_start": 0,
            "source_end": len(DAM.page_content),
            "number": "1",
            "score": citation["extras"]["score"],
            "status": "grounded",
        },
    }
    assert flag["type"] == "non_standard_annotation"
    value = flag["value"]
    assert value["status"] == "flagged"
    assert ANSWER[value["start_index"] : value["end_index"]] == INVENTED


PROVIDERS = ["openai", "anthropic", "groq", "bedrock", "bedrock_converse", "google_genai", "other"]


@pytest.mark.parametrize("provider", [*PROVIDERS, None])
@pytest.mark.parametrize("as_list", [False, True], ids=["text", "list"])
def test_annotations_survive_every_providers_message(
    checker: GroundingChecker, provider: str | None, as_list: bool
) -> None:
    content: Any = [{"type": "text", "text": ANSWER}] if as_list else ANSWER
    metadata = {"model_provider": provider} if provider else {}
    message = AIMessage(content, id="m1", response_metadata=metadata)
    annotated = annotate_message(message, check(checker, ANSWER))
    # what a reader sees after the message was stored and read again
    again = AIMessage.model_validate(annotated.model_dump())
    assert [[a["type"] for a in block] for block in annotations(again)] == [
        ["citation", "non_standard_annotation"]
    ]
    assert again.text == ANSWER
    assert again.id == "m1"
    assert again.response_metadata.get("model_provider") == provider
    assert message.content == content, "the caller's message was changed"


def test_text_that_claims_to_be_v1_is_annotated_too(checker: GroundingChecker) -> None:
    message = AIMessage(ANSWER, response_metadata={"output_version": "v1"})
    assert len(annotations(annotate_message(message, check(checker, ANSWER)))[0]) == 2


def test_tool_calls_and_reasoning_stay(checker: GroundingChecker) -> None:
    call = {"name": "search", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
    message = AIMessage(
        [{"type": "reasoning", "reasoning": "hmm"}, {"type": "text", "text": ANSWER}],
        tool_calls=[call],
    )
    annotated = annotate_message(message, check(checker, ANSWER))
    assert [b["type"] for b in annotated.content_blocks] == ["reasoning", "text", "tool_call"]
    assert annotated.tool_calls == message.tool_calls


def test_positions_are_those_of_each_text_block(checker: GroundingChecker) -> None:
    texts = ["Ünïcode 🦦: The dam", " opened in 1931. ", INVENTED]
    answer = "".join(texts)
    content: list[str | dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    report = check(checker, answer)
    message = annotate_message(AIMessage(content), report)
    found = annotations(message)
    cited = report["sentences"][0]
    parts = [
        texts[block][a["start_index"] : a["end_index"]]
        for block, marks in enumerate(found)
        for a in marks
        if a["type"] == "citation"
    ]
    assert "".join(parts) == cited["text"]
    assert len(parts) == 2, "the sentence runs over two blocks"
    (flag,) = found[2]
    assert (flag["value"]["start_index"], flag["value"]["end_index"]) == (0, len(INVENTED))
    ids = [a["id"] for marks in found for a in marks]
    assert len(set(ids)) == len(ids)


def test_annotating_twice_is_annotating_once(checker: GroundingChecker) -> None:
    report = check(checker, ANSWER)
    once = annotate_message(AIMessage(ANSWER), report)
    assert annotate_message(once, report) == once


def test_a_providers_own_annotations_are_kept(checker: GroundingChecker) -> None:
    own = {"type": "citation", "id": "p1", "url": "https://example.org/x", "title": "X"}
    content: list[str | dict[str, Any]] = [{"type": "text", "text": ANSWER, "annotations": [own]}]
    message = annotate_message(AIMessage(content), check(checker, ANSWER))
    assert annotations(message)[0][0] == own
    assert len(annotations(message)[0]) == 3


def test_annotations_come_off_again(checker: GroundingChecker) -> None:
    """What langchainjs #9894 needs: no annotation of ours is sent back to a provider."""
    report = check(checker, ANSWER)
    text = AIMessage(ANSWER, response_metadata={"model_provider": "openai"})
    assert remove_annotations(annotate_message(text, report)) == text
    own = {"type": "citation", "id": "p1", "url": "https://example.org/x", "title": "X"}
    content: list[str | dict[str, Any]] = [{"type": "text", "text": ANSWER, "annotations": [own]}]
    removed = remove_annotations(annotate_message(AIMessage(content), report))
    assert annotations(removed) == [[own]]
    assert remove_annotations(text) is text
    assert remove_annotations(AIMessage(content)).content == content


def test_every_citation_has_a_title_and_only_links_have_a_url(checker: GroundingChecker) -> None:
    answer = "They sail in May. The dam opened in 1931."
    passages = [BOATS.page_content, DAM.page_content]
    report = checker.check("When?", passages, answer)
    (marks,) = annotations(annotate_message(AIMessage(answer), report))
    assert [a["title"] for a in marks] == ["Document 1", "Document 2"]
    assert [a["extras"]["document_id"] for a in marks] == ["0", "1"]
    assert not any("url" in a for a in marks)
    (marks,) = annotations(annotate_message(AIMessage(answer), report, [BOATS, DAM]))
    assert [a.get("url") for a in marks] == [None, "https://example.org/dam"]
    assert marks[0]["extras"]["source"] == "boats.md"


def test_no_source_is_invented(checker: GroundingChecker) -> None:
    """langchain #5642, #11653: sources come from measurement, never from what the answer says."""
    answer = "The dam opened in 1931. See also [7]. Source: https://made-up.example/x."
    (marks,) = annotations(annotate_message(AIMessage(answer), check(checker, answer), DOCUMENTS))
    cited = [a for a in marks if a["type"] == "citation"]
    assert {a["extras"]["document_index"] for a in cited} == {0}
    assert all(a.get("url") == DAM.metadata["source"] for a in cited)


def test_a_report_on_another_text_is_refused(checker: GroundingChecker) -> None:
    with pytest.raises(InputError, match="pass the message whose text was checked"):
        annotate_message(AIMessage("Something else."), check(checker, ANSWER))


def test_a_message_chunk_stays_a_chunk(checker: GroundingChecker) -> None:
    message = annotate_message(AIMessageChunk(content=ANSWER), check(checker, ANSWER))
    assert isinstance(message, AIMessageChunk)
    assert message_text(message) == ANSWER
