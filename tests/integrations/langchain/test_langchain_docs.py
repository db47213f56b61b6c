"""The page `docs/langchain.md` is right: its Python runs as printed, its table names real tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from lc_cases import ANSWER, BOATS, DAM, INVENTED, ScriptedModel

from gasp_engine import GroundingChecker

PAGE = Path(__file__).parents[3] / "docs" / "langchain.md"


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Any]]:
    """Finds passages."""
    return DAM.page_content, [DAM, BOATS]


def test_the_page_runs_as_printed(
    checker: GroundingChecker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("langchain.agents.middleware", reason="needs the extra `agents`")
    monkeypatch.setattr(GroundingChecker, "from_pretrained", lambda name: checker)
    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "dam"}, "id": "c1"}])
    names: dict[str, Any] = {
        "rag": RunnableLambda(lambda v: {**v, "context": [DAM, BOATS], "answer": ANSWER}),
        "chat_model": ScriptedModel(script=[call, AIMessage(ANSWER)]),
        "search": search,
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 7
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert f"flagged {INVENTED}" in printed
    assert "citation The dam" in printed
    assert "sentence_grounded False" in printed
    node = names["check"]({"question": "When?", "context": [DAM], "answer": ANSWER})
    assert node["grounding"]["grounded"] is False
