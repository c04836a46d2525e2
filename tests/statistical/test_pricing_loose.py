"""Bugs that loose constants hide from the claim: the noise is not what the code says.

Under the published-style calibrations a broken twin may stay within its claim. Scored by the
likelihood ratio of the correct mechanism, the twin's transcripts still show a mu that differs
from the one declared.
"""

import math

import numpy as np
import pytest

from algorithms.broken import pricing, pricing_cov, pricing_mle
from algorithms.pricing.private_cov import PrivateCov
from algorithms.pricing.private_mle import PrivateMle
from audit.claim import GaussianDp
from audit.mechanism import play

TRIALS = 60_000
# A mean difference over its pooled spread has standard error sqrt(2/n); 5 of them: 6e-7 a test.
MARGIN = 5 * math.sqrt(2 / TRIALS)
LOOSE = {"records": 31, "calibration": "basic", "epsilon": 1.0}
FITTED = {"records": 12, "calibration": "kst_gamma", "demand": "logistic", "times": (12,) * 4}


def measured_mu(honest, twin, pair, n=TRIALS):
    """Separation of the two sides by the honest likelihood ratio."""
    rng = np.random.default_rng(8)
    scores = []
    for side in (pair.left, pair.right):
        blocks = [play(twin, side, n // 6, rng) for _ in range(6)]
        scores.append(np.concatenate([honest.log_likelihood_ratio(b, pair) for b in blocks]))
    return (scores[0].mean() - scores[1].mean()) / math.sqrt(
        (scores[0].var() + scores[1].var()) / 2
    )


def test_the_correct_mechanism_shows_the_mu_it_declares():
    honest = PrivateCov(**LOOSE)
    pair = honest.pairs()[0]
    assert abs(measured_mu(honest, honest, pair) - honest.mu(pair)) < MARGIN


@pytest.mark.filterwarnings("ignore:the classical Gaussian formula")
@pytest.mark.parametrize(
    ("twin", "hidden"),
    [
        (pricing.AddRemoveSensitivity, True),
        (pricing.HalfNoise, True),
        (pricing_cov.RootScale, False),
        (pricing_cov.OneLevel, False),
        (pricing_cov.RepeatVisits, False),
        (pricing_cov.RawFeatures, False),
        (pricing_cov.NeverReset, False),
    ],
)
def test_loose_constants_do_not_hide_the_noise(twin, hidden):
    honest, broken = PrivateCov(**LOOSE), twin(**LOOSE)
    pair = honest.pairs()[0]
    within = GaussianDp(mu=broken.mu(pair)).delta_at(1.0) <= 1e-6
    assert within == hidden
    assert measured_mu(honest, broken, pair) - honest.mu(pair) > MARGIN


@pytest.mark.parametrize(
    "twin", [pricing_mle.FullBudgetEach, pricing_mle.UnclippedOutcomes], ids=lambda t: t.__name__
)
def test_loose_constants_do_not_hide_the_estimators_noise(twin):
    """Outcomes flipped, four calls, scored by where the true density separates the sides."""
    honest, broken = PrivateMle(**FITTED), twin(**FITTED)
    pair = broken.flip_pair()
    clipped = honest.flip_pair()
    n = TRIALS // 2
    margin = MARGIN * math.sqrt(2)
    assert honest.mu(clipped) + margin < broken.mu(pair)
    assert measured_mu(broken, broken, pair, n) - honest.mu(clipped) > margin
