"""Bounds of one run with many canaries, against enumeration, quadrature and published numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from audit import onerun
from audit.canary_bets import posterior_epsilon, posterior_log_e_value
from audit.claim import ApproxDp, GaussianDp, PureDp, RenyiDp, gaussian_mu
from audit.errors import UsageError
from audit.onerun_power import gaussian_accuracy, laplace_accuracy

MU4 = gaussian_mu(4.0, 1e-5)


def enumerated(right, guesses, canaries, epsilon, delta):
    """The p-value of Steinke et al. by going through every i."""
    law = stats.binom(guesses, special.expit(epsilon))
    tail = law.sf(right - 1)
    steepest = max(
        sum(law.pmf(right - j) for j in range(1, i + 1)) / i for i in range(1, right + 1)
    )
    return min(1.0, tail + 2 * canaries * delta * steepest)


@pytest.mark.parametrize("seed", range(20))
def test_p_value_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    canaries = int(rng.integers(1, 120))
    guesses = int(rng.integers(1, canaries + 1))
    right = int(rng.integers(1, guesses + 1))
    epsilon, delta = rng.uniform(0, 5), 10 ** rng.uniform(-6, -1)
    found = onerun.one_run_p_value(right, guesses, canaries, epsilon, delta)
    assert found == pytest.approx(enumerated(right, guesses, canaries, epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("test", ["one-run", "trade-off"])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
def test_rejected_epsilons_form_an_interval(test, delta):
    grid = np.linspace(0, 6, 200)
    for right in (30, 45, 50):
        kept = [
            onerun.one_run_rejects(right, 50, 100, e, 0.05, delta=delta, test=test) for e in grid
        ]
        end = onerun.one_run_epsilon(right, 50, 100, 0.05, delta=delta, test=test)
        assert kept == [bool(e < end) for e in grid] or end == 0.0


def exact_trade_off(curve, right, guesses, canaries, alpha):
    """The recursion with every step taken."""
    h, total = alpha * (guesses - right) / canaries, alpha * right / canaries
    for i in range(right - 1, -1, -1):
        grown = max(h, curve(min(1.0, total)))
        total, h = total + i / (guesses - i) * (grown - h), grown
        if total + h > guesses / canaries:
            return True
    return False


def test_fewer_steps_lose_next_to_nothing_and_never_reject_more():
    guesses, canaries, alpha = 20_000, 100_000, 0.05
    for right in (11_000, 16_000, 17_500):
        mu = onerun.one_run_mu(right, guesses, canaries, alpha)
        inside, outside = (onerun.blow_down(GaussianDp(mu=mu * f)) for f in (1 - 1e-6, 1.01))
        assert exact_trade_off(inside, right, guesses, canaries, alpha)
        assert not exact_trade_off(outside, right, guesses, canaries, alpha)


def test_curve_of_a_polygon_claim_is_its_trade_off_function():
    x = np.linspace(0, 1, 101)
    for claim in (PureDp(epsilon=1.5), ApproxDp(epsilon=0.7, delta=0.05)):
        found = [onerun.blow_down(claim)(float(v)) for v in x]
        np.testing.assert_allclose(found, claim.miss_rate(1 - x), atol=1e-12)


def test_curve_of_a_gaussian_claim_is_its_trade_off_function():
    x = np.linspace(0, 1, 101)
    found = [onerun.blow_down(GaussianDp(mu=0.8))(float(v)) for v in x]
    np.testing.assert_allclose(found, GaussianDp(mu=0.8).miss_rate(1 - x), atol=1e-12)


def test_curve_of_a_converted_claim_promises_no_more_than_the_claim():
    claim = RenyiDp(order=8.0, epsilon=1.0)
    x = np.linspace(0.01, 0.99, 21)
    found = np.array([onerun.blow_down(claim)(float(v)) for v in x])
    promised = claim.miss_rate(1 - x)
    assert (found <= promised + 1e-6).all()
    assert (found >= 0.7 * promised - 0.02).all()


@pytest.mark.parametrize(
    ("canaries", "laplace", "steinke", "curve"),
    [(1_000, 0.85, 1.46, 2.24), (10_000, 0.955, 2.14, 2.80), (100_000, 0.986, 2.49, 3.12)],
)
def test_median_certificates_of_ideal_canaries(canaries, laplace, steinke, curve):
    """Published medians at alpha .05, within what simulating them leaves open."""
    share = (1 + math.exp(-1)) / 2
    guesses = round(share * canaries)
    right = round(laplace_accuracy(1.0, share) * guesses)
    assert onerun.one_run_epsilon(right, guesses, canaries, 0.05) == pytest.approx(
        laplace, abs=0.01
    )
    found, mus = [], []
    for some in np.unique(np.geomspace(30, canaries / 5, 20).astype(int)):
        hits = int(gaussian_accuracy(MU4, some / canaries) * some)
        found.append(onerun.one_run_epsilon(hits, some, canaries, 0.05, delta=1e-5))
        mus.append(onerun.one_run_mu(hits, some, canaries, 0.05))
    assert max(found) == pytest.approx(steinke, abs=0.1)
    assert GaussianDp(mu=max(mus)).epsilon_at(1e-5) == pytest.approx(curve, abs=0.12)


def test_trade_off_beats_the_delta_term_at_small_alpha():
    """At alpha 1e-3 the additive 2 m delta costs more than the whole level."""
    numbers = (885, 1_000, 10_000, 1e-3)
    old = onerun.one_run_epsilon(*numbers, delta=1e-5)
    new = onerun.one_run_epsilon(*numbers, delta=1e-5, test="trade-off")
    assert new > 1.5 * old > 0


def test_a_million_canaries():
    assert onerun.one_run_epsilon(501_000, 684_000, 10**6, 0.05) == pytest.approx(1.0, abs=0.01)
    assert 2.2 < onerun.one_run_epsilon(15_100, 16_290, 10**6, 0.05, delta=1e-5) < 2.6
    assert 0 < onerun.one_run_mu(180_000, 200_000, 10**6, 0.05) < MU4


@pytest.mark.parametrize("counts", [(3, 2, 5), (-1, 2, 5), (2, 6, 5)])
def test_counts_that_cannot_be(counts):
    with pytest.raises(UsageError, match="0 <= right <= guesses <= canaries"):
        onerun.one_run_epsilon(*counts, 0.05)
    with pytest.raises(UsageError, match="0 <= right <= guesses <= canaries"):
        onerun.one_run_mu(*counts, 0.05)


def test_no_right_guess_certifies_nothing():
    assert onerun.one_run_epsilon(0, 10, 10, 0.05, delta=0.1) == 0
    assert onerun.one_run_epsilon(5, 10, 10, 0.05) == 0
    assert onerun.one_run_mu(5, 10, 10, 0.05) == 0


def test_e_value_against_the_definition():
    rng = np.random.default_rng(2)
    posterior, left = rng.uniform(0.01, 0.99, 50), rng.random(50) < 0.5
    for epsilon in (0.0, 0.4, 2.0, 9.0):
        clipped = np.clip(posterior, special.expit(-epsilon), special.expit(epsilon))
        ratio = np.where(left, posterior / clipped, (1 - posterior) / (1 - clipped))
        found = posterior_log_e_value(posterior, left, [epsilon])
        np.testing.assert_allclose(found, [np.log(ratio).sum()], atol=1e-12)


def test_posterior_certificate_is_the_last_rejected_null():
    posterior = np.full(200, special.expit(2.0))
    left = np.arange(200) < 180
    certified = posterior_epsilon(posterior, left, 0.05, 1.0)
    assert 1.0 < certified < 2.0
    assert posterior_log_e_value(posterior, left, [certified])[0] >= math.log(20)
    assert posterior_log_e_value(posterior, left, [certified * 1.02])[0] < math.log(20)
    assert posterior_epsilon(posterior, ~left, 0.05, 1.0) == 0


@pytest.mark.parametrize("share", [0.05, 0.5, 0.684, 0.9, 1.0])
def test_accuracies_against_quadrature(share):
    """Laplace 1 and Gaussian 1: the clearest share of the canaries."""
    y = np.linspace(-14, 15, 290_001)
    for law, found in (
        (stats.laplace, laplace_accuracy(1.0, share)),
        (stats.norm, gaussian_accuracy(1.0, share)),
    ):
        left, right = law.pdf(y), law.pdf(y - 1)
        order = np.argsort(-np.round(np.abs(np.log(left / right)), 9), kind="stable")
        mass = np.cumsum(((left + right) / 2)[order])
        kept = mass <= share * mass[-1]
        hit = np.maximum(left, right)[order][kept].sum() / (left + right)[order][kept].sum()
        assert found == pytest.approx(hit, abs=2e-3)
