"""Noise added to an exact answer: Laplace, Gaussian and discrete Laplace.

Claim: the answers of neighbours differ by at most `sensitivity` (one number, or the Euclidean
norm of a vector for the Gaussian), and the noise is as wide as the theorem cited at each class
asks for that sensitivity. On the pair that each mechanism offers the claim has zero slack.

The data are the exact answer itself, so the pair is the two answers of neighbouring databases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from algorithms.calibration.base import Calibrated, require_positive
from algorithms.primitives.tilting import gaussian_log_weights
from audit.claim import AnyClaim, ApproxDp, GaussianDp, gaussian_delta, gaussian_mu
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Array, Floats, Views


@dataclass(frozen=True)
class Laplace(Calibrated):
    """One number plus Laplace noise of scale sensitivity/epsilon.

    epsilon-DP by Dwork, McSherry, Nissim and Smith (2006), Proposition 1.

    Attributes:
        sensitivity: Largest difference of the answers of neighbours.
    """

    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "sensitivity")

    def _calibrated_scale(self) -> float:
        return self.sensitivity / self.epsilon

    def pairs(self) -> tuple[Pair, ...]:
        """Two answers as far apart as neighbours can be."""
        return (Pair(0.0, float(self.sensitivity), "answers one sensitivity apart"),)

    def group_pairs(self, records: int) -> tuple[Pair, ...]:
        """Two answers as far apart as `records` changed records can put them."""
        return (_group_pair(records * float(self.sensitivity), records),)

    def run(self, data: float, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Noisy answers: ``value``, shape (n,)."""
        return {"value": float(data) + rng.laplace(0.0, self.declared_scale, n)}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``(|y - right| - |y - left|) / scale``, shape (n,)."""
        return laplace_llr(views["value"], pair.left, pair.right, self.declared_scale)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """``max(0, 1 - exp((epsilon - distance/scale) / 2))``."""
        distance = abs(float(pair.left) - float(pair.right)) / self.declared_scale
        return max(0.0, -math.expm1((epsilon - distance) / 2))


@dataclass(frozen=True)
class Gaussian(Calibrated):
    """A number or vector plus spherical Gaussian noise, analytically calibrated.

    mu-GDP with mu = sensitivity/scale, a curve that meets (epsilon, delta) exactly at the
    calibrated scale (Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Theorem 2.7).

    Attributes:
        delta: The delta claimed at `epsilon`.
        sensitivity: Largest Euclidean distance of the answers of neighbours.
        curve: ``approx`` to claim the point (epsilon, delta), ``gaussian`` to claim the whole
            mu-GDP curve through it.
    """

    delta: float = 1e-5
    sensitivity: float = 1.0
    curve: str = "approx"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "delta", "sensitivity")
        if self.delta >= 1:
            raise UsageError(f"Gaussian: expected delta < 1, got delta={self.delta!r}; lower it")
        if self.curve not in ("approx", "gaussian"):
            raise UsageError(
                f"Gaussian: expected curve 'approx' or 'gaussian', got curve={self.curve!r}; "
                "choose which of the two it claims"
            )

    @property
    def claim(self) -> AnyClaim:
        """(epsilon, delta)-DP, or mu-GDP when `curve` is ``gaussian``."""
        if self.curve == "gaussian":
            return GaussianDp(mu=gaussian_mu(self.epsilon, self.delta), source="Gaussian.curve")
        return ApproxDp(
            epsilon=self.epsilon, delta=self.delta, source="Gaussian.epsilon, Gaussian.delta"
        )

    def _calibrated_scale(self) -> float:
        return self.sensitivity / gaussian_mu(self.epsilon, self.delta)

    def pairs(self) -> tuple[Pair, ...]:
        """Two answers as far apart as neighbours can be."""
        return (Pair(0.0, float(self.sensitivity), "answers one sensitivity apart"),)

    def group_pairs(self, records: int) -> tuple[Pair, ...]:
        """Two answers as far apart as `records` changed records can put them."""
        return (_group_pair(records * float(self.sensitivity), records),)

    def run(self, data: Array | float, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Noisy answers: ``value``, shape (n,) for a number, (n, d) for a vector."""
        answer = np.asarray(data, dtype=float)
        return {"value": answer + rng.normal(0.0, self.declared_scale, (n, *answer.shape))}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``(|y - right|^2 - |y - left|^2) / (2 scale^2)``, shape (n,)."""
        return gaussian_llr(views["value"], pair.left, pair.right, self.declared_scale)

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Floats]:
        """Answers from the law proportional to ``exp(tilt L) P_left``, and their log weights."""
        emitted = self.run(pair.left, n, rng)
        emitted["value"] = emitted["value"] + tilt * _difference(pair)
        losses = gaussian_llr(emitted["value"], pair.left, pair.right, self.declared_scale)
        return emitted, gaussian_log_weights(losses, self.mu(pair), tilt)

    def mu(self, pair: Pair) -> float:
        """Distance of the answers over the scale."""
        return float(np.linalg.norm(np.ravel(_difference(pair)))) / self.declared_scale

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Profile of mu-GDP with mu the distance of the answers over the scale."""
        mu = self.mu(pair)
        return gaussian_delta(mu, epsilon) if mu else 0.0


