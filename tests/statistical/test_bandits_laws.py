"""Laws of the played conversion. Every assertion fails by chance with probability below 1e-8."""

import math

import numpy as np
import pytest
from scipy import stats

from algorithms.bandits.conversion import BatchedLaplace

N = 20_000
RARE = 1e-9


def agrees(hits, probability):
    """Whether a count is not in either tail of probability RARE / 2."""
    count, n = int(np.sum(hits)), len(hits)
    below = stats.binom.cdf(count, n, probability)
    above = stats.binom.sf(count - 1, n, probability)
    return min(below, above) > RARE / 2


def ratios(mechanism, pair, left, seed):
    emitted = mechanism.run(pair.side(left), N, np.random.default_rng(seed))
    if mechanism.view == "actions":
        emitted = {"actions": emitted["actions"]}
    return mechanism.log_likelihood_ratio(emitted, pair)


@pytest.mark.parametrize("learner", ["htinf", "exp3n", "leader"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_privacy_loss_follows_the_laplace_pair(learner, which, epsilon):
    mechanism = BatchedLaplace(learner, epsilon, 20, 3)
    pair = mechanism.pairs()[which]
    for left, sign in ((True, 1), (False, -1)):
        loss = sign * ratios(mechanism, pair, left, seed=which)
        assert np.abs(loss).max() <= epsilon * (1 + 1e-9)
        assert agrees(loss > epsilon - 1e-9, 0.5)
        assert agrees(loss < 1e-9 - epsilon, math.exp(-epsilon) / 2)
        assert agrees(loss > 0, 1 - math.exp(-epsilon / 2) / 2)


@pytest.mark.parametrize(
    ("learner", "view"),
    [("htinf", "transcript"), ("exp3n", "transcript"), ("quantile", "actions")],
)
def test_exponential_of_the_ratio_has_mean_one(learner, view):
    mechanism = BatchedLaplace(learner, 1.0, 12, 4, view=view)
    pair = mechanism.pairs()[0]
    # Hoeffding for values in [1/e, e]: exceeded with probability RARE.
    tolerance = 2 * math.sinh(1) * math.sqrt(math.log(2 / RARE) / (2 * N))
    assert np.exp(ratios(mechanism, pair, False, 5)).mean() == pytest.approx(1, abs=tolerance)
    assert np.exp(-ratios(mechanism, pair, True, 6)).mean() == pytest.approx(1, abs=tolerance)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_threshold_canary_event_has_the_two_probabilities(epsilon):
    mechanism = BatchedLaplace("threshold", epsilon, 12, 2, view="actions")
    pair = mechanism.pairs()[0]
    for left, probability in ((True, 0.5), (False, math.exp(-epsilon) / 2)):
        emitted = mechanism.run(pair.side(left), N, np.random.default_rng(left))
        assert agrees(emitted["actions"][:, -1] == 0, probability)


def test_two_batches_of_htinf_repeat_as_integrated():
    # P(I_2 = I_1) without skipping is .5 and .35030 (checked by quadrature in the unit tests).
    options = {"skipping": math.inf}
    mechanism = BatchedLaplace("htinf", 1.0, 2, 2, options=options)
    pair = mechanism.pairs()[0]
    for left, probability in ((True, 0.5), (False, 0.35030)):
        actions = mechanism.run(pair.side(left), N, np.random.default_rng(left))["actions"]
        assert agrees(actions[:, 0] == actions[:, 1], probability)


def test_batched_htinf_learns():
    # One arm is better by .2. Published mean regret at epsilon = 1, 10,000 rounds: 390 (s.e. 8),
    # uniform play 1,500. With per-run sd 113, twelve standard errors of 100 runs are 136.
    mechanism = BatchedLaplace("htinf", 1.0, 10_000, 4)
    means = np.array([0.3, 0.5, 0.5, 0.5])
    rng = np.random.default_rng(0)
    losses = (rng.random((10_000, 4)) < means).astype(float)
    actions = mechanism.run({"losses": losses}, 100, rng)["actions"]
    regret = (means[actions] - 0.3).sum(axis=1).mean()
    assert regret == pytest.approx(390, abs=136)
