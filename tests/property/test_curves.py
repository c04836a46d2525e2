"""Curves of all claims: shape, and that trade-off function and profile are one promise."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special

from audit.claim import (
    AnyClaim,
    ApproxDp,
    Claim,
    GaussianDp,
    PureDp,
    RenyiDp,
    ZeroConcentratedDp,
)

EXACT: st.SearchStrategy[AnyClaim] = st.one_of(
    st.builds(PureDp, epsilon=st.floats(0.01, 8)),
    st.builds(ApproxDp, epsilon=st.floats(0.01, 8), delta=st.floats(0, 0.5)),
    st.builds(GaussianDp, mu=st.floats(0.05, 4)),
)
CONVERTED: st.SearchStrategy[AnyClaim] = st.one_of(
    st.builds(ZeroConcentratedDp, rho=st.floats(0.001, 4)),
    st.builds(RenyiDp, order=st.floats(1.1, 64), epsilon=st.floats(0.01, 8)),
)
ALL = EXACT | CONVERTED
RATES = st.floats(0, 1)
GRID = np.unique(np.concatenate([np.linspace(0, 1, 2_001), np.geomspace(1e-12, 1, 2_000)]))


def kinks(claim: AnyClaim) -> np.ndarray:
    """Where pure and approximate curves bend, and where Gaussian ones have any slope."""
    if isinstance(claim, GaussianDp):
        return special.ndtr(np.linspace(-12, 12, 4_001))
    if isinstance(claim, PureDp | ApproxDp):
        rest = 1 - getattr(claim, "delta", 0.0)
        return np.array([rest / (1 + math.exp(claim.epsilon)), rest])
    return np.empty(0)


def profile_of(claim: AnyClaim, epsilon: float) -> float:
    """The profile that the trade-off function implies (Dong, Roth and Su 2022, 2.12)."""
    alarm = np.concatenate([GRID, kinks(claim)])
    return float(np.max(1 - claim.miss_rate(alarm) - math.exp(epsilon) * alarm))


@given(ALL, RATES, RATES, RATES)
def test_trade_off_functions_decrease_and_are_convex(claim, one, other, share) -> None:
    low, high = sorted((one, other))
    middle = share * low + (1 - share) * high
    at_low, at_middle, at_high = claim.miss_rate([low, middle, high]).tolist()
    assert 0 <= at_high <= at_low <= 1
    assert at_low <= 1 - low + 1e-12
    assert at_middle <= share * at_low + (1 - share) * at_high + 1e-9


@given(EXACT, st.floats(0.0, 9.0), st.floats(0.0, 9.0), RATES)
def test_profiles_are_convex_in_the_odds(claim, one, other, share) -> None:
    odds = share * math.exp(one) + (1 - share) * math.exp(other)
    mixed = share * claim.delta_at(one) + (1 - share) * claim.delta_at(other)
    assert claim.delta_at(math.log(odds)) <= mixed + 1e-9


@given(EXACT, st.floats(0.0, 9.0))
def test_profile_and_trade_off_function_are_one_promise(claim, epsilon) -> None:
    assert math.isclose(profile_of(claim, epsilon), claim.delta_at(epsilon), abs_tol=2e-4)


@given(CONVERTED, st.floats(0.0, 9.0))
def test_a_converted_curve_never_promises_more_than_its_profile(claim, epsilon) -> None:
    """The curve is the envelope of 241 lines: between two of them it may promise a little less."""
    last = claim.epsilon_at(1e-9)
    assume(epsilon < last < 60)
    before = max(0.0, epsilon - last / 240)
    assert profile_of(claim, epsilon) <= claim.delta_at(before) + 1e-9


@given(EXACT, RATES)
def test_trade_off_functions_are_their_own_inverse(claim, alarm) -> None:
    """All claims are symmetric: either input may be called left."""
    miss = float(claim.miss_rate(alarm))
    assume(1e-9 < miss < 1 - 1e-9)
    assert math.isclose(float(claim.miss_rate(miss)), alarm, rel_tol=1e-6, abs_tol=1e-9)


@given(EXACT, RATES)
def test_the_envelope_of_the_profile_is_the_trade_off_function(claim, alarm) -> None:
    envelope = float(Claim.miss_rate(claim, alarm))
    exact = float(claim.miss_rate(alarm))
    assert envelope <= exact + 1e-9
    if not isinstance(claim, ApproxDp):  # its lines reach far: they lie a quarter apart
        assert exact - envelope <= 0.02


@given(ALL, st.floats(1e-8, 0.5))
def test_epsilon_at_is_the_smallest_that_has_the_delta(claim, delta) -> None:
    epsilon = claim.epsilon_at(delta)
    assume(math.isfinite(epsilon))
    assert claim.delta_at(epsilon) <= delta
    if epsilon > 1e-6:
        assert claim.delta_at(epsilon * (1 - 1e-6)) >= delta * (1 - 1e-4)
