"""Private maximum likelihood with the mistakes that implementations make, and what each costs.

The claims stay those of the correct mechanism. Epsilon is for a claim of (1, 1e-6) and a flipped
outcome with unit features, ten calls unless said, exact calibration (nu 13.36) first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from algorithms.pricing.likelihoods import Common
from algorithms.pricing.noise import NOISES
from algorithms.pricing.private_mle import PrivateMle
from algorithms.primitives.objective import Tilted, minimise
from algorithms.primitives.objective_law import log_density
from algorithms.primitives.tilting import gaussian_log_weights
from audit.claim import AnyClaim, ApproxDp, gaussian_delta
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]

_RAW_NORM = math.sqrt(26.0)
_REACH = 12.0
_POINTS = 40_001
_TIE = 1e-5


class FullBudgetEach(PrivateMle):
    """The whole budget given to every call instead of a share.

    Real mu is sqrt(10) times the exact one (epsilon 3.525); with the published noise for one call
    (nu 10.958) 1.24. With 1023 calls 63.9 and 17.5.
    """

    @property
    def scale(self) -> float:
        """What the calibration asks for when there is one call."""
        return NOISES[self.calibration](replace(self.budget, calls=1)) * self.noise_factor


class RawFeatures(PrivateMle):
    """Features not normalised: norms up to sqrt(26). Mu times 5.10 (epsilon 6.06; basic 0.149)."""

    def mu(self, pair: Pair) -> float:
        """The norm of the features multiplies it."""
        return _RAW_NORM * super().mu(pair)

    def _features(self, data: Mapping[str, Any]) -> Floats:
        return _RAW_NORM * super()._features(data)


class UnclippedOutcomes(PrivateMle):
    """Outcomes of up to 20 that nobody clips. Mu times 20 (epsilon 33.0; basic 0.642)."""

    def flip_pair(self, position: int = 0) -> Pair:
        """An outcome of 20 or 0."""
        first = np.eye(self.dimension)[0]
        return self.pair((first, 20.0), (first, 0.0), "outcome 20 or 0", position)

    def _outcomes(self, data: Mapping[str, Any]) -> Floats:
        return np.asarray(data["outcomes"], dtype=float)


class SharedNoise(PrivateMle):
    """The same w in all calls: ``G_1(theta_1) = G_2(theta_2)`` holds for the true record only.

    With the replaced record between two calls epsilon is infinite. (When it is inside both, a
    flipped outcome leaks no more than one call does, so the pair replaces the customer.)
    """

    def pairs(self) -> Sequence[Pair]:
        """A customer replaced between the first and the second call."""
        return self.inputs or (self.context_pair(self.call_times[0]),)

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``inf`` or ``-inf``: on which side all calls have the same noise; shape (n,).

        Zero for fits so extreme that neither of the two records has a gradient left.
        """
        off = [self._disagreement(views["thetas"], side) for side in (pair.left, pair.right)]
        told = np.where(off[0] < off[1], np.inf, -np.inf)
        return np.where(np.abs(off[0] - off[1]) > _TIE, told, 0.0)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:  # noqa: ARG002
        """One at every epsilon, up to the fits that tell nothing."""
        return 1.0

    def _tilts(self, n: int, rng: np.random.Generator) -> Floats:
        one = self.scale * rng.standard_normal((n, 1, self.dimension))
        return np.repeat(one, len(self.call_times), axis=1)

    def _disagreement(self, thetas: Floats, data: Mapping[str, Any]) -> Floats:
        drawn = [model.derivatives(thetas[:, k])[0] for k, model in enumerate(self._models(data))]
        return np.asarray(np.linalg.norm(np.ptp(np.stack(drawn), axis=0), axis=1))


