"""The README is true: its example runs as printed, and what it names exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gasp_engine.cli import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """The fenced code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def run(command: list[str], **kwargs: str) -> subprocess.CompletedProcess[str]:
    """Run a command with this interpreter's scripts on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
        **kwargs,  # type: ignore[arg-type]
    )


@pytest.mark.model
def test_the_example_runs_as_printed(tmp_path: Path) -> None:
    (example,) = (b for b in blocks("python") if "from_pretrained" in b)
    assert sum(bool(line.strip()) for line in example.splitlines()) <= 11
    done = run([sys.executable, "-c", example], cwd=str(tmp_path))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert re.fullmatch(r"grounded -?[\d.]+ The dam opened in 1931\. \['dam'\]", first)
    assert re.fullmatch(r"flagged -?[\d.]+ A hotel for painters stands nearby\. \[\]", second)


@pytest.mark.model
def test_the_command_line_example_prints_one_json_report_and_nothing_else(tmp_path: Path) -> None:
    (command,) = (b.strip() for b in blocks("sh") if "gasp-engine check" in b)
    done = run(["sh", "-c", command], cwd=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert report["version"] == 1
    assert [s["status"] for s in report["sentences"]] == ["grounded"]


def test_the_table_of_commands_lists_every_command() -> None:
    assert set(re.findall(r"^\| `gasp-engine (\w+)`", README, flags=re.MULTILINE)) == set(COMMANDS)


def test_every_make_target_that_the_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", README, flags=re.MULTILINE))
    assert {"demo", "test", "check", "bench"} <= {a or b for a, b in named} <= targets


def test_every_link_and_every_adapter_that_the_readme_names_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    from gasp_integrations import langchain, llama_index

    exported = {*langchain.__all__, *llama_index.__all__}
    assert set(re.findall(r"`?\b(Grounding(?!Checker|Session)[A-Z]\w+)", README)) <= exported


def test_the_extras_that_the_readme_names_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    table = README.partition("| extra | for |")[2].partition("\n\n")[0]
    named = {
        extra
        for row in table.splitlines()
        if row.startswith("| `")
        for extra in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert named == set(project["optional-dependencies"]) - {"all", "dev"}
