"""Per token -> per sentence: the paper's features and the project's own.

Means over the tokens t of a span y; c is the full context, ∅ none, c∖k the context without unit k;
natural logarithm. Numbers are those of the paper's equations.

    gap       = mean_t [ log p(y_t|y_<t,c) − log p(y_t|y_<t,∅) ]                (8)
    jsd_none  = mean_t JSD( p_t^c ‖ p_t^∅ )                                     (9)
    drop_max  = max_k mean_t [ log p(y_t|y_<t,c) − log p(y_t|y_<t,c∖k) ]        (10)
    jsd_loo_max = max_k mean_t JSD( p_t^c ‖ p_t^{c∖k} )                         (11)
    explained = 1 − surprisal / surprisal_none: the share of the surprisal that the sources explain

When the evidence did not fit the window it was scored in groups of units. A sentence then takes
`surprisal`, `gap` and `jsd_none` from the group that makes it most likely (any group that supports
it is enough), and each unit's drop from the group that holds the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .lexical import LexicalEvidence
from .types import TokenScores

TOP_SHARE = 0.3
"""Share of a span's content tokens that count as its most surprising ones."""


@dataclass(frozen=True, slots=True)
class SpanFeatures:
    """What is known of one span: nats per token where not said otherwise, None if not measured."""

    n_tokens: int
    """Tokens of the span."""
    surprisal: float
    """Mean −log p under the full context."""
    surprisal_none: float
    """Mean −log p without any context."""
    gap: float
    """Eq. 8: `surprisal_none − surprisal`."""
    jsd_none: float | None
    """Eq. 9, in [0, ln 2]; None where the scorer gives no distributions."""
    explained: float
    """1 − surprisal / surprisal_none; at most 1, negative when the sources make it less likely."""
    drop_max: float | None = None
    """Eq. 10; None when no unit was left out (`passes="two"`)."""
    jsd_loo_max: float | None = None
    """Eq. 11."""
    drops: tuple[float | None, ...] = ()
    """Per unit, the mean drop when it is left out; None for a unit that was not probed."""
    jsds: tuple[float | None, ...] = ()
    """Per unit, the mean JSD when it is left out."""
    gap_content: float | None = None
    """Gap over tokens of content words alone; None when the span has none."""
    surprisal_content: float | None = None
    """Surprisal over tokens of content words alone."""
    explained_content: float | None = None
    """`explained` over tokens of content words alone."""
    surprisal_top: float | None = None
    """Mean −log p, under the full context, of the most surprising 30 % of the content tokens, at
    least one; of all tokens where no token is content."""
    n_content: int = 0
    """Content words of the span."""
    novelty: float = 0.0
    """Share of content words that no source holds, in [0, 1]."""
    novel_bigrams: float = 0.0
    """Share of content-word pairs that no source holds, in [0, 1]."""
    overlap: float = 1.0
    """Share of content words that one place in the sources holds, in [0, 1]."""
    numbers_missing: int = 0
    """Numbers that no source holds."""
    numbers_distant: int = 0
    """Numbers that a source holds, but far from where it holds the sentence's other words."""
    names_missing: int = 0
    """Capitalized words that no source holds."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        values = asdict(self)
        values["drops"], values["jsds"] = list(self.drops), list(self.jsds)
        return values


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Token scores of the units that were shown together: all of them, or one window's worth."""

    units: tuple[int, ...]
    """Units of this group by their index in the whole context."""
    scores: TokenScores
    """Rows at least for the group, for no unit, and for each probed unit left out. Conditions
    number the group's units from 0."""

    def drop(self, unit: int) -> np.ndarray | None:
        """[T] log p with the group minus log p without `unit`; None when it was not probed."""
        row = self._row_without(unit)
        log_probs = self.scores.log_probs
        return None if row is None else log_probs[0] - log_probs[row]

    def divergence(self, unit: int) -> np.ndarray | None:
        """[T] JSD of the group against the group without `unit`; None when not probed."""
        row = self._row_without(unit)
        return None if row is None else self.scores.jsd[row]

    def gap(self) -> np.ndarray:
        """[T] log p with the group minus log p without any unit."""
        return self.scores.log_probs[0] - self.scores.log_probs[self.scores.row(())]

    def _row_without(self, unit: int) -> int | None:
        try:
            return self.scores.row([k for k, u in enumerate(self.units) if u != unit])
        except KeyError:
            return None


