"""A scorer without a model: a function says what the next-token distribution is.

Everything above the scorer can be tested exactly on it, without torch: the function sees the text
of the evidence that a condition leaves, so a law such as "the sentence needs passage 2" is a line.

    >>> scorer = TableScorer.from_log_prob(
    ...     lambda question, context, t, tokens: -0.1 if "1931" in context else -5.0)
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..divergence import jensen_shannon, log_softmax
from ..errors import SessionError
from ..perturb import Context
from ..prompt import build_prompt
from ..types import Condition, Tokens, TokenScores
from .base import ScoreRequest, ScorerInfo, ScoringState, not_finite, require_full_first, too_long

LogitFunction = Callable[[str, str, int, Tokens], ArrayLike]
"""(question, context text, token index, answer tokens) -> [V] logits or log-probabilities."""

LogProbFunction = Callable[[str, str, int, Tokens], float]
"""(question, context text, token index, answer tokens) -> log p of that token, nats."""

VOCABULARY = 64
"""Size of the default vocabulary."""


def split_words(text: str, size: int = VOCABULARY) -> Tokens:
    """The default tokenizer: words and single marks, white space before them included.

    Ids are a hash of the token's text, below `size`; white space at the end joins the last token.

    Example:
        >>> split_words("It is 42.").offsets
        ((0, 2), (2, 5), (5, 8), (8, 9))
    """
    offsets = [match.span() for match in re.finditer(r"\s*(?:\w+|[^\w\s])", text)]
    if offsets and offsets[-1][1] < len(text):
        offsets[-1] = (offsets[-1][0], len(text))
    ids = [zlib.crc32(text[a:b].encode("utf-8", "surrogatepass")) % size for a, b in offsets]
    return Tokens(tuple(ids), tuple(offsets))


class TableScorer:
    """Scores by a function instead of a model; exact, deterministic, thread-safe if it is.

    Args:
        function: gives the logits (or log-probabilities) of one answer token, [V]. The context text
            is that of the condition: empty for `none`. An answer that arrives in pieces calls it
            with the tokens known so far, whose offsets are then all `(0, 0)`.
        tokenize: text -> tokens; ids must be below V. None: `split_words`.
        dtype: what the logits are cast to first; `float16` overflows as a model would.
        max_tokens: the window, prompt and answer together; None: no limit.
        epsilon: see `jensen_shannon`.
        name: goes into `info`.
    """

    def __init__(
        self,
        function: LogitFunction,
        *,
        tokenize: Callable[[str], Tokens] | None = None,
        dtype: DTypeLike = np.float64,
        max_tokens: int | None = None,
        epsilon: float | None = None,
        name: str = "table",
    ) -> None:
        self._function = function
        self._tokenize = tokenize or split_words
        self._dtype = np.dtype(dtype)
        self._max_tokens = max_tokens
        self._epsilon = epsilon
        self._info = ScorerInfo(name, "", self._dtype.name, "cpu", "table")

    @classmethod
    def from_log_prob(cls, function: LogProbFunction, **options: Any) -> TableScorer:
        """A scorer from the log-probability of the answer's own token.

        The rest of the probability goes to the next id of the vocabulary of `split_words`, so that
        the divergence of two conditions is that of two coins.

        Args:
            function: gives log p(token) ≤ 0, nats; 0 is certainty.
            options: as for the class, but a tokenizer's ids must be below `VOCABULARY`.
        """

        def logits(question: str, context: str, index: int, tokens: Tokens) -> NDArray[np.float64]:
            row = np.full(VOCABULARY, -np.inf)
            log_prob = float(function(question, context, index, tokens))
            target = tokens.ids[index]
            row[target] = log_prob
            if log_prob < 0:
                row[(target + 1) % VOCABULARY] = np.log(-np.expm1(log_prob))
            return row

        return cls(logits, **options)

    @property
    def info(self) -> ScorerInfo:
        """Name, dtype and mode `table`."""
        return self._info

    @property
    def max_tokens(self) -> int | None:
        """The window, prompt and answer together."""
        return self._max_tokens

    def tokenize(self, text: str) -> Tokens:
        """The answer's tokens."""
        return self._tokenize(text)

    def count_tokens(self, text: str) -> int:
        """How many tokens `text` has."""
        return len(self._tokenize(text))

    def prompt_tokens(self, question: str, context: str) -> int:
        """How many tokens stand in front of the answer."""
        return self.count_tokens(build_prompt(question, context).text)

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """Score whole answers; see `Scorer.score`."""
        results: list[TokenScores] = []
        for request in requests:
            tokens = request.answer
            texts = self._texts(request.question, request.context, request.conditions, len(tokens))
            results.append(
                self._rows(request.question, texts, request.conditions, tokens, 0, len(tokens))
            )
        return results

    def open(
        self, question: str, context: Context, conditions: tuple[Condition, ...]
    ) -> ScoringState:
        """Begin an answer that will arrive in pieces."""
        return _TableState(self, question, context, conditions)

    def _texts(
        self, question: str, context: Context, conditions: tuple[Condition, ...], answer: int
    ) -> list[str]:
        require_full_first(context, conditions)
        texts = [context.render(condition.kept) for condition in conditions]
        if self._max_tokens is not None:
            for condition, text in zip(conditions, texts, strict=True):
                prompt = self.prompt_tokens(question, text)
                if prompt + answer > self._max_tokens:
                    raise too_long(condition, prompt, answer, self._max_tokens)
        return texts

    def _rows(
        self,
        question: str,
        texts: list[str],
        conditions: tuple[Condition, ...],
        tokens: Tokens,
        begin: int,
        end: int,
    ) -> TokenScores:
        shape = (len(conditions), end - begin)
        log_probs = np.zeros(shape, dtype=np.float32)
        jsd = np.zeros(shape, dtype=np.float32)
        for t in range(begin, end):
            full: NDArray[np.float64] | None = None
            for row, (condition, text) in enumerate(zip(conditions, texts, strict=True)):
                with np.errstate(over="ignore"):
                    row_logits = np.asarray(self._function(question, text, t, tokens))
                    logits = row_logits.astype(self._dtype).astype(np.float64)
                values = log_softmax(logits)
                target = tokens.ids[t]
                if np.isnan(values).any() or not np.isfinite(values[target]):
                    raise not_finite(t, condition, float(values[target]), self._dtype.name)
                log_probs[row, t - begin] = values[target]
                if full is None:
                    full = values
                else:
                    jsd[row, t - begin] = jensen_shannon(full, values, epsilon=self._epsilon)
        return TokenScores(conditions, log_probs, jsd, shape[0] * shape[1])


