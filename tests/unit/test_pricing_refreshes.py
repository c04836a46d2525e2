"""The covariance seen at refreshes only, and what prices tell of it: exact scores and inversion."""

import math

import numpy as np
import pytest
from scipy import optimize, special

from algorithms.pricing.market import market_of, probed, sample_market, truth
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.price_attack import period_of, refreshes
from algorithms.pricing.private_cov import PrivateCov
from algorithms.pricing.refresh_score import (
    common_nodes,
    recover_both,
    refresh_factor,
    refresh_ratio,
)
from algorithms.pricing.rounds import Optimiser
from audit.errors import UsageError


@pytest.mark.parametrize(
    ("prefixes", "factor"),
    [
        ([2**k for k in range(10)], 10),
        ([3 * 2**k for k in range(9)], 4.5),
        ([2**k - 1 for k in range(1, 11)], 2.929),
        ([5, 11, 20, 43, 90, 170, 355, 700], 2.45),
    ],
)
def test_factor_of_refreshes(prefixes, factor):
    assert refresh_factor(prefixes) == pytest.approx(factor, abs=2e-3)


def test_seeing_everything_is_seeing_the_path():
    assert refresh_factor(range(1, 32)) == pytest.approx(5)
    np.testing.assert_array_equal(common_nodes([3, 6, 7]), [[2, 0, 0], [0, 2, 2], [0, 2, 3]])


def test_ratio_at_refreshes_is_gaussian():
    """Means and variances of 5,000 plays a side at 5 standard errors; false alarm 3e-6."""
    cov, prefixes, n = PrivateCov(records=31, epsilon=3.0), [5, 11, 20, 31], 5_000
    pair, at = cov.pairs()[0], np.array(prefixes) - 1
    exact = [cov._exact(cov._outer(side))[at] for side in (pair.left, pair.right)]
    square = refresh_factor(prefixes) * cov.mu(pair) ** 2 / 5
    assert square < cov.mu(pair) ** 2
    for side, sign in ((pair.left, 1), (pair.right, -1)):
        sums = cov.run(side, n, np.random.default_rng(1))["sums"][:, at]
        ratio = refresh_ratio(sums, tuple(exact), cov._variance()[0], prefixes)
        assert abs(ratio.mean() - sign * square / 2) < 5 * math.sqrt(square / n)
        assert abs(ratio.var() / square - 1) < 5 * math.sqrt(2 / n)


def optimistic_price(x, theta, inverse, bonus):
    def lost(p):
        phi = np.concatenate([x, -p * x]) / math.sqrt(2)
        return -p * (special.expit(phi @ theta) + bonus * math.sqrt(phi @ inverse @ phi))

    grid = np.linspace(0.01, 1.5, 300)
    near = grid[np.argmin([lost(p) for p in grid])]
    bounds = (near - 0.01, near + 0.01)
    return optimize.minimize_scalar(lost, bounds=bounds, options={"xatol": 1e-12}).x


def test_continuous_prices_reveal_estimate_and_matrix():
    """Theta to 2e-5 and the visible part of the inverse, from a start nearby."""
    rng, bonus, theta = np.random.default_rng(3), 0.5, truth(2) + np.array([0.2, -0.3, 0.4, 0.1])
    root = rng.normal(size=(40, 4))
    inverse = np.linalg.inv(4 * np.eye(4) + root.T @ root)
    angle = np.linspace(0.1, 1.45, 40)
    norms = np.resize([1.0, 0.8, 0.65], 40)
    x = norms[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    prices = np.array([optimistic_price(row, theta, inverse, bonus) for row in x])
    found, matrix = recover_both(x, prices, bonus, truth(2), np.eye(4) / 40)
    visible = inverse.copy()
    visible[:2, 2:] = (inverse[:2, 2:] + inverse[:2, 2:].T) / 2
    visible[2:, :2] = visible[:2, 2:].T
    np.testing.assert_allclose(found, theta, atol=2e-5)
    np.testing.assert_allclose(matrix, visible, rtol=0, atol=1e-3 * np.abs(visible).max())
    with pytest.raises(UsageError, match="at least 13 interior prices, got 5"):
        recover_both(x[:5], prices[:5], bonus, truth(2), np.eye(4))


def test_periodic_fakes_show_refreshes():
    """Prices without a ceiling: the rounds of all refreshes after the exploration's end."""
    policy = PrivatePricing(preset="lone", probes="cycle", allow_vacuous=True)
    public = policy.public
    market = market_of(probed(sample_market(public.rounds), "cycle", public.explore), public)
    assert period_of(public, market) == 8
    assert period_of(public, market_of(sample_market(public.rounds), public)) == 0
    rng, start = np.random.default_rng(0), public.explore
    prices = rng.uniform(0.3, 0.6, size=(3, public.rounds))
    tables = rng.uniform(0.3, 0.6, size=(3, 3, 8))
    changes = np.array([start, start + 9, start + 20])
    for t in range(start, public.rounds):
        which = np.searchsorted(changes, t, side="right") - 1
        prices[:2, t] = tables[which, :2, t % 8]
    prices[2, start:] = [Optimiser(public, 1).prices(x)[0] for x in market.contexts[start:]]
    found = refreshes(public, market, prices, 8)
    assert [refresh.records for refresh in found] == changes.tolist()
    assert all(refresh.rows.tolist() == [0, 1] for refresh in found)
