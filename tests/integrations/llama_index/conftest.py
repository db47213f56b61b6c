"""Fixtures for the LlamaIndex tests; the parts themselves are in `llama_parts`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_parts import BOATS, DAM, canned, node, word_checker

from gasp_engine import GroundingChecker


@pytest.fixture
def checker() -> GroundingChecker:
    return word_checker()


@pytest.fixture
def nodes() -> list[Any]:
    return [
        node(
            DAM,
            "n-dam",
            metadata={"file_name": "a.pdf", "page": 4},
            start_char_idx=100,
            end_char_idx=100 + len(DAM),
        ),
        node(BOATS, "n-boats", 0.2),
    ]


@pytest.fixture(autouse=True)
def canned_settings() -> Any:
    """No part may fall back on LlamaIndex's default generator, which needs a key."""
    from llama_index.core import Settings

    before = Settings._llm
    Settings.llm = canned()
    yield
    Settings._llm = before


@pytest.fixture(autouse=True)
def closed_loop() -> Any:
    """LlamaIndex's synchronous ways ask for an event loop, and would leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
