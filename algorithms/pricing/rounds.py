"""The rounds of the pricing policy, many trials side by side.

Three layers (Chen, Simchi-Levi and Wang 2022, Algorithm 1): the customers' records, the private
releasers, and the price optimiser, which sees releases only. `play` runs the optimiser; where the
releases come from is the business of a `Releases`: drawn afresh, or read back from a transcript,
in which case `play` returns the prices that this transcript led to.

Every array of the state has the trials on its last axis; per-round work is a few row operations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants
from algorithms.pricing.market import Market

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

FEWEST_REFRESHES = 5.0
_CHUNK = 256


@dataclass(frozen=True)
class Course:
    """What happened.

    Attributes:
        prices: Shape (n, T).
        outcomes: Shape (n, T).
        calls: Refreshes of each trial, shape (n,).
    """

    prices: Floats
    outcomes: Floats
    calls: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Regime:
    """Whether a policy does anything.

    Attributes:
        refreshes: Average number of refreshes.
        interior: Share of prices that are neither the lowest nor the highest.
    """

    refreshes: float
    interior: float

    @classmethod
    def of(cls, course: Course, public: Constants) -> Regime:
        """The regime of a course."""
        inside = (course.prices > 0) & (course.prices < public.grid[-1])
        return cls(float(course.calls.mean()), float(inside.mean()))

    @property
    def vacuous(self) -> bool:
        """Fewer than five refreshes on average, or at most half of the prices interior."""
        return self.refreshes < FEWEST_REFRESHES or self.interior <= 0.5

    def __str__(self) -> str:
        """The regime in words, with what is expected of one."""
        return (
            f"PrivatePricing: this policy {'is vacuous' if self.vacuous else 'works'}: "
            f"{self.refreshes:.1f} refreshes on average (at least {FEWEST_REFRESHES:g} expected) "
            f"and {self.interior:.0%} of prices inside the grid (over 50% expected)"
        )


class Releases(Protocol):
    """Where the optimiser's inputs come from."""

    def exploring(self, t: int) -> Floats:
        """Exploration prices of round t (0-based), shape (n,)."""

    def refresh(self, t: int, course: Course) -> tuple[Rows, Floats, Floats]:
        """Trials that refresh in round t, their theta (r, d) and released covariance (r, d, d)."""

    def push(self, t: int, squares: Floats, prices: Floats) -> None:
        """Record t, as ``x x^T`` (k k,) and prices (n,), enters the covariance."""


class Optimiser:
    """Optimistic prices from theta and a covariance, for every trial.

    Args:
        public: Public constants.
        n: Number of trials.
    """

    def __init__(self, public: Constants, n: int) -> None:
        k = public.wide
        self.public = public
        self.theta = np.zeros((n, 2 * k))
        self.inverse = np.zeros((n, 3, k * k))
        self._set_inverse(np.arange(n), np.eye(2 * k)[None] / public.ridge_cov)
        grid = public.grid.astype(np.float32)
        self._grid = grid
        self._linear = np.stack([np.ones_like(grid), -grid])
        self._square = np.stack([np.ones_like(grid), -2 * grid, grid**2])

    def update(self, rows: Rows, theta: Floats, covariance: Floats) -> None:
        """New estimates for some trials: theta (r, d), covariance (r, d, d)."""
        self.theta[rows] = theta
        self._set_inverse(rows, np.asarray(np.linalg.inv(covariance), dtype=float))

    def prices(self, context: Floats) -> Floats:
        """Best grid prices for one customer, shape (n,); the lowest wins ties."""
        unit = 1 / math.sqrt(2)
        base, slope = np.split(self.theta, 2, axis=1)
        linear = np.stack([base @ context, slope @ context], axis=1) * unit
        square = self.inverse @ np.outer(context, context).ravel() * (unit * self.public.bonus) ** 2
        chosen = np.empty(len(linear), dtype=np.intp)
        # Chunks stay in cache, and float32 is enough: the index of the best price rarely differs.
        with np.errstate(over="ignore"):
            for i in range(0, len(linear), _CHUNK):
                part = slice(i, i + _CHUNK)
                chosen[part] = self._best(
                    linear[part].astype(np.float32), square[part].astype(np.float32)
                )
        return np.asarray(self.public.grid[chosen], dtype=float)

    def _best(self, linear: npt.NDArray[np.float32], square: npt.NDArray[np.float32]) -> Rows:
        demand = linear @ self._linear
        if self.public.demand == "logistic":
            np.negative(demand, out=demand)
            np.exp(demand, out=demand)
            demand += 1
            np.reciprocal(demand, out=demand)
        width = square @ self._square
        np.maximum(width, 0, out=width)
        np.sqrt(width, out=width)
        demand += width
        np.clip(demand, 0, self.public.bound, out=demand)
        demand *= self._grid
        return np.asarray(demand.argmax(axis=1), dtype=np.intp)

    def _set_inverse(self, rows: Rows, inverse: Floats) -> None:
        k, count = self.public.wide, len(rows)
        cross = inverse[:, :k, k:]
        blocks = (inverse[:, :k, :k], (cross + cross.transpose(0, 2, 1)) / 2, inverse[:, k:, k:])
        for i, block in enumerate(blocks):
            self.inverse[rows, i] = np.broadcast_to(block, (count, k, k)).reshape(count, k * k)


def play(public: Constants, market: Market, releases: Releases, n: int) -> Course:
    """Play all rounds of `n` trials."""
    optimiser = Optimiser(public, n)
    course = Course(
        np.empty((n, public.rounds)), np.empty((n, public.rounds)), np.zeros(n, dtype=np.int64)
    )
    for t in range(public.rounds):
        if t < public.explore:
            price = releases.exploring(t)
        else:
            rows, theta, covariance = releases.refresh(t, course)
            if rows.size:
                optimiser.update(rows, theta, covariance)
                course.calls[rows] += 1
            price = optimiser.prices(market.contexts[t])
        course.prices[:, t] = price
        course.outcomes[:, t] = market.respond(t, price)
        if t < public.records:
            context = market.contexts[t]
            releases.push(t, np.outer(context, context).ravel(), price)
    return course
