"""What is imported, and what is said when something is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gasp_integrations
import gasp_integrations.langchain as package

BLOCK = """
import importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "{blocked}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("blocked", "name", "extra"),
    [
        ("langchain_core", "GroundingRunnable", "langchain"),
        ("langchain_core", "annotate_message", "langchain"),
        ("langchain", "GroundingMiddleware", "agents"),
        ("langgraph", "GroundingMiddleware", "agents"),
    ],
)
def test_a_missing_extra_is_named_with_its_install_command(
    blocked: str, name: str, extra: str
) -> None:
    found = python(
        BLOCK.format(blocked=blocked)
        + "try:\n"
        + f"    from gasp_integrations.langchain import {name}\n"
        + "except ImportError as error:\n"
        + "    print(type(error).__name__, error)\n"
    )
    assert found.startswith("MissingExtraError")
    assert f'pip install "gasp-integrations[{extra}]"' in found


def test_the_runnable_needs_neither_langchain_nor_langgraph_nor_torch() -> None:
    found = python(
        "import sys\n"
        "from gasp_integrations.langchain import GroundingRunnable, annotate_message\n"
        "from gasp_integrations.langchain import documents_from_messages, grounding_evaluator\n"
        "GroundingRunnable(model='embedded')\n"
        "heavy = ('langchain', 'langgraph', 'torch', 'transformers')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    assert found.strip() == "[]"


def test_every_name_of_the_package_is_there() -> None:
    pytest.importorskip("langchain", reason="needs the extra `agents`")
    for name in package.__all__:
        assert getattr(package, name).__doc__, f"{name} has no docstring"
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'Grounding'"):
        package.Grounding  # noqa: B018


def test_the_package_is_typed() -> None:
    assert (Path(str(gasp_integrations.__file__)).parent / "py.typed").exists()


def test_the_adapter_uses_public_names_and_does_no_arithmetic() -> None:
    folder = Path(str(package.__file__)).parent
    for path in folder.glob("*.py"):
        text = path.read_text("utf-8")
        assert "numpy" not in text, path.name
        assert "import math" not in text, path.name
        for line in text.splitlines():
            if line.startswith(("from gasp_engine", "import gasp_engine")):
                module = line.split()[1]
                assert module in {
                    "gasp_engine",
                    "gasp_engine.errors",
                    "gasp_engine.render",
                }, f"{path.name}: {line}"
