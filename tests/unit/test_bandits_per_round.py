"""Noise in every round, and rounds that are skipped, against published numbers."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.per_round import PerRoundLaplace, agarwal_singh, dp_exp3_lap
from audit.pair import Pair


def test_per_round_noise_has_batches_of_one_round():
    mechanism = agarwal_singh(0.1, 30, 4)
    assert isinstance(mechanism, PerRoundLaplace)
    assert (mechanism.batch, mechanism.updates, mechanism.declared_scale) == (1, 30, 10.0)
    learner = mechanism.new_learner()
    spread = math.sqrt(1 + 2 * math.log(4 * 30) * 100)
    assert learner.eta == pytest.approx(math.sqrt(math.log(4) / 240) / spread)
    assert learner.gamma == pytest.approx(min(1.0, learner.eta * 4 * spread))
    assert BatchedLaplace("htinf", 1.0, 10, 2).guarantee() == pytest.approx(
        30 * math.sqrt(6 * 2 * 11) + 1
    )


def test_skipping_agrees_with_published_chances():
    mechanism = dp_exp3_lap(1.0, 100, 2)
    chances = mechanism.skip_chance(np.array([0.0, 1.0, 0.5]))
    assert chances == pytest.approx([0.0068394, 0.0068394, 0.0060653], abs=6e-8)
    assert chances[0] / chances[2] == pytest.approx(math.cosh(0.5))
    assert chances.max() <= 1 / 100


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.5, 0.0), (0.2, 0.7)])
def test_skipping_profile_agrees_with_integration(epsilon, low, high):
    mechanism = dp_exp3_lap(1.0, 4, 2)
    zero, one = np.full((4, 2), low), np.full((4, 2), low)
    one[0] = high
    found = mechanism.exact_profile(Pair({"losses": zero}, {"losses": one}), epsilon)
    edge, brute = mechanism.margin, []
    for first, second in ((low, high), (high, low)):
        p, q = stats.laplace(first), stats.laplace(second)
        skipped = [d.cdf(-edge) + d.sf(1 + edge) for d in (p, q)]

        def excess(y, p=p, q=q):
            return max(0.0, p.pdf(y) - math.exp(epsilon) * q.pdf(y))

        kept = integrate.quad(excess, -edge, 1 + edge, points=[low, high], limit=400)[0]
        brute.append(kept + max(0.0, skipped[0] - math.exp(epsilon) * skipped[1]))
    assert found == pytest.approx(max(brute), abs=1e-7)


def test_skipped_rounds_change_nothing():
    mechanism = dp_exp3_lap(1.0, 3, 2)
    learner = mechanism.new_learner()
    learner.start(2, np.random.default_rng(0))
    learner.follow(np.zeros(2, dtype=int))
    learner.update(np.zeros(2, dtype=int), np.array([np.nan, 0.5]))
    assert learner.losses[0, 0] == 0.0
    assert learner.losses[0, 1] < 0.0
    emitted = mechanism.run(mechanism.pairs()[0].left, 3000, np.random.default_rng(0))
    # 3,000 x 3 rounds are skipped with chance .22 or so: none at all has probability below 1e-300.
    assert np.isnan(emitted["noisy"]).any()
    assert np.nanmax(emitted["noisy"]) <= 1 + mechanism.margin
