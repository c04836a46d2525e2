"""Regret: the sums are right, and a curve stands beside its guarantee."""

import math

import numpy as np
import pytest

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.experts import BatchedExperts
from algorithms.bandits.unnoised import UnnoisedExp3
from algorithms.bandits.utility import Regret, curve, regret, stochastic_regret
from audit.errors import UsageError


class Fixed:
    """Plays arm 1 always."""

    horizon = 4

    def run(self, data, n, rng):
        del data, rng
        return {"actions": np.ones((n, 4), dtype=int)}


def test_regret_is_against_the_best_fixed_arm():
    losses = np.array([[0.0, 1.0], [0.5, 0.25], [0.0, 1.0], [1.0, 0.0]])
    found = regret(Fixed(), losses, 3, np.random.default_rng(0))
    assert found == Regret(2.25 - 1.5, 0.0, 3)


def test_pseudo_regret_uses_the_means():
    found = stochastic_regret(Fixed(), (0.2, 0.7), 4, np.random.default_rng(0), tables=2)
    assert found.mean == pytest.approx(4 * 0.5)
    assert found.runs == 4
    single = stochastic_regret(Fixed(), (0.2, 0.7), 1, np.random.default_rng(0))
    assert math.isnan(single.error)


def test_public_columns_reach_the_mechanism():
    mechanism = BatchedExperts("htinf", 1.0, 6, 2, experts=2)
    advice = np.tile(np.eye(2)[::-1], (6, 1, 1))
    losses = np.tile([0.0, 1.0], (6, 1))
    found = regret(mechanism, losses, 50, np.random.default_rng(0), {"advice": advice})
    assert 0 < found.mean < 6


def test_curve_grows_with_the_horizon_and_stays_below_the_guarantee():
    sizes = [(1.0, 100), (1.0, 1600), (0.25, 1600)]
    points = curve(lambda e, t: BatchedLaplace("htinf", e, t, 3), sizes, (0.2, 0.7, 0.7), 60)
    assert [(p.epsilon, p.horizon) for p in points] == sizes
    # Means of about 25, 100 and 200 with standard errors below 8: ten of them apart.
    assert points[0].regret.mean < points[1].regret.mean < points[2].regret.mean
    assert all(p.regret.mean < p.guarantee for p in points)
    bare = curve(lambda e, t: UnnoisedExp3("losses", t, 3), [(1.0, 400)], (0.2, 0.7, 0.7), 60)
    assert bare[0].regret.mean < bare[0].guarantee


@pytest.mark.parametrize(("runs", "tables"), [(0, 1), (3, 2), (2, 0)])
def test_uneven_tables_are_refused(runs, tables):
    with pytest.raises(UsageError, match="multiple of tables"):
        stochastic_regret(Fixed(), (0.1, 0.2), runs, np.random.default_rng(0), tables=tables)
