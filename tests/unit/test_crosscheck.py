"""Bounds for comparison against scipy and brute force."""

from __future__ import annotations

import math

import pytest
from scipy import special, stats

from audit import bounds
from audit.crosscheck import fixed_guesses_epsilon, two_sided_epsilon
from audit.errors import UsageError


def test_two_sided_epsilon_is_the_log_ratio_of_two_exact_intervals() -> None:
    counts, guess, alpha = [[30, 20, 50], [80, 15, 5]], [-1, 0, 1], 0.04
    low = stats.binomtest(80, 100).proportion_ci(1 - alpha / 2, "exact").low
    high = stats.binomtest(30, 100).proportion_ci(1 - alpha / 2, "exact").high
    low_left = stats.binomtest(50, 100).proportion_ci(1 - alpha / 2, "exact").low
    high_left = stats.binomtest(5, 100).proportion_ci(1 - alpha / 2, "exact").high
    best = max(math.log((low - 0.01) / high), math.log((low_left - 0.01) / high_left))
    assert two_sided_epsilon(counts, guess, alpha, 0.01) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("counts", [[[0, 0], [0, 0]], [[5, 5], [5, 5]], [[10, 0], [0, 0]]])
def test_two_sided_epsilon_of_nothing_is_zero(counts: list[list[int]]) -> None:
    assert two_sided_epsilon(counts, [1, -1], 0.05, 0.0) == 0.0


@pytest.mark.parametrize(("right", "guesses"), [(80, 100), (9, 9), (60, 100)])
def test_fixed_guesses_without_delta_are_the_binomial_bound(right: int, guesses: int) -> None:
    found = fixed_guesses_epsilon(right, guesses, 0.05, delta=0.0, trials=200)
    assert found == pytest.approx(bounds.binomial_epsilon(right, guesses - right, 0.05), abs=1e-7)


def test_fixed_guesses_solve_the_mixture_by_brute_force() -> None:
    right, guesses, trials, delta, alpha = 45, 50, 120, 0.02, 0.05
    epsilon = fixed_guesses_epsilon(right, guesses, alpha, delta=delta, trials=trials)
    p_value = 0.0
    for k in range(trials + 1):
        known = min(k, guesses)
        tail = stats.binom.sf(right - known - 1, guesses - known, special.expit(epsilon))
        p_value += stats.binom.pmf(k, trials, delta) * tail
    assert p_value == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize(("delta", "trials"), [(1e-5, 1_000), (1e-2, 1_000), (1e-2, 100_000)])
def test_mixing_is_never_worse_than_writing_off(delta: float, trials: int) -> None:
    right, guesses = round(0.08 * trials), round(0.1 * trials)
    mixed = fixed_guesses_epsilon(right, guesses, 0.05, delta=delta, trials=trials)
    off = bounds.binomial_epsilon(right, guesses - right, 0.05, delta=delta, trials=trials)
    assert mixed >= off > 0


def test_more_right_guesses_than_guesses_are_refused() -> None:
    with pytest.raises(UsageError, match="right <= guesses <= trials"):
        fixed_guesses_epsilon(5, 4, 0.05, delta=0.0, trials=10)
