"""What the power benchmark plays: mechanisms with their exact scores, as plain functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

import audit
from algorithms.broken.cases import CASES
from algorithms.calibration import Gaussian, Laplace, RandomisedResponse
from audit import bounds
from audit.certificate import certified_epsilon
from audit.claim import ApproxDp, GaussianDp, RenyiClaim, gaussian_mu
from audit.mechanism import FunctionMechanism, Mechanism
from audit.pair import Pair
from audit.ranksum import rank_sum_mu
from audit.view import collect
from tests.unit.sparse_vector import law_of

Floats = npt.NDArray[np.float64]
Score = Callable[[object], Floats]

DELTA = 1e-5
BINS = 128


@dataclass(frozen=True)
class GameOf:
    """A mechanism on its pair.

    Attributes:
        mechanism: What is played.
        epsilon: Its true epsilon on the pair.
        score: What it emits to the exact log-likelihood ratio.
    """

    mechanism: Mechanism
    epsilon: float
    score: Callable[[object, int], Floats]

    @property
    def pair(self) -> Pair:
        """The pair that is played."""
        return self.mechanism.pairs()[0]

    def scores(self, runs: int, seed: int) -> tuple[Floats, Floats]:
        """Exact scores of the two sides, half of the runs each."""
        rng = np.random.default_rng(seed)
        sides = (self.pair.left, self.pair.right)
        left, right = (
            np.round(self.score(self.mechanism.run(side, runs // 2, rng), runs // 2), 9)
            for side in sides
        )
        return left, right

    def fixed(self, runs: int, seed: int, alpha: float) -> float:
        """The binomial bound with fair labels, guessing where the score is at its bound."""
        rng = np.random.default_rng(seed)
        lefts = int(rng.binomial(runs, 0.5))
        rounded = [
            np.round(self.score(self.mechanism.run(side, n, rng), n), 9)
            for side, n in ((self.pair.left, lefts), (self.pair.right, runs - lefts))
        ]
        sure = self.epsilon - 1e-6
        right = int(np.sum(rounded[0] >= sure) + np.sum(rounded[1] <= -sure))
        wrong = int(np.sum(rounded[0] <= -sure) + np.sum(rounded[1] >= sure))
        return bounds.binomial_epsilon(right, wrong, alpha)

    def audit(self, runs: int, seed: int, alpha: float) -> float:
        """What a whole audit of the plain function certifies, as epsilon.

        A certified mu is stated as the epsilon of that Gaussian at 1e-5.
        """
        plain = plain_function(self.mechanism)
        result = audit.examine(plain, trials=runs, alpha=alpha, seed=seed, early_stop=False)
        if not isinstance(result.claim, GaussianDp):
            return result.epsilon_lower
        return GaussianDp(mu=max(result.parameter_lower or 0.0, 1e-3)).epsilon_at(DELTA)


def plain_function(mechanism: Mechanism) -> FunctionMechanism:
    """The mechanism without anything that it knows about itself."""
    return FunctionMechanism(mechanism.run, mechanism.claim, tuple(mechanism.pairs()), batched=True)


def _exact(mechanism: Laplace | Gaussian | RandomisedResponse, epsilon: float) -> GameOf:
    pair = mechanism.pairs()[0]
    return GameOf(
        mechanism,
        epsilon,
        lambda emitted, n: mechanism.log_likelihood_ratio(collect(emitted, n), pair),
    )


def laplace(epsilon: float) -> GameOf:
    """A count with Laplace noise, as private as it claims."""
    return _exact(Laplace(epsilon=epsilon), epsilon)


def half_noise() -> GameOf:
    """A count with half the noise that its claim of 1 needs."""
    return _exact(Laplace(epsilon=1.0, scale=0.5), 2.0)


def randomised_response() -> GameOf:
    """One bit."""
    return _exact(RandomisedResponse(epsilon=1.0), 1.0)


def gaussian() -> GameOf:
    """A count with Gaussian noise, its whole curve claimed."""
    return _exact(Gaussian(epsilon=1.0, delta=DELTA, curve="gaussian"), 1.0)


@cache
def sparse_vector() -> GameOf:
    """The sparse vector whose query noise ignores the cut-off (Lyu, Su and Li 2017, Alg. 4)."""
    case = CASES["sparse-vector"]
    pair = case.pair
    laws = [law_of(side) for side in (pair.left, pair.right)]
    ratio = {answers: math.log(laws[0][answers] / laws[1][answers]) for answers in laws[0]}

    def score(emitted: object, n: int) -> Floats:
        rows = collect(emitted, n)["answers"].astype(int)
        kinds, where = np.unique(rows, axis=0, return_inverse=True)
        return np.array([ratio[tuple(kind)] for kind in kinds.tolist()])[where.ravel()]

    mechanism = FunctionMechanism(case.mechanism.run, case.claim, (pair,), batched=True)
    return GameOf(mechanism, 2.9595, score)


def certificate(runs: int, seed: int, alpha: float) -> float:
    """Certified epsilon of the Gaussian at 1e-5 from tilted runs in one direction."""
    mechanism = Gaussian(epsilon=1.0, delta=DELTA)
    pair = mechanism.pairs()[0]
    mu, rng = mechanism.mu(pair), np.random.default_rng(seed)
    tilt = 1.08 / mu**2 - 0.5  # mean loss 1.08: mu^2 / 2 + tilt mu^2
    emitted, log_weights = mechanism.tilted_run(pair, tilt, runs, rng)
    losses = mechanism.log_likelihood_ratio(collect(emitted, runs), pair)
    return certified_epsilon(losses, log_weights, alpha, DELTA)


def gaussian_limit(ratio: float, alpha: float, power: float) -> int:
    """Runs that the best test of mu needs to refute (1, 1e-5)'s mu when the truth is `ratio` mu.

    The difference of the means of both sides: variance 4 over all runs.
    """
    gap = (ratio - 1) * gaussian_mu(1.0, DELTA)
    reach = special.ndtri(1 - alpha) + special.ndtri(power)
    return math.ceil(4 * float(reach / gap) ** 2)


def refutes_mu(ratio: float, runs: int, seed: int, alpha: float) -> float:
    """1 when the rank sum of binned exact scores refutes mu, else 0."""
    mu, rng = gaussian_mu(1.0, DELTA), np.random.default_rng(seed)
    lefts = int(rng.binomial(runs, 0.5))
    left, right = rng.normal(ratio * mu, 1.0, lefts), rng.normal(0.0, 1.0, runs - lefts)
    edges = special.ndtri(np.arange(1, BINS) / BINS) + ratio * mu / 2
    counts = [np.bincount(np.searchsorted(edges, s), minlength=BINS) for s in (left, right)]
    return float(rank_sum_mu(counts[0], counts[1], alpha, 0) > mu)


def renyi_stopping(mu: float, claim: RenyiClaim, budget: int, seed: int, *, own: bool) -> float:
    """Testifying runs until Gaussian noise refutes; the budget when it does not.

    Args:
        mu: True mu.
        claim: A claim about Renyi divergences.
        budget: Runs in all.
        seed: Seed.
        own: By the claim in its own terms; else by the point of its profile that suits best.
    """

    def noisy(data: list[float], trials: int, rng: np.random.Generator) -> Floats:
        return np.asarray(data[0] + rng.normal(size=trials))

    points = [ApproxDp(epsilon=e, delta=d) for e, d in claim.points()]
    spent = []
    for stated in [claim] if own else points:
        mechanism = FunctionMechanism(noisy, stated, (Pair([0.0], [mu]),), batched=True)
        result = audit.examine(mechanism, trials=budget, alpha=0.05, seed=seed)
        spent.append(float(result.trials if result.stopped else budget))
    return min(spent)


def stopping(true: float, claim: float, budget: int, seed: int, scouting: bool) -> float:
    """Runs until an audit with early stopping refutes; the budget when it does not."""
    mechanism = Laplace(epsilon=claim, scale=1 / true)
    result = audit.examine(mechanism, trials=budget, alpha=0.05, seed=seed)
    if not result.stopped:
        return float(budget)
    return float(result.trials + (result.scouting if scouting else 0))
