"""Claims against closed forms, dp-accounting and their own duals."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, optimize, stats

from audit.claim import (
    AnyClaim,
    ApproxDp,
    GaussianDp,
    PureDp,
    RenyiDp,
    ZeroConcentratedDp,
    gaussian_delta,
    gaussian_mu,
)
from audit.claim_text import parse_claim
from audit.errors import UsageError

CLAIMS: list[AnyClaim] = [
    PureDp(epsilon=0.1),
    PureDp(epsilon=3.0),
    ApproxDp(epsilon=1.0, delta=1e-5),
    ApproxDp(epsilon=0.5, delta=0.1),
    GaussianDp(mu=0.268),
    GaussianDp(mu=2.0),
    ZeroConcentratedDp(rho=0.1),
    RenyiDp(order=8.0, epsilon=1.0),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_trade_off_curve_is_convex_decreasing_and_below_the_diagonal(claim: AnyClaim) -> None:
    alarm = np.linspace(0, 1, 401)
    miss = claim.miss_rate(alarm)
    assert np.all(np.diff(miss) <= 1e-12)
    assert np.all(np.diff(miss, 2) >= -1e-9)
    assert np.all(miss <= 1 - alarm + 1e-12)
    assert np.all(miss >= 0)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_profile_is_decreasing_and_consistent_with_the_curve(claim: AnyClaim) -> None:
    """Duality: 1 - f(a) - e^eps a never exceeds delta(eps), and comes close to it somewhere."""
    epsilons = np.linspace(0, 4, 21)
    deltas = np.array([claim.delta_at(float(e)) for e in epsilons])
    assert np.all(np.diff(deltas) <= 1e-12)
    alarm = np.unique(np.concatenate([np.geomspace(1e-12, 1, 4001), np.linspace(0, 1, 2001)]))
    miss = claim.miss_rate(alarm)
    for e, delta in zip(epsilons, deltas, strict=True):
        gap = np.max(1 - miss - math.exp(e) * alarm)
        if isinstance(claim, ZeroConcentratedDp | RenyiDp):  # the curve is an envelope of 241 lines
            assert gap <= delta + 1e-3
        else:
            assert gap <= delta + 1e-9
            assert gap == pytest.approx(max(delta, 0), abs=2e-3)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("delta", [0.11, 1e-3, 2e-5])
def test_epsilon_at_is_the_inverse_of_delta_at(claim: AnyClaim, delta: float) -> None:
    epsilon = claim.epsilon_at(delta)
    if math.isinf(epsilon):
        assert isinstance(claim, ApproxDp)
        assert delta < claim.delta
        return
    assert claim.delta_at(epsilon) <= delta
    if epsilon > 0:
        assert claim.delta_at(epsilon * (1 - 1e-9)) > delta * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.99, 1.0, 3.0])
def test_profile_of_the_box_by_enumeration_of_its_four_outcomes(epsilon: float) -> None:
    claim = ApproxDp(epsilon=1.0, delta=0.01)
    s = 1 / (1 + math.exp(-1.0))
    left = np.array([0.01, 0.99 * s, 0.99 * (1 - s), 0.0])
    right = left[::-1]
    expected = np.maximum(0, left - math.exp(epsilon) * right).sum()
    assert claim.delta_at(epsilon) == pytest.approx(expected, abs=1e-15)
    assert claim.delta_at(700.0) == 0.01


@pytest.mark.parametrize("mu", [0.05, 0.268, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 5.0])
def test_gaussian_profile_against_quadrature(mu: float, epsilon: float) -> None:
    def gain(x: float) -> float:
        return stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x)

    expected, _ = integrate.quad(gain, epsilon / mu + mu / 2, epsilon / mu + mu / 2 + 20)
    assert gaussian_delta(mu, epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_gaussian_profile_against_dp_accounting() -> None:
    law = pld.from_gaussian_mechanism(1 / 0.7, value_discretization_interval=1e-4)
    for epsilon in (0.1, 1.0, 2.0):
        accounted = law.get_delta_for_epsilon(epsilon)
        assert GaussianDp(mu=0.7).delta_at(epsilon) == pytest.approx(accounted, rel=1e-3)


def test_the_standard_deviation_of_the_exact_gaussian_mechanism() -> None:
    assert 1 / gaussian_mu(1.0, 1e-5) == pytest.approx(3.730632, abs=1e-6)
    assert gaussian_delta(gaussian_mu(1.0, 1e-5), 1.0) == pytest.approx(1e-5, rel=1e-9)
    assert GaussianDp(mu=4 * gaussian_mu(1, 1e-5)).epsilon_at(1e-5) > 4


def test_gaussian_claims_hold_at_extreme_parameters() -> None:
    assert gaussian_delta(1e-3, 50.0) == 0.0
    assert gaussian_delta(40.0, 0.0) == pytest.approx(1.0)
    assert np.isfinite(gaussian_delta(1.0, 190.0))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_zcdp_profile_is_implied_by_the_best_renyi_order(epsilon: float) -> None:
    def bound(log_order: float) -> float:
        a = 1 + math.exp(log_order)
        log_delta = (a - 1) * (0.2 * a - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)
        return min(0.0, log_delta)

    best = optimize.minimize_scalar(bound, bounds=(-4, 10), method="bounded").fun
    claim = ZeroConcentratedDp(rho=0.2)
    assert claim.delta_at(epsilon) <= math.exp(best) * 1.01
    assert claim.delta_at(epsilon) >= GaussianDp(mu=math.sqrt(0.4)).delta_at(epsilon)


def test_rdp_profile_covers_a_mechanism_that_meets_it() -> None:
    """A Gaussian with mu is (a, a mu^2 / 2)-RDP: its exact profile lies below the converted one."""
    for order in (2.0, 8.0, 64.0):
        claim = RenyiDp(order=order, epsilon=order * 0.5**2 / 2)
        for epsilon in (0.1, 1.0, 2.0):
            assert claim.delta_at(epsilon) >= gaussian_delta(0.5, epsilon)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_points_lie_on_the_profile(claim: AnyClaim) -> None:
    assert claim.points()
    for epsilon, delta in claim.points():
        assert epsilon > 0
        assert delta >= claim.delta_at(epsilon) - 1e-15


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("eps=1", PureDp(epsilon=1.0)),
        ("epsilon = 2 , delta = 1e-6", ApproxDp(epsilon=2.0, delta=1e-6)),
        ("eps=1,delta=0", PureDp(epsilon=1.0)),
        ("mu=.5", GaussianDp(mu=0.5)),
        ("rho=.1", ZeroConcentratedDp(rho=0.1)),
        ("order=8,eps=1", RenyiDp(order=8.0, epsilon=1.0)),
    ],
)
def test_parse_claim(text: str, claim: AnyClaim) -> None:
    assert parse_claim(text) == claim


def test_parse_claim_keeps_its_context() -> None:
    claim = parse_claim("eps=1", view="actions", relation="replace-one", unit="user")
    assert (claim.view, claim.relation, claim.unit) == ("actions", "replace-one", "user")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eps",
        "eps=",
        "eps=one",
        "sigma=1",
        "eps=1,mu=2",
        "delta=1e-5",
        "eps=-1",
        "eps=0",
        "eps=nan",
        "eps=inf",
        "eps=1,delta=1",
        "eps=1,delta=-1e-9",
        "order=1,eps=1",
        "order=inf,eps=1",
        "mu=0",
    ],
)
def test_parse_claim_refuses(text: str) -> None:
    with pytest.raises(UsageError, match="claim"):
        parse_claim(text)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_claims_survive_json(claim: AnyClaim) -> None:
    assert msgspec.json.decode(msgspec.json.encode(claim), type=AnyClaim) == claim


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (PureDp(epsilon=np.log(3.0)), PureDp(epsilon=math.log(3.0))),
        (ApproxDp(epsilon=1, delta=np.float32(0.5)), ApproxDp(epsilon=1.0, delta=0.5)),
        (GaussianDp(mu=np.int64(2)), GaussianDp(mu=2.0)),
        (ZeroConcentratedDp(rho=np.float64(0.5)), ZeroConcentratedDp(rho=0.5)),
        (RenyiDp(order=np.float64(2), epsilon=1), RenyiDp(order=2.0, epsilon=1.0)),
    ],
    ids=str,
)
def test_numbers_of_other_libraries_become_plain_ones(given: AnyClaim, plain: AnyClaim) -> None:
    assert msgspec.json.encode(given) == msgspec.json.encode(plain)
    assert given == plain


@pytest.mark.parametrize("value", ["1", None, 1j, np.array([1.0]), 10**400, math.nan])
def test_what_is_no_number_is_refused(value: Any) -> None:
    for make in (
        lambda: PureDp(epsilon=value),
        lambda: ApproxDp(epsilon=1.0, delta=value),
        lambda: RenyiDp(order=value, epsilon=1.0),
    ):
        with pytest.raises(UsageError, match="got"):
            make()
