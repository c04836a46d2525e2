"""More right guesses, or less certainty, never certify less; more wrong ones never more."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from audit import bounds
from audit.measured import log_odds_lower
from audit.onerun import one_run_epsilon, one_run_mu

TABLES = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=6)
ALPHAS = st.tuples(st.floats(1e-9, 0.4), st.floats(1e-9, 0.4)).map(sorted)
DELTAS = st.sampled_from([0.0, 1e-6, 1e-3, 0.02])


@given(TABLES, st.integers(0, 5), ALPHAS, DELTAS)
def test_the_ranked_walk(table, where, alphas, delta) -> None:
    rights, wrongs = np.array(table).T
    trials = 3_000

    def certified(extra_right: int = 0, extra_wrong: int = 0, alpha: float = 0.05) -> float:
        row = np.arange(len(table)) == where % len(table)
        return bounds.ranked_epsilon(
            rights + extra_right * row,
            wrongs + extra_wrong * row,
            alpha,
            delta=delta,
            trials=trials,
        )

    assert certified(extra_wrong=1) <= certified() + 1e-6
    assert certified() <= certified(extra_right=1) + 1e-6
    assert certified(alpha=alphas[0]) <= certified(alpha=alphas[1]) + 1e-6


@given(st.integers(0, 400), st.integers(1, 400), ALPHAS)
def test_clopper_pearson_and_mu(right, wrong, alphas) -> None:
    trials = right + wrong
    few, many = alphas
    lower, upper = bounds.clopper_pearson_lower, bounds.clopper_pearson_upper
    for alpha in alphas:
        assert lower(right, trials, alpha) <= lower(right + 1, trials, alpha)
        assert upper(right, trials, alpha) <= upper(right + 1, trials, alpha)
        assert lower(right, trials, alpha) <= upper(right, trials, alpha)
        mu = bounds.gaussian_mu_lower(right, trials, alpha)
        assert mu <= bounds.gaussian_mu_lower(right + 1, trials, alpha)
    assert lower(right, trials, few) <= lower(right, trials, many)
    assert upper(right, trials, few) >= upper(right, trials, many)


@given(st.integers(0, 60), st.integers(1, 60), st.integers(0, 60), ALPHAS, DELTAS)
def test_one_run(right, wrong, unguessed, alphas, delta) -> None:
    guesses = right + wrong
    canaries = guesses + unguessed
    few, many = alphas

    def certified(v: int, alpha: float) -> float:
        return one_run_epsilon(v, guesses, canaries, alpha, delta=delta)

    assert certified(right, few) <= certified(right, many) + 1e-6
    assert certified(right, many) <= certified(right + 1, many) + 1e-6
    mu = one_run_mu(right, guesses, canaries, many)
    assert one_run_mu(right, guesses, canaries, few) <= mu + 1e-6
    assert mu <= one_run_mu(right + 1, guesses, canaries, many) + 1e-6


@given(st.integers(0, 400), st.integers(0, 400), ALPHAS, st.booleans())
def test_what_a_rule_measures(right, wrong, alphas, stopped) -> None:
    def lower(v: int, w: int, alpha: float) -> float:
        return log_odds_lower(v, w, alpha, stopped=stopped)

    here = lower(right, wrong, alphas[1])
    assert lower(right, wrong, alphas[0]) <= here + 1e-6
    assert lower(right, wrong + 1, alphas[1]) <= here + 1e-6
    assert here <= lower(right + 1, wrong, alphas[1]) + 1e-6


@given(TABLES, ALPHAS, DELTAS, st.integers(0, 2**32 - 1))
def test_looking_longer_or_with_less_certainty_never_certifies_less(
    table, alphas, delta, seed
) -> None:
    rng = np.random.default_rng(seed)
    posterior = np.sort(rng.uniform(0.02, 0.98, len(table)))
    blocks = rng.multinomial(200, np.full(2 * len(table), 0.5 / len(table)), size=3)
    prefixes = np.cumsum(blocks.reshape(3, 2, -1), axis=0)

    def certified(looks: int, alpha: float) -> float:
        return bounds.anytime_epsilon(
            prefixes[:looks], posterior, alpha, delta=delta, confronted=1.0
        )

    assert certified(1, alphas[1]) <= certified(3, alphas[1])
    assert certified(3, alphas[0]) <= certified(3, alphas[1])
