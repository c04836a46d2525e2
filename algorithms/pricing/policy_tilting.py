"""Runs of the pricing policy in which large privacy losses of its releases are common.

For the certificate: all noise that the replaced customer's record enters is moved towards what
the record on the left side has and the one on the right has not, `tilt` times over. In the tree
these are the nodes on the customer's path, in the estimator the later calls, whose gradients are
taken at 0. For a flipped outcome that is the law proportional to ``exp(tilt L) P`` as long as the
ball is not hit; otherwise the importance weights, which are exact, make up for the difference.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants
from algorithms.pricing.market import Market
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import Course
from algorithms.pricing.transcript import features, path
from algorithms.primitives.symmetric import SHAPES

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class Leaning(Drawn):
    """Fresh releases from a tilted law.

    The replaced customer must be one whose price is drawn by exploration, so that both sides are
    shown the same price.

    Args:
        public: Public constants.
        markets: Left, which is played, and right.
        place: 0-based customer in whom they differ.
        tilt: How far to lean.
        squares: Squared Gaussian parameter of the pair at every grid price, shape (prices,).
        n: Number of trials.
        rng: Source of all noise.

    Attributes:
        log_weights: Log importance weights ``ln dP_left/dTilted`` so far, shape (n,).
    """

    def __init__(
        self,
        public: Constants,
        markets: tuple[Market, Market],
        place: int,
        tilt: float,
        squares: Floats,
        n: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(public, markets[0], n, rng, keep=True)
        self.markets, self.place, self.tilt = markets, place, tilt
        self.log_weights = np.zeros(n)
        self._price_law = _price_law(tilt, squares)
        self._nodes = frozenset(path(place + 1, public.records).tolist())

    def exploring(self, t: int) -> Floats:
        """Exploration prices; the customer's own leans towards those that leak most."""
        if t != self.place:
            return super().exploring(t)
        which = self.rng.choice(self.public.prices, size=self.n, p=self._price_law)
        self.log_weights -= np.log(self.public.prices * self._price_law[which])
        price = self.public.grid[which]
        self.explored[:, t] = price
        return np.asarray(price, dtype=float)

    def fresh(self, number: int) -> Floats:
        """Noise of a node, moved where the node holds the customer; shape (D, n)."""
        noise = super().fresh(number)
        if number not in self._nodes:
            return noise
        shape = SHAPES[self.public.shape]
        price = self.explored[:, self.place]
        sides = [shape.outer(features(m.contexts[self.place], price)) for m in self.markets]
        move = self.tilt * (sides[0] - sides[1]).T
        self.log_weights -= np.sum(move * (noise + move / 2) / self.scales**2, axis=0)
        return noise + move

    def noise(self, t: int, rows: Rows, course: Course) -> Floats:
        """Linear term of some trials' estimates after t records, moved; shape (r, d)."""
        term = super().noise(t, rows, course)
        if t <= self.place:
            return term
        move = self.tilt * self._gradients(rows)
        self.log_weights[rows] -= np.sum(move * (term + move / 2), axis=1) / self.public.nu**2
        return term + move

    def _gradients(self, rows: Rows) -> Floats:
        """Gradient of the left record less that of the right one, at theta = 0; shape (r, d)."""
        price = self.explored[rows, self.place]
        at_zero = float(self.public.link.mean(np.zeros(1))[0])
        left, right = (
            (at_zero - m.respond(self.place, price))[:, None]
            * features(m.contexts[self.place], price)
            for m in self.markets
        )
        return np.asarray(left - right, dtype=float)


def _price_law(tilt: float, squares: Floats) -> Floats:
    """Half uniform, half ``exp(tilt L)`` averaged over a Gaussian loss L; shape (prices,)."""
    power = tilt * (1 + tilt) / 2 * (squares - squares.max())
    leaning = np.exp(power)
    return np.asarray(0.5 / len(squares) + 0.5 * leaning / leaning.sum())
