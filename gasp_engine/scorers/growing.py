"""Answers that are scored while they are still being written.

    kept      evidence | lead a0 a1        keys and values of each condition
    pending                        a2      its output is not needed until the next piece is known
    extend([a3, a4, a5])
    run                            a2 a3 a4
    predicts                       a3 a4 a5

So each token is run once however the answer is cut, and no token is run before it is needed.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import SessionError
from ..types import Condition, TokenScores
from .base import too_long
from .evidence import Branch
from .layout import KeyValues
from .model_thread import run_model
from .packed import PackedModel
from .plain import plain_scores
from .plan import Plan, Range
from .readout import Head, read_out


class PackedState:
    """The growing answer of one `open` in the modes that share work.

    Args:
        model: runs the plans.
        head: the output layer.
        lock: held while the model runs.
        evidence: the plan that encoded the evidence.
        kept: keys and values of the evidence's segments, as far as branches see them.
        branches: per condition what stands in front of the answer.
        conditions: the C conditions.
        dtype: of the model, for messages.
        max_tokens: the window.
    """

    def __init__(
        self,
        model: PackedModel,
        head: Head,
        lock: threading.RLock,
        evidence: Plan,
        kept: Mapping[int, KeyValues],
        branches: Sequence[Branch],
        conditions: tuple[Condition, ...],
        dtype: str,
        max_tokens: int | None,
    ) -> None:
        self._model = model
        self._head = head
        self._lock = lock
        self._evidence = evidence
        self._encoded = evidence.tokens
        self._kept = dict(kept)
        self._branches = tuple(branches)
        self._conditions = conditions
        self._dtype = dtype
        self._max_tokens = max_tokens
        self._answer: tuple[int, ...] = ()
        self._grown: list[KeyValues | None] = [None] * len(branches)
        self._closed = False
        with lock:  # all that stands in front of the answer, but the token that predicts its first
            self._encoded += self._run(())[1]

    def extend(self, ids: Sequence[int]) -> TokenScores:
        """Score the next tokens of the answer: [C, len(ids)]."""
        if self._closed:
            raise SessionError("this answer was closed; open a new one")
        more = tuple(int(i) for i in ids)
        if not more:
            return empty_scores(self._conditions)
        for branch, condition in zip(self._branches, self._conditions, strict=True):
            total = len(self._answer) + len(more)
            if self._max_tokens is not None and branch.end + total > self._max_tokens:
                raise too_long(condition, branch.end, total, self._max_tokens)
        log_probs, jsd, computed = run_model(self._model.device, self._score, more)
        self._answer += more
        computed += self._encoded
        self._encoded = 0  # what stands in front was run once: the first piece counts it
        return TokenScores(self._conditions, log_probs, jsd, computed)

    def close(self) -> None:
        """Free the keys and values. Further calls of `extend` raise SessionError."""
        self._closed = True
        self._kept.clear()
        self._grown.clear()

    def _score(self, more: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, int]:
        with self._lock:
            hidden, computed = self._run(more)
            start = len(self._answer)
            log_probs, jsd = read_out(
                hidden, more, self._head, self._conditions, self._dtype, first_token=start
            )
            return log_probs, jsd, computed

    def _run(self, more: tuple[int, ...]) -> tuple[torch.Tensor, int]:
        """Run what is not known yet of each branch, up to the last but one of the tokens `more`.

        Returns:
            The states that predict them, [C, len(more), size], and how many tokens were run.
        """
        plan = Plan()
        given: dict[int, KeyValues] = {}
        moved: list[int] = []
        for index, segment in enumerate(self._evidence.segments):
            sees = tuple(Range(moved[r.segment], r.begin, r.end) for r in segment.sees)
            moved.append(plan.add(segment.tokens, segment.position, sees, given=True))
            if index in self._kept:
                given[moved[-1]] = self._kept[index]
        new: dict[int, Range] = {}
        # Branches whose own tokens are equally many lie side by side: they are attended together.
        for index in sorted(range(len(self._branches)), key=lambda i: len(self._branches[i].lead)):
            branch, grown = self._branches[index], self._grown[index]
            sees = tuple(Range(moved[r.segment], r.begin, r.end) for r in branch.sees)
            tokens = (*branch.lead, *self._answer, *more)[:-1]
            known = grown.tokens if grown is not None else 0
            if grown is not None:
                own = plan.add(tokens[:known], branch.position, sees, given=True)
                given[own] = grown
                sees = (*sees, Range(own, 0, known))
            if known < len(tokens):
                added = plan.add(tokens[known:], branch.position + known, sees)
                new[index] = Range(added, 0, len(tokens) - known)
        rows = [Range(p.segment, len(p) - len(more), len(p)) for _, p in sorted(new.items())]
        hidden, kept = self._model.run(
            plan, rows if more else [], given=given, keep=list(new.values())
        )
        longer: dict[int, KeyValues] = {}  # equal branches share a segment, and what was kept of it
        for index, part in new.items():
            grown, fresh = self._grown[index], kept[part.segment]
            if part.segment not in longer:
                if grown is not None:
                    grown.append(fresh)
                longer[part.segment] = grown or fresh
            self._grown[index] = longer[part.segment]
        return torch.stack(hidden) if hidden else torch.empty(0), plan.tokens


class PlainState:
    """The growing answer of one `open` in mode `plain`: every piece runs whole passes again.

    Args:
        model: a causal language model.
        lock: held while the model runs.
        prompts: per condition the tokens in front of the answer.
        conditions: the C conditions.
        max_tokens: the window.
    """

    def __init__(
        self,
        model: Any,
        lock: threading.RLock,
        prompts: Sequence[Sequence[int]],
        conditions: tuple[Condition, ...],
        max_tokens: int | None,
    ) -> None:
        self._model = model
        self._lock = lock
        self._prompts = tuple(tuple(prompt) for prompt in prompts)
        self._conditions = conditions
        self._max_tokens = max_tokens
        self._answer: tuple[int, ...] = ()
        self._closed = False

    def extend(self, ids: Sequence[int]) -> TokenScores:
        """Score the next tokens of the answer: [C, len(ids)]."""
        if self._closed:
            raise SessionError("this answer was closed; open a new one")
        more = tuple(int(i) for i in ids)
        if not more:
            return empty_scores(self._conditions)
        prompts = [(*prompt, *self._answer) for prompt in self._prompts]
        for prompt, condition in zip(prompts, self._conditions, strict=True):
            if self._max_tokens is not None and len(prompt) + len(more) > self._max_tokens:
                raise too_long(condition, len(prompt), len(more), self._max_tokens)
        with self._lock:
            log_probs, jsd = plain_scores(
                self._model, prompts, more, self._conditions, first_token=len(self._answer)
            )
        self._answer += more
        computed = sum(len(prompt) + len(more) - 1 for prompt in prompts)
        return TokenScores(self._conditions, log_probs, jsd, computed)

    def close(self) -> None:
        """Further calls of `extend` raise SessionError."""
        self._closed = True


def empty_scores(conditions: tuple[Condition, ...]) -> TokenScores:
    """The scores of no tokens: [C, 0]."""
    nothing = np.zeros((len(conditions), 0), dtype=np.float32)
    return TokenScores(conditions, nothing, nothing)
