"""Multinomial demand by objective perturbation, calibrated to the clipping norm of the features.

The gradient of the softmax loss is ``phi (softmax - onehot(y))^T``: changing which of C products
was bought moves it by ``phi (e_y - e_y')^T``, of norm ``sqrt(2) ||phi||``. Code that clips features
to norm 1 and uses zeta = 1, as is right for two products and one parameter vector, is off by
sqrt(2) (by up to ``2 sqrt(2)`` when the customer changes too).

Claim
-----
That of Kifer, Smith and Thakurta (2012) with zeta = 1, which does not hold: epsilon is 1.455
instead of 1 under the exact calibration; .521 instead of .360 under the published one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from algorithms.pricing.features import checked
from algorithms.pricing.noise import kst
from algorithms.primitives.accounting import gaussian_profile
from algorithms.primitives.objective import Tilted, minimise
from algorithms.primitives.objective_law import log_density
from audit.claim import ApproxDp, GaussianDp, gaussian_mu
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]
CALIBRATIONS = ("exact", "kst_zeta")


@dataclass(frozen=True)
class _Softmax:
    """Softmax loss on N records with C products; theta is (C d,), product by product."""

    features: Floats
    bought: Floats
    ridge: float

    @property
    def dimension(self) -> int:
        return int(self.features.shape[1] * self.bought.shape[1])

    def value(self, theta: Floats) -> Floats:
        eta = self._eta(theta)
        fit = special.logsumexp(eta, axis=2) - (eta * self.bought).sum(axis=2)
        return np.asarray(fit.sum(axis=1) + self.ridge / 2 * (theta**2).sum(axis=1))

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        share = special.softmax(self._eta(theta), axis=2)
        n, size = len(theta), self.dimension
        excess = np.einsum("nsc,sd->ncd", share - self.bought, self.features).reshape(n, size)
        outer = np.einsum("si,sj->sij", self.features, self.features)
        own = np.einsum("nsc,sij->ncij", share, outer)
        cross = np.einsum("nsc,nse,sij->nciej", share, share, outer, optimize=True)
        products = np.arange(self.bought.shape[1])
        hessian = -cross
        hessian[:, products, :, products, :] += own.swapaxes(0, 1)
        ridge = self.ridge * np.eye(size)
        return excess + self.ridge * theta, hessian.reshape(n, size, size) + ridge

    def take(self, rows: npt.NDArray[np.intp]) -> _Softmax:  # noqa: ARG002
        return self

    def _eta(self, theta: Floats) -> Floats:
        shaped = theta.reshape(len(theta), self.bought.shape[1], -1)
        return np.asarray(np.einsum("ncd,sd->nsc", shaped, self.features))


@dataclass(frozen=True)
class SoftmaxClipNorm:
    """Softmax demand with noise for zeta = 1, one call, unconstrained.

    Data are a mapping with ``features``, shape (records, dimension), and ``choices``, shape
    (records,), integers below `products`.

    Attributes:
        dimension: d.
        products: C.
        records: N.
        epsilon: Claimed.
        delta: Claimed.
        calibration: ``exact`` or ``kst_zeta``.
        claim_as: ``approx``, or ``gaussian`` for the mu that this noise gives for zeta = 1.
        noise_factor: Multiplies all noise and leaves the claim as it is.

    Raises:
        UsageError: For an unknown calibration.
    """

    dimension: int = 2
    products: int = 3
    records: int = 12
    epsilon: float = 1.0
    delta: float = 1e-6
    calibration: str = "exact"
    claim_as: str = "approx"
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        if self.calibration not in CALIBRATIONS:
            raise UsageError(
                f"SoftmaxClipNorm: expected one of {', '.join(CALIBRATIONS)}, got "
                f"calibration={self.calibration!r}"
            )

    @property
    def claim(self) -> ApproxDp | GaussianDp:
        """A claim that a flipped choice breaks."""
        context = {
            "view": "transcript",
            "relation": "replace-one",
            "source": "Kifer, Smith and Thakurta (2012) with zeta = 1",
        }
        if self.claim_as == "gaussian":
            return GaussianDp(mu=1 / self.declared_scale, **context)
        return ApproxDp(epsilon=self.epsilon, delta=self.delta, **context)

    @property
    def declared_scale(self) -> float:
        """Standard deviation nu for zeta = 1."""
        if self.calibration == "exact":
            return 1 / gaussian_mu(self.epsilon, self.delta)
        return kst(self.epsilon, self.delta, 1.0)

    @property
    def scale(self) -> float:
        """Standard deviation nu that is drawn."""
        return self.declared_scale * self.noise_factor

    def noise_scaled(self, factor: float) -> SoftmaxClipNorm:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    def pairs(self) -> Sequence[Pair]:
        """The first customer buys the first or the second product."""
        turn = np.arange(self.records)
        sides = []
        for choice in (0, 1):
            features = np.eye(self.dimension)[turn % self.dimension]
            choices = turn % self.products
            choices[0] = choice
            sides.append({"features": features, "choices": choices})
        return (Pair(sides[0], sides[1], label="choice flipped", relation="replace-one"),)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release ``theta``, shape (n, products * dimension)."""
        model = self._model(data)
        tilt = self.scale * rng.standard_normal((n, model.dimension))
        return {"theta": minimise(Tilted(model, tilt), n, scale=self.scale)}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right`` with the Jacobian, shape (n,)."""
        left, right = self._model(pair.left), self._model(pair.right)
        ratio = log_density(left, views["theta"], self.scale)
        return ratio - log_density(right, views["theta"], self.scale)

    def mu(self, pair: Pair) -> float:
        """Exact Gaussian parameter of a pair that differs in one choice."""
        left, right = self._model(pair.left), self._model(pair.right)
        change = left.features.T @ (left.bought - right.bought)
        return float(np.linalg.norm(change)) / self.scale

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence of a pair that differs in one choice."""
        return gaussian_profile(self.mu(pair), epsilon)

    def _model(self, data: Mapping[str, Any]) -> _Softmax:
        features = checked(data["features"], (self.records, self.dimension))
        choices = np.asarray(data["choices"], dtype=np.intp)
        return _Softmax(features, np.eye(self.products)[choices], ridge=math.ceil(2 / self.epsilon))
