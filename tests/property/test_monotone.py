"""Bounds move the way that evidence moves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from audit import bounds

COUNTS = st.integers(0, 5_000)
ALPHAS = st.sampled_from([0.2, 0.05, 1e-3, 1e-6])
DELTAS = st.sampled_from([0.0, 1e-6, 1e-3, 0.05])
EPSILONS = st.floats(0.0, 20.0)


@given(COUNTS, COUNTS, ALPHAS, DELTAS)
def test_binomial_epsilon_grows_with_right_and_falls_with_wrong_guesses(
    right: int, wrong: int, alpha: float, delta: float
) -> None:
    trials = 12_000
    here = bounds.binomial_epsilon(right, wrong, alpha, delta=delta, trials=trials)
    more = bounds.binomial_epsilon(right + 1, wrong, alpha, delta=delta, trials=trials)
    less = bounds.binomial_epsilon(right, wrong + 1, alpha, delta=delta, trials=trials)
    assert less <= here + 1e-9
    assert here <= more + 1e-9
    assert 0 <= here <= bounds.LARGEST_EPSILON


@given(COUNTS, COUNTS, DELTAS)
def test_more_certainty_or_a_larger_delta_certify_less(
    right: int, wrong: int, delta: float
) -> None:
    def certified(alpha: float, d: float) -> float:
        return bounds.binomial_epsilon(right, wrong, alpha, delta=d, trials=10_000)

    assert certified(1e-3, delta) <= certified(0.05, delta) + 1e-9
    assert certified(0.05, delta) <= certified(0.05, 0.0) + 1e-9


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=8), DELTAS
)
def test_the_walk_never_certifies_more_than_the_best_of_its_stops(
    table: list[tuple[int, int]], delta: float
) -> None:
    """At every stop the mixture bound is weaker than the naive log odds."""
    rights, wrongs = np.array(table).T
    certified = bounds.ranked_epsilon(rights, wrongs, 0.05, delta=delta, trials=5_000)
    v, w = np.cumsum(rights), np.cumsum(wrongs)
    assert certified <= max(0.0, float(np.max(np.log((v + 0.5) / (w + 0.5)))) + 1.0)
    k, _ = bounds.revealed_allowance(5_000, delta, 0.05)
    if certified == 0:
        return
    wealth = bounds.ranked_log_wealth(np.maximum(v - k, 0.0), w.astype(float), certified)
    assert wealth >= -np.log(0.05) - 1e-6


@given(st.floats(0.001, 0.999), EPSILONS, st.floats(0, 1))
def test_a_pure_bet_never_has_a_positive_mean_under_the_null(
    posterior: float, epsilon: float, share: float
) -> None:
    low, high = special.expit(-epsilon), special.expit(epsilon)
    p = low + share * (high - low)
    bets = np.exp(bounds.log_bets([posterior], [epsilon], 0.0))[:, 0, :, 0]
    assert np.all(bets @ [p, 1 - p] <= 1 + 1e-9)


@given(
    st.lists(st.floats(0.001, 0.999), min_size=1, max_size=6),
    st.floats(0.0, 8.0),
    st.floats(1e-9, 0.5),
    st.integers(0, 2**32 - 1),
)
def test_a_capped_bet_never_has_a_positive_mean_under_the_linear_null(
    posterior: list[float], epsilon: float, delta: float, seed: int
) -> None:
    """For random laws on (side, bin), scaled into P(S) <= e^eps Q(S) + delta both ways."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(len(posterior), 0.3), 2)
    odds = np.exp(epsilon)

    def divergence(share: float) -> float:
        a, b = p * (1 - share) + q * share, q * (1 - share) + p * share
        gains = np.maximum(a - odds * b, 0).sum(), np.maximum(b - odds * a, 0).sum()
        return float(max(gains)) - delta

    share = 0.0
    if divergence(0.0) > 0:
        low, high = 0.0, 0.5
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if divergence(middle) > 0 else (low, middle)
        share = high
    law = np.stack([p * (1 - share) + q * share, q * (1 - share) + p * share]) / 2
    bets = np.exp(bounds.log_bets(posterior, [epsilon], delta))[:, 0]
    assert np.all((bets * law).sum(axis=(1, 2)) <= 1 + 1e-9)
