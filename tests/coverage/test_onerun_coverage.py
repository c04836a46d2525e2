"""Coverage of the bounds of one run, at the boundary of their nulls.

Rows without a tolerance are exact; a row with one fails with probability 1e-4 when its bound is
exactly at its level.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from tests.coverage import onerun
from tests.coverage.laws import smallest
from tests.coverage.test_coverage import check


def test_guesses_keep_their_level() -> None:
    check(onerun.guess_rows((100, 1_000)), 0.045)


def test_the_bound_on_mu_keeps_its_level() -> None:
    check(onerun.mu_rows((100,), 1_000), 0.005)


def test_betting_keeps_its_level_when_canaries_interfere() -> None:
    check(onerun.bet_rows(400), 0.005)


def test_the_mean_of_an_e_value_is_at_most_one() -> None:
    """Laplace sum of 8 coins, noise believed twice too small; false alarm below 1e-6."""
    values = np.exp(onerun.sum_log_e_values(1.0, 2.0, 1.0, 8, 1, 20_000))
    assert values.mean() < 1 + 5 * values.std() / np.sqrt(len(values))
    assert values.std() > 0.1


def test_careless_bounds_would_be_noticed() -> None:
    """Delta ignored, and canaries of one burst taken for independent trials."""
    epsilon, delta, m = 1.0, 1e-2, 1_000
    sure = special.expit(epsilon)
    needed = smallest(lambda v: stats.binom.sf(v - 1, m, sure) <= 0.05, m)
    assert _burst(needed, epsilon, delta, m, 60) > 0.08
    needed = onerun.critical(epsilon, 0.0, m, m // 2, "one-run")
    boxes = stats.binom.rvs(m, 50 * delta, size=2_000, random_state=0)
    right = boxes + stats.binom.rvs(m // 2 - boxes, sure, random_state=1)
    assert np.mean(right >= needed) > 0.2


def _burst(needed: int, epsilon: float, delta: float, m: int, k: int) -> float:
    sure, chance = special.expit(epsilon), m * delta / k
    burst = stats.binom.sf(needed - k - 1, m - k, sure)
    return float(chance * burst + (1 - chance) * stats.binom.sf(needed - 1, m, sure))


@pytest.mark.coverage
def test_guesses_full_grid() -> None:
    check(onerun.guess_rows(), 0.049)


@pytest.mark.coverage
def test_mu_full_grid() -> None:
    check(onerun.mu_rows(), 0.01)


@pytest.mark.coverage
def test_betting_full_grid() -> None:
    check(onerun.bet_rows(6_000), 0.006)
