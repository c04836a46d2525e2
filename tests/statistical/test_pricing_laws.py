"""Pricing mechanisms as they are drawn, against their exact laws. Seeds are fixed."""

import math

import numpy as np
import pytest

from algorithms.broken import pricing_mle as broken
from algorithms.broken.pricing_softmax import SoftmaxClipNorm
from algorithms.pricing.linucb import PrivateLinUcb
from algorithms.pricing.noise import hs_add_delta
from algorithms.pricing.nonparametric import CellPricing
from algorithms.pricing.one_shot import AnalyzeGauss, LaplaceTree
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.private_erm import ApproximateMinima, GammaPerturbation
from algorithms.pricing.private_mle import PrivateMle
from algorithms.pricing.uniform_price import UniformPrice
from algorithms.primitives.objective_law import log_density, on_boundary
from audit.certificate import certified_epsilon
from audit.claim import GaussianDp
from audit.mechanism import play
from audit.view import collect

# Two-sided standard normal tail beyond 5: false alarm 5.7e-7 a comparison.
FIVE = 5.0
TRIALS = 8000
LOSS = 0.2


def ratios(mechanism, pair, n=TRIALS, seed=21):
    rng = np.random.default_rng(seed)
    views = [play(mechanism, side, n, rng) for side in (pair.left, pair.right)]
    return [mechanism.log_likelihood_ratio(view, pair) for view in views]


@pytest.mark.parametrize(
    "mechanism",
    [
        PrivateMle(records=12, epsilon=4.0),
        PrivateMle(records=12, epsilon=4.0, radius=0.6),
        PrivateMle(records=12, epsilon=8.0, radius=1.0, times=(6, 12)),
        PrivateMle(records=12, epsilon=4.0, radius=1.0, demand="linear"),
        PrivateMle(records=12, epsilon=4.0, calibration="kst_zeta"),
        GammaPerturbation(records=12, epsilon=2.0),
        ApproximateMinima(records=12, epsilon=10.0, gradient=1e-3),
        AnalyzeGauss(),
        LaplaceTree(),
        PrivateLinUcb(epsilon=30.0, rounds=8),
        PrivateLinUcb(epsilon=30.0, rounds=8, noise="wishart"),
        UniformPrice(),
        UniformPrice(view="transcript"),
        CellPricing(),
        CellPricing(local=True),
        SoftmaxClipNorm(epsilon=2.0),
        broken.FullBudgetEach(calibration="exact_label", times=(12, 12), records=12),
    ],
    ids=lambda m: type(m).__name__,
)
def test_likelihood_ratios_are_those_of_the_draws(mechanism):
    """E_Q[e^L] = E_P[e^-L] = 1 on every pair, clipped means at 5 standard errors.

    At most 3 pairs of 2 comparisons: false alarm 4e-6 a mechanism.
    """
    for pair in mechanism.pairs():
        left, right = ratios(mechanism, pair)
        for values in (np.exp(right), np.exp(-left)):
            assert abs(values.mean() - 1) < FIVE * values.std() / math.sqrt(TRIALS) + 1e-9
        # Counted rates of L > t on the left against their image under the density.
        hits, image = np.mean(left > LOSS), np.where(right > LOSS, np.exp(right), 0.0)
        error = math.hypot(math.sqrt(0.25 / TRIALS), image.std() / math.sqrt(TRIALS))
        assert abs(hits - image.mean()) < FIVE * error


def test_flipped_outcomes_are_a_gaussian_mechanism():
    """Kolmogorov-Smirnov against N(mu^2/2, mu^2); false alarm 1e-6."""
    from scipy.stats import kstest

    mle = PrivateMle(records=12, epsilon=4.0, calibration="exact_label", times=(6, 12, 12))
    pair = mle.flip_pair()
    mu = mle.mu(pair)
    left, right = ratios(mle, pair)
    assert kstest((left - mu**2 / 2) / mu, "norm").pvalue > 1e-6
    assert kstest((right + mu**2 / 2) / mu, "norm").pvalue > 1e-6


def test_constrained_flips_leak_less():
    """Variance of L below mu^2 by far more than its error (false alarm under 1e-9)."""
    mle = PrivateMle(records=12, epsilon=4.0, calibration="exact_label", radius=0.3)
    pair = mle.flip_pair()
    left, _ = ratios(mle, pair)
    assert left.var() < 0.9 * mle.mu(pair) ** 2


