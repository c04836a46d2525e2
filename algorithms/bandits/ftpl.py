"""Follow the perturbed leader with Frechet perturbations, and the exact law of its actions.

Honda, Ito and Tsuchiya, "Follow-the-perturbed-leader achieves best-of-both-worlds for bandit
problems" (2023): perturbations of law ``F(x) = exp(-1 / x^2)``, rate ``eta_j = c / sqrt(j)``, and
importance weights estimated by geometric resampling (Neu and Bartok 2016). The rate for feedback
with Laplace noise divides c = .42 by sqrt(3), the root of the second moment of a loss in [0, 1]
plus Laplace noise of scale at most 1: a reconstruction.

Claim: none. A base learner promises no privacy of its own; see `algorithms.bandits.conversion`.
"""

from __future__ import annotations

import math

import numpy as np

from algorithms.bandits.learners import Array, Estimating, Floats, Setting
from audit.errors import UsageError

RATE = 0.42
_NODES = 96
_MOST_DRAWS = 64


class Ftpl(Estimating):
    """FTPL with Frechet(2) perturbations and geometric resampling.

    Args:
        setting: What the learner knows beforehand.
        rate: The constant c of ``eta_j = c / sqrt(j)``; ``.42 / (sqrt(3) R)`` when omitted.
        cap: Largest number of redraws counted.

    Raises:
        UsageError: For a rate <= 0 or a cap < 1.
    """

    def __init__(self, setting: Setting, rate: float | None = None, cap: int = 10_000) -> None:
        super().__init__(setting)
        self.rate = RATE / (math.sqrt(3) * setting.bound) if rate is None else rate
        self.cap = cap
        if not (self.rate > 0 and cap >= 1):
            raise UsageError(
                f"ftpl: expected rate > 0 and cap >= 1, got rate={rate!r}, cap={cap!r}; omit both "
                "for the standard ones"
            )

    @property
    def eta(self) -> float:
        """Learning rate of the coming update."""
        return self.rate / math.sqrt(self.count + 1)

    def gaps(self) -> Floats:
        """``eta (L - min L)``, shape (K, n)."""
        gaps = self.losses - self.losses.min(axis=0)
        gaps *= self.eta
        return np.asarray(gaps)

    def probs(self) -> Floats:
        """Exact law of the next action, by quadrature, shape (K, n)."""
        return frechet_law(self.gaps())

    def act(self) -> Array:
        """The arm of the smallest perturbed estimate; shape (n,)."""
        self._gaps = self.gaps()
        self._known: Floats | None = None
        inverse = self._rng.standard_exponential(self._gaps.shape)
        np.sqrt(inverse, out=inverse)
        np.reciprocal(inverse, out=inverse)
        inverse -= self._gaps
        return np.asarray(inverse.argmax(axis=0))

    def follow(self, arm: Array) -> Floats:
        """Play given arms; their log-probabilities, shape (n,)."""
        self._gaps = self.gaps()
        self._known = self._at(frechet_law(self._gaps), arm)
        return np.asarray(np.log(self._known))

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the feedback times the number of redraws until the arm came up again."""
        if self._known is None:
            counts = self._redraws(arm)
        else:
            counts = np.minimum(self._rng.geometric(np.minimum(self._known, 1.0)), self.cap)
        self.count_in(arm, feedback, counts)

    def count_in(self, arm: Array, feedback: Floats, counts: Array) -> None:
        """Add the feedback times given numbers of redraws, shape (n,)."""
        self.hidden = {"redraws": counts}
        self._add(arm, feedback * counts)

    def _redraws(self, arm: Array) -> Array:
        """Geometric counts, shape (n,): redraw in every unfinished trial until its arm wins.

        Given the perturbation r of the arm, the others all lose with probability
        ``exp(-sum_k (r - gap + gap_k)^-2)``, so a redraw needs one perturbation and one coin. The
        fewer trials are left, the more redraws of each are made at once.
        """
        counts = np.full(len(arm), self.cap)
        left, done = np.arange(len(arm)), 0
        own, others = self._at(self._gaps, arm), self._others(arm)
        while len(left) and done < self.cap:
            many = min(_MOST_DRAWS, self.cap - done, max(1, len(arm) // len(left)))
            wins = self._wins(own[left], others[:, left], many)
            first = wins.argmax(axis=0)
            hit = wins[first, np.arange(len(left))]
            counts[left[hit]] = done + 1 + first[hit]
            left, done = left[~hit], done + many
        return counts

    def _others(self, arm: Array) -> Floats:
        """Gaps of the arms not played, shape (K - 1, n)."""
        rows = np.arange(self.setting.arms - 1)[:, None]
        return np.take_along_axis(self._gaps, rows + (rows >= arm), axis=0)

    def _wins(self, own: Floats, others: Floats, many: int) -> Array:
        """Whether the arm wins in each of `many` redraws, shape (many, n)."""
        perturbed = self._rng.standard_exponential((many, len(own)))
        np.sqrt(perturbed, out=perturbed)
        np.reciprocal(perturbed, out=perturbed)
        perturbed -= own
        needed = np.zeros_like(perturbed)
        for gap in others:
            height = np.maximum(perturbed + gap, 1e-150)
            height *= height
            needed += np.reciprocal(height, out=height)
        # All others lose with probability exp(-needed): an exponential exceeds `needed`.
        return self._rng.standard_exponential(perturbed.shape) > needed


def frechet_law(gaps: Floats) -> Floats:
    """Law of ``argmax_i r_i - gaps_i`` for independent Frechet(2) variables r.

    Args:
        gaps: Shape (K, n), non-negative, the smallest of each column 0.

    Returns:
        Shape (K, n): ``2 (z + g_i)^-3 exp(-sum_j (z + g_j)^-2)`` integrated over z > 0 by
        Gauss-Legendre quadrature in ``u = z / (1 + z)``, columns summing to 1.
    """
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    law = np.zeros_like(gaps)
    for u, weight in zip((points + 1) / 2, weights / 2, strict=True):
        inverse = 1 / (gaps + u / (1 - u))
        squares = inverse * inverse
        density = np.exp(-squares.sum(axis=0)) * (2 * weight / (1 - u) ** 2)
        inverse *= squares
        inverse *= density
        law += inverse
    return np.asarray(law / law.sum(axis=0))


def guarantee(arms: int, rounds: int, rate: float = RATE) -> float:
    """Regret of FTPL on losses in [0, 1] without noise (Honda, Ito and Tsuchiya 2023).

    ``(12 c sqrt(pi) + 3.7 / c) sqrt(K T) + 10 c + sqrt(pi K) / c``.
    """
    slope = 12 * rate * math.sqrt(math.pi) + 3.7 / rate
    return slope * math.sqrt(arms * rounds) + 10 * rate + math.sqrt(math.pi * arms) / rate
