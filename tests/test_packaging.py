"""What is built and pinned: the wheel's contents, the pins, and the environment's script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pins(name: str) -> dict[str, str]:
    """Package -> version of one requirement file."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8").splitlines()
    entries = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(package): version for package, _, version in entries}


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda p: p.stem)
def test_every_requirement_is_an_exact_pin(path: Path) -> None:
    lines = [x for x in path.read_text("utf-8").splitlines() if x and not x.startswith("#")]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), line
    names = [canonicalize_name(line.partition("==")[0]) for line in lines]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("chosen", [("torch", "base", "dev"), ("torch", "floor")], ids="-".join)
def test_pins_lie_within_the_ranges_that_the_package_declares(chosen: tuple[str, ...]) -> None:
    versions: dict[str, str] = {}
    for name in chosen:
        versions |= pins(name)
    extras = {"torch", "langchain", "agents", "llamaindex", "train", "eval", "ui"}
    declared = list(PROJECT["dependencies"])
    for extra in sorted(extras):
        declared += PROJECT["optional-dependencies"][extra]
    for text in declared:
        wanted = Requirement(text)
        version = versions[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version), f"{text}, pinned {version}"


def test_the_floor_is_the_lowest_version_that_the_package_declares() -> None:
    floor = pins("floor")
    extras = PROJECT["optional-dependencies"]
    for extra, name in (
        ("langchain", "langchain-core"),
        ("agents", "langchain"),
        ("llamaindex", "llama-index-core"),
        ("torch", "transformers"),
    ):
        wanted = next(r for r in map(Requirement, extras[extra]) if r.name == name)
        lowest = next(s.version for s in wanted.specifier if s.operator == ">=")
        assert floor[name].split(".")[: lowest.count(".") + 1] == lowest.split(".")


def test_no_requirement_file_or_build_file_names_a_host_or_a_machines_path() -> None:
    files = [*REQUIREMENTS, ROOT / "Makefile", ROOT / "requirements" / "setup.sh", ROOT / ".ci/run"]
    for path in files:
        text = path.read_text("utf-8").replace("/path/to/", "")
        assert not re.search(r"https?://|file://|index-url|find-links", text), path
        assert not re.search(r"(?<![\w.\"'}])/(home|root|opt|work|Users|mnt)\b", text), path


def test_the_wheel_holds_code_data_and_licence_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        check=True,
        cwd=ROOT,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("gasp_integrations-")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = next(n for n in names if n.endswith("entry_points.txt"))
        assert "gasp-engine = gasp_engine.cli:main" in archive.read(entry_points).decode()
    roots = {n.split("/")[0] for n in names}
    assert {"gasp_engine", "gasp_integrations"} < roots
    assert len(roots) == 3  # the third is the metadata
    assert {"gasp_engine/py.typed", "gasp_integrations/py.typed"} <= names
    assert any(n.endswith("licenses/LICENSE") for n in names)
    for path in (ROOT / "gasp_engine").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(ROOT).as_posix() in names


def test_the_peer_package_shares_no_module_and_no_command_with_this_one() -> None:
    try:
        peer = distribution("gasp-rag")
    except PackageNotFoundError:
        pytest.skip("gasp-rag is not installed")
    modules = {p.parts[0] for p in peer.files or [] if p.suffix == ".py" and ".." not in p.parts}
    commands = {e.name for e in peer.entry_points if e.group == "console_scripts"}
    assert modules
    assert not modules & {"gasp_engine", "gasp_integrations"}
    assert "gasp-engine" not in commands


def run_setup(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run the environment's script with an interpreter of our choice."""
    return subprocess.run(
        ["sh", str(ROOT / "requirements" / "setup.sh"), str(folder), "dev"],
        env={**os.environ, "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )


def test_setup_says_which_python_is_needed_and_makes_nothing(tmp_path: Path) -> None:
    done = run_setup(tmp_path / "venv", "false")
    assert done.returncode != 0
    assert "Python 3.11 or newer" in done.stderr
    assert "false" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_setup_leaves_an_environment_alone_whose_stamps_are_right(tmp_path: Path) -> None:
    def checksum(data: bytes) -> str:
        return subprocess.run(
            ["cksum"], input=data, capture_output=True, check=True
        ).stdout.decode()

    files = ("setup.sh", "torch.txt", "base.txt", "dev.txt", "model.txt", "bench.txt")
    pinned = b"".join((ROOT / "requirements" / name).read_bytes() for name in files)
    project = (ROOT / "pyproject.toml").read_bytes() + f"{ROOT}\n".encode()
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / ".stamp-pins").write_text(checksum(pinned))
    (venv / ".stamp-project").write_text(checksum(project))
    done = run_setup(venv, "false")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (venv / ".stamp-pins").write_text("an interrupted or older set-up")
    assert run_setup(venv, "false").returncode != 0
