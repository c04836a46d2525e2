"""What the policy guarantees on one pair: below the theorem, exact for outcomes, a bound else."""

import math

import numpy as np
import pytest

from algorithms.pricing.constants import constants
from algorithms.pricing.guarantee import Guarantee, PairGuarantee, noise_for
from algorithms.pricing.market import market_of, sample_market
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.policy_pairs import null_pair, replacements
from audit.certificate import accountant_epsilon, certified_epsilon
from audit.claim import gaussian_delta
from audit.errors import UsageError
from audit.view import collect


def policy(view="transcript"):
    return PrivatePricing(preset="capped", view=view, accounting="joint", allow_vacuous=True)


def pairs(customer=0):
    public = policy().public
    data = sample_market(public.rounds)
    found = replacements(public, data, customer, "transcript")
    return [*found, null_pair(public, data)]


def of(pair):
    public = policy().public
    markets = market_of(pair.left, public), market_of(pair.right, public)
    return PairGuarantee(public, markets, pair.position)


def test_ladder_of_the_guarantees():
    """Null pair 0 but for the Jacobian; outcome < nobody < replaced < theorem."""
    theorem = policy().claim.epsilon
    nobody, replaced, flipped, null = (accountant_epsilon(policy(), (p,), 1e-6) for p in pairs())
    assert 0 < flipped < nobody < replaced < theorem
    assert null < replaced
    assert not of(pairs()[3]).tree_squares.any()


def test_a_flipped_outcome_is_a_mixture_of_gaussian_mechanisms():
    found, public = of(pairs()[2]), policy().public
    sizes = np.sqrt((1 + public.grid**2) / 2) * math.sqrt(public.cap) / public.nu
    expected = np.mean([gaussian_delta(float(mu), 0.5) for mu in sizes])
    assert found.profile(0.5) == pytest.approx(expected, rel=1e-9)


def test_the_tree_part_is_that_of_the_path():
    """Customer (1, 0) against nobody at price p: entries 1, -p, p^2 of phi phi^T over two."""
    found, public = of(pairs()[0]), policy().public
    p = public.grid
    expected = 9 * (1 + p**2 + p**4) / 4 / public.sigma**2
    np.testing.assert_allclose(found.tree_squares, expected)


@pytest.mark.parametrize("covariance", ["exact", "basic", "advanced"])
@pytest.mark.parametrize("estimator", ["hs_rep", "kst_gamma"])
@pytest.mark.filterwarnings("ignore:the classical Gaussian formula")
def test_noise_by_name_keeps_the_budget(covariance, estimator):
    """Exact names spend their half of it, published ones less."""
    public = constants("working", ridge_mle=60.0)
    changes = {"ridge_mle": 60.0, **noise_for(public, 2.0, 1e-6, covariance, estimator)}
    found = PrivatePricing(changes=changes)
    spent = np.array(found.guarantee.parts)
    assert found.claim.epsilon == pytest.approx(spent.sum())
    for part, exact in zip(spent, (covariance == "exact", estimator == "hs_rep"), strict=True):
        assert part == pytest.approx(1.0, rel=1e-6) if exact else part < 0.8


def test_noise_by_unknown_names_is_refused():
    public = constants("working")
    for names, words in (
        (("tight", "hs_rep"), "one of basic"),
        (("exact", "kst_zeta"), "one of kst_gamma, hs_rep"),
        (("exact", "kst_gamma"), "ridge >= "),
    ):
        with pytest.raises(UsageError, match=words):
            noise_for(public, 2.0, 1e-6, *names)


def test_less_noise_guarantees_less():
    quiet = policy().noise_scaled(0.5)
    pair = pairs()[1]
    assert quiet.exact_profile(pair, 10.0) > policy().exact_profile(pair, 10.0)
    assert quiet.accountant(10.0) == Guarantee(quiet._noisy, 1e-6).profile(10.0)


def test_where_no_profile_is_known():
    assert accountant_epsilon(policy(), (pairs(200)[0],), 1e-6) is None
    with pytest.raises(UsageError, match="customer of the exploration"):
        of(pairs(200)[0])
    with pytest.raises(UsageError, match="view transcript"):
        policy("prices_after").exact_profile(pairs()[0], 1.0)


def certified_share(pair, runs, alpha):
    exact = accountant_epsilon(policy(), (pair,), 1e-6)
    tilt = 1.08 * exact / of(pair).squares.max() - 0.5
    emitted, weights = policy().tilted_run(pair, tilt, runs, np.random.default_rng(1))
    losses = policy().log_likelihood_ratio(collect(emitted, runs), pair)
    return certified_epsilon(losses, weights, alpha, 1e-6) / exact


@pytest.mark.slow
@pytest.mark.parametrize(("which", "share"), [(0, 0.8), (1, 0.8), (2, 0.95)])
def test_certificates_reach_the_accountant(which, share):
    """Above the exact value with probability 5e-4; the others are bounds, looser than exact."""
    assert share <= certified_share(pairs()[which], 500, 5e-4) <= 1
