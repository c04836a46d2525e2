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
_MOST_DRAWS = 256
_POLE = 1e-9


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
        return leading(inverse)

    def follow(self, arm: Array) -> Floats:
        """Play given arms; their log-probabilities, shape (n,)."""
        self._gaps = self.gaps()
        self._known = self._at(frechet_law(self._gaps), arm)
        return np.asarray(np.log(self._known))

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the feedback times the number of redraws until the arm came up again."""
        counts = self._redraws(arm) if self._known is None else self._inverted(self._known)
        self.count_in(arm, feedback, counts)

    def count_in(self, arm: Array, feedback: Floats, counts: Array) -> None:
        """Add the feedback times given numbers of redraws, shape (n,)."""
        self.hidden = {"redraws": counts}
        self._add(arm, feedback * counts)

    def _inverted(self, chance: Floats) -> Array:
        """Geometric counts of known chance by inversion, shape (n,)."""
        uniform = np.maximum(self._rng.random(len(chance)), 1e-300)
        lost = np.log1p(-np.minimum(chance, 1 - 1e-15))
        counts = np.ceil(np.log(uniform) / np.minimum(lost, -1e-300))
        return np.clip(counts, 1, self.cap).astype(np.int64)

    def _redraws(self, arm: Array) -> Array:
        """Geometric counts, shape (n,): redraw in every unfinished trial until its arm wins.

        Given the perturbation ``r = E^(-1/2)`` of the arm, the others all lose with probability
        ``exp(-sum_k (r - gap + gap_k)^-2)``, so a redraw needs two exponentials and no more. The
        fewer trials are left, the more redraws of each are made at once.
        """
        counts = np.full(len(arm), self.cap)
        left, done, many = np.arange(len(arm)), 0, 1
        gaps = self._gaps - self._at(self._gaps, arm)
        while len(left) and done < self.cap:
            wins = self._wins(gaps, many)
            first = wins.argmax(axis=0) if many > 1 else np.zeros(len(left), dtype=np.intp)
            hit = wins[first, np.arange(len(left))] if many > 1 else wins[0]
            counts[left[hit]] = done + 1 + first[hit]
            kept = np.flatnonzero(~hit)
            left, gaps = left[kept], np.take(gaps, kept, axis=1)
            done += many
            many = min(_MOST_DRAWS, self.cap - done, len(arm) // max(1, 2 * len(left)) + 1)
        return counts

    def _wins(self, gaps: Floats, many: int) -> Array:
        """Whether the arm wins in each of `many` redraws, shape (many, n), its own gap being 0."""
        own, spare = self._rng.standard_exponential((2, many, gaps.shape[1]))
        spare += own
        np.sqrt(own, out=own)
        np.reciprocal(own, out=own)
        # Closer than this to the pole of the nearest rival the arm loses for sure.
        nearest = gaps.min(axis=0)
        np.maximum(own, _POLE * (1 + np.abs(nearest)) - nearest, out=own)
        for gap in gaps:
            height = own + gap
            height *= height
            spare -= np.reciprocal(height, out=height)
        # All others lose with probability exp(-needed), so an exponential has to exceed that; the
        # sum over all arms holds the arm's own E too, which `spare` was given in advance.
        return np.asarray(spare > 0)


def leading(scores: Floats) -> Array:
    """Index of the largest entry of every column, shape (n,); faster than argmax for few rows."""
    best, arm = scores[0].copy(), np.zeros(scores.shape[1], dtype=np.intp)
    for index, row in enumerate(scores[1:], start=1):
        better = row > best
        arm += (index - arm) * better
        np.maximum(best, row, out=best)
    return arm


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