def _group_pair(distance: float, records: int) -> Pair:
    return Pair(type(distance)(0), distance, f"answers {records} records apart", records=records)


def _difference(pair: Pair) -> Floats:
    left, right = np.asarray(pair.left, dtype=float), np.asarray(pair.right, dtype=float)
    return np.asarray(left - right, dtype=float)


@dataclass(frozen=True)
class DiscreteLaplace(Calibrated):
    """An integer plus two-sided geometric noise, ``P(k)`` proportional to ``exp(-|k|/scale)``.

    epsilon-DP at scale sensitivity/epsilon by Ghosh, Roughgarden and Sundararajan (2012).

    Attributes:
        sensitivity: Largest difference of the integer answers of neighbours.
    """

    sensitivity: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "sensitivity")
        if self.sensitivity != int(self.sensitivity):
            raise UsageError(
                f"DiscreteLaplace: expected an integer sensitivity, got {self.sensitivity!r}; "
                "use Laplace for answers that are not integers"
            )

    def _calibrated_scale(self) -> float:
        return self.sensitivity / self.epsilon

    def pairs(self) -> tuple[Pair, ...]:
        """Two answers as far apart as neighbours can be."""
        return (Pair(0, int(self.sensitivity), "answers one sensitivity apart"),)

    def group_pairs(self, records: int) -> tuple[Pair, ...]:
        """Two answers as far apart as `records` changed records can put them."""
        return (_group_pair(records * int(self.sensitivity), records),)

    def run(self, data: int, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Noisy integers: ``value``, shape (n,)."""
        up, down = rng.geometric(-math.expm1(-1 / self.declared_scale), (2, n))
        return {"value": int(data) + up - down}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``(|y - right| - |y - left|) / scale``, shape (n,)."""
        return laplace_llr(views["value"], pair.left, pair.right, self.declared_scale)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Left tail of the lower answer against that of the higher, at the best integer."""
        distance = abs(int(pair.left) - int(pair.right))
        best = math.floor((distance - epsilon * self.declared_scale) / 2)
        return max(0.0, *(self._gain(t, distance, epsilon) for t in (best - 1, best, best + 1)))

    def _gain(self, threshold: int, distance: int, epsilon: float) -> float:
        return self._below(threshold) - math.exp(epsilon) * self._below(threshold - distance)

    def _below(self, k: int) -> float:
        step = math.exp(-1 / self.declared_scale)
        if k < 0:
            return math.exp(k / self.declared_scale) / (1 + step)
        return 1 - math.exp(-(k + 1) / self.declared_scale) / (1 + step)


def laplace_llr(values: Floats, left: Array | float, right: Array | float, scale: float) -> Floats:
    """Log-likelihood ratio of an answer under independent Laplace or two-sided geometric noise.

    Args:
        values: Noisy answers, shape (n, ...).
        left: Exact answer on the left, shape (...).
        right: Exact answer on the right, shape (...).
        scale: Noise scale of every coordinate.

    Returns:
        ln P_left/P_right, shape (n,).
    """
    return _total((np.abs(values - right) - np.abs(values - left)) / scale)


def gaussian_llr(values: Floats, left: Array | float, right: Array | float, scale: float) -> Floats:
    """Log-likelihood ratio of an answer under spherical Gaussian noise.

    Args:
        values: Noisy answers, shape (n, ...).
        left: Exact answer on the left, shape (...).
        right: Exact answer on the right, shape (...).
        scale: Standard deviation of every coordinate.

    Returns:
        ln P_left/P_right, shape (n,).
    """
    low, high = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    return _total((values - (low + high) / 2) * (low - high) / scale**2)


def _total(terms: Floats) -> Floats:
    return np.asarray(terms.sum(axis=tuple(range(1, terms.ndim))), dtype=float)
