import json
import math
import pickle

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import integrate, stats

from algorithms.calibration import (
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    RandomisedResponse,
)
from audit.claim import ApproxDp, GaussianDp, PureDp
from audit.errors import UsageError
from audit.mechanism import Mechanism, play
from audit.pair import Pair
from audit.view import Views

EPSILONS = (0.0, 0.3, 0.8, 1.0, 1.7)
ALL = (
    RandomisedResponse(1.0, categories=3),
    Laplace(0.7, sensitivity=2.0),
    Gaussian(1.0, delta=1e-3),
    DiscreteLaplace(1.0, sensitivity=3),
    Exponential(1.5),
    NoisyMax(1.0, candidates=3),
)
ids = [type(m).__name__ for m in ALL]


def profile(mechanism, epsilon):
    return mechanism.exact_profile(mechanism.pairs()[0], epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("mechanism", "oracle", "tolerance"),
    [
        (Laplace(1.0), pld.from_laplace_mechanism(1.0), 1e-4),
        (Laplace(1.0, scale=0.5), pld.from_laplace_mechanism(0.5), 1e-4),
        (Gaussian(1.0), pld.from_gaussian_mechanism(3.730632), 1e-4),
        (
            DiscreteLaplace(1.0, sensitivity=3),
            pld.from_discrete_laplace_mechanism(1 / 3, sensitivity=3),
            1e-4,
        ),
        (
            DiscreteLaplace(1.0, sensitivity=4, scale=1.6),
            pld.from_discrete_laplace_mechanism(1 / 1.6, sensitivity=4),
            1e-4,
        ),
        (
            RandomisedResponse(1.0, categories=4),
            pld.from_randomized_response(4 / (math.e + 3), 4),
            1e-4,
        ),
    ],
)
def test_profile_agrees_with_dp_accounting(mechanism, oracle, tolerance, epsilon):
    # dp-accounting rounds the privacy loss up to a grid of 1e-4: never below, hardly above.
    bound = oracle.get_delta_for_epsilon(epsilon)
    assert (
        bound - tolerance <= profile(mechanism, epsilon) <= bound + 2e-8
    )  # its sigma has 7 digits


@pytest.mark.parametrize("scale", [2.0, 1.0, 0.3])
def test_noisy_max_law_agrees_with_adaptive_quadrature(scale):
    scores = (0.0, 3.0, 2.5, 3.0)

    def integrand(x, i):
        others = [stats.laplace.cdf(x, s, scale) for j, s in enumerate(scores) if j != i]
        return stats.laplace.pdf(x, scores[i], scale) * math.prod(others)

    law = NoisyMax(1.0, scale=scale).law(scores)
    for i in range(4):
        oracle = integrate.quad(
            integrand, -30 * scale, 3 + 30 * scale, (i,), points=[0, 2.5, 3], limit=200
        )[0]
        assert law[i] == pytest.approx(oracle, abs=1e-7)
    assert law.sum() == pytest.approx(1, abs=1e-13)


def test_exponential_law_from_its_definition():
    weights = [math.exp(s / 2) for s in (1.0, 0.0, 4.0)]
    law = Exponential(1.0).law((1.0, 0.0, 4.0))
    assert law == pytest.approx([w / sum(weights) for w in weights], rel=1e-12)


@pytest.mark.parametrize("mechanism", ALL, ids=ids)
def test_profile_stays_under_the_claim_and_its_twin_breaks_it(mechanism):
    claim = mechanism.claim
    delta = getattr(claim, "delta", 0.0)
    for pair in mechanism.pairs():
        assert mechanism.exact_profile(pair, claim.epsilon) <= delta * (1 + 1e-9) + 1e-15
    twin = mechanism.noise_scaled(0.4)
    assert twin.claim == claim
    assert twin.declared_scale == pytest.approx(0.4 * mechanism.declared_scale)
    worst = max(twin.exact_profile(pair, claim.epsilon) for pair in twin.pairs())
    assert worst > delta + 1e-3


@pytest.mark.parametrize("mechanism", [ALL[0], ALL[1], ALL[3]], ids=ids[:2] + ids[3:4])
def test_zero_slack(mechanism):
    assert profile(mechanism, 0.99 * mechanism.epsilon) > 1e-4


