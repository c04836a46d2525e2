"""Follow the perturbed leader against quadrature and published numbers."""

import math

import numpy as np
import pytest
from scipy import integrate

from algorithms.bandits.ftpl import Ftpl, frechet_law, guarantee
from algorithms.bandits.learners import Setting
from tests.unit.test_bandits_learners import started


def test_frechet_law_agrees_with_published_values():
    gaps = np.array([[0.3, 0.0, 1.2], [0.0, 5.0, 5.0]]).T
    law = frechet_law(gaps)
    assert law[:, 0] == pytest.approx([0.32601, 0.54923, 0.12477], abs=6e-6)
    assert law[:, 1] == pytest.approx([0.95230, 0.02385, 0.02385], abs=6e-6)
    assert frechet_law(np.array([[0.0], [1.0]]))[:, 0] == pytest.approx(
        [0.81548, 0.18452], abs=6e-6
    )


@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0])
def test_frechet_law_agrees_with_adaptive_quadrature(spread):
    gaps = spread * np.array([0.0, 0.3, 0.7, 1.0])

    def density(u, arm):
        z = u / (1 - u)
        inverse = 1 / (z + gaps)
        return 2 * inverse[arm] ** 3 * math.exp(-(inverse**2).sum()) / (1 - u) ** 2

    brute = [integrate.quad(density, 0, 1, args=(arm,), limit=400)[0] for arm in range(4)]
    assert frechet_law(gaps[:, None])[:, 0] == pytest.approx(brute, rel=1e-7, abs=1e-12)


def test_ftpl_plays_and_resamples_by_its_exact_law():
    learner = started(Ftpl(Setting(3, 10, 1.0), rate=1.0), n=60_000, seed=4)
    learner.losses[:] = np.array([[0.3], [0.0], [1.2]])
    learner.count = 0
    arm = learner.act()
    law = learner.probs()[:, 0]
    # Six standard errors of a share in 60,000 draws: below 1e-8 for each of three.
    assert np.bincount(arm) / 60_000 == pytest.approx(law, abs=6 * 0.5 / math.sqrt(60_000))
    learner.update(arm, np.ones(60_000))
    counts = learner.hidden["redraws"]
    for k, w in enumerate(law):
        mine = counts[arm == k]
        spread = math.sqrt((1 - w) / w**2 / len(mine))
        # A mean of geometric counts, within seven standard errors: below 1e-10.
        assert mine.mean() == pytest.approx(1 / w, abs=7 * spread)
        assert np.mean(mine == 1) == pytest.approx(w, abs=6 * math.sqrt(w / len(mine)))
    assert learner.losses[:, 0] == pytest.approx(
        np.array([0.3, 0.0, 1.2]) + counts[0] * (np.arange(3) == arm[0])
    )


def test_followed_ftpl_counts_by_its_exact_law_and_caps():
    learner = started(Ftpl(Setting(2, 10, 1.0), cap=3), n=40_000, seed=1)
    chance = np.exp(learner.follow(np.zeros(40_000, dtype=int)))[0]
    assert chance == pytest.approx(0.5, abs=1e-12)
    learner.update(np.zeros(40_000, dtype=int), np.ones(40_000))
    # Six standard errors: below 1e-8.
    shares = np.bincount(learner.hidden["redraws"], minlength=4)[1:] / 40_000
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.015)


def test_frechet_moments_agree_with_published_values():
    from scipy import stats

    law = stats.invweibull(2)
    assert law.median() == pytest.approx(1.2011, abs=6e-5)
    assert law.mean() == pytest.approx(1.77245, abs=6e-6)
    assert law.sf(3) == pytest.approx(0.10516, abs=6e-6)
    # What the learner draws: 1 / sqrt(exponential). Kolmogorov's statistic of 20,000 draws exceeds
    # .025 with probability 2 exp(-25).
    drawn = 1 / np.sqrt(np.random.default_rng(0).standard_exponential(20_000))
    assert stats.kstest(drawn, law.cdf).statistic < 0.025


def test_ftpl_guarantee_has_the_published_constant():
    # 17.8 sqrt(K T) + O(sqrt K).
    assert guarantee(4, 10**8) / math.sqrt(4 * 10**8) == pytest.approx(17.75, abs=0.06)
