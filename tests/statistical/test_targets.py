"""What the audit promises to reach, over many seeds: ``python -m pytest -m slow``.

Medians are compared with targets that lie below the expected median by several of its standard
errors; false-alarm counts state the probability of failing by chance.
"""

from __future__ import annotations

from statistics import median

import pytest

import audit
from algorithms.bandits.conversion import BatchedLaplace
from algorithms.broken.cases import CASES
from algorithms.calibration import Laplace
from algorithms.pricing.private_cov import PrivateCov
from audit.claim import GaussianDp
from audit.mechanism import Mechanism
from audit.record import CaseResult

pytestmark = pytest.mark.slow
SEEDS = range(50)


def results(mechanism: Mechanism, seeds: range = SEEDS, **settings: object) -> list[CaseResult]:
    return [audit.examine(mechanism, seed=seed, **settings) for seed in seeds]  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.93), (4.0, 3.7)])
@pytest.mark.parametrize("attacks", [None, ["form", "atoms", "leaf", "membership", "logistic"]])
def test_laplace_is_certified_nearly_in_full(
    epsilon: float, least: float, attacks: list[str] | None
) -> None:
    found = results(Laplace(epsilon=epsilon), alpha=0.05, attacks=attacks)
    assert median(r.epsilon_lower for r in found) >= least
    # At most alpha of the bounds may exceed the truth: P(Bin(50, .05) > 8) < .001.
    assert sum(r.epsilon_lower > epsilon for r in found) <= 8


def test_the_threshold_canary_shows_the_whole_epsilon() -> None:
    canary = BatchedLaplace(learner="threshold", epsilon=1.0, horizon=20, arms=2, view="actions")
    found = results(canary, range(20), alpha=0.05)
    assert median(r.epsilon_lower for r in found) >= 0.9
    assert sum(r.epsilon_lower > 1 for r in found) <= 5  # P(Bin(20, .05) > 5) < .001


def test_tree_sums_by_counting_reach_85_percent_of_the_oracle() -> None:
    sums = PrivateCov(epsilon=1.0, delta=1e-5)
    found = results(sums, trials=200_000, alpha=0.05, attacks=["likelihood"])
    assert median(r.epsilon_lower for r in found) >= 0.85 * 0.72
    assert sum(r.epsilon_lower > 1 for r in found) <= 8


def test_tree_sums_as_a_gaussian_claim_reach_90_percent_of_mu() -> None:
    sums = PrivateCov(epsilon=1.0, delta=1e-5, claim_as="gaussian")
    assert isinstance(sums.claim, GaussianDp)
    found = results(sums, range(20), trials=200_000, alpha=0.05, attacks=["likelihood"])
    certified = [r.parameter_lower or 0.0 for r in found]
    assert median(certified) >= 0.9 * sums.claim.mu
    assert sum(mu > sums.claim.mu for mu in certified) <= 5


@pytest.mark.parametrize(("alpha", "most"), [(0.05, 120), (1e-3, 300)])
@pytest.mark.parametrize("attacks", [None, ["form", "atoms", "leaf", "membership", "logistic"]])
def test_half_the_noise_is_refuted_within_a_few_trials(
    alpha: float, most: int, attacks: list[str] | None
) -> None:
    found = results(Laplace(epsilon=1.0).noise_scaled(0.5), alpha=alpha, attacks=attacks)
    assert all(r.verdict == "refuted" and r.stopped for r in found)
    assert median(r.trials for r in found) <= most


@pytest.mark.parametrize("name", sorted(CASES))
def test_known_cases_come_out_right(name: str) -> None:
    """Flags: ten times the runs that an auditor needs who knows the best event; 3 of 3 seeds."""
    case = CASES[name]
    trials = max(200, 20 * case.n) if case.must == "flag" else 20_000
    for seed in range(3):
        result = audit.examine(
            case.mechanism,
            claim=case.claim,
            pairs=[case.pair],
            view=case.view,
            trials=trials,
            seed=seed,
        )
        assert (result.verdict == "refuted") == (case.must == "flag"), (seed, result.findings)
