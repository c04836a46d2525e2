"""A choice made at random: randomised response, exponential mechanism, report-noisy-max.

Claim: randomised response tells the truth exp(epsilon) times as often as any other answer. The
exponential mechanism and noisy max see scores that each move by at most `sensitivity` between
neighbours, so that the odds of a choice move by at most exp(2 sensitivity / scale), which is
exp(epsilon) at the calibrated scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy import special

from algorithms.calibration.base import Calibrated, require_positive
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Array, Floats, Views

_TAIL = 45.0  # noise scales beyond which a Laplace tail is below the last place of a double


@dataclass(frozen=True)
class RandomisedResponse(Calibrated):
    """One answer out of `categories`, the truth with probability e^eps / (e^eps + categories - 1).

    epsilon-DP, and the extreme point of all epsilon-DP mechanisms (Warner 1965; Kairouz, Oh and
    Viswanath 2015). Its noise is the Gumbel noise, of scale 1/epsilon, that hides which category
    scores one; `scale` and `noise_scaled` speak of that.

    Attributes:
        categories: Number of possible answers, 0 to categories - 1.
    """

    categories: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_choices(self, "categories", self.categories)

    def _calibrated_scale(self) -> float:
        return 1 / self.epsilon

    @property
    def truth(self) -> float:
        """Probability of the true answer."""
        return 1 / (1 + (self.categories - 1) * math.exp(-1 / self.declared_scale))

    @property
    def lie(self) -> float:
        """Probability of each false answer."""
        return self.truth * math.exp(-1 / self.declared_scale)

    def pairs(self) -> tuple[Pair, ...]:
        """Two different true answers; all such pairs are alike."""
        return (Pair(0, 1, "two true answers"),)

    def run(self, data: int, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Answers: ``choice``, shape (n,), integers."""
        other = rng.integers(1, self.categories, n)
        lies = rng.random(n) >= self.truth
        return {"choice": (int(data) + lies * other) % self.categories}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """1/scale for the left answer, -1/scale for the right one, 0 for any other; shape (n,)."""
        choice = views["choice"]
        sign = (choice == pair.left).astype(float) - (choice == pair.right)
        return np.asarray(sign / self.declared_scale, dtype=float)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """``max(0, truth - exp(epsilon) lie)``."""
        if pair.left == pair.right:
            return 0.0
        return max(0.0, self.truth - math.exp(epsilon) * self.lie)


@dataclass(frozen=True)
class Selection(Calibrated):
    """Base of the mechanisms that choose the best of some scores.

    Attributes:
        sensitivity: How far one score can move between neighbours.
        candidates: Number of scores in the pairs offered.
    """

    sensitivity: float = 1.0
    candidates: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "sensitivity")
        _require_choices(self, "candidates", self.candidates)

    def _calibrated_scale(self) -> float:
        return 2 * self.sensitivity / self.epsilon

    def pairs(self) -> tuple[Pair, ...]:
        """One score moves down, all others up; the gap decides how much of epsilon shows.

        With a gap of three sensitivities nearly all of epsilon shows, in a rare choice; without
        a gap less of it shows, in a frequent one.
        """
        return tuple(
            Pair(self._scores(0.0, gap), self._scores(-1.0, gap + 1), f"gap {gap:g}")
            for gap in (3.0, 0.0)
        )

    def _scores(self, first: float, others: float) -> tuple[float, ...]:
        row = (first, *(others,) * (self.candidates - 1))
        return tuple(self.sensitivity * score for score in row)

    def law(self, scores: Sequence[float]) -> Floats:
        """Probability of each choice, same length as `scores`."""
        raise NotImplementedError

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Log ratio of the probabilities of the choice made, shape (n,)."""
        table = np.log(self.law(pair.left)) - np.log(self.law(pair.right))
        return np.asarray(table[views["choice"].astype(int)], dtype=float)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Hockey-stick divergence of the two exact laws, the larger of both directions."""
        p, q = self.law(pair.left), self.law(pair.right)
        grown = math.exp(epsilon)
        return max(float(np.maximum(a - grown * b, 0.0).sum()) for a, b in ((p, q), (q, p)))


class Exponential(Selection):
    """The exponential mechanism: choice i with probability proportional to exp(score_i / scale).

    epsilon-DP at scale 2 sensitivity/epsilon by McSherry and Talwar (2007), Theorem 6. It is
    noisy max with Gumbel noise of that scale, and is sampled so.
    """

    def law(self, scores: Sequence[float]) -> Floats:
        """Softmax of the scores over the scale."""
        return np.asarray(special.softmax(np.asarray(scores) / self.declared_scale), dtype=float)

    def run(self, data: Sequence[float], n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Index of the largest noisy score: ``choice``, shape (n,)."""
        noise = rng.gumbel(0.0, self.declared_scale, (n, len(data)))
        return {"choice": np.argmax(np.asarray(data, dtype=float) + noise, axis=1)}


class NoisyMax(Selection):
    """Report-noisy-max: the index of the largest score plus Laplace noise, never the value.

    epsilon-DP at scale 2 sensitivity/epsilon (Dwork and Roth 2014, Claim 3.9, for scores that
    may move in both directions).
    """

    def law(self, scores: Sequence[float]) -> Floats:
        """P(i) = integral of the density of score i times the cdf of every other, by quadrature."""
        return _noisy_max_law(tuple(float(s) / self.declared_scale for s in scores))

    def run(self, data: Sequence[float], n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Index of the largest noisy score: ``choice``, shape (n,)."""
        noise = rng.laplace(0.0, self.declared_scale, (n, len(data)))
        return {"choice": np.argmax(np.asarray(data, dtype=float) + noise, axis=1)}


@lru_cache(maxsize=64)
def _noisy_max_law(scores: tuple[float, ...]) -> Floats:
    x, weights = _nodes(scores)
    distance = x[:, None] - np.asarray(scores)
    tail = np.exp(-np.abs(distance)) / 2
    below = np.where(distance < 0, tail, 1 - tail)
    law = np.array(
        [
            np.sum(weights * tail[:, i] * np.delete(below, i, axis=1).prod(axis=1))
            for i in range(len(scores))
        ]
    )
    law.setflags(write=False)
    return law


def _nodes(scores: tuple[float, ...]) -> tuple[Floats, Floats]:
    # Half-unit panels that break at every kink: the integrand is smooth on each.
    kinks = np.unique([*scores, min(scores) - _TAIL, max(scores) + _TAIL])
    edges = np.unique(
        np.concatenate([np.linspace(a, b, 1 + math.ceil(2 * (b - a))) for a, b in pairwise(kinks)])
    )
    node, weight = np.polynomial.legendre.leggauss(24)
    half = np.diff(edges) / 2
    x = (edges[:-1] + half)[:, None] + half[:, None] * node
    return x.ravel(), (half[:, None] * weight).ravel()


def _require_choices(owner: object, name: str, count: int) -> None:
    if not isinstance(count, int) or count < 2:
        raise UsageError(
            f"{type(owner).__name__}: expected an integer {name} >= 2, got {name}={count!r}; "
            "there must be something to choose"
        )