def test_share_on_the_boundary_is_the_mass_of_its_density():
    """d = 2, quadrature on the circle; 5 standard errors, false alarm 6e-7."""
    mle = PrivateMle(records=12, epsilon=2.0, radius=1.0)
    views = play(mle, mle.background(), TRIALS, np.random.default_rng(3))
    share = on_boundary(views["thetas"][:, 0], 1.0).mean()
    angle = np.linspace(0, 2 * np.pi, 721)[:-1]
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    model = mle._models(mle.background())[0]
    mass = np.exp(log_density(model, circle, mle.scale, 1.0)).sum() * (angle[1] - angle[0])
    assert 0.2 < mass < 0.98
    assert abs(share - mass) < FIVE * math.sqrt(mass * (1 - mass) / TRIALS)


def test_no_replaced_customer_loses_more_than_the_accountant_says():
    """Empirical profile of L at 1 on all pairs; margin 5 standard errors, false alarm 6e-7 each."""
    for radius in (math.inf, 1.0):
        mle = PrivateMle(records=12, epsilon=4.0, delta=1e-3, radius=radius)
        for pair in mle.pairs():
            left, _ = ratios(mle, pair)
            gain = np.maximum(0.0, -np.expm1(np.minimum(0.0, 1.0 - left)))
            assert gain.mean() - FIVE * gain.std() / math.sqrt(TRIALS) <= mle.accountant(1.0)


def test_no_removed_record_loses_more_than_the_hockey_stick_says():
    """The same when a record is removed, its noise by hs_add; 4 comparisons, false alarm 2e-6."""
    mle = PrivateMle(records=12, epsilon=2.0, delta=1e-3, ridge=1.0, calibration="hs_add")
    (pair,) = mle.pairs()
    for epsilon in (0.5, 1.0):
        most = hs_add_delta(epsilon, 0.25, 1.0, 1.0, mle.scale)
        for losses in (ratios(mle, pair)[0], -ratios(mle, pair)[1]):
            gain = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses)))
            assert gain.mean() - FIVE * gain.std() / math.sqrt(TRIALS) <= most
    assert hs_add_delta(2.0, 0.25, 1.0, 1.0, mle.scale) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize(
    "demand", [{}, {"demand": "linear", "radius": 2.0, "nu": 12.0}], ids=["logistic", "linear"]
)
def test_transcript_of_the_policy_has_its_exact_likelihood_ratio(demand):
    """E_Q[e^L] = 1 and the counted law of L > t, 5 standard errors; 9 comparisons, 5e-6."""
    policy = PrivatePricing(
        changes={
            "rounds": 60,
            "explore": 20,
            "ridge_cov": 3.0,
            "ridge_mle": 2.0,
            "sigma": 1.5,
            "nu": 4.0,
            "cap": 5,
            **demand,
        },
        view="transcript",
        allow_vacuous=True,
        customer=25,
    )
    with pytest.warns(UserWarning, match="vacuous"):
        pairs = policy.pairs()
    n = 1500
    for pair in pairs:
        left, right = ratios(policy, pair, n)
        assert left.std() > 0.05
        for values in (np.exp(right), np.exp(-left)):
            assert abs(values.mean() - 1) < FIVE * values.std() / math.sqrt(n)
        image = np.where(right > LOSS, np.exp(right), 0.0)
        error = math.hypot(math.sqrt(0.25 / n), image.std() / math.sqrt(n))
        assert abs(np.mean(left > LOSS) - image.mean()) < FIVE * error


@pytest.mark.slow
def test_the_own_price_breaks_plain_dp():
    """Nobody is always offered the ceiling, a customer most often is not.

    If the claim (4.52, 1e-6) held of all prices, "below the ceiling" would have chance at least
    (q - 1e-6) e^-4.52 for nobody, q its chance for the customer. Not seeing it in 800 plays when
    q is above 1/2 then has probability below (1 - 0.0054)^800 = 0.013, the false alarm.
    """
    policy = PrivatePricing(preset="long", view="prices_all", accounting="joint")
    pair = policy.pairs()[0]
    rng = np.random.default_rng(0)
    left, right = (policy.run(side, n, rng) for side, n in ((pair.left, 100), (pair.right, 800)))
    own = [views["prices"][:, pair.position] for views in (left, right)]
    # 100 plays with 65 hits: q below 1/2 would do that with probability 0.002.
    assert np.sum(own[0] < 1) >= 65
    assert not np.any(own[1] < 1)
    assert policy.claim.epsilon < 4.53


