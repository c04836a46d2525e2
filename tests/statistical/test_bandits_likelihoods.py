"""Likelihood ratios and curves of the whole family against played trials.

Every assertion fails by chance with probability below 1e-8.
"""

import math

import numpy as np
import pytest

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.catalogue import CATALOGUE
from audit.attack import Game
from audit.errors import UsageError
from audit.mechanism import capability

N = 10_000
NAMES = [name for name in CATALOGUE if name.startswith(("bandits/", "broken/bandit"))]
EXPENSIVE = {"bandits/batched-exp4", "broken/bandit-unscaled-noise"}


def ratios(mechanism, pair, left, seed):
    view = mechanism.claim.view
    ratio = capability(mechanism, "log_likelihood_ratio", view)
    views = Game(mechanism, pair, view).play(left, N, np.random.default_rng(seed))
    return np.asarray(ratio(views, pair))


def known(name):
    mechanism = CATALOGUE[name].build()
    view = mechanism.claim.view
    return capability(mechanism, "log_likelihood_ratio", view) is not None


@pytest.mark.parametrize("name", [n for n in NAMES if known(n) and n not in EXPENSIVE])
def test_ratio_and_curve_agree_with_played_trials(name):
    mechanism = CATALOGUE[name].build()
    for which, pair in enumerate(mechanism.pairs()):
        here = ratios(mechanism, pair, True, 2 * which)
        there = ratios(mechanism, pair, False, 2 * which + 1)
        low, high = -1.0, 1.0
        # 1{L <= t} under the right law, times e^L, has the mean P_left(L <= t): Hoeffding on the
        # bounded weights, 2 exp(-20) a side.
        for cut in (low, 0.0, high):
            weights = np.where(there <= cut, np.exp(np.minimum(there, cut)), 0.0)
            margin = math.exp(max(cut, 0.0)) * math.sqrt(20 / (2 * N)) + math.sqrt(20 / (2 * N))
            assert weights.mean() == pytest.approx(np.mean(here <= cut), abs=margin)
        _compare_curve(mechanism, pair, here, there)


def _compare_curve(mechanism, pair, here, there):
    exact = capability(mechanism, "exact_profile")
    if exact is None:
        return
    for epsilon in (0.0, 0.3, 1.0):
        try:
            delta = exact(pair, epsilon)
        except UsageError:
            return
        found = [
            np.maximum(0.0, -np.expm1(epsilon - np.maximum(loss, epsilon))).mean()
            for loss in (here, -there)
        ]
        # Hoeffding for values in [0, 1], 2 exp(-20) a side.
        assert max(found) == pytest.approx(delta, abs=math.sqrt(20 / (2 * N)))


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("bandits/") and known(n)])
def test_pure_claims_are_never_exceeded(name):
    mechanism = CATALOGUE[name].build()
    if CATALOGUE[name].parameters.get("delta"):
        pytest.skip("not a pure claim")
    pair = mechanism.pairs()[0]
    loss = ratios(mechanism, pair, True, 7)
    assert np.nanmax(np.abs(loss)) <= mechanism.claim.epsilon * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "bounds"),
    [
        (2.0, (1.894, 1.967, 1.989)),
        (1.0, (0.930, 0.978, 0.993)),
        (0.5, (0.443, 0.482, 0.494)),
        (0.1, (0.0528, 0.0851, 0.0953)),
    ],
)
def test_threshold_canary_certifies_the_published_bounds(epsilon, bounds):
    from scipy import stats

    batch = math.ceil(1 / epsilon)
    mechanism = BatchedLaplace("threshold", epsilon, 3 * batch, 2, view="actions")
    canary = mechanism.new_learner()
    laws = [canary.law(mean, mechanism.noise_scale)[0] for mean in (0.0, 1 / batch)]
    for n, expected in zip((10**4, 10**5, 10**6), bounds, strict=True):
        often, rarely = n // 2, round(n * float(laws[1]))
        assert laws[0] == pytest.approx(0.5)
        low = stats.beta.ppf(0.0125, often, n - often + 1)
        high = stats.beta.isf(0.0125, rarely + 1, n - rarely)
        assert math.log(low / high) == pytest.approx(expected, abs=6e-4)