def span_features(
    groups: Sequence[GroupScores],
    owner: np.ndarray,
    n_spans: int,
    n_units: int,
    content: np.ndarray,
    lexical: Sequence[LexicalEvidence],
) -> list[SpanFeatures | None]:
    """Features of every span of an answer.

    Args:
        groups: token scores; one group unless the evidence did not fit the window.
        owner: [T] index of the span that owns each token.
        n_spans: S.
        n_units: K.
        content: [T] bool, tokens of content words.
        lexical: per span, what it says that the sources do not.

    Returns:
        One entry a span; None for a span that owns no token.
    """
    rows: list[SpanFeatures | None] = []
    for s in range(n_spans):
        own = np.flatnonzero(owner == s)
        rows.append(_one(groups, own, n_units, content, lexical[s]) if own.size else None)
    return rows


def _one(
    groups: Sequence[GroupScores],
    own: np.ndarray,
    n_units: int,
    content: np.ndarray,
    lexical: LexicalEvidence,
) -> SpanFeatures:
    best = max(groups, key=lambda g: float(g.scores.log_probs[0, own].sum(dtype=np.float64)))
    scores = best.scores
    none = scores.row(())
    surprise = -scores.log_probs[0, own].astype(np.float64)
    surprise_none = -scores.log_probs[none, own].astype(np.float64)
    drops: list[float | None] = [None] * n_units
    jsds: list[float | None] = [None] * n_units
    for group in groups:
        for unit in group.units:
            drop, divergence = group.drop(unit), group.divergence(unit)
            if drop is not None and divergence is not None:
                drops[unit] = float(drop[own].mean(dtype=np.float64))
                jsds[unit] = float(divergence[own].mean(dtype=np.float64))
    known = [d for d in drops if d is not None]
    known_jsd = [d for d in jsds if d is not None]
    is_content = content[own]
    with_content = bool(is_content.any())
    ranked = np.sort(surprise[is_content] if with_content else surprise)
    n_top = max(1, round(TOP_SHARE * ranked.size))
    return SpanFeatures(
        n_tokens=int(own.size),
        surprisal=float(surprise.mean()),
        surprisal_none=float(surprise_none.mean()),
        gap=float((surprise_none - surprise).mean()),
        jsd_none=float(scores.jsd[none, own].mean(dtype=np.float64)),
        explained=explained(float(surprise.sum()), float(surprise_none.sum())),
        drop_max=max(known) if known else None,
        jsd_loo_max=max(known_jsd) if known_jsd else None,
        drops=tuple(drops),
        jsds=tuple(jsds),
        gap_content=float((surprise_none - surprise)[is_content].mean()) if with_content else None,
        surprisal_content=float(surprise[is_content].mean()) if with_content else None,
        explained_content=explained(
            float(surprise[is_content].sum()), float(surprise_none[is_content].sum())
        )
        if with_content
        else None,
        surprisal_top=float(ranked[-n_top:].mean()),
        n_content=lexical.n_content,
        novelty=lexical.novelty,
        novel_bigrams=lexical.novel_bigrams,
        overlap=lexical.overlap,
        numbers_missing=len(lexical.missing_numbers),
        numbers_distant=len(lexical.distant_numbers),
        names_missing=len(lexical.missing_names),
    )


def explained(surprisal: float, surprisal_none: float) -> float:
    """1 − surprisal / surprisal_none, held to [−1, 1]; 0 when nothing was there to explain.

    >>> explained(1.0, 4.0)
    0.75
    """
    if surprisal_none < 1e-6:
        return 0.0
    return float(np.clip(1.0 - surprisal / surprisal_none, -1.0, 1.0))
