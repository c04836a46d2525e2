"""How often the whole audit wrongs a mechanism whose claim has no slack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import stats

import audit
from algorithms.calibration import Gaussian, Laplace, RandomisedResponse
from audit.claim import AnyClaim, GaussianDp, RenyiDp, ZeroConcentratedDp
from audit.mechanism import FunctionMechanism, Mechanism
from audit.pair import Pair
from tests.coverage.laws import Row

ALPHA = 0.05
_FEW = 100
GAUSSIAN_1 = GaussianDp(mu=1.0).epsilon_at(1e-5)
Attacks = Sequence[str] | None


@dataclass(frozen=True)
class Subject:
    """A mechanism that is exactly as private as it claims.

    Attributes:
        name: For reports.
        mechanism: The mechanism.
        epsilon: True epsilon at `delta` (where an audit confronts another point of a curve, the
            truth is read off the curve there).
        delta: The delta.
    """

    name: str
    mechanism: Mechanism
    epsilon: float
    delta: float

    def wronged(self, trials: int, seed: int, attacks: Attacks = None) -> bool:
        """Whether one audit refutes the claim, or certifies more than the truth.

        Audits with even seeds may stop early.
        """
        result = audit.examine(
            self.mechanism,
            trials=trials,
            alpha=ALPHA,
            seed=seed,
            early_stop=seed % 2 == 0,
            attacks=attacks,
        )
        assert result.choice is not None, result.findings
        truth = result.claim.epsilon_at(result.delta)
        return result.verdict == "refuted" or result.epsilon_lower > truth * (1 + 1e-12)


def _noisy(data: list[float], trials: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    return np.asarray(data[0] + rng.normal(size=trials))


def _noise(claim: AnyClaim) -> FunctionMechanism:
    """Gaussian noise of mu 1, under another name."""
    return FunctionMechanism(_noisy, claim, (Pair([0.0], [1.0]),), batched=True)


SUBJECTS = (
    Subject("Laplace", Laplace(epsilon=1.0), 1.0, 0.0),
    Subject("randomised response", RandomisedResponse(epsilon=1.0), 1.0, 0.0),
    Subject("Gaussian as a curve", Gaussian(epsilon=1.0, curve="gaussian"), 1.0, 1e-5),
    Subject("Gaussian at a point", Gaussian(epsilon=1.0, delta=1e-2), 1.0, 1e-2),
    Subject("Gaussian as .5-zCDP", _noise(ZeroConcentratedDp(rho=0.5)), GAUSSIAN_1, 1e-5),
    Subject("Gaussian as (2, 1)-RDP", _noise(RenyiDp(order=2.0, epsilon=1.0)), GAUSSIAN_1, 1e-5),
)


def tolerated(audits: int, alpha: float = ALPHA, false_alarm: float = 1e-4) -> int:
    """Most wronged audits that a valid procedure reaches but with probability `false_alarm`."""
    return int(stats.binom.isf(false_alarm, audits, alpha))


def count(subject: Subject, trials: int, seeds: Sequence[int], attacks: Attacks = None) -> int:
    """Number of wronged audits."""
    tasks = [delayed(subject.wronged)(trials, seed, attacks) for seed in seeds]
    return sum(Parallel(n_jobs=-1 if len(tasks) > _FEW else 1)(tasks))


def pipeline_rows(trials: int, audits: int) -> list[Row]:
    """The whole audit on every subject, as rows of the coverage table."""
    slack = tolerated(audits) / audits - ALPHA
    return [
        Row(
            who=f"whole audit, {audits} seeds: {subject.name}",
            epsilon=subject.epsilon,
            delta=subject.delta,
            trials=trials,
            abstention="scouted",
            nominal=ALPHA,
            measured=count(subject, trials, range(audits)) / audits,
            tolerance=slack,
        )
        for subject in SUBJECTS
    ]
