"""Exact likelihood ratio of everything that the pricing policy's releasers put out.

Given the releases, every price is a deterministic function of a customer's context, so a
transcript can be replayed on both inputs: the prices of all customers but the replaced one agree,
and the replaced one's is recomputed from the same past releases. The log-likelihood ratio is then
the Gaussian one of the covariance tree plus, for every later refresh, that of the estimator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants
from algorithms.pricing.likelihoods import Priced
from algorithms.pricing.market import Market
from algorithms.pricing.releasers import covariance_of
from algorithms.pricing.rounds import Course, Rows, play
from algorithms.primitives import tree
from algorithms.primitives.objective_law import log_density
from algorithms.primitives.symmetric import SHAPES
from audit.view import Views

Floats = npt.NDArray[np.float64]


class Replayed:
    """Releases read back from a transcript.

    Args:
        public: Public constants.
        views: Columns ``sums``, ``thetas``, ``times`` and ``explored``.
    """

    def __init__(self, public: Constants, views: Views) -> None:
        self.public, self.views = public, views
        self._times = np.rint(views["times"]).astype(np.int64)

    def exploring(self, t: int) -> Floats:
        """The exploration prices drawn in round t, shape (n,)."""
        return self.views["explored"][:, t]

    def refresh(self, t: int, course: Course) -> tuple[Rows, Floats, Floats]:  # noqa: ARG002
        """The refreshes that the transcript records for round t."""
        rows, which = np.nonzero(self._times == t + 1)
        if not rows.size:
            return rows, np.empty((0, self.public.dimension)), np.empty((0, 0, 0))
        covariance = covariance_of(self.public, self.views["sums"][rows, t - 1])
        return rows, self.views["thetas"][rows, which], covariance

    def push(self, t: int, squares: Floats, prices: Floats) -> None:
        """Nothing to do: the sums are in the transcript."""


def log_ratio(
    public: Constants, markets: tuple[Market, Market], place: int, views: Views
) -> Floats:
    """``ln P_left/P_right`` of a transcript, shape (n,).

    Args:
        public: Public constants, with the noise really drawn.
        markets: Left and right, different in customer `place` only.
        place: 0-based.
        views: Columns ``sums``, ``thetas``, ``times`` and ``explored``.
    """
    n = len(views["sums"])
    courses = [play(public, market, Replayed(public, views), n) for market in markets]
    ratio = np.zeros(n)
    if place < public.records:
        ratio += _tree_ratio(public, markets, courses, place, views)
    return ratio + _estimator_ratio(public, markets, courses, place, views)


def _tree_ratio(
    public: Constants,
    markets: tuple[Market, Market],
    courses: list[Course],
    place: int,
    views: Views,
) -> Floats:
    shape = SHAPES[public.shape]
    sides = [
        shape.outer(features(market.contexts[place], course.prices[:, place]))
        for market, course in zip(markets, courses, strict=True)
    ]
    variance = (public.sigma * shape.scales(public.dimension)) ** 2
    weight = (sides[0] - sides[1]) / variance
    nodes = path(place + 1, public.records)
    seen = tree.node_values(views["sums"], nodes - 1)
    ratio = -len(nodes) * np.einsum("nd,nd->n", (sides[0] + sides[1]) / 2, weight)
    for i, node in enumerate(nodes):
        who = [t for t in range(node - (node & -node), node) if t != place]
        others = mass(public, markets[0], courses[0].prices, who)
        ratio += np.einsum("nd,nd->n", seen[:, i] - others, weight)
    return np.asarray(ratio)


def mass(public: Constants, market: Market, prices: Floats, customers: Sequence[int]) -> Floats:
    """Drawn entries of the sum of ``phi phi^T`` over some customers, shape (n, D).

    Args:
        public: Public constants.
        market: The customers.
        prices: What they were charged, shape (n, T).
        customers: 0-based.
    """
    who = np.asarray(customers, dtype=np.intp)
    shape, k = SHAPES[public.shape], public.wide
    rows, columns = shape.entries(public.dimension)
    contexts, prices = market.contexts[who], prices[:, who]
    products = contexts[:, rows % k] * contexts[:, columns % k] / 2
    power = (rows >= k).astype(np.intp) + (columns >= k)
    mass = np.empty((len(prices), len(rows)))
    for degree in range(3):
        mass[:, power == degree] = (-prices) ** degree @ products[:, power == degree]
    return mass


def _estimator_ratio(
    public: Constants,
    markets: tuple[Market, Market],
    courses: list[Course],
    place: int,
    views: Views,
) -> Floats:
    times = np.rint(views["times"]).astype(np.int64)
    ratio = np.zeros(len(times))
    for time in np.unique(times[times > place + 1]):
        rows, which = np.nonzero(times == time)
        theta = views["thetas"][rows, which]
        for market, course, sign in zip(markets, courses, (1, -1), strict=True):
            model = Priced(
                public.link,
                market.contexts[: time - 1],
                course.prices[rows, : time - 1],
                course.outcomes[rows, : time - 1],
                public.ridge_mle,
            )
            ratio[rows] += sign * log_density(model, theta, public.nu, public.radius)
    return ratio


def features(context: Floats, prices: Floats) -> Floats:
    """``(x, -p x)/sqrt(2)`` of one customer at prices of shape (n,): (n, 2k)."""
    rows = np.broadcast_to(context, (len(prices), len(context)))
    both = np.concatenate([rows, -prices[:, None] * rows], axis=1)
    return np.asarray(both / np.sqrt(2), dtype=float)


def path(record: int, records: int) -> npt.NDArray[np.int64]:
    """1-based nodes that hold a record (1-based): t, t + lowbit(t), ... up to N."""
    nodes = []
    while record <= records:
        nodes.append(record)
        record += record & -record
    return np.array(nodes, dtype=np.int64)