@pytest.mark.parametrize("radius", [math.inf, 1.0])
def test_tilted_plays_are_weighted_back_to_the_law(radius):
    """Means of the weights and of a function of L; 5 standard errors, false alarm 2e-6."""
    mle = PrivateMle(records=12, epsilon=4.0, radius=radius, times=(6, 12))
    for pair in (mle.flip_pair(), mle.context_pair()):
        emitted, weights = mle.tilted_run(pair, 1.5, TRIALS, np.random.default_rng(5))
        loss = mle.log_likelihood_ratio(collect(emitted, TRIALS), pair)
        plain, _ = ratios(mle, pair)
        assert loss.mean() > plain.mean() + 0.05
        weight = np.exp(weights)
        assert abs(weight.mean() - 1) < FIVE * weight.std() / math.sqrt(TRIALS)
        tail = weight * (loss > LOSS)
        error = math.hypot(tail.std(), 0.5) / math.sqrt(TRIALS)
        assert abs(tail.mean() - np.mean(plain > LOSS)) < FIVE * error


@pytest.mark.parametrize(
    "mechanism",
    [
        AnalyzeGauss(),
        PrivateLinUcb(epsilon=30.0, rounds=8),
        PrivateLinUcb(epsilon=30.0, rounds=8, noise="wishart"),
    ],
    ids=["gauss", "linucb", "wishart"],
)
def test_tilted_matrices_are_weighted_back_to_the_law(mechanism):
    """Means of the weights and of a function of L; 5 standard errors, false alarm 2e-6."""
    for pair in mechanism.pairs():
        emitted, weights = mechanism.tilted_run(pair, 2.0, TRIALS, np.random.default_rng(5))
        loss = mechanism.log_likelihood_ratio(collect(emitted, TRIALS), pair)
        plain, _ = ratios(mechanism, pair)
        assert loss.mean() > plain.mean() + 5 * plain.std() / math.sqrt(TRIALS)
        weight = np.exp(weights)
        assert abs(weight.mean() - 1) < FIVE * weight.std() / math.sqrt(TRIALS)
        cut = np.quantile(plain, 0.8)
        tail = weight * (loss > cut)
        error = math.hypot(tail.std(), 0.5) / math.sqrt(TRIALS)
        assert abs(tail.mean() - np.mean(plain > cut)) < FIVE * error


@pytest.mark.parametrize("mechanism", [AnalyzeGauss(), PrivateLinUcb()], ids=["gauss", "linucb"])
def test_tilted_matrices_certify_nearly_all_of_the_exact_epsilon(mechanism):
    """1,000 runs at alpha .05: above the truth with probability .05 at most."""
    pair = mechanism.pairs()[-1]
    truth = GaussianDp(mu=mechanism.mu(pair)).epsilon_at(mechanism.delta)
    tilt = 1.08 * truth / mechanism.mu(pair) ** 2 - 0.5
    emitted, weights = mechanism.tilted_run(pair, tilt, 1000, np.random.default_rng(6))
    loss = mechanism.log_likelihood_ratio(collect(emitted, 1000), pair)
    assert 0.95 * truth <= certified_epsilon(loss, weights, 0.05, mechanism.delta) <= truth


def test_tilted_flips_certify_nearly_all_of_the_exact_epsilon():
    """1,000 runs at alpha .05: the certificate exceeds the truth with probability .05 at most."""
    mle = PrivateMle(records=12, epsilon=1.0, delta=1e-5, calibration="exact_label")
    pair = mle.flip_pair()
    truth = GaussianDp(mu=mle.mu(pair)).epsilon_at(1e-5)
    tilt = (1.08 * truth / mle.mu(pair) ** 2) - 0.5
    emitted, weights = mle.tilted_run(pair, tilt, 1000, np.random.default_rng(6))
    loss = mle.log_likelihood_ratio(collect(emitted, 1000), pair)
    assert 0.97 * truth <= certified_epsilon(loss, weights, 0.05, 1e-5) <= truth