@dataclass(frozen=True)
class NoRidge(PrivateMle):
    """A ridge of 1/1000 and the Gaussian part alone counted: the Jacobian is forgotten.

    One record phi = 1 against phi' = 0 in one dimension, nu = 5: delta(1) is .077 unconstrained
    and .036 with R = 1, where the Gaussian part promises 1.7e-8.

    Attributes:
        nu: Standard deviation of w.
    """

    dimension: int = 1
    records: int = 2
    ridge: float = 1e-3
    nu: float = 5.0

    @property
    def declared_scale(self) -> float:
        """Nu."""
        return self.nu

    @property
    def claim(self) -> AnyClaim:
        """Delta of a Gaussian mechanism at epsilon, as if the Jacobian were constant."""
        delta = gaussian_delta(1 / self.nu, self.epsilon)
        return ApproxDp(
            epsilon=self.epsilon,
            delta=delta,
            view="transcript",
            relation="replace-one",
            source="the Gaussian part of objective perturbation alone",
        )

    def pairs(self) -> Sequence[Pair]:
        """A customer present or blank; the other record is blank."""
        sides = []
        for feature in (1.0, 0.0):
            features = np.zeros((self.records, 1))
            features[0] = feature
            sides.append({"features": features, "outcomes": np.zeros(self.records)})
        return (Pair(sides[0], sides[1], label="customer or nobody", relation="replace-one"),)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact divergence, the larger direction, by integration over w."""
        return max(self._divergence(*sides, epsilon) for sides in self._ways(pair))

    def _ways(self, pair: Pair) -> list[tuple[Common, Common]]:
        left, right = self._models(pair.left)[0], self._models(pair.right)[0]
        return [(left, right), (right, left)]

    def _divergence(self, one: Common, other: Common, epsilon: float) -> float:
        """``int p(theta) (1 - e^(eps - L))_+`` with theta as a function of its noise w."""
        w = np.linspace(-_REACH, _REACH, _POINTS) * self.scale
        theta = minimise(Tilted(one, w[:, None]), len(w), radius=self.radius, scale=self.scale)
        loss = log_density(one, theta, self.scale, self.radius)
        loss -= log_density(other, theta, self.scale, self.radius)
        mass = np.exp(-((w / self.scale) ** 2) / 2) * (w[1] - w[0])
        mass /= self.scale * math.sqrt(2 * math.pi)
        return float(mass @ np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - loss))))


@dataclass(frozen=True)
class _GaussianFit:
    """Twins that release one Gaussian number per side: d = 1, mean and spread known.

    Attributes:
        nu: Standard deviation of w.
        epsilon: Claimed.
        delta: Claimed.
        records: N.
    """

    nu: float = 10.958
    epsilon: float = 1.0
    delta: float = 1e-6
    records: int = 100

    @property
    def claim(self) -> AnyClaim:
        """What objective perturbation with this noise promises at its exact minimiser."""
        return ApproxDp(
            epsilon=self.epsilon,
            delta=self.delta,
            view="transcript",
            relation="replace-one",
            source="Kifer, Smith and Thakurta (2012), Theorem 2",
        )

    @property
    def declared_scale(self) -> float:
        """Nu."""
        return self.nu

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release ``theta``, shape (n, 1)."""
        mean, spread = self.law(data)
        return {"theta": mean + spread * rng.standard_normal((n, 1))}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right``, shape (n,)."""
        theta, ratio = views["theta"][:, 0], np.zeros(len(views))
        for side, sign in ((pair.left, 1), (pair.right, -1)):
            mean, spread = self.law(side)
            ratio -= sign * (((theta - mean) / spread) ** 2 / 2 + math.log(spread))
        return ratio

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Divergence of two normal laws, the larger direction, by integration."""
        laws = self.law(pair.left), self.law(pair.right)
        return max(_normal_divergence(*laws, epsilon), _normal_divergence(*laws[::-1], epsilon))

    def law(self, data: Mapping[str, Any]) -> tuple[float, float]:
        """Mean and standard deviation of what is released."""
        raise NotImplementedError


