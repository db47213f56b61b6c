"""What a user can choose about a check, in one immutable value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from .errors import InputError
from .types import SentenceKind, as_language

Passes = Literal["all", "two"]
Granularity = Literal["sentence", "clause", "token"]
Splitter = Literal["default", "paper"]


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of a check; the defaults are the product's, `paper()` the paper's."""

    passes: Passes = "all"
    """`"two"`: full and none alone, which gives verdicts without citations."""
    max_unit_tokens: int | None = 200
    """A longer passage is cut at its sentence ends into units of at most about this many tokens;
    None: a passage is one unit."""
    n_groups: int | None = None
    """The paper's K: all evidence is cut into this many runs of sentences; None: off."""
    max_units: int | None = 32
    """Left out one by one at most; with more units, the ones that share most words with the
    answer. None: all."""
    splitter: Splitter = "default"
    """`"paper"`: split at `.`, `!`, `?` and white space."""
    granularity: Granularity = "sentence"
    """What gets a verdict of its own."""
    language: str | None = None
    """ISO 639-1 code; None: from the text."""
    min_tokens: int = 1
    """Shorter spans are not scored."""
    max_context_tokens: int | None = None
    """Longer evidence is cut, and the report says so; None: never cut."""
    max_answer_tokens: int | None = None
    """Likewise for the answer."""
    flag_kinds: tuple[SentenceKind, ...] = ("claim",)
    """Kinds of sentence that can be flagged."""
    threshold: float | None = None
    """Scores above it are flagged; None: the profile's."""
    refine: bool = False
    """Narrow citations to the sentences of a unit that matter; costs passes over those units."""
    max_extra_passes: int = 0
    """Further conditions per answer for joint and redundant support; 0: judged from the
    leave-one-out passes alone."""
    check_markers: bool = False
    """Check the answer's own markers, like `[1]`, against the evidence."""
    token_values: bool = False
    """Report every token's gap and the drop of the cited unit, for heat maps."""
    is_abstention: Callable[[str], bool] | None = None
    """Says whether a sentence declines to answer, in addition to the built-in patterns."""

    def __post_init__(self) -> None:
        as_language(self.language)
        positive = ("max_unit_tokens", "n_groups", "max_units", "max_context_tokens")
        for name in (*positive, "max_answer_tokens", "min_tokens"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InputError(f"{name} must be a whole number from 1 up, got {value!r}")
        if self.max_extra_passes < 0:
            raise InputError(
                f"max_extra_passes must be a whole number from 0 up, got {self.max_extra_passes!r}"
            )
        if self.passes == "two" and (self.refine or self.max_extra_passes):
            raise InputError(
                "refine and max_extra_passes look closer at units that were left out, which "
                'passes="two" does not do: use passes="all"'
            )
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise InputError(f"threshold must be a finite number, got {self.threshold!r}")
        choices: dict[str, tuple[str, ...]] = {
            "passes": ("all", "two"),
            "splitter": ("default", "paper"),
            "granularity": ("sentence", "clause", "token"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}"
                )

    @classmethod
    def paper(cls, **changes: Any) -> CheckOptions:
        """The paper's settings: K = 5 groups, context ≤ 700 tokens, answer ≤ 200, spans of 3 up."""
        settings = cls(
            max_unit_tokens=None,
            n_groups=5,
            max_units=None,
            splitter="paper",
            min_tokens=3,
            max_context_tokens=700,
            max_answer_tokens=200,
        )
        return replace(settings, **changes)
