"""End to end on the embedded scorer: LlamaIndex's parts, a canned answer, real likelihoods."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from llama_parts import canned, engine_over, node, statuses

from gasp_integrations.llama_index import GroundingEvaluator, GroundingQueryEngine

pytestmark = pytest.mark.model

FARES = (
    "A single ticket on the Velmora tram costs 2.60 crowns and is valid for 75 minutes. "
    "Children under seven ride free."
)
HUT = "The Korbel hut stands at 2,340 metres on the west shoulder of Mount Ister."
ANSWER = (
    "A single ticket costs 2.60 crowns and is valid for 75 minutes. "
    "Mules carry the luggage of older guests on Saturdays."
)


@pytest.fixture
def nodes():
    return [
        node(HUT, "hut", metadata={"file_name": "hut.md"}),
        node(FARES, "fares", metadata={"file_name": "tram.md"}, start_char_idx=40),
    ]


def test_the_grounded_sentence_cites_its_node_and_the_invented_one_is_flagged(
    embedded_checker, nodes
):
    engine = GroundingQueryEngine(engine_over(nodes, canned(ANSWER)), embedded_checker)
    response = engine.query("What does a ticket cost?")
    grounding = response.metadata["grounding"]
    assert statuses(grounding) == ["grounded", "flagged"]
    citation = grounding["sentences"][0]["citations"][0]
    assert citation["node_id"] == "fares"
    assert FARES[citation["node_start"] : citation["node_end"]] == citation["quote"]
    assert citation["doc_start"] == 40 + citation["node_start"]


@pytest.mark.parametrize("piece", [1, 11])
def test_a_stream_ends_with_the_verdicts_of_the_whole_answer(embedded_checker, nodes, piece):
    whole = GroundingQueryEngine(engine_over(nodes, canned(ANSWER)), embedded_checker)
    expected = whole.query("What does a ticket cost?").metadata["grounding"]
    engine = GroundingQueryEngine(
        engine_over(nodes, canned(ANSWER, piece=piece), streaming=True), embedded_checker
    )
    response = engine.query("What does a ticket cost?")
    assert "".join(response.response_gen) == ANSWER
    grounding = response.metadata["grounding"]
    assert statuses(grounding) == statuses(expected)
    for found, wanted in zip(grounding["sentences"], expected["sentences"], strict=True):
        assert (found["start"], found["end"]) == (wanted["start"], wanted["end"])
        assert found["score"] == pytest.approx(wanted["score"], abs=1e-3)


def test_a_sentence_on_the_file_itself_rests_on_the_metadata(embedded_checker, nodes):
    answer = "The fares stand in the file tram.md."
    with_names = GroundingEvaluator(embedded_checker)._annotator
    from gasp_integrations.llama_index._convert import sources_of

    shown = with_names.ground("In which file?", sources_of(nodes), answer)
    for item in nodes:
        item.node.excluded_llm_metadata_keys = ["file_name"]
    hidden = with_names.ground("In which file?", sources_of(nodes), answer)
    assert shown["sentences"][0]["score"] < hidden["sentences"][0]["score"]


def test_the_same_answer_is_judged_alike_by_every_way(embedded_checker, nodes):
    evaluator = GroundingEvaluator(embedded_checker)
    response = engine_over(nodes, canned(ANSWER)).query("What does a ticket cost?")
    direct = evaluator.evaluate_response("What does a ticket cost?", response)

    async def run():
        return await asyncio.gather(
            *(evaluator.aevaluate_response("What does a ticket cost?", response) for _ in range(3))
        )

    for result in asyncio.run(run()):
        assert [s["status"] for s in result.sentences] == [s["status"] for s in direct.sentences]
        assert result.score == pytest.approx(direct.score, abs=1e-4)
    assert direct.passing is False


def test_the_first_example_of_the_documentation_runs(capsys):
    text = (Path(__file__).parents[3] / "docs" / "llama_index.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.S)[1]
    exec(compile(code, "docs/llama_index.md", "exec"), {})
    assert capsys.readouterr().out.split()[0] in ("True", "False", "None")
