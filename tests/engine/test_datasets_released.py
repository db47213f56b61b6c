"""Reading the paper's published features, and what is said of files that are not as expected."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gasp_engine.datasets.released import find_models, read_model, read_table
from gasp_engine.errors import DatasetError

COLUMNS = {
    "model": "m",
    "resp_id": "0",
    "orig_idx": "5",
    "mean_surprisal": "1.0",
    "n_tok": "7",
    "gap": "0.5",
    "jsd_noctx": "0.1",
    "chunk_drops": "[0.4, -0.1]",
    "chunk_jsds": "[0.05, 0.01]",
    "sent_type": "none",
    "label": "0",
    "sent_text": "It opened, in 1931.",
}


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_row_becomes_the_features_of_a_span(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "sentence.csv", [COLUMNS]))
    span = table.features[0]
    assert (span.surprisal, span.surprisal_none, span.n_tokens) == (1.0, 1.5, 7)
    assert (span.drop_max, span.jsd_loo_max, span.drops) == (0.4, 0.05, (0.4, -0.1))
    assert span.explained == pytest.approx(1 / 3)
    assert table.texts == ("It opened, in 1931.",)


def test_responses_are_numbers_in_their_own_order(tmp_path: Path) -> None:
    rows = [{**COLUMNS, "resp_id": str(i)} for i in (9, 10, 9)]
    table = read_table(write(tmp_path / "sentence.csv", rows))
    assert table.responses.tolist() == [9, 10, 9]
    assert [a.tolist() for a in table.answers] == [[0, 2], [1]]
    named = [{**COLUMNS, "resp_id": f"a{i}"} for i in range(2)]
    assert read_table(write(tmp_path / "b.csv", named)).responses.tolist() == ["a0", "a1"]


@pytest.mark.parametrize("column", ("gap", "label", "chunk_drops", "resp_id", "n_tok"))
def test_a_missing_column_is_named_with_its_file(tmp_path: Path, column: str) -> None:
    row = {k: v for k, v in COLUMNS.items() if k != column}
    path = write(tmp_path / "sentence.csv", [row])
    with pytest.raises(DatasetError, match=rf"sentence\.csv has no column '{column}'"):
        read_table(path)


@pytest.mark.parametrize(
    ("column", "value"),
    (
        ("gap", "much"),
        ("gap", "nan"),
        ("mean_surprisal", ""),
        ("label", "2"),
        ("chunk_drops", "[0.1,"),
        ("chunk_jsds", "[null]"),
        ("chunk_jsds", "0.3"),
    ),
)
def test_a_bad_value_is_named_with_file_row_and_column(
    tmp_path: Path, column: str, value: str
) -> None:
    path = write(tmp_path / "sentence.csv", [COLUMNS, {**COLUMNS, column: value}])
    with pytest.raises(DatasetError, match=rf"sentence\.csv, row 2, column '{column}'"):
        read_table(path)


def test_a_span_without_chunks_has_no_drop(tmp_path: Path) -> None:
    row = {**COLUMNS, "chunk_drops": "[]", "chunk_jsds": "[]"}
    span = read_table(write(tmp_path / "sentence.csv", [row])).features[0]
    assert (span.drop_max, span.drops) == (0.0, ())


@pytest.mark.parametrize(
    ("folder", "model", "k"),
    (
        ("Qwen2.5-0.5B-Instruct_K5", "Qwen2.5-0.5B-Instruct", 5),
        ("SmolLM2-1.7B-Instruct_K10", "SmolLM2-1.7B-Instruct", 10),
        ("my_Kind_of_model_K3", "my_Kind_of_model", 3),
        ("plain", "plain", None),
    ),
)
def test_a_folder_names_model_and_chunks(
    tmp_path: Path, folder: str, model: str, k: int | None
) -> None:
    write(tmp_path / folder / "sentence.csv", [COLUMNS])
    found = read_model(tmp_path / folder)
    assert (found.model, found.k, found.answers) == (model, k, None)


def test_folders_are_found_below_and_at_the_place_given(tmp_path: Path) -> None:
    write(tmp_path / "B_K5" / "sentence.csv", [COLUMNS])
    write(tmp_path / "A_K5" / "response.csv", [COLUMNS])
    (tmp_path / "notes").mkdir()
    assert [m.model for m in find_models(tmp_path)] == ["A", "B"]
    assert [m.model for m in find_models(tmp_path / "B_K5")] == ["B"]


def test_a_place_without_features_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"sentence\.csv"):
        find_models(tmp_path)
    with pytest.raises(DatasetError, match="not a folder"):
        find_models(tmp_path / "missing")


def test_a_baseline_file_adds_its_last_column(tmp_path: Path) -> None:
    write(tmp_path / "M_K5" / "sentence.csv", [COLUMNS])
    write(tmp_path / "M_K5" / "sentence_judge.csv", [{**COLUMNS, "judge_score": "0.25"}])
    rows, values = read_model(tmp_path / "M_K5").extras()["judge"]
    assert (values.tolist(), len(rows.labels)) == ([0.25], 1)
