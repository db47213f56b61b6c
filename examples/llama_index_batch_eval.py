"""LlamaIndex's `BatchEvalRunner` over answers with planted faults; no LLM is asked to judge.

    (question, answer, contexts) × 5 -> GroundingEvaluator -> passing, score, feedback

Run it from the repository's folder:

    python -m examples.llama_index_batch_eval
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from llama_index.core.evaluation import BatchEvalRunner, EvaluationResult

from examples.documents import KeywordSearch, PreparedAnswer, load_corpus, prepared_answers
from gasp_engine import GroundingChecker
from gasp_integrations.llama_index import GroundingEvaluator


async def evaluate(
    prepared: Sequence[PreparedAnswer], checker: GroundingChecker
) -> list[EvaluationResult]:
    """One result an answer, against what keyword search finds for its question."""
    search = KeywordSearch(load_corpus())
    runner = BatchEvalRunner({"grounding": GroundingEvaluator(checker)}, workers=2)
    results = await runner.aevaluate_response_strs(
        queries=[p.question for p in prepared],
        response_strs=[p.text for p in prepared],
        contexts_list=[
            [passage.text for passage, _ in search.search(p.question)] for p in prepared
        ],
    )
    return results["grounding"]


def main(checker: GroundingChecker | None = None) -> None:
    """Evaluate the prepared answers and print what the evaluator says of each."""
    checker = checker or GroundingChecker.from_pretrained("embedded")
    prepared = prepared_answers()
    for answer, result in zip(prepared, asyncio.run(evaluate(prepared, checker)), strict=True):
        verdict = "passes" if result.passing else "fails"
        print(f"{answer.question}\n  {verdict}, score {result.score:.2f}")
        print("  " + (result.feedback or "").replace("\n", "\n  ") + "\n")


if __name__ == "__main__":
    main()
