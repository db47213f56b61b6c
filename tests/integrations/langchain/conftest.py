"""A checker without a model, exact and instant, that counts the calls of its scorer."""

from __future__ import annotations

import pytest
from lc_cases import CountingScorer

from gasp_engine import GroundingChecker


@pytest.fixture
def scorer() -> CountingScorer:
    return CountingScorer()


@pytest.fixture
def checker(scorer: CountingScorer) -> GroundingChecker:
    return GroundingChecker(scorer)
