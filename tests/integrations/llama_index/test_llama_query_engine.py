"""Query engines checked from outside: plain, citing, sub-questions, routers."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool
from llama_parts import (
    ANSWER,
    BOATS,
    DAM,
    FixedRetriever,
    canned,
    engine_over,
    failing,
    node,
    statuses,
    word_checker,
)

from gasp_integrations.llama_index import (
    GroundingEvaluator,
    GroundingQueryEngine,
    GroundingSynthesizer,
    cited_markdown,
)

HOW = pytest.mark.parametrize("how", ["sync", "async"])


def ask(engine, how, question="When?"):
    """The response by the synchronous or the asynchronous way, streams read to their end."""
    if how == "sync":
        response = engine.query(question)
        if isinstance(response, StreamingResponse):
            list(response.response_gen)
        return response

    async def run():
        response = await engine.aquery(question)
        if isinstance(response, AsyncStreamingResponse):
            await response.get_response()
        return response

    return asyncio.run(run())


@HOW
@pytest.mark.parametrize("streaming", [False, True])
def test_a_query_engine_is_checked_against_its_source_nodes(checker, nodes, how, streaming):
    engine = GroundingQueryEngine(engine_over(nodes, streaming=streaming), checker)
    response = ask(engine, how)
    grounding = response.metadata["grounding"]
    assert statuses(grounding) == ["grounded", "flagged"]
    assert grounding["sentences"][0]["citations"][0]["node_id"] == "n-dam"
    assert grounding["synthesis"] == {"calls": 1, "cut": []}
    assert len(response.source_nodes) == 2
    json.dumps(grounding, allow_nan=False)


@HOW
def test_an_answer_that_its_synthesizer_has_checked_is_not_checked_again(checker, nodes, how):
    inner = GroundingSynthesizer(get_response_synthesizer(llm=canned()), checker)
    broken = word_checker(failing(AssertionError("checked twice")))
    engine = GroundingQueryEngine(RetrieverQueryEngine(FixedRetriever(nodes), inner), broken)
    assert statuses(ask(engine, how).metadata["grounding"]) == ["grounded", "flagged"]


@HOW
def test_an_out_of_memory_error_surfaces_as_itself(nodes, how):
    broken = word_checker(failing(RuntimeError("CUDA out of memory")))
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        ask(GroundingQueryEngine(engine_over(nodes), broken), how)


def test_retrieve_and_synthesize_go_through(checker, nodes):
    engine = GroundingQueryEngine(engine_over(nodes), checker)
    bundle = QueryBundle("When?")
    found = engine.retrieve(bundle)
    assert [n.node.node_id for n in found] == ["n-dam", "n-boats"]
    extra = [node("Purple elephants juggle quietly.", "n-extra")]
    response = engine.synthesize(bundle, found, extra)
    assert statuses(response.metadata["grounding"]) == ["grounded", "flagged"]
    later = asyncio.run(engine.asynthesize(bundle, found, extra))
    assert statuses(later.metadata["grounding"]) == ["grounded", "flagged"]
    assert [n.node.node_id for n in asyncio.run(engine.aretrieve(bundle))] == ["n-dam", "n-boats"]
    assert engine.retriever is engine._inner.retriever
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = engine.no_such_thing


def test_prompts_are_the_inner_engines(checker, nodes):
    engine = GroundingQueryEngine.from_defaults(engine_over(nodes), checker)
    names = set(engine.get_prompts())
    assert "response_synthesizer:text_qa_template" in names
    prompts = {k: v for k, v in engine.get_prompts().items() if k.endswith(":text_qa_template")}
    engine.update_prompts(prompts)
    assert set(engine.get_prompts()) == names
    assert engine.class_name() == "GroundingQueryEngine"


# Citation query engine

DOCUMENT = (
    "The dam opened in 1931. It was built of granite blocks from the quarry. "
    "Boats are red. The harbour master owns seven of them."
)


def citing(answer, retrieved, checker, streaming=False):
    inner = CitationQueryEngine.from_args(
        None,
        llm=canned(answer),
        retriever=FixedRetriever(retrieved),
        streaming=streaming,
        # Of its own, because LlamaIndex's sentence splitter may want to fetch NLTK's data.
        text_splitter=SentenceSplitter(
            chunk_size=24,
            chunk_overlap=0,
            chunking_tokenizer_fn=lambda text: re.split(r"(?<=\. )", text),
        ),
    )
    return GroundingQueryEngine(inner, checker)


@pytest.fixture
def retrieved():
    text = "0123456789" + DOCUMENT
    first = node(
        DOCUMENT,
        "doc-a",
        metadata={"file_name": "a.pdf"},
        start_char_idx=10,
        end_char_idx=10 + len(DOCUMENT),
    )
    assert text[10:] == DOCUMENT
    return [first, node("Zebras graze on the northern plain.", "doc-b")]


@HOW
@pytest.mark.parametrize("streaming", [False, True])
def test_citation_chunks_lead_back_to_the_retrieved_node(checker, retrieved, how, streaming):
    answer = "Boats are red [2]. Zebras graze on the northern plain [3]."
    response = ask(citing(answer, retrieved, checker, streaming), how)
    grounding = response.metadata["grounding"]
    assert grounding["complete"] is True
    boats, zebras = (s["citations"][0] for s in grounding["sentences"])
    chunk = response.source_nodes[boats["source_index"]].node
    assert chunk.get_content()[boats["node_start"] : boats["node_end"]] == boats["quote"]
    assert not boats["quote"].startswith("Source")
    assert boats["retrieved_node_id"] == "doc-a"
    assert DOCUMENT[boats["retrieved_start"] : boats["retrieved_end"]] == boats["quote"]
    assert ("0123456789" + DOCUMENT)[boats["doc_start"] : boats["doc_end"]] == boats["quote"]
    assert zebras["retrieved_node_id"] == "doc-b"
    assert zebras["doc_start"] is None


def test_markers_are_checked_against_the_evidence_by_list_index(checker, retrieved):
    answer = (
        "Boats are red [2]. Zebras graze on the northern plain [1]. "
        "Purple elephants juggle quietly [3]. The dam opened in 1931 [9]."
    )
    response = ask(citing(answer, retrieved, checker), "sync")
    assert response.response == answer
    marks = [s["extra"]["markers"][0] for s in response.metadata["grounding"]["sentences"]]
    assert [m["verdict"] for m in marks[:3]] == ["right", "wrong passage", "unsupported"]
    assert marks[3]["verdict"] != "right", "there is no ninth source"
    assert [m["source_index"] for m in marks] == [1, 0, 2, None]
    chunks = [n.node.node_id for n in response.source_nodes]
    assert [m["node_id"] for m in marks] == [chunks[1], chunks[0], chunks[2], None]
    assert [m["retrieved_node_id"] for m in marks] == ["doc-a", "doc-a", "doc-b", None]


def test_markers_mean_list_places_also_where_nodes_are_called_by_numbers(checker):
    named = [node(DAM, "2"), node(BOATS, "1")]
    response = ask(citing("The dam opened in 1931 [1]. Boats are red [2].", named, checker), "sync")
    sentences = response.metadata["grounding"]["sentences"]
    assert [s["extra"]["markers"][0]["verdict"] for s in sentences] == ["right", "right"]
    assert [s["citations"][0]["retrieved_node_id"] for s in sentences] == ["2", "1"]


def test_copies_of_a_chunk_lead_back_each_to_its_own_node(checker):
    twins = [node(DAM, "a", metadata={"k": 1}), node(DAM, "b", metadata={"k": 2})]
    response = ask(citing("The dam opened in 1931 [2].", twins, checker), "sync")
    passages = response.metadata["grounding"]["passages"]
    assert [p["retrieved_node_id"] for p in passages] == ["a", "b"]


# Sub-questions and routers


class TwoQuestions(BaseQuestionGenerator):
    """Asks each tool once."""

    def generate(self, tools, query):
        return [SubQuestion(sub_question=f"{t.name}?", tool_name=t.name) for t in tools]

    async def agenerate(self, tools, query):
        return self.generate(tools, query)

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass


def tool(name, engine):
    return QueryEngineTool.from_defaults(engine, name=name, description=name)


@HOW
def test_of_a_sub_question_engine_only_what_the_llm_saw_is_evidence(checker, how):
    # "granite" stands in a source of a sub-question, but in no sub-answer: the LLM never saw it.
    dam = engine_over([node(f"{DAM} Granite walls shimmer under moonlight.", "deep")], canned(DAM))
    boats = engine_over([node(BOATS, "deep-too")], canned(BOATS))
    inner = SubQuestionQueryEngine.from_defaults(
        query_engine_tools=[tool("dam", dam), tool("boats", boats)],
        question_gen=TwoQuestions(),
        response_synthesizer=get_response_synthesizer(
            llm=canned(f"{DAM} Granite walls shimmer under moonlight.")
        ),
        verbose=False,
        use_async=how == "async",
    )
    response = ask(GroundingQueryEngine(inner, checker), how)
    grounding = response.metadata["grounding"]
    assert len(response.source_nodes) == 4
    assert [p["source_index"] for p in grounding["passages"]] == [0, 1]
    assert statuses(grounding) == ["grounded", "flagged"]
    assert grounding["sentences"][0]["citations"][0]["source_index"] == 0


class First(BaseSelector):
    """Always takes the first choice."""

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def _select(self, choices, query):
        return SelectorResult(selections=[SingleSelection(index=0, reason="")])

    async def _aselect(self, choices, query):
        return self._select(choices, query)


@HOW
def test_a_router_is_checked_like_the_engine_that_it_chose(checker, nodes, how):
    inner = RouterQueryEngine(
        First(),
        [tool("a", engine_over(nodes))],
        summarizer=get_response_synthesizer(llm=canned(), response_mode="tree_summarize"),
    )
    grounding = ask(GroundingQueryEngine(inner, checker), how).metadata["grounding"]
    assert statuses(grounding) == ["grounded", "flagged"]


def test_a_retry_engine_asks_again_until_the_answer_is_grounded(checker, nodes):
    llm = canned("Purple elephants juggle quietly.")
    said = iter(["Purple elephants juggle quietly.", DAM])

    class Improving(type(llm)):
        def complete(self, prompt, formatted=False, **kwargs):
            self.text = next(said)
            return super().complete(prompt, formatted, **kwargs)

    engine = RetryQueryEngine(
        engine_over(nodes, Improving()), GroundingEvaluator(checker), max_retries=2
    )
    assert engine.query("When?").response == DAM


# What users report


@HOW
def test_after_a_stream_the_sources_can_be_shown(checker, nodes, how):
    # run-llama/llama_index#18931
    engine = GroundingQueryEngine(engine_over(nodes, streaming=True), checker)
    response = ask(engine, how)
    assert "[1] a.pdf: “The dam opened in 1931.”" in cited_markdown(response)


def test_the_sources_that_were_really_used_can_be_told_apart(checker, nodes):
    # LlamaIndexTS#722
    grounding = GroundingQueryEngine(engine_over(nodes), checker).query("?").metadata["grounding"]
    assert {p["node_id"]: p["used"] for p in grounding["passages"]} == {
        "n-dam": True,
        "n-boats": False,
    }


def test_numbers_follow_the_order_of_the_answer(checker):
    # run-llama/llama_index#7299
    items = [node(BOATS, "b"), node(DAM, "a")]
    llm = canned(f"{DAM} {BOATS} {DAM}")
    grounding = (
        GroundingQueryEngine(engine_over(items, llm), checker).query("?").metadata["grounding"]
    )
    numbers = [s["citations"][0]["id"] for s in grounding["sentences"]]
    assert numbers == ["1", "2", "1"]


def test_a_node_that_is_retrieved_twice_is_cited_once(checker):
    # run-llama/llama_index#17439
    items = [node(DAM, "a"), node(DAM, "a"), node(BOATS, "b")]
    engine = GroundingQueryEngine(engine_over([], canned(DAM)), checker)
    response = engine.synthesize(QueryBundle("When?"), items)
    (sentence,) = response.metadata["grounding"]["sentences"]
    assert [c["node_id"] for c in sentence["citations"]] == ["a"]
    assert sentence["citations"][0]["duplicates"] == [1]


def test_chunks_that_share_an_id_are_told_apart_by_their_place(checker):
    # run-llama/llama_index, pull request 22537: before it, chunks had their node's id and offsets
    items = [
        node(f"Source 1:\n{DAM}\n", "same", start_char_idx=0, end_char_idx=60),
        node(f"Source 2:\n{BOATS}\n", "same", start_char_idx=0, end_char_idx=60),
    ]
    engine = GroundingQueryEngine(engine_over([], canned(f"{DAM} {BOATS}")), checker)
    grounding = engine.synthesize(QueryBundle("?"), items).metadata["grounding"]
    cited = [s["citations"][0] for s in grounding["sentences"]]
    assert [c["source_index"] for c in cited] == [0, 1]
    assert [c["quote"] for c in cited] == [DAM, BOATS]
    assert [c["doc_start"] for c in cited] == [None, None]


def test_an_unsupported_answer_is_flagged_whatever_it_says_of_itself(checker, nodes):
    # run-llama/llama_index#14753, #7883: a judge that is asked says YES
    llm = canned("Purple elephants juggle quietly [1]. YES, fully supported by context [1].")
    grounding = (
        GroundingQueryEngine(engine_over(nodes, llm), checker).query("?").metadata["grounding"]
    )
    assert grounding["grounded"] is False
    assert statuses(grounding)[0] == "flagged"


def test_the_answer_of_the_inner_engine_is_unchanged(checker, nodes):
    plain = engine_over(nodes).query("When?")
    checked = GroundingQueryEngine(engine_over(nodes), checker).query("When?")
    assert checked.response == plain.response == ANSWER
    assert {k: v for k, v in checked.metadata.items() if k != "grounding"} == plain.metadata