class _TableState:
    """The growing answer of one `TableScorer.open`."""

    def __init__(
        self,
        scorer: TableScorer,
        question: str,
        context: Context,
        conditions: tuple[Condition, ...],
    ) -> None:
        self._scorer = scorer
        self._question = question
        self._context = context
        self._conditions = conditions
        self._ids: tuple[int, ...] = ()
        self._closed = False
        scorer._texts(question, context, conditions, 0)  # pyright: ignore[reportPrivateUsage]

    def extend(self, ids: Sequence[int]) -> TokenScores:
        """Score the next tokens of the answer: [C, len(ids)]."""
        if self._closed:
            raise SessionError("this answer was closed; open a new one")
        begin = len(self._ids)
        known = self._ids + tuple(int(i) for i in ids)
        scorer = self._scorer
        texts = scorer._texts(  # pyright: ignore[reportPrivateUsage]
            self._question, self._context, self._conditions, len(known)
        )
        tokens = Tokens(known, ((0, 0),) * len(known))
        result = scorer._rows(  # pyright: ignore[reportPrivateUsage]
            self._question, texts, self._conditions, tokens, begin, len(known)
        )
        self._ids = known
        return result

    def close(self) -> None:
        """Further calls of `extend` raise SessionError."""
        self._closed = True
