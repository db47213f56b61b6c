"""The checker as an evaluator for LangSmith's `evaluate` and for openevals.

grounded           the answer: 1 when no sentence is flagged, 0 when one is
sentence_grounded  one a claim: 1 or 0; the comment holds the sentence and the reason
(metadata)         grounding_score, the engine's number: higher = less supported
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gasp_engine import GroundingChecker, Report
from gasp_engine.errors import InputTypeError, shorten

from ._convert import Keys, example_of
from .runnable import GroundingRunnable

Feedback = dict[str, Any]
"""`{"key", "score", "value"?, "comment", "metadata"}`, and nothing else: LangSmith refuses more."""


def grounding_evaluator(
    checker: GroundingChecker | GroundingRunnable | str,
    *,
    per_sentence: bool = True,
    key: str = "grounded",
    answer_key: str = "answer",
    context_key: str = "context",
    question_key: str | None = None,
) -> Callable[..., list[Feedback]]:
    """An evaluator that says whether an answer rests on its documents.

    The question is looked for in the inputs, the documents and the answer in the outputs and then
    in the inputs. Outputs that already hold a report under `grounding` are not checked again.

    Args:
        checker: an engine, a runnable, or the name of a model.
        per_sentence: also one feedback for each claim.
        key: name of the feedback on the answer.
        answer_key: where the answer is.
        context_key: where the documents are: `Document`, dict or str.
        question_key: where the question is; None: the first of `input`, `question`, `query`.

    Returns:
        A function with LangSmith's argument names: `(run=None, example=None, inputs=None,
        outputs=None, context=None) -> [{"key", "score", "comment", "metadata"}, …]`.

    Example:
        >>> evaluator = grounding_evaluator("embedded")             # doctest: +SKIP
        >>> client.evaluate(chain.invoke, data="my data", evaluators=[evaluator])  # doctest: +SKIP
    """
    runnable = as_runnable(checker)
    keys = Keys(answer_key, context_key, question_key)

    def evaluate(
        run: Any = None,
        example: Any = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Any = None,
        context: Any = None,
    ) -> list[Feedback]:
        # without an example LangSmith hands over {} for the inputs: the run knows them
        asked = {
            **(getattr(example, "inputs", None) or {}),
            **(getattr(run, "inputs", None) or {}),
            **(inputs or {}),
        }
        given = getattr(run, "outputs", None) if outputs is None else outputs
        values = {**asked, **_output_values(given, answer_key)}
        if context is not None:
            values[context_key] = context
        report = _report(values, keys, runnable)
        feedback = [_on_answer(report, key)]
        if per_sentence:
            feedback += _on_sentences(report)
        return feedback

    evaluate.__name__ = "grounding_evaluator"
    return evaluate


def as_runnable(checker: object) -> GroundingRunnable:
    """A runnable from itself, an engine, or the name of a model."""
    if isinstance(checker, GroundingRunnable):
        return checker
    if isinstance(checker, GroundingChecker):
        return GroundingRunnable(checker=checker)
    if isinstance(checker, str):
        return GroundingRunnable(model=checker)
    raise InputTypeError(
        f"checker must be a GroundingChecker, a GroundingRunnable or a model's name, "
        f"got {type(checker).__name__} {shorten(checker)}"
    )


def _output_values(outputs: Any, answer_key: str) -> Mapping[str, Any]:
    if outputs is None:
        return {}
    return outputs if isinstance(outputs, Mapping) else {answer_key: outputs}


def _report(values: Mapping[str, Any], keys: Keys, runnable: GroundingRunnable) -> Report:
    there = values.get("grounding")
    if isinstance(there, Mapping):
        return Report.from_dict(there)
    example = example_of(values, keys)
    return runnable.engine.check(example.question, example.passages, example.answer)


def _on_answer(report: Report, key: str) -> Feedback:
    return {
        "key": key,
        "score": report.grounded,
        "comment": _comment(report),
        "metadata": {
            "grounding_score": report.score,
            "probability": report.probability,
            "scorer": dict(report.scorer),
            "detector": dict(report.detector),
            "warnings": list(report.warnings),
        },
    }


def _comment(report: Report) -> str:
    if report.grounded is None:
        return "there was nothing to judge"
    flagged = [f"{sentence.text} — {sentence.reason}" for sentence in report.flagged]
    return "flagged: " + "; ".join(flagged) if flagged else "no sentence is flagged"


def _on_sentences(report: Report) -> list[Feedback]:
    return [
        {
            "key": "sentence_grounded",
            "score": sentence.status == "grounded",
            "comment": f"{sentence.text} — {sentence.reason}",
            "metadata": {
                "index": sentence.index,
                "start": sentence.start,
                "end": sentence.end,
                "grounding_score": sentence.score,
                "passages": [citation.passage_index for citation in sentence.citations],
            },
        }
        for sentence in report.sentences
        if sentence.status in ("grounded", "flagged")
    ]
