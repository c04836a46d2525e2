"""Regret: the sums are right, and a curve stands beside its guarantee."""

import math

import numpy as np
import pytest

from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.experts import BatchedExperts
from algorithms.bandits.ftrl_tree import FtrlTree
from algorithms.bandits.unnoised import UnnoisedExp3
from algorithms.bandits.utility import Regret, regret, stochastic_regret
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
    mechanism = BatchedLaplace("htinf", 1.0, 20, 3)
    curves = mechanism.utility_curves([1600, 100], [1.0, 0.25], 60)
    assert list(curves) == ["rounds", "epsilon"]
    grown = [p for p in curves["rounds"] if p.policy == "private"]
    assert [(p.epsilon, p.rounds) for p in grown] == [(1.0, 100), (1.0, 1600)]
    # Means of about 12 and 90 with standard errors below 4: ten of them apart.
    assert grown[0].regret < grown[1].regret < grown[1].guarantee
    dearer = [p for p in curves["epsilon"] if p.policy == "private"]
    assert [(p.epsilon, p.rounds) for p in dearer] == [(0.25, 1600), (1.0, 1600)]
    # About 155 against 90, likewise.
    assert dearer[1].regret < dearer[0].regret < dearer[0].guarantee
    idle = [p for p in curves["epsilon"] if p.policy == "uniform play"]
    assert all(p.regret == pytest.approx(1600 * 0.4 / 3) and p.epsilon == 0 for p in idle)


@pytest.mark.parametrize(
    ("mechanism", "kinds"),
    [
        (UnnoisedExp3("losses", 20, 3), ["rounds"]),
        (FtrlTree(2.0, 16, 2), ["rounds", "epsilon"]),
        (Dartboard(0.7, 8, 2, rates={"p": 0.25, "eta": 0.1, "budget": 3}), ["rounds", "epsilon"]),
        (BatchedExperts("htinf", 0.5, 20, 3, experts=4), ["rounds", "epsilon"]),
        (
            BatchedExp4(1.0, 1e-3, 9, 2, 3, rates={"batch": 6, "eta": 1.0, "gamma": 0.5}),
            ["rounds", "epsilon"],
        ),
    ],
    ids=lambda x: type(x).__name__,
)
def test_every_kind_of_bandit_has_curves(mechanism, kinds):
    curves = mechanism.utility_curves([60, 40], [1.0, 2.0], 8)
    assert list(curves) == kinds
    for points in curves.values():
        assert [p.policy for p in points] == ["private", "uniform play"] * 2
        assert all(0 <= p.regret <= 0.2 * p.rounds for p in points)
    if "epsilon" in kinds:
        assert {p.rounds for p in curves["epsilon"]} == {60}
    assert mechanism.utility_curves([60, 40], [1.0, 2.0], 8) == curves


def test_guarantees_hold_at_standard_rates_only():
    assert Dartboard(1.0, 400, 3).guarantee() > 0
    assert Dartboard(1.0, 400, 3, delta=1e-3).guarantee() is None
    assert Dartboard(0.7, 8, 2, rates={"p": 0.25, "eta": 0.1, "budget": 3}).guarantee() is None


@pytest.mark.parametrize(("runs", "tables"), [(0, 1), (3, 2), (2, 0)])
def test_uneven_tables_are_refused(runs, tables):
    with pytest.raises(UsageError, match="multiple of tables"):
        stochastic_regret(Fixed(), (0.1, 0.2), runs, np.random.default_rng(0), tables=tables)
