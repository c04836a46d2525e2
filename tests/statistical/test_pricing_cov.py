"""Private covariance as it is drawn, against the laws that it claims. Seeds are fixed."""

import math

import numpy as np
import pytest

from algorithms.broken.pricing import HalfNoise, RedrawnNoise
from algorithms.pricing.private_cov import PrivateCov
from algorithms.primitives import tree
from algorithms.primitives.symmetric import SHAPES
from audit.view import collect

TRIALS = 20_000
# Two-sided standard normal tail beyond 5: false alarm 5.7e-7 a comparison.
FIVE = 5.0


def ratios(cov, pair, seed):
    rng = np.random.default_rng(seed)
    sides = (pair.left, pair.right)
    blocks = [collect(cov.run(side, TRIALS, rng), TRIALS) for side in sides]
    return [cov.log_likelihood_ratio(views, pair) for views in blocks]


@pytest.mark.parametrize("twin", [PrivateCov, HalfNoise, RedrawnNoise])
@pytest.mark.parametrize("shape", ["mirrored", "half-sum", "full"])
def test_law_of_the_likelihood_ratio(twin, shape):
    """Normal with mean +-mu^2/2 and variance mu^2; five comparisons, false alarm 3e-6 in all."""
    cov = twin(records=15, epsilon=3, shape=shape)
    pair = cov.pairs()[1]
    square = cov.mu(pair) ** 2
    left, right = ratios(cov, pair, seed=11)
    for values, mean in ((left, square / 2), (right, -square / 2)):
        assert abs(values.mean() - mean) < FIVE * math.sqrt(square / TRIALS)
        assert abs(values.var() / square - 1) < FIVE * math.sqrt(2 / TRIALS)
    # E_Q[e^L] = 1, and e^L has variance e^(mu^2) - 1 under Q.
    spread = math.sqrt(math.expm1(square) / TRIALS)
    assert abs(np.exp(right).mean() - 1) < FIVE * spread


def test_likelihood_ratio_is_normal():
    """Kolmogorov-Smirnov; false alarm 1e-6."""
    from scipy.stats import kstest

    cov = PrivateCov(records=7, epsilon=2)
    pair = cov.pairs()[0]
    mu = cov.mu(pair)
    left, _ = ratios(cov, pair, seed=12)
    assert kstest((left - mu**2 / 2) / mu, "norm").pvalue > 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_is_that_of_the_matrix_it_stands_for(shape):
    """Node noise against (Z, Z^T) matrices drawn as the shape says.

    Every variance ratio within 5 standard errors, at most 16 entries: false alarm 1e-5.
    """
    d = 2
    cov = PrivateCov(dimension=d, records=4, shape=shape)
    features = {"features": np.zeros((4, d))}
    sums = cov.run(features, TRIALS, np.random.default_rng(13))["sums"]
    nodes = tree.node_values(sums, np.arange(4)) / cov.scale
    z = np.random.default_rng(14).normal(size=(TRIALS, d, d))
    flipped = z.transpose(0, 2, 1)
    noise = {
        "mirrored": np.triu(z) + np.triu(z, 1).transpose(0, 2, 1),
        "half-sum": (z + flipped) / 2,
        "root-half-sum": (z + flipped) / math.sqrt(2),
        "full": z,
    }[shape]
    rows, columns = SHAPES[shape].entries(d)
    ratio = nodes.var(axis=0) / noise[:, rows, columns].var(axis=0)
    assert np.all(np.abs(np.log(ratio)) < FIVE * math.sqrt(4 / TRIALS))


def test_nodes_are_independent():
    """All 105 correlations of 15 node values below 6 standard errors: false alarm 2e-7."""
    cov = PrivateCov(records=5)
    sums = cov.run({"features": np.zeros((5, 2))}, TRIALS, np.random.default_rng(15))["sums"]
    nodes = tree.node_values(sums, np.arange(5)).reshape(TRIALS, -1)
    off = np.corrcoef(nodes.T)[np.triu_indices(15, 1)]
    assert np.abs(off).max() < 6 / math.sqrt(TRIALS)


def test_counted_error_rates_meet_the_trade_off_curve_and_do_not_cross_it():
    """Attack at threshold 0; each rate within 5 standard errors: false alarm 1.2e-6."""
    cov = PrivateCov(records=31, epsilon=4, claim_as="gaussian")
    left, right = ratios(cov, cov.pairs()[0], seed=16)
    missed, alarm = np.mean(left <= 0), np.mean(right > 0)
    best = float(cov.claim.miss_rate(0.5 * (missed + alarm)))
    error = FIVE * math.sqrt(0.25 / TRIALS)
    assert abs(missed - alarm) < 2 * error
    assert abs(best - 0.5 * (missed + alarm)) < 2 * error


def test_half_noise_crosses_the_trade_off_curve():
    """Real rates lie 0.3 beyond the claim, the margin is 0.025: no run should ever miss it.

    On the correct mechanism the margin of 5 standard errors would be crossed with 3e-7.
    """
    cov = HalfNoise(records=31, epsilon=4, claim_as="gaussian")
    left, right = ratios(cov, cov.pairs()[0], seed=17)
    missed, alarm = np.mean(left <= 0), np.mean(right > 0)
    assert missed < cov.claim.miss_rate(alarm) - FIVE * math.sqrt(0.5 / TRIALS)
