"""What a detector has to beat: scores from length, likelihood, words, entailment, sampling.

    simple            from features that were measured anyway; free
    nli               a cross-encoder: does the context, or its best unit, entail the sentence
    self_consistency  samples of the answer from the same scorer, and whether they contradict it

Scores are higher for less supported sentences, as everywhere.
"""

from .simple import SIMPLE, baseline_scores

__all__ = ["SIMPLE", "baseline_scores"]
