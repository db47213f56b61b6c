from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool
from lc_cases import BOATS, DAM

from gasp_integrations.langchain import documents_from_messages
from gasp_integrations.langchain.documents import FEEDBACK


def tool(text: str = "text", **fields: Any) -> ToolMessage:
    return ToolMessage(text, **{"tool_call_id": "c1", "name": "search", **fields})


def test_artifacts_are_the_documents_themselves() -> None:
    found = documents_from_messages([HumanMessage("?"), tool(artifact=[DAM, BOATS])])
    assert found == [DAM, BOATS]


@pytest.mark.parametrize("form", ["model_dump", "to_json"])
def test_artifacts_that_became_dicts_are_documents_again(form: str) -> None:
    artifact = [getattr(document, form)() for document in (DAM, BOATS)]
    assert documents_from_messages([HumanMessage("?"), tool(artifact=artifact)]) == [DAM, BOATS]


def test_without_an_artifact_the_text_is_one_document() -> None:
    (found,) = documents_from_messages([HumanMessage("?"), tool("The dam opened in 1931.")])
    assert found.page_content == "The dam opened in 1931."
    assert found.metadata["tool"] == "search"
    assert found.id == "c1"


def test_an_artifact_that_is_no_document_leaves_the_text() -> None:
    for artifact in ({"rows": 3}, [1, 2], [DAM, 3], object()):
        (found,) = documents_from_messages([HumanMessage("?"), tool("42 rows", artifact=artifact)])
        assert found.page_content == "42 rows"


def test_what_is_no_evidence_is_left_out() -> None:
    messages: list[BaseMessage] = [
        HumanMessage("?"),
        tool("Traceback: no such table", status="error"),
        tool("No results", artifact=[]),
        tool("  "),
        AIMessage("An answer."),
    ]
    assert documents_from_messages(messages) == []


def test_only_what_was_retrieved_for_the_last_question_counts() -> None:
    messages = [HumanMessage("?"), tool(artifact=[DAM]), AIMessage("A."), HumanMessage("And?")]
    assert documents_from_messages(messages) == []
    assert documents_from_messages(messages, scope="conversation") == [DAM]
    assert documents_from_messages([*messages, tool(artifact=[BOATS])]) == [BOATS]


def test_a_request_to_answer_again_is_no_question() -> None:
    again = HumanMessage("Again.", additional_kwargs={FEEDBACK: {"rejected": "m1"}})
    assert documents_from_messages([HumanMessage("?"), tool(artifact=[DAM]), again]) == [DAM]


def test_tools_can_be_chosen_by_name() -> None:
    """langchain #16136, #33217: documents among the results of several tools."""
    messages = [
        HumanMessage("?"),
        tool("4", name="calculator"),
        tool(artifact=[DAM], name="search_manuals"),
        tool("It rains.", name="weather"),
        tool(artifact=[BOATS], name="search_boats"),
    ]
    assert len(documents_from_messages(messages)) == 4
    chosen = documents_from_messages(messages, tools={"search_manuals", "search_boats"})
    assert chosen == [DAM, BOATS]


class Both(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [DAM, BOATS]


@pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
def test_a_real_retriever_tool_is_read_in_both_of_its_formats(response_format: Any) -> None:
    search = create_retriever_tool(Both(), "search", "Finds.", response_format=response_format)
    call = {"name": "search", "args": {"query": "dam"}, "id": "c1", "type": "tool_call"}
    message = search.invoke(call)
    found = documents_from_messages([HumanMessage("?"), message])
    if response_format == "content":
        assert [d.page_content for d in found] == [DAM.page_content + "\n\n" + BOATS.page_content]
    else:
        assert found == [DAM, BOATS]