@dataclass(frozen=True)
class OneStep(_GaussianFit):
    """One noisy step from the minimiser without noise: ``theta_np - eta w``.

    Logistic demand, phi = 1, N = 100 balanced, rho = 1/2: ``mu = |d theta_np| / (eta nu)``, epsilon
    1.56 at eta .01 and 22.8 at eta .001 (claim 1).

    Attributes:
        step: eta.
        ridge: rho.
    """

    step: float = 0.001
    ridge: float = 0.5

    def pairs(self) -> Sequence[Pair]:
        """One of the balanced outcomes flipped."""
        left = (np.arange(self.records) % 2).astype(float)
        right = left.copy()
        right[1] = 0.0
        return (Pair({"outcomes": left}, {"outcomes": right}, "outcome flipped", "replace-one"),)

    def mu(self, pair: Pair) -> float:
        """Exact Gaussian parameter of a pair."""
        return abs(self.law(pair.left)[0] - self.law(pair.right)[0]) / (self.step * self.nu)

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Floats], Floats]:
        """Releases from the law proportional to ``exp(tilt L) P_left``, and log weights."""
        emitted = self.run(pair.left, n, rng)
        emitted["theta"] += tilt * (self.law(pair.left)[0] - self.law(pair.right)[0])
        losses = self.log_likelihood_ratio(Views(np.full(n, "", dtype=object), emitted), pair)
        return emitted, gaussian_log_weights(losses, self.mu(pair), tilt)

    def law(self, data: Mapping[str, Any]) -> tuple[float, float]:
        """The exact minimiser and eta nu."""
        outcomes = np.asarray(data["outcomes"], dtype=float)
        theta = 0.0
        for _ in range(60):
            mean = float(special.expit(theta))
            slope = len(outcomes) * mean * (1 - mean) + self.ridge
            theta -= (len(outcomes) * mean - outcomes.sum() + self.ridge * theta) / slope
        return theta, self.step * self.nu


@dataclass(frozen=True)
class EarlyStop(_GaussianFit):
    """A few gradient steps from 0 instead of the minimiser; linear demand, d = 1.

    ``theta = M (sum y phi - w)`` with ``M = (1 - (1 - eta h)^k)/h`` and ``h = sum phi^2 + rho``:
    the spread depends on the record.
    N = 50, all y = 0, phi = 1 against phi' = 0, eta = .039, k = 4:
    delta(1) = .541, where the minimiser has 5e-14. Flipped outcomes cannot show it.

    Attributes:
        rate: eta.
        steps: k.
        ridge: rho.
    """

    records: int = 50
    rate: float = 0.039
    steps: int = 4
    ridge: float = 1.0

    def pairs(self) -> Sequence[Pair]:
        """A customer present or blank."""
        sides = []
        for feature in (1.0, 0.0):
            features = np.ones(self.records)
            features[0] = feature
            sides.append({"features": features, "outcomes": np.zeros(self.records)})
        return (Pair(sides[0], sides[1], label="customer or nobody", relation="replace-one"),)

    def law(self, data: Mapping[str, Any]) -> tuple[float, float]:
        """Mean and spread after k steps."""
        features, outcomes = (np.asarray(data[c], dtype=float) for c in ("features", "outcomes"))
        bend = float(features @ features) + self.ridge
        share = (1 - (1 - self.rate * bend) ** self.steps) / bend
        return share * float(features @ outcomes), abs(share) * self.nu


def _normal_divergence(
    one: tuple[float, float], other: tuple[float, float], epsilon: float
) -> float:
    """``int p (1 - e^(eps - L))_+`` for two normal laws (mean, spread)."""
    unit = np.linspace(-_REACH, _REACH, _POINTS)
    value = one[0] + one[1] * unit
    loss = ((value - other[0]) / other[1]) ** 2 / 2 - unit**2 / 2 + math.log(other[1] / one[1])
    mass = np.exp(-(unit**2) / 2) * (unit[1] - unit[0]) / math.sqrt(2 * math.pi)
    return float(mass @ np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - loss))))
