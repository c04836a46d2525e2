"""Measured regret against published means.

Bernoulli losses of means .3, .5, .5, .5 over 10,000 rounds; uniform play would pay 1,500. Published
means of 200 runs with standard errors; here runs share a few tables of losses. Every tolerance is
at least six joint standard errors: below 1e-8.
"""

import math

import numpy as np
import pytest

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.per_round import agarwal_singh
from algorithms.bandits.utility import stochastic_regret

MEANS = (0.3, 0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("learner", "epsilon", "mean", "error"),
    [
        pytest.param("htinf", 1.0, 390, 8, marks=pytest.mark.slow),
        pytest.param("ftpl", 1.0, 531, 16, marks=pytest.mark.slow),
        pytest.param("local", 1.0, 1112, 6, marks=pytest.mark.slow),
        pytest.param("exp3n", 1.0, 1447, 1, marks=pytest.mark.slow),
        ("htinf", 0.25, 829, 16),
        pytest.param("ftpl", 0.25, 929, 23, marks=pytest.mark.slow),
        ("exp3n", 0.25, 1469, 1),
    ],
)
def test_regret_agrees_with_published_means(learner, epsilon, mean, error):
    if learner == "local":
        mechanism = agarwal_singh(epsilon, 10_000, 4)
    else:
        mechanism = BatchedLaplace(learner, epsilon, 10_000, 4)
    found = stochastic_regret(mechanism, MEANS, 200, np.random.default_rng(0), tables=2)
    spread = math.hypot(found.error, error)
    assert found.mean == pytest.approx(mean, abs=6 * spread)
    assert found.error < 3 * max(error, 1)
    if mechanism.guarantee() is not None:
        assert found.mean < mechanism.guarantee()
