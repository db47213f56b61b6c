"""What several test modules need: the embedded scorer, the shared data, quiet libraries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "2")
# Waiting threads sleep: spinning ones make a busy machine many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("LANGSMITH_TRACING", "false")
os.environ.setdefault("MPLBACKEND", "Agg")

if TYPE_CHECKING:
    from gasp_engine import GroundingChecker
    from gasp_engine.scorers.transformers import TransformersScorer

ROOT = Path(__file__).parents[1]
"""The repository."""


@pytest.fixture(scope="session")
def embedded() -> TransformersScorer:
    """The embedded scorer, loaded once, in float32 on the CPU."""
    import torch

    from gasp_engine.scorers.transformers import TransformersScorer

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return TransformersScorer.from_pretrained("embedded", device="cpu", dtype="float32")


@pytest.fixture(scope="session")
def embedded_checker(embedded: TransformersScorer) -> GroundingChecker:
    """A checker with default options over the embedded scorer."""
    from gasp_engine import GroundingChecker

    return GroundingChecker(embedded)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Research data that lies beside the repository; its tests are skipped where it is not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the shared data folder is not beside this repository")
    return folder
