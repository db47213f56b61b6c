"""The package itself: lazy, and clear about what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.llms.mock import MockLLM
from llama_index.core.response_synthesizers import get_response_synthesizer

import gasp_integrations.llama_index as package
from gasp_engine import GroundingChecker
from gasp_engine.errors import InputTypeError


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_no_llama_index():
    code = "import sys, gasp_integrations.llama_index; print('llama_index.core' in sys.modules)"
    assert run(code).strip() == "False"


def test_importing_the_adapters_loads_no_torch():
    code = (
        "import sys\n"
        "from gasp_integrations.llama_index import *\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert run(code).strip() == "[]"


def test_without_llama_index_the_error_holds_the_install_command():
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'llama_index':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "try:\n"
        "    from gasp_integrations.llama_index import GroundingSynthesizer\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error)"
    )
    out = run(code)
    assert out.startswith("MissingExtraError GroundingSynthesizer needs llama-index-core")
    assert 'pip install "gasp-integrations[llamaindex]"' in out


def test_every_name_is_there_and_no_other():
    for name in package.__all__:
        assert getattr(package, name).__doc__
    assert len(package.__all__) <= 12
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'GroundingMagic'"):
        _ = package.GroundingMagic


@pytest.mark.parametrize(
    "wrapper, name",
    [
        ("GroundingQueryEngine", "query_engine"),
        ("GroundingChatEngine", "chat_engine"),
        ("GroundingSynthesizer", "inner"),
    ],
)
@pytest.mark.parametrize("wrong", ["an index", None, 3, BaseQueryEngine])
def test_what_is_wrapped_is_asked_for_by_name_at_once(wrapper, name, wrong):
    with pytest.raises(InputTypeError, match=rf"{name} must be .* such as"):
        getattr(package, wrapper)(wrong)


@pytest.mark.parametrize("wrong", [3, ["embedded"], GroundingChecker])
def test_a_checker_that_is_none_is_refused_at_once(wrong):
    with pytest.raises(InputTypeError, match="checker must be a GroundingChecker"):
        package.GroundingSynthesizer(get_response_synthesizer(llm=MockLLM()), wrong)