def test_gaussian_claims_and_scale():
    assert Gaussian(1.0).declared_scale == pytest.approx(3.730632, abs=1e-6)
    assert isinstance(Gaussian(1.0).claim, ApproxDp)
    curve = Gaussian(1.0, curve="gaussian").claim
    assert isinstance(curve, GaussianDp)
    assert curve.mu == pytest.approx(1 / 3.730632, rel=1e-6)
    assert profile(Gaussian(1.0), 1.0) == pytest.approx(1e-5, rel=1e-9)
    assert Gaussian(1.0).exact_profile(Pair(2.0, 2.0), 0.0) == 0.0


def test_gaussian_vector_profile_is_that_of_its_distance():
    pair = Pair((0.0, 0.0), (3.0, 4.0))
    oracle = pld.from_gaussian_mechanism(1.0, sensitivity=1.25).get_delta_for_epsilon(1.0)
    assert Gaussian(1.0, scale=4.0).exact_profile(pair, 1.0) == pytest.approx(oracle, abs=1e-4)


@pytest.mark.parametrize(
    ("mechanism", "density"),
    [
        (Laplace(0.7, sensitivity=2.0), lambda y, s: stats.laplace.pdf(y, 2.0, s)),
        (Gaussian(1.0, delta=1e-3), lambda y, s: stats.norm.pdf(y, 1.0, s)),
    ],
)
def test_likelihood_ratio_tilts_one_density_into_the_other(mechanism, density):
    y = np.array([-3.0, -0.2, 0.4, 1.1, 5.0])
    pair, scale = mechanism.pairs()[0], mechanism.declared_scale
    ratio = mechanism.log_likelihood_ratio(Views(np.empty(5, dtype=object), {"value": y}), pair)
    shifted = density(y + pair.right, scale)  # the density of the left side, centred at 0
    assert np.exp(ratio) * density(y, scale) == pytest.approx(shifted, rel=1e-12)


@pytest.mark.parametrize("mechanism", ALL, ids=ids)
def test_likelihood_ratio_is_antisymmetric_and_bounded_by_pure_claims(mechanism):
    pair = mechanism.pairs()[0]
    views = play(mechanism, pair.right, 500, np.random.default_rng(3))
    ratio = mechanism.log_likelihood_ratio(views, pair)
    assert ratio.shape == (500,)
    assert ratio.dtype == np.float64
    swapped = mechanism.log_likelihood_ratio(views, Pair(pair.right, pair.left))
    assert swapped == pytest.approx(-ratio)
    if isinstance(mechanism.claim, PureDp):
        assert np.abs(ratio).max() <= mechanism.epsilon + 1e-12


@pytest.mark.parametrize("mechanism", ALL, ids=ids)
def test_contract(mechanism):
    assert isinstance(mechanism, Mechanism)
    pair = mechanism.pairs()[0]
    json.dumps([pair.left, pair.right])
    copy = pickle.loads(pickle.dumps(mechanism))
    once = mechanism.run(pair.left, 50, np.random.default_rng(1))
    again = copy.run(pair.left, 50, np.random.default_rng(1))
    other = mechanism.run(pair.left, 50, np.random.default_rng(2))
    for name, column in once.items():
        assert column.shape[0] == 50
        assert np.array_equal(column, again[name])
        assert not np.array_equal(column, other[name])


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: Laplace(-1.0), "epsilon"),
        (lambda: Laplace(1.0, scale=0.0), "scale"),
        (lambda: Laplace(1.0, sensitivity=math.inf), "sensitivity"),
        (lambda: Gaussian(1.0, delta=1.5), "delta"),
        (lambda: Gaussian(1.0, curve="renyi"), "curve"),
        (lambda: DiscreteLaplace(1.0, sensitivity=1.5), "sensitivity"),
        (lambda: RandomisedResponse(1.0, categories=1), "categories"),
        (lambda: NoisyMax(1.0, candidates=1), "candidates"),
    ],
)
def test_bad_parameters(build, word):
    with pytest.raises(UsageError, match=f"expected.*{word}"):
        build()
