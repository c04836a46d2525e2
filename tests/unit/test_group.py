"""Group claims against exact profiles, and pairs that differ in a group."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import audit
from algorithms.calibration import Gaussian, Laplace
from audit.cases import Asked, requests_for
from audit.claim import (
    ApproxDp,
    Claim,
    GaussianDp,
    PureDp,
    RenyiDp,
    ZeroConcentratedDp,
    gaussian_delta,
    gaussian_mu,
)
from audit.config import CaseConfig
from audit.errors import UsageError
from audit.group import Grouped, grow, in_groups
from audit.mechanism import capability
from audit.pair import Pair


def test_group_parameters() -> None:
    assert PureDp(epsilon=0.5).group(3) == PureDp(epsilon=1.5)
    assert GaussianDp(mu=0.25).group(4) == GaussianDp(mu=1.0)
    assert ZeroConcentratedDp(rho=0.1).group(3).rho == pytest.approx(0.9)
    renyi = RenyiDp(order=32.0, epsilon=0.1).group(3)
    assert (renyi.order, renyi.epsilon) == (8.0, pytest.approx(0.9))
    approx = ApproxDp(epsilon=1.0, delta=1e-5, view="actions").group(3)
    assert approx.epsilon == 3.0
    assert approx.delta == pytest.approx(1e-5 * (1 + math.e + math.e**2))
    assert approx.view == "actions"


@pytest.mark.parametrize("records", [1, 2, 5])
def test_a_gaussian_keeps_the_group_claim_of_its_point(records: int) -> None:
    """k records move a Gaussian's mean k times as far: its delta at k epsilon is below."""
    claim = ApproxDp(epsilon=0.5, delta=1e-5)
    group = claim.group(records)
    truth = gaussian_delta(records * gaussian_mu(0.5, 1e-5), group.epsilon)
    assert truth <= group.delta * (1 + 1e-9)


@pytest.mark.parametrize("records", [1, 2, 4])
def test_zcdp_and_renyi_groups_cover_a_gaussian(records: int) -> None:
    """N(0, 1) against N(mu, 1) has Renyi divergence order mu^2 / 2; k records: k mu."""
    mu = 0.3
    zcdp = ZeroConcentratedDp(rho=mu**2 / 2).group(records)
    assert zcdp.rho == pytest.approx((records * mu) ** 2 / 2)
    renyi = RenyiDp(order=16.0, epsilon=16 * mu**2 / 2).group(records)
    assert renyi.order * (records * mu) ** 2 / 2 <= renyi.epsilon


@pytest.mark.parametrize(
    ("claim", "records", "text"),
    [
        (ApproxDp(epsilon=2.0, delta=0.01), 5, "delta would be"),
        (RenyiDp(order=3.0, epsilon=1.0), 2, "order must be at least 4"),
        (PureDp(epsilon=1.0), 0, "records > 0"),
    ],
)
def test_vacuous_groups_are_refused(claim: Claim, records: int, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        claim.group(records)


def test_neighbours_of_a_group_may_differ_in_so_many_records() -> None:
    assert Pair([1, 2, 3], [4, 2, 5], relation="replace-one", records=2).differs == (0, 2)
    assert Pair([1, 2, 3, 4], [1, 3], relation="add-remove", records=2).records == 2
    with pytest.raises(UsageError, match="one to 2 records"):
        Pair([1, 2, 3], [4, 5, 6], relation="replace-one", records=2)
    with pytest.raises(UsageError, match="one to 2 records more"):
        Pair([1, 2, 3, 4], [4, 1], relation="add-remove", records=2)


@dataclass(frozen=True)
class Stream:
    losses: np.ndarray
    names: tuple[str, ...]
    rounds: int = 3


def test_a_pair_grows_in_every_column() -> None:
    left = Stream(np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]), ("a", "b", "c"))
    right = Stream(np.array([[0.0, 0.0], [0.5, 0.5], [0.0, 0.0]]), ("a", "b", "d"))
    grown = grow(Pair(left, right, "last", "replace-one"), 2)
    assert grown.differs == (1, 2)
    assert grown.left.names == ("a", "c", "c")
    assert grown.right.losses.tolist() == [[0, 0], [0, 0], [0, 0]]
    assert (grown.left.rounds, left.names) == (3, ("a", "b", "c"))
    table = grow(Pair({"x": [1, 2, 3]}, {"x": [9, 2, 3]}), 2)
    assert (table.left, table.right) == ({"x": [1, 1, 3]}, {"x": [9, 9, 3]})


