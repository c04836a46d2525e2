"""The private releasers behind the pricing policy, drawn afresh, and what they leave behind.

`Drawn` keeps the binary tree of the covariance as it grows: the noise of the prefix of length n is
``Z_n = Z_(n - lowbit(n)) + W_n``, so one matrix per level of the tree is all that must be kept and
memory does not grow with the number of rounds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants
from algorithms.pricing.likelihoods import Priced
from algorithms.pricing.market import Market
from algorithms.pricing.rounds import Course
from algorithms.primitives import tree
from algorithms.primitives.objective import Tilted, minimise
from algorithms.primitives.symmetric import SHAPES

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class Drawn:
    """Fresh releases.

    Args:
        public: Public constants.
        market: The customers.
        n: Number of trials.
        rng: Source of all noise.
        keep: Whether to record the whole transcript.
    """

    def __init__(
        self, public: Constants, market: Market, n: int, rng: np.random.Generator, *, keep: bool
    ) -> None:
        self.public, self.market, self.n, self.rng = public, market, n, rng
        shape = SHAPES[public.shape]
        rows, columns = shape.entries(public.dimension)
        self.width = len(rows)
        self.scales = public.sigma * shape.scales(public.dimension)[:, None]
        k = public.wide
        self._powers = (rows >= k).astype(np.intp) + (columns >= k)
        self._cells = (rows % k) * k + columns % k
        self._where = rows, columns
        self._mirrored = shape.mirrored
        self._exact = np.zeros((self.width, n))
        self._noise = np.zeros((tree.levels(public.records) + 1, self.width, n))
        self._pushed = 0
        start = public.dimension * np.log(public.ridge_cov)
        self._logdet = np.full(n, start)
        self.sums = np.empty((n, public.records, self.width)) if keep else None
        self.explored = np.empty((n, public.explore))
        self.thetas = np.zeros((n, public.cap, public.dimension))
        self.times = np.zeros((n, public.cap))

    def exploring(self, t: int) -> Floats:
        """Uniformly random grid prices, independent of all data; shape (n,)."""
        price = self.public.grid[self.rng.integers(self.public.prices, size=self.n)]
        self.explored[:, t] = price
        return np.asarray(price, dtype=float)

    def refresh(self, t: int, course: Course) -> tuple[Rows, Floats, Floats]:
        """Refresh the trials whose released determinant has doubled, up to the cap."""
        rows = self._doubled(course) if t >= 1 else np.empty(0, dtype=np.intp)
        if not rows.size:
            return rows, np.empty((0, self.public.dimension)), np.empty((0, 0, 0))
        theta = self.estimate(t, rows, course)
        self.thetas[rows, course.calls[rows]] = theta
        self.times[rows, course.calls[rows]] = t + 1
        return rows, theta, covariance_of(self.public, self.current()[:, rows].T)

    def push(self, t: int, squares: Floats, prices: Floats) -> None:
        """Add a record and the noise of its tree node."""
        u = 2.0
        moments = np.stack([np.ones_like(prices), -prices, prices**2]) / u
        self._exact += moments[self._powers] * squares[self._cells][:, None]
        self._pushed = t + 1
        if self.public.sigma > 0:
            self._draw(t + 1)
        if self.sums is not None:
            self.sums[:, t] = self.current().T

    def current(self) -> Floats:
        """The released prefix sum, one row per drawn entry: shape (D, n)."""
        if not self._pushed or self.public.sigma == 0:
            return self._exact
        return np.asarray(self._exact + self._noise[_level(self._pushed)], dtype=float)

    def estimate(self, t: int, rows: Rows, course: Course) -> Floats:
        """Private estimates of some trials from the first t records, shape (r, d)."""
        public = self.public
        model = Priced(
            public.link,
            self.market.contexts[:t],
            course.prices[rows, :t],
            course.outcomes[rows, :t],
            public.ridge_mle,
        )
        tilted = Tilted(model, self.noise(t, rows, course))
        return minimise(tilted, len(rows), radius=public.radius, scale=max(public.nu, 1.0))

    def noise(self, t: int, rows: Rows, course: Course) -> Floats:  # noqa: ARG002
        """Linear term of some trials' estimates after t records, shape (r, d)."""
        draws = self.rng.standard_normal((len(rows), self.public.dimension))
        return np.asarray(self.public.nu * draws, dtype=float)

    def fresh(self, number: int) -> Floats:  # noqa: ARG002
        """Noise of a node (1-based) that no other node shares, shape (D, n)."""
        draws = self.rng.standard_normal((self.width, self.n))
        draws *= self.scales
        return draws

    def _draw(self, number: int) -> None:
        fresh = self.fresh(number)
        parent = number - (number & -number)
        if parent:
            fresh += self._noise[_level(parent)]
        self._noise[_level(number)] = fresh

    def _doubled(self, course: Course) -> Rows:
        active = np.flatnonzero(course.calls < self.public.cap)
        if not active.size:
            return active
        logdet = log_determinants(self.public, self.current()[:, active], self._where)
        grown = logdet > self._logdet[active] + np.log(2.0)
        rows: Rows = active[grown]
        self._logdet[rows] = logdet[grown]
        return rows


def _level(number: int) -> int:
    return (number & -number).bit_length() - 1


def covariance_of(public: Constants, entries: Floats) -> Floats:
    """``rho I`` plus the symmetric matrix with these drawn entries: (r, D) to (r, d, d)."""
    shape, d = SHAPES[public.shape], public.dimension
    rows, columns = shape.entries(d)
    matrix = np.zeros((len(entries), d, d))
    matrix[:, rows, columns] = entries
    other = np.zeros_like(matrix)
    other[:, columns, rows] = entries
    whole = (matrix + other) / 2
    if shape.mirrored:
        whole[:, rows, columns] = whole[:, columns, rows] = entries
    return whole + public.ridge_cov * np.eye(d)


def log_determinants(public: Constants, entries: Floats, where: tuple[Rows, Rows]) -> Floats:
    """Log determinant of ``rho I + S``, or -inf where it is not positive definite; shape (n,).

    The pivots of the LDL factorisation give definiteness and determinant together.

    Args:
        public: Public constants.
        entries: Drawn entries of S, shape (D, n).
        where: Their rows and columns.
    """
    d, rows, columns = public.dimension, *where
    lower = rows > columns
    cells = np.zeros((d, d, entries.shape[1]))
    cells[rows[~lower], columns[~lower]] = entries[~lower]
    if lower.any():  # drawn twice: the mean of both
        above = columns[lower], rows[lower]
        cells[above] = (cells[above] + entries[lower]) / 2
    cells[range(d), range(d)] += public.ridge_cov
    lost = np.zeros(entries.shape[1], dtype=bool)
    for i in range(d - 1):
        # A trial is lost at its first such pivot; dividing by infinity leaves its cells alone, by
        # anything small they would be squared at every further step.
        lost |= ~(cells[i, i] > 0)
        ratio = cells[i, i + 1 :] / np.where(lost, np.inf, cells[i, i])
        cells[i + 1 :, i + 1 :] -= ratio[:, None] * cells[i, i + 1 :]
    pivots = cells[range(d), range(d)]
    positive = (pivots > 0).all(axis=0)
    return np.where(positive, np.log(np.where(positive, pivots, 1.0)).sum(axis=0), -np.inf)
