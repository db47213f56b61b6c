"""What importing costs, and which module may know which."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "gasp_engine"

LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(row.split())
    for row in (
        "errors __version__",
        "types",
        "lexical options report",
        "segment align markers growing perturb prompt divergence",
        "scorers",
        "windows prepare",
        "features",
        "detectors",
        "ranking support joint refine hints",
        "reasons verdict closer",
        "render",
        "checker session session_pool incremental",
        "baselines datasets evaluation diagnostics batch",
        "cli",
    )
)
"""A module imports from its own row and from those above it."""

OPEN_TO_ADAPTERS = {
    "gasp_engine",
    "gasp_engine.errors",
    "gasp_engine.render",
    "gasp_engine.types",
}
"""Modules whose names are public beside those of the package itself."""

HEAVY = ("torch", "transformers", "lightgbm", "sklearn", "scipy", "pandas", "pyarrow", "rich")
"""Packages that an import of the engine must not load, nor those of the frameworks."""
FRAMEWORKS = ("langchain", "langchain_core", "langgraph", "llama_index")


def relative_imports(path: Path) -> Iterator[str]:
    """Names of the engine's top modules that a file of the engine imports from."""
    package = path.relative_to(ENGINE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            inside = (*base, *(node.module or "").split(".")) if node.module else base
            if inside:
                yield inside[0]
            else:
                yield from (alias.name for alias in node.names)


def engine_files() -> list[Path]:
    """Every file of the engine but the package's own front."""
    return [p for p in sorted(ENGINE.rglob("*.py")) if p != ENGINE / "__init__.py"]


def row_of(module: str) -> int | None:
    """Index of a module's layer."""
    return next((i for i, row in enumerate(LAYERS) if module in row), None)


def test_every_module_of_the_engine_has_a_layer() -> None:
    modules = {p.relative_to(ENGINE).parts[0].removesuffix(".py") for p in engine_files()}
    unplaced = {m for m in modules if row_of(m) is None}
    assert not unplaced, f"give {unplaced} a place in LAYERS of {Path(__file__).name}"


def test_no_module_imports_from_a_layer_above_its_own() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {target}"
        for path in engine_files()
        for target in relative_imports(path)
        if (own := row_of(path.relative_to(ENGINE).parts[0].removesuffix(".py"))) is not None
        and (row_of(target) is None or row_of(target) > own)  # type: ignore[operator]
    ]
    assert not wrong


def test_the_engine_does_not_know_the_adapters() -> None:
    wrong = [p for p in engine_files() if "gasp_integrations" in imported_roots(p)]
    assert not wrong


def test_adapters_use_only_the_engines_public_names() -> None:
    wrong: list[str] = []
    for path in sorted((ROOT / "gasp_integrations").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                wrong += [
                    f"{path.name}: import {a.name}"
                    for a in node.names
                    if a.name.split(".")[0] == "gasp_engine" and a.name not in OPEN_TO_ADAPTERS
                ]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gasp_engine"):
                names = [a.name for a in node.names]
                if node.module not in OPEN_TO_ADAPTERS or any(n.startswith("_") for n in names):
                    wrong.append(f"{path.relative_to(ROOT)}: from {node.module} import {names}")
    assert not wrong


def test_one_adapter_does_not_know_the_other_framework() -> None:
    adapters = ROOT / "gasp_integrations"
    for folder, foreign in (("langchain", "llama_index"), ("llama_index", "langchain")):
        for path in (adapters / folder).rglob("*.py"):
            roots = imported_roots(path)
            assert not any(r.startswith(foreign) for r in roots), path


def imported_roots(path: Path) -> set[str]:
    """First parts of the absolute imports of a file, those inside functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
    return found


def run_python(code: str) -> dict[str, object]:
    """What a fresh interpreter prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return json.loads(done.stdout)


PROBE = """
import json, sys, time
start = time.process_time()
import gasp_engine
{more}
print(json.dumps({{
    "seconds": time.process_time() - start,
    "loaded": sorted({{name.split(".")[0] for name in sys.modules}}),
}}))
"""


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        ("", 0.3),
        ("from gasp_engine import *", 1.5),
        ("import gasp_engine.cli; gasp_engine.cli.build_parser()", 1.5),
        ("import gasp_integrations.langchain, gasp_integrations.llama_index", 1.5),
    ],
    ids=["package", "public names", "command line", "adapters"],
)
def test_importing_loads_no_model_library_and_takes_little_time(more: str, limit: float) -> None:
    # Processor time, not the clock's: other work on the machine must not decide. Best of three,
    # because the first may have to compile. On a quiet machine all stay under 0.3 s.
    runs = [run_python(PROBE.format(more=more)) for _ in range(3)]
    loaded = set(runs[0]["loaded"])  # type: ignore[call-overload]
    assert not loaded & {*HEAVY, *FRAMEWORKS}
    assert min(float(run["seconds"]) for run in runs) < limit  # type: ignore[arg-type]
