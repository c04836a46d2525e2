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

    def gradient(self, theta: Floats) -> Floats:
        """Shape (n, d)."""
        excess = self.link.mean(theta @ self.features.T) - self.outcomes
        return np.asarray(excess @ self.features + self.ridge * theta)

    def hessian(self, theta: Floats) -> Floats:
        """Shape (n, d, d)."""
        d = self.dimension
        slope = self.link.slope(theta @ self.features.T)
        outer = (self.features[:, :, None] * self.features[:, None, :]).reshape(-1, d * d)
        return np.asarray((slope @ outer).reshape(-1, d, d) + self.ridge * np.eye(d))

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
        base, slope = np.split(theta * self._unit, 2, axis=1)
        eta = base @ self.contexts.T
        eta -= self.prices * (slope @ self.contexts.T)
        return np.asarray(eta)

    def value(self, theta: Floats) -> Floats:
        """Loss, shape (n,)."""
        eta = self._eta(theta)
        ridge = self.ridge / 2 * np.einsum("nd,nd->n", theta, theta)
        return np.asarray(np.sum(self.link.loss(eta) - self.outcomes * eta, axis=1) + ridge)

    def gradient(self, theta: Floats) -> Floats:
        """Shape (n, d)."""
        excess = (self.link.mean(self._eta(theta)) - self.outcomes) * self._unit
        parts = [excess @ self.contexts, -(excess * self.prices) @ self.contexts]
        return np.concatenate(parts, axis=1) + self.ridge * theta

    def hessian(self, theta: Floats) -> Floats:
        """Shape (n, d, d)."""
        k = self.contexts.shape[1]
        slope = self.link.slope(self._eta(theta)) * self._unit**2
        once = slope * self.prices
        blocks = [(w @ self.squares).reshape(-1, k, k) for w in (slope, once, once * self.prices)]
        top = np.concatenate([blocks[0], -blocks[1]], axis=2)
        bottom = np.concatenate([-blocks[1], blocks[2]], axis=2)
        whole = np.concatenate([top, bottom], axis=1)
        return np.asarray(whole + self.ridge * np.eye(2 * k))

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
