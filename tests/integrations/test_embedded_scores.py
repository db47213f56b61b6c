"""The embedded scorer's numbers, which must be the same under every supported transformers."""

from __future__ import annotations

import pytest

from gasp_engine import Passage
from gasp_engine.perturb import build_context
from gasp_engine.scorers.base import ScoreRequest
from gasp_engine.scorers.transformers import TransformersScorer


@pytest.mark.model
def test_the_embedded_scorer_says_the_same_under_every_supported_version() -> None:
    # Recorded with transformers 5.24 and 4.57.1, torch 2.13 on a CPU. Under 4.57 the tokenizer of a
    # GGUF file puts a token before the prompt unless told otherwise, which moves these by 1 to 2.
    scorer = TransformersScorer.from_pretrained(
        "embedded", dtype="float32", device="cpu", mode="plain"
    )
    context = build_context(
        [
            Passage("The dam opened in 1931. It is 62 metres high."),
            Passage("Boats may cross the lake from May to October."),
        ]
    )
    answer = scorer.tokenize("The dam opened in 1931. A hotel stands nearby.")
    request = ScoreRequest("What?", context, answer, context.leave_one_out())
    (scores,) = scorer.score([request])
    assert [c.name for c in scores.conditions] == ["full", "none", "without 0", "without 1"]
    assert scores.log_probs.sum(axis=1) == pytest.approx(
        [-38.8748, -66.7510, -65.4712, -38.7637], abs=0.01
    )
    assert scores.jsd.sum(axis=1) == pytest.approx([0.0, 3.5571, 3.1110, 0.5798], abs=0.001)
