"""Composition and calibrations against published numbers, dp-accounting and Monte Carlo."""

import math

import numpy as np
import pytest

from algorithms.pricing.demand import link
from algorithms.pricing.noise import (
    Budget,
    hs_add,
    hs_add_delta,
    hs_rep,
    hs_rep_delta,
    kst_gamma,
    kst_zeta,
    loss_bound,
    ridge_floor,
)
from algorithms.primitives import accounting
from audit.claim import GaussianDp, gaussian_delta
from audit.errors import UsageError

LOGISTIC = link("logistic")


def budget(epsilon=1.0, delta=1e-6, calls=1, ridge=0.5, radius=1.0, demand=LOGISTIC):
    return Budget(epsilon, delta, calls, ridge, radius, demand)


def epsilon_of(mu, delta):
    return GaussianDp(mu=mu).epsilon_at(delta)


@pytest.mark.parametrize(
    ("radius", "bound"),
    [(0.5, 1.0291), (1, 1.0991), (2, 1.2698), (5, 1.6173), (8, 1.7668), (20, 1.9274)],
)
def test_how_far_a_replaced_record_moves_a_logistic_gradient(radius, bound):
    assert LOGISTIC.replacement_bound(radius) == pytest.approx(bound, abs=5e-5)


@pytest.mark.parametrize(
    ("radius", "outcome", "bound"), [(1, 1, 2.5981), (1, 0.5, 1.7602), (2, 1, 3.5203)]
)
def test_how_far_a_replaced_record_moves_a_linear_gradient(radius, outcome, bound):
    assert link("linear", outcome).replacement_bound(radius) == pytest.approx(bound, abs=5e-5)


@pytest.mark.parametrize("demand", [LOGISTIC, link("linear", 0.7)])
def test_random_records_never_exceed_the_bounds(demand):
    rng = np.random.default_rng(0)
    theta, one, other = rng.normal(size=(3, 5000, 3))
    for rows, norm in ((theta, 2.0), (one, 1.0), (other, 1.0)):
        rows *= norm * rng.random((5000, 1)) ** 0.1 / np.linalg.norm(rows, axis=1, keepdims=True)
    low = demand.bound - demand.spread
    outcomes = np.where(rng.random((2, 5000)) < 0.5, low, demand.bound)
    gradients = [
        (demand.mean(np.sum(rows * theta, axis=1)) - y)[:, None] * rows
        for rows, y in zip((one, other), outcomes, strict=True)
    ]
    worst = np.linalg.norm(gradients[0] - gradients[1], axis=1).max()
    assert 0.7 * demand.replacement_bound(2.0) < worst <= demand.replacement_bound(2.0)
    assert np.linalg.norm(gradients[0], axis=1).max() <= demand.gradient_bound(2.0)


@pytest.mark.parametrize(
    ("epsilon", "zeta", "gamma", "tight", "label"),
    [
        (0.1, 107.92, 118.6, 86.04, 0.0310),
        (1, 10.958, 12.04, 8.468, 0.3599),
        (5, 2.3330, 2.564, 1.527, 1.904),
    ],
)
def test_noise_of_one_call(epsilon, zeta, gamma, tight, label):
    b = budget(epsilon, ridge=0.5 / epsilon)
    assert b.ridge == pytest.approx(ridge_floor(b))
    assert kst_zeta(b) == pytest.approx(zeta, rel=2e-4)
    assert kst_gamma(b) == pytest.approx(gamma, rel=5e-4)
    assert hs_rep(b) == pytest.approx(tight, rel=2e-4)
    assert hs_rep_delta(b, hs_rep(b)) == pytest.approx(1e-6, rel=1e-6)
    assert epsilon_of(1 / kst_zeta(b), 1e-6) == pytest.approx(label, rel=2e-3)


def test_published_rule_for_ten_calls():
    b = budget(0.5, 5e-7, calls=10, radius=8.0)
    assert b.share == pytest.approx((0.014338, 2.5e-8), rel=5e-5)
    nu = kst_zeta(b)
    assert nu == pytest.approx(841.70, rel=1e-5)
    assert epsilon_of(math.sqrt(10) / nu, 5e-7) == pytest.approx(0.01236, rel=1e-3)
    assert kst_zeta(budget(1.0, 1e-6, calls=10)) == pytest.approx(403.33, rel=1e-5)


