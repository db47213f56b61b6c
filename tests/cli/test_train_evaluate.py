"""`gasp-engine train` and `evaluate`, from published features and from labelled answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gasp_engine.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from test_reproduce import make_folder

ROW = {"question": "When?", "passages": ["The dam opened in 1931."], "answer": "It opened in 1931."}


def test_a_detector_is_trained_and_then_evaluated_on_other_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_folder(tmp_path / "A_K5", n_answers=60, seed=1)
    make_folder(tmp_path / "B_K5", n_answers=60, seed=2)
    detector = tmp_path / "detector"
    call = ["train", str(tmp_path / "A_K5"), "--format", "released", "-o", str(detector)]
    assert main(call) == 0
    assert "AUC on held-out answers" in capsys.readouterr().out
    about = json.loads((detector / "detector.json").read_text())
    assert about["source"]["command"] == (
        "gasp-engine train A_K5 --format released --model embedded"
    )
    call = ["evaluate", str(tmp_path / "B_K5"), "--format", "released", "--json"]
    assert main([*call, "--trained", str(detector)]) == 0
    found = json.loads(capsys.readouterr().out)
    aucs = {row["method"]: row["auc"] for row in found["rows"]}
    assert found["sentences"] == 180
    assert aucs[f"trained: {detector}"] > 0.75
    assert {"default", "paper", "perplexity", "length"} <= set(aucs)


@pytest.mark.parametrize("command", (["train", "-o", "out"], ["evaluate"]))
def test_unlabelled_answers_are_refused_before_anything_is_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    assert main([command[0], str(path), *command[1:], "--model", "no/such-model"]) == 2
    assert "needs labels" in capsys.readouterr().err


def test_words_cannot_be_trained_from_published_features(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_folder(tmp_path / "A_K5")
    call = ["train", str(tmp_path / "A_K5"), "--format", "released", "-o", str(tmp_path / "d")]
    assert main([*call, "--features", "words"]) == 2
    assert "hold no words" in capsys.readouterr().err


@pytest.mark.model
def test_labelled_answers_are_measured_and_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], embedded: object
) -> None:
    rows = []
    for i, year in enumerate(range(1931, 1943)):
        true = f"The dam at mile {i} opened in {year}."
        answer = f"{true} The mayor of the town is Ana Ruiz."
        label = {"start": len(true) + 1, "end": len(answer), "label": 1}
        rows.append({"question": "When?", "passages": [true], "answer": answer, "labels": [label]})
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    call = ["train", str(path), "-o", str(tmp_path / "d"), "--dtype", "float32"]
    assert main(call) == 0
    assert "17 features, 24 sentences of 12 answers" in capsys.readouterr().out
    assert main(["evaluate", str(path), "--dtype", "float32", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    aucs = {row["method"]: row["auc"] for row in found["rows"]}
    assert aucs["default"] == 1.0


def test_the_commands_offer_every_form_that_can_be_read() -> None:
    from gasp_engine.cli import measuring
    from gasp_engine.datasets.rows import FORMS

    assert measuring.FORMS == FORMS
