"""`gasp-engine check`: what a person types, what comes out, and the exit status."""

import io
import json
import subprocess
import sys

import pytest

from gasp_engine import cli
from gasp_engine.checker import GroundingChecker
from gasp_engine.cli import check as check_command
from gasp_engine.scorers.table import TableScorer

DAM = "The dam opened in 1931."
EXAMPLE = {
    "question": "When did the dam open?",
    "passages": [DAM, "Boats are red."],
    "answer": f"{DAM} It is painted white.",
}


class Stdin:
    """Bytes on standard input."""

    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.fixture
def table(monkeypatch):
    """The command on a table instead of a model."""

    def log_prob(question, context, index, tokens):
        return -0.01 if DAM in context and index < 6 else -5.0

    def make(args):
        return GroundingChecker(TableScorer.from_log_prob(log_prob))

    monkeypatch.setattr(check_command, "checker_from", make)


def run(monkeypatch, capsys, *arguments, stdin=b""):
    monkeypatch.setattr(sys, "stdin", Stdin(stdin))
    status = cli.main(["check", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.usefixtures("table")
def test_json_in_json_out_and_nothing_else(monkeypatch, capsys):
    data = json.dumps(EXAMPLE).encode()
    status, out, err = run(monkeypatch, capsys, "--json", stdin=data)
    report = json.loads(out)
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert [s["status"] for s in report["sentences"]] == ["grounded", "flagged"]


@pytest.mark.usefixtures("table")
def test_files_in_text_out(monkeypatch, capsys, tmp_path):
    (tmp_path / "a.txt").write_bytes(DAM.encode())
    (tmp_path / "p.jsonl").write_text('{"text": "Boats are red.", "id": "b"}\n\n"Cats sleep."\n')
    (tmp_path / "answer.txt").write_bytes(f"{DAM}\r\nIt is white.".encode())
    arguments = ["--question", "When?", "--passage", str(tmp_path / "a.txt")]
    arguments += ["--passages", str(tmp_path / "p.jsonl"), "--answer", str(tmp_path / "answer.txt")]
    status, out, _ = run(monkeypatch, capsys, *arguments, "--html", str(tmp_path / "r.html"))
    assert status == 0
    assert "✔ grounded" in out
    assert "[1] passage 1 (a.txt) 0–23" in out
    assert "\x1b" not in out
    assert DAM in (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.usefixtures("table")
def test_fail_on_flag_sets_the_exit_status(monkeypatch, capsys):
    data = json.dumps(EXAMPLE).encode()
    assert run(monkeypatch, capsys, "--fail-on-flag", stdin=data)[0] == 1
    clean = json.dumps({**EXAMPLE, "answer": DAM}).encode()
    assert run(monkeypatch, capsys, "--fail-on-flag", stdin=clean)[0] == 0


@pytest.mark.usefixtures("table")
def test_colour_is_for_terminals_and_can_be_forced(monkeypatch, capsys):
    data = json.dumps(EXAMPLE).encode()
    _, out, _ = run(monkeypatch, capsys, "--color", "always", stdin=data)
    assert "\x1b[" in out


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "arguments, stdin, named",
    [
        ([], b"", "standard input is empty"),
        ([], b"{", "standard input is not JSON (line 1"),
        ([], b"[1]", "list"),
        ([], b'{"question": "q"}', "passages, answer"),
        ([], b'{"question": "q", "passages": "p", "answer": "a"}', "passages must be a list"),
        ([], b'{"question": "q", "passages": [null], "answer": "a"}', "passages[0]"),
        ([], b'{"question": "q", "passages": ["p"], "answer": null}', "answer must be str"),
        ([], b"\xff\xfe", "not UTF-8"),
        (["--question", "q"], b"", "--answer is missing"),
        (["--answer", "-"], b"a", "--question is missing"),
        (["--question", "q", "--answer", "nowhere.txt"], b"", "nowhere.txt"),
    ],
)
def test_bad_input_exits_with_2_and_one_line_that_names_it(
    monkeypatch, capsys, arguments, stdin, named
):
    status, out, err = run(monkeypatch, capsys, *arguments, stdin=stdin)
    assert (status, out) == (2, "")
    assert named in err
    assert err.count("\n") == 1


def test_bad_usage_exits_with_2_and_one_line(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["check", "--no-such-option"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.model
@pytest.mark.slow
def test_the_installed_command_prints_one_json_report_and_nothing_else():
    result = subprocess.run(
        [sys.executable, "-m", "gasp_engine.cli", "check", "--json"],
        input=json.dumps(EXAMPLE).encode(),
        capture_output=True,
        timeout=300,
        check=False,
    )
    report = json.loads(result.stdout)
    assert result.returncode == 0
    assert report["scorer"]["name"]
    assert report["sentences"][0]["status"] == "grounded"
    assert report["sentences"][1]["status"] == "flagged"
