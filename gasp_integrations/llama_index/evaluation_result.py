"""What the evaluator returns: LlamaIndex's own result, and the verdict on every sentence."""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.evaluation import EvaluationResult


class GroundingEvaluationResult(EvaluationResult):
    """`passing` means grounded; a higher `score` is better, unlike elsewhere in the project."""

    sentences: list[dict[str, Any]] = Field(
        default_factory=list, description="Verdict, numbers and citations of each sentence"
    )
    grounding: dict[str, Any] | None = Field(
        default=None, description="The whole report, as in response.metadata['grounding']"
    )

    @property
    def flagged(self) -> list[dict[str, Any]]:
        """The sentences that rest on nothing."""
        return [s for s in self.sentences if s["status"] == "flagged"]
