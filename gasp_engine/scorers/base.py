"""What a scorer must offer, whatever runs behind it.

    ScoreRequest(question, context, answer tokens, conditions)  ->  TokenScores [C, T]

`score` takes whole answers, many at a time. `open` keeps the state of one question and its
evidence so that an answer can be scored piece by piece while it is still being written; the pieces'
rows, put side by side, equal what `score` says of the whole answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ..errors import ContextLengthError, InputError, NumericalError
from ..perturb import Context
from ..types import Condition, Tokens, TokenScores

Mode = Literal["plain", "remove", "mask", "cached"]


@dataclass(frozen=True, slots=True)
class ScorerInfo:
    """Which model made the numbers, and how; goes into the report and into profiles."""

    name: str
    """Model name or path."""
    revision: str
    """Revision or content hash."""
    dtype: str
    """Of the model's weights: `float32`, `bfloat16`, …"""
    device: str
    """`cpu`, `cuda:0`, `mps`, or the address of a server."""
    mode: str
    """How evidence is ablated: `plain`, `remove`, `mask`, `cached`; `table`, `remote`."""
    prompt: str = "paper"
    """Name of the prompt: `paper` or `chat`."""


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """One answer to score under several conditions."""

    question: str
    """The user's question."""
    context: Context
    """All evidence, as units."""
    answer: Tokens
    """The answer, tokenized by the same scorer."""
    conditions: tuple[Condition, ...]
    """The first must be the full condition: every divergence is taken against it."""


class ScoringState(Protocol):
    """An answer that is being scored as it grows. Not thread-safe; one caller at a time."""

    def extend(self, ids: Sequence[int]) -> TokenScores:
        """Score the next tokens of the answer: [C, len(ids)]."""
        ...

    def close(self) -> None:
        """Free what is kept. Further calls of `extend` raise SessionError."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Reads an answer under several conditions and returns likelihoods and divergences.

    Implementations are safe to call from several threads and never change their inputs.
    """

    @property
    def info(self) -> ScorerInfo:
        """Model, dtype, device and mode."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """The window, prompt and answer together; None when there is no limit."""
        ...

    def tokenize(self, text: str) -> Tokens:
        """The answer's tokens; control tokens in `text` become ordinary ones."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` takes inside a prompt (for windows and unit sizes)."""
        ...

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """Score whole answers; results in the order of `requests`.

        Raises:
            ContextLengthError: a condition and its answer exceed `max_tokens`.
            NumericalError: a value is not finite.
        """
        ...

    def open(
        self, question: str, context: Context, conditions: tuple[Condition, ...]
    ) -> ScoringState:
        """Begin an answer that will arrive in pieces; encodes the evidence at once."""
        ...


def require_full_first(context: Context, conditions: Sequence[Condition]) -> None:
    """Refuse conditions that do not begin with the full one.

    Raises:
        InputError: says which condition stands first instead.
    """
    if not conditions or conditions[0].kept != context.full.kept:
        found = repr(conditions[0].name) if conditions else "none at all"
        raise InputError(
            f"the first condition must show all {len(context.units)} units, because divergences "
            f"are taken against it; got {found}. Put context.full first"
        )


def too_long(condition: Condition, prompt: int, answer: int, window: int) -> ContextLengthError:
    """The error for a prompt and answer that do not fit the window, with all counts."""
    return ContextLengthError(
        f"condition {condition.name!r} needs {prompt + answer} tokens ({prompt} of the prompt, "
        f"{answer} of the answer), the scorer's window holds {window}. Score fewer or shorter "
        f"units at a time, or use a scorer with a longer window"
    )


def not_finite(token: int, condition: Condition, value: float, dtype: str) -> NumericalError:
    """The error for a log-probability that is NaN or infinite."""
    return NumericalError(
        f"the log-probability of answer token {token} under condition {condition.name!r} is "
        f"{value!r} in {dtype}, expected a finite number. float16 overflows in many models: "
        f"use bfloat16 or float32"
    )
