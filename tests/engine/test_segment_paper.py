"""The paper's splitter against the sentences that were published with the paper."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from gasp_engine.segment import segment

RUNS = (
    "Qwen2.5-0.5B-Instruct_K5",
    "Qwen2.5-1.5B-Instruct_K3",
    "Qwen2.5-1.5B-Instruct_K5",
    "Qwen2.5-1.5B-Instruct_K10",
)
MOST_TOKENS, MOST_CHARACTERS = 200, 1200
"""Where the published scoring, and the published text of an answer, were cut."""


def read(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(10**9)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("run", RUNS)
def test_the_published_sentences_come_out_where_the_published_text_allows(
    shared_data: Path, run: str
) -> None:
    published: defaultdict[str, list[str]] = defaultdict(list)
    for row in read(shared_data / "released" / run / "sentence.csv"):
        published[row["resp_id"]].append(row["sent_text"])
    n_whole = n_cut = n_sentences = 0
    missing: list[str] = []
    for answer in read(shared_data / "released" / run / "response.csv"):
        ours = [s.text for s in segment(answer["answer"], splitter="paper")]
        theirs = published[answer["resp_id"]]
        is_whole = int(answer["n_ans"]) < MOST_TOKENS and len(answer["answer"]) < MOST_CHARACTERS
        if is_whole:
            # Spans under three tokens were not scored, so they are in no table.
            n_whole += 1
            n_sentences += len(theirs)
            missing += [text for text in ours if text not in theirs]
            assert [text for text in ours if text in theirs] == theirs
        else:
            # The last one is cut in one of the two files, at a place that the other does not tell.
            n_cut += 1
            common = min(len(ours), len(theirs)) - 1
            assert ours[:common] == theirs[:common]
    assert (n_whole, n_cut) == (297, 103)
    assert sum(map(len, published.values())) == 2586
    assert n_sentences == 1691
    assert missing == ["Doom.", "Rep."]


def test_the_papers_splitter_splits_at_white_space_after_a_terminator_and_nowhere_else() -> None:
    text = " Dr. Osei left.\n\n- It is 3.5 km?! Yes "
    found = segment(text, splitter="paper")
    assert [s.text for s in found] == ["Dr.", "Osei left.", "- It is 3.5 km?!", "Yes"]
    assert {s.kind for s in found} == {"claim"}
