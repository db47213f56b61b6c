"""How far two next-token distributions lie apart, computed from their log-probabilities.

    JSD(P‖Q) = ½ KL(P‖M) + ½ KL(Q‖M),  M = ½ (P + Q),  in [0, ln 2] nats

log M is logaddexp(log P, log Q) − ln 2, which needs no epsilon: where P and Q are both 0 their
terms are 0, and M is never 0 where one of them is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import NumericalError

LN2 = float(np.log(2.0))
"""Upper bound of the divergence, nats."""

Floats = NDArray[np.floating[Any]]


def log_softmax(logits: Floats) -> NDArray[np.float64]:
    """log p = logits − log Σ exp(logits) over the last axis, in double precision.

    Args:
        logits: [..., V]; −inf stands for probability 0.

    Returns:
        [..., V] float64, nats. A row with NaN, +inf or nothing but −inf comes out as NaN; it is for
        the caller, who knows the token and the condition, to raise.
    """
    values = np.asarray(logits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        shifted = values - values.max(axis=-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def jensen_shannon(
    log_p: Floats, log_q: Floats, *, epsilon: float | None = None
) -> NDArray[np.float64]:
    """Jensen–Shannon divergence of two families of distributions.

    Args:
        log_p: [..., V] log-probabilities, nats; −inf is allowed.
        log_q: [..., V], the same shape.
        epsilon: None is exact. A number is added to the mixture and to Q inside their logarithms;
            `1e-8` reproduces figures made that way, and nothing else should use it.

    Returns:
        [...] float64, nats in [0, ln 2]; only rounding errors are clipped. 0 where P equals Q.

    Raises:
        NumericalError: a value lies outside the bounds by more than rounding, or is not finite.

    Example:
        >>> p = np.log([0.5, 0.5])
        >>> round(float(jensen_shannon(p, p)), 6)
        0.0
        >>> with np.errstate(divide="ignore"):
        ...     bound = jensen_shannon(np.log([1.0, 0.0]), np.log([0.0, 1.0]))
        >>> round(float(bound), 6)
        0.693147
    """
    lp, lq = np.asarray(log_p, dtype=np.float64), np.asarray(log_q, dtype=np.float64)
    p, q = np.exp(lp), np.exp(lq)
    if epsilon is None:
        with np.errstate(invalid="ignore"):
            log_m = np.logaddexp(lp, lq) - LN2
        log_q_used = lq
    else:
        log_m = np.log(0.5 * (p + q) + epsilon)
        log_q_used = np.log(q + epsilon)
    with np.errstate(invalid="ignore"):
        terms_p = np.where(p > 0, p * (lp - log_m), 0.0)
        terms_q = np.where(q > 0, q * (log_q_used - log_m), 0.0)
    values = 0.5 * (terms_p.sum(axis=-1) + terms_q.sum(axis=-1))
    nan = np.isnan(lp).any(axis=-1) | np.isnan(lq).any(axis=-1)
    return clip_rounding(np.where(nan, np.nan, values), 1e-6 + (epsilon or 0.0) * lp.shape[-1])


def clip_rounding(values: Floats, tolerance: float) -> NDArray[np.float64]:
    """Bring divergences that rounding put outside [0, ln 2] back to the bounds.

    Args:
        values: [...] nats.
        tolerance: how far outside still counts as rounding.

    Raises:
        NumericalError: a value lies further outside, or is not finite; names it and its place.
    """
    wide = np.asarray(values, dtype=np.float64)
    bad = ~((wide >= -tolerance) & (wide <= LN2 + tolerance))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise NumericalError(
            f"a Jensen–Shannon divergence is {wide[bad].flat[0]!r} at index {place}, expected a "
            f"value in [0, ln 2]; the log-probabilities it was made from are not normalized"
        )
    return np.clip(wide, 0.0, LN2)
