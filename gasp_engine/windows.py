"""Which units are shown together, and which are left out one by one.

Evidence that does not fit the scorer's window is scored in groups of neighbouring units that do,
and any group that supports a sentence is enough. Nothing is dropped but repeats of the same text.
With many units, only a shortlist is left out one by one; the others stay in the context, and the
report says so.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from .errors import ContextLengthError
from .lexical import words
from .perturb import Context
from .scorers.base import Scorer
from .types import Condition, Tokens

MARGIN = 16
"""Tokens kept free for the prompt's own words changing their tokenization at the joins."""


@dataclass(frozen=True, slots=True)
class Group:
    """Units that are shown together, and the conditions under which they are scored."""

    units: tuple[int, ...]
    """Indices of the units in the whole context, ascending."""
    context: Context
    """These units alone, numbered from 0: what the scorer sees."""
    conditions: tuple[Condition, ...]
    """Of `context`; the first shows all its units, the second nothing."""


def plan_groups(
    scorer: Scorer,
    context: Context,
    question: str,
    answer: Tokens,
    *,
    probed: tuple[int, ...],
    passes: str = "all",
) -> list[Group]:
    """Groups of units that fit the window, each with its conditions.

    Args:
        scorer: gives the window and counts tokens.
        context: the evidence.
        question: the user's question.
        answer: the tokens that must all be scored in every condition.
        probed: units that are left out one by one.
        passes: `"all"`, or `"two"` for full and none alone.

    Raises:
        ContextLengthError: question and answer leave no room for evidence.
    """
    everything = tuple(range(len(context.units)))
    window = scorer.max_tokens
    if window is None:
        return [_group(context, everything, probed, passes, fits=True)]
    fixed = scorer.count_tokens(question) + len(answer) + MARGIN
    fixed += scorer.count_tokens("Context:\n\n\nQuestion: \n\nAnswer: ")
    room = window - fixed
    if room < MARGIN:
        raise ContextLengthError(
            f"question and answer take {fixed} of the scorer's {window} tokens and leave no room "
            f"for evidence. Use a scorer with a longer window, or check the answer in parts"
        )
    sizes = [scorer.count_tokens(unit.text) + 2 for unit in context.units]
    repeats = (size * len(u.copies) for size, u in zip(sizes, context.units, strict=True))
    if sum(sizes) + sum(repeats) <= room:
        return [_group(context, everything, probed, passes, fits=True)]
    groups: list[Group] = []
    current: list[int] = []
    used = 0
    for k, size in enumerate(sizes):
        if current and used + size > room:
            groups.append(_group(context, tuple(current), probed, passes, fits=False))
            current, used = [], 0
        current.append(k)
        used += size
    groups.append(_group(context, tuple(current), probed, passes, fits=False))
    return groups


def _group(
    whole: Context, units: tuple[int, ...], probed: tuple[int, ...], passes: str, *, fits: bool
) -> Group:
    context = whole if fits else whole.part(units)
    conditions = [context.full, context.none]
    if passes == "all" and len(units) > 1:
        conditions += [context.without(k) for k, unit in enumerate(units) if unit in probed]
    return Group(units, context, tuple(conditions))


def room_for_units(scorer: Scorer, question: str, answer: Tokens) -> int | None:
    """Tokens that one unit may take at most; None when the scorer has no window."""
    if scorer.max_tokens is None:
        return None
    fixed = scorer.count_tokens(question) + len(answer) + 3 * MARGIN
    return max(MARGIN, scorer.max_tokens - fixed)


def shortlist(context: Context, answer: str, limit: int | None) -> tuple[int, ...]:
    """The units that are worth leaving out: those that share most rare words with the answer.

    A word weighs log(K / number of units that hold it) + 1, and counts once a unit.

    Args:
        context: the evidence.
        answer: the whole answer.
        limit: how many units at most; None: all.

    Returns:
        Unit indices, ascending.
    """
    n = len(context.units)
    if limit is None or n <= limit:
        return tuple(range(n))
    held = [{w.key for w in words(unit.text) if w.is_content} for unit in context.units]
    counts = Counter(key for keys in held for key in keys)
    wanted = {w.key for w in words(answer) if w.is_content}
    weight = {key: math.log(n / counts[key]) + 1 for key in wanted if key in counts}
    scores = [sum(weight.get(key, 0.0) for key in keys & wanted) for keys in held]
    order = sorted(range(n), key=lambda k: (-scores[k], k))
    return tuple(sorted(order[:limit]))
