"""Coverage of the bounds of one run, at the boundary of their nulls.

Rows without a tolerance are exact; a row with one fails with probability 1e-4 when its bound is
exactly at its level.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from tests.coverage import onerun
from tests.coverage.laws import revealed
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


def test_ten_canaries_of_one_sum_carry_more_than_one() -> None:
    """Growth per run, true 2 against claim 1: .12 and .036; 6 standard errors apart."""
    ten, one = (onerun.sum_log_e_values(2.0, 2.0, 1.0, m, 1, 4_000).mean() for m in (10, 1))
    assert ten > 1.5 * one > 0


def test_careless_bounds_would_be_noticed() -> None:
    """Delta ignored, in boxes and in bursts of 60 canaries."""
    epsilon, delta, m, r = 1.0, 1e-2, 1_000, 500
    needed = onerun.critical(epsilon, 0.0, m, r, "one-run")
    assert _burst(needed, epsilon, delta, r, 60) > 0.07
    known, weights = revealed(m, delta)
    boxes = stats.binom.sf(needed - known - 1, r - known, special.expit(epsilon))
    assert weights @ boxes > 0.07


def _burst(needed: int, epsilon: float, delta: float, r: int, k: int) -> float:
    sure, chance = special.expit(epsilon), r * delta / k
    burst = stats.binom.sf(needed - k - 1, r - k, sure)
    return float(chance * burst + (1 - chance) * stats.binom.sf(needed - 1, r, sure))


@pytest.mark.coverage
def test_guesses_full_grid() -> None:
    check(onerun.guess_rows(), 0.049)


@pytest.mark.coverage
def test_mu_full_grid() -> None:
    check(onerun.mu_rows(), 0.01)


@pytest.mark.coverage
def test_betting_full_grid() -> None:
    check(onerun.bet_rows(6_000), 0.006)
