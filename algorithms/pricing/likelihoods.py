"""Losses of a demand model on a stream of records, for many parameters at once.

Two layouts: `Common` when every trial has the same features, and `Priced` when all trials share
the customers but each has charged its own prices, with features ``(x, -p x)/sqrt(1 + p_hi^2)``.
The second never builds the (n, T, d) features: sums over records are matrix products with the
customers' own (T, k) contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from algorithms.pricing.demand import Link

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Common:
    """The same records for every trial.

    Attributes:
        link: Demand model.
        features: Shape (N, d).
        outcomes: Shape (N,), already in the link's range.
        ridge: rho.
    """

    link: Link
    features: Floats
    outcomes: Floats
    ridge: float

    @property
    def dimension(self) -> int:
        """Length d of theta."""
        return int(self.features.shape[1])

    def value(self, theta: Floats) -> Floats:
        """Loss, shape (n,)."""
        eta = theta @ self.features.T
        ridge = self.ridge / 2 * np.einsum("nd,nd->n", theta, theta)
        return np.asarray(np.sum(self.link.loss(eta) - self.outcomes * eta, axis=1) + ridge)

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient (n, d) and Hessian (n, d, d)."""
        d = self.dimension
        mean, slope = self.link.moments(theta @ self.features.T)
        gradient = (mean - self.outcomes) @ self.features + self.ridge * theta
        outer = (self.features[:, :, None] * self.features[:, None, :]).reshape(-1, d * d)
        return gradient, (slope @ outer).reshape(-1, d, d) + self.ridge * np.eye(d)

    def take(self, rows: Rows) -> Common:  # noqa: ARG002
        """The same: nothing here belongs to one trial."""
        return self


@dataclass(frozen=True)
class Priced:
    """Shared customers, prices of each trial's own.

    Attributes:
        link: Demand model.
        contexts: Shape (N, k).
        prices: Shape (n, N).
        outcomes: Shape (n, N) or (1, N), already in the link's range.
        ridge: rho.
        highest: Public upper bound p_hi of the prices.
        squares: ``x x^T`` of every customer, shape (N, k k); made when omitted.
    """

    link: Link
    contexts: Floats
    prices: Floats
    outcomes: Floats
    ridge: float
    highest: float = 1.0
    squares: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        if not self.squares.size:
            outer = self.contexts[:, :, None] * self.contexts[:, None, :]
            object.__setattr__(self, "squares", outer.reshape(len(self.contexts), -1))

    @property
    def dimension(self) -> int:
        """Length d = 2k of theta."""
        return 2 * int(self.contexts.shape[1])

    @property
    def _unit(self) -> float:
        return 1 / math.sqrt(1 + self.highest**2)

    def _eta(self, theta: Floats) -> Floats:
        k, scaled = self.contexts.shape[1], theta * self._unit
        eta: Floats = scaled[:, k:] @ self.contexts.T
        eta *= -self.prices
        eta += scaled[:, :k] @ self.contexts.T
        return eta

    def value(self, theta: Floats) -> Floats:
        """Loss, shape (n,)."""
        eta = self._eta(theta)
        ridge = self.ridge / 2 * np.einsum("nd,nd->n", theta, theta)
        return np.asarray(np.sum(self.link.loss(eta) - self.outcomes * eta, axis=1) + ridge)

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient (n, d) and Hessian (n, d, d)."""
        n, k = len(theta), self.contexts.shape[1]
        mean, slope = self.link.moments(self._eta(theta))
        weights = np.empty((3, *self.prices.shape))
        np.subtract(mean, self.outcomes, out=weights[0])
        np.multiply(weights[0], self.prices, out=weights[1])
        moved = (weights[:2].reshape(2 * n, -1) @ self.contexts).reshape(2, n, k) * self._unit
        gradient = self.ridge * theta
        gradient[:, :k] += moved[0]
        gradient[:, k:] -= moved[1]
        weights[0] = slope
        np.multiply(slope, self.prices, out=weights[1])
        np.multiply(weights[1], self.prices, out=weights[2])
        bends = (weights.reshape(3 * n, -1) @ self.squares).reshape(3, n, k, k) * self._unit**2
        hessian = np.empty((n, 2 * k, 2 * k))
        hessian[:, :k, :k], hessian[:, k:, k:] = bends[0], bends[2]
        hessian[:, :k, k:] = hessian[:, k:, :k] = -bends[1]
        diagonal = np.arange(2 * k)
        hessian[:, diagonal, diagonal] += self.ridge
        return gradient, hessian

    def take(self, rows: Rows) -> Priced:
        """Some of the trials."""
        outcomes = self.outcomes if len(self.outcomes) == 1 else self.outcomes[rows]
        return Priced(
            self.link,
            self.contexts,
            self.prices[rows],
            outcomes,
            self.ridge,
            self.highest,
            self.squares,
        )