@pytest.mark.parametrize("pair", [Pair(0.0, 1.0), Pair([1, 2], [3, 4]), Pair([1, 2], [1, 3])])
def test_pairs_that_cannot_grow_are_refused(pair: Pair) -> None:
    with pytest.raises(UsageError, match="group"):
        grow(pair, 3)


@dataclass(frozen=True)
class NoisySum:
    """A sum of records in [0, 1] plus Laplace noise; its ratio is written for one change."""

    epsilon: float = 0.2

    @property
    def claim(self) -> PureDp:
        return PureDp(epsilon=self.epsilon, relation="replace-one")

    def pairs(self) -> tuple[Pair, ...]:
        return (Pair([0.0] * 12, [1.0] + [0.0] * 11, relation="replace-one"),)

    def run(self, data: list[float], n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"value": sum(data) + rng.laplace(0.0, 1 / self.epsilon, n)}

    def log_likelihood_ratio(self, views: audit.Views, pair: Pair) -> np.ndarray:
        return self.epsilon * (np.abs(views["value"] - 1) - np.abs(views["value"]))


def test_a_group_hides_what_holds_for_one_record_only() -> None:
    mechanism = NoisySum()
    grouped, pairs = in_groups(mechanism, mechanism.claim.group(10), (), 10)
    assert isinstance(grouped, Grouped)
    assert capability(grouped, "log_likelihood_ratio", "output") is None
    assert grouped.claim == PureDp(epsilon=2.0, relation="replace-one")
    assert sum(pairs[0].right) == 10
    assert list(grouped.pairs()) == list(pairs)


def test_groups_of_a_calibration_weight_have_no_slack() -> None:
    laplace = Laplace(epsilon=0.3)
    assert laplace.exact_profile(laplace.group_pairs(4)[0], 4 * 0.3) == pytest.approx(0, abs=1e-12)
    gaussian = Gaussian(epsilon=1.0, curve="gaussian")
    assert gaussian.mu(gaussian.group_pairs(3)[0]) == pytest.approx(gaussian.claim.group(3).mu)


def test_a_group_shows_a_small_epsilon_with_few_trials() -> None:
    """Epsilon .2 in groups of 10: at least 1.2 of 2 certified from 3,000 runs; 1.8 expected."""
    mechanism = NoisySum()
    claim = mechanism.claim.group(10)
    grouped, pairs = in_groups(mechanism, claim, (), 10)
    result = audit.examine(
        grouped,
        claim=claim,
        pairs=pairs,
        group=10,
        trials=3_000,
        attacks=["leaf", "logistic"],
        seed=1,
    )
    assert 1.2 < result.epsilon_lower <= 2.0
    assert result.ladder is None


def test_a_configured_group_audits_the_group_claim() -> None:
    made, _ = requests_for(Asked(CaseConfig(target="calibration/laplace", group=3)))
    assert made[0].claim.epsilon == pytest.approx(3.0)
    assert made[0].pairs[0].right == pytest.approx(3.0)
    assert (made[0].group, made[0].pairs[0].records) == (3, 3)
    given = CaseConfig(
        target="calibration/laplace", group=2, pairs=[([0, 0], [1, 1])], relation="replace-one"
    )
    assert requests_for(Asked(given))[0][0].pairs[0].differs == (0, 1)