def test_adding_a_record():
    assert hs_add_delta(0.5, 0.25, 1, 1, 1) == pytest.approx(0.60763, abs=5e-6)
    assert hs_add_delta(0.5, 0.25, 0.25, 1, 1) == 1
    b = budget(1.0, 1e-6, ridge=1.0, radius=math.inf)
    assert hs_add_delta(1.0, 0.25, 1.0, 1.0, hs_add(b)) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize(("target", "total"), [(0.5, 0.2523), (1, 0.5092), (5, 2.744), (20, 14.96)])
def test_what_the_advanced_rule_really_spends(target, total):
    each = accounting.advanced_share(target, 10, 1e-6)
    spent, delta = accounting.advanced(each, 0.0, 10, 1e-6)
    assert spent == pytest.approx(total, rel=4e-4)
    assert delta == 1e-6
    assert accounting.basic(0.1, 1e-7, 10) == pytest.approx((1.0, 1e-6))


def test_optimal_composition_is_exact():
    """Against the enumeration of all outcomes of ten randomised responses."""
    epsilon, calls = 0.3, 10
    plus, minus = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    for total, delta in accounting.optimal(epsilon, 0.0, calls):
        exact = sum(
            math.comb(calls, k)
            * max(
                0.0,
                plus**k * minus ** (calls - k) - math.exp(total) * plus ** (calls - k) * minus**k,
            )
            for k in range(calls + 1)
        )
        assert delta == pytest.approx(exact, abs=1e-12)
    corner = accounting.optimal(0.3, 0.01, 2)[0]
    assert corner == pytest.approx((0.6, 1 - 0.99**2))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.03988), (0.2, 9.374e-4), (0.5, 6.857e-9)])
def test_gaussian_profile(epsilon, delta):
    assert accounting.gaussian_profile(0.1, epsilon) == pytest.approx(delta, rel=2e-4)


def test_gaussian_parameters_add_in_squares():
    accountant = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    each = [
        accountant.from_gaussian_mechanism(s, value_discretization_interval=1e-3) for s in (2, 3)
    ]
    total = each[0].compose(each[1]).get_delta_for_epsilon(1.0)
    mu = accounting.gaussian_sum(1 / 2, 1 / 3)
    assert gaussian_delta(mu, 1.0) == pytest.approx(total, rel=5e-3)
    assert accounting.gaussian_profile(0.0, 1.0) == 0
    assert accounting.gaussian_profile(math.inf, 1.0) == 1


def test_one_loss_bound_is_an_integral():
    epsilon, offset, width = 0.9, 0.3, 0.4
    r = np.linspace(0, 12, 2_000_001)
    gain = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - offset - width * r)))
    expected = np.trapezoid(r * np.exp(-(r**2) / 2) * gain, r)
    assert accounting.rayleigh_delta(epsilon, offset, width) == pytest.approx(expected, rel=1e-6)


def test_convolved_loss_bounds_against_monte_carlo():
    """Two calls and a Gaussian release; within 5 standard errors, false alarm 6e-7 each."""
    rng, n, width, mu = np.random.default_rng(1), 400_000, 0.5, 0.7
    loss = 2 * 0.1 + width * rng.rayleigh(size=(n, 2)).sum(axis=1)
    loss += rng.normal(mu**2 / 2, mu, n)
    for epsilon in (0.5, 2.0):
        gain = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - loss)))
        found = accounting.loss_bound_delta(epsilon, calls=2, offset=0.1, width=width, mu=mu)
        assert abs(found - gain.mean()) < 5 * gain.std() / math.sqrt(n)


def test_convolution_of_one_call_is_the_closed_form():
    closed = accounting.rayleigh_delta(2.0, 0.2, 0.4)
    tiny = accounting.loss_bound_delta(2.0, calls=1, offset=0.2, width=0.4, mu=1e-6)
    assert closed <= tiny == pytest.approx(closed, rel=2e-3)


def test_eight_calls_of_the_test_market():
    offset, width = loss_bound(budget(calls=8, ridge=5.0, radius=8.0), 12.0)
    found = accounting.loss_bound_epsilon(1e-6, calls=8, offset=offset, width=width)
    assert found == pytest.approx(3.24, abs=5e-3)
    assert epsilon_of(math.sqrt(8) / 12, 1e-6) == pytest.approx(1.0, abs=0.03)


def test_no_answer_is_an_error():
    with pytest.raises(UsageError, match="no noise suffices"):
        hs_add(budget(0.1, 1e-6, ridge=0.3, radius=math.inf))
