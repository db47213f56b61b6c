"""`gasp-engine segment`: bytes in, JSON out, and nothing else."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gasp_engine.cli.segment import add_parser
from gasp_engine.errors import InputError

ROOT = Path(__file__).parents[2]


def call(data: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    program = "import sys; from gasp_engine.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, "segment", *options],
        input=data,
        capture_output=True,
        cwd=ROOT,
        check=False,
    )


def test_text_comes_in_on_standard_input_and_json_goes_out_with_every_offset_kept() -> None:
    text = "First line.\r\nSecond\u00a0line, see p.\u00a04.\r\n\r\nIs it 🦦?"
    done = call(text.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    rows = json.loads(done.stdout)
    assert rows == [
        {"start": 0, "end": 11, "kind": "claim", "text": "First line."},
        {"start": 13, "end": 35, "kind": "claim", "text": "Second\u00a0line, see p.\u00a04."},
        {"start": 39, "end": 47, "kind": "question", "text": "Is it 🦦?"},
    ]
    assert all(text[row["start"] : row["end"]] == row["text"] for row in rows)


def test_blank_text_gives_an_empty_list() -> None:
    assert json.loads(call(b" \r\n\t ").stdout) == []


def test_what_is_not_utf_8_ends_with_status_2_and_one_line_that_names_the_byte() -> None:
    done = call(b"caf\xe9.")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"standard input is not UTF-8: byte 3 is 0xe9" in done.stderr
    assert done.stderr.count(b"\n") == 1


def run_here(monkeypatch: pytest.MonkeyPatch, data: bytes, *options: str) -> list[dict[str, str]]:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output))
    args = parser.parse_args(["segment", *options])
    assert args.func(args) == 0
    return json.loads(output.getvalue())


def test_options_choose_splitter_granularity_and_language(monkeypatch: pytest.MonkeyPatch) -> None:
    def texts(data: str, *options: str) -> list[str]:
        return [row["text"] for row in run_here(monkeypatch, data.encode(), *options)]

    assert texts("Dr. Osei left.", "--splitter", "paper") == ["Dr.", "Osei left."]
    assert texts("Osei left.", "--granularity", "token") == ["Osei", "left."]
    assert texts("Am 3. Oktober.", "--language", "de") == ["Am 3. Oktober."]


def test_a_lone_surrogate_cannot_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="byte 0 is 0xed"):
        run_here(monkeypatch, b"\xed\xa0\x80")
