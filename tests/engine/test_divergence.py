"""The Jensen–Shannon divergence against exact values and its laws."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_engine.divergence import LN2, clip_rounding, jensen_shannon, log_softmax
from gasp_engine.errors import NumericalError

logits = st.lists(st.floats(-80, 80), min_size=3, max_size=3)


def by_definition(p, q):
    """In 50 digits."""
    with mpmath.workdps(50):
        p, q = [mpmath.mpf(x) for x in p], [mpmath.mpf(x) for x in q]
        p, q = [x / sum(p) for x in p], [x / sum(q) for x in q]
        total = mpmath.mpf(0)
        for a, b in zip(p, q, strict=True):
            m = (a + b) / 2
            total += (a * mpmath.log(a / m) if a else 0) + (b * mpmath.log(b / m) if b else 0)
        return float(total / 2)


@given(logits, logits)
def test_it_equals_the_definition_in_fifty_digits(a, b):
    found = jensen_shannon(log_softmax(np.array(a)), log_softmax(np.array(b)))
    wanted = by_definition([mpmath.exp(x) for x in a], [mpmath.exp(x) for x in b])
    assert found == pytest.approx(wanted, abs=1e-14)


@given(logits, logits)
def test_it_is_symmetric_bounded_and_zero_for_equals(a, b):
    p, q = log_softmax(np.array(a)), log_softmax(np.array(b))
    assert jensen_shannon(p, q) == pytest.approx(float(jensen_shannon(q, p)), abs=1e-15)
    assert 0 <= jensen_shannon(p, q) <= LN2
    assert jensen_shannon(p, p) == pytest.approx(0, abs=1e-15)


def test_disjoint_distributions_reach_the_bound_without_a_warning():
    a, b = np.array([0.0, -np.inf]), np.array([-np.inf, 0.0])
    assert jensen_shannon(a, b) == LN2


def test_rows_are_taken_over_the_last_axis():
    p = log_softmax(np.random.default_rng(0).normal(size=(4, 5, 7)))
    q = log_softmax(np.random.default_rng(1).normal(size=(4, 5, 7)))
    found = jensen_shannon(p, q)
    assert found.shape == (4, 5)
    assert found[2, 3] == pytest.approx(float(jensen_shannon(p[2, 3], q[2, 3])))


def test_the_named_epsilon_changes_a_little_and_only_when_asked():
    p, q = np.log([0.7, 0.2, 0.1]), np.log([0.1, 0.2, 0.7])
    exact, reproduced = float(jensen_shannon(p, q)), float(jensen_shannon(p, q, epsilon=1e-8))
    assert 0 < abs(exact - reproduced) < 1e-6


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_distribution_raise(bad):
    with pytest.raises(NumericalError, match=r"index \(1,\)"):
        jensen_shannon(np.log([[0.5, 0.5], [0.5, 0.5]]), np.array([[-0.7, -0.7], [bad, -0.7]]))


def test_only_rounding_is_clipped():
    assert clip_rounding(np.array([-1e-9, LN2 + 1e-9]), 1e-6).tolist() == [0.0, LN2]
    with pytest.raises(NumericalError):
        clip_rounding(np.array([0.1, -1e-3]), 1e-6)


def test_log_softmax_survives_large_and_forbidden_logits():
    found = log_softmax(np.array([1e4, 1e4, -np.inf]))
    assert found[:2] == pytest.approx([-LN2, -LN2])
    assert found[2] == -np.inf
    assert np.isnan(log_softmax(np.array([np.nan, 0.0]))).all()
