"""What the releases of the pricing policy cost together: any customer replaced, or one pair.

The covariance tree is Gaussian DP; each call of the estimator has a loss bounded in law by
``ln(1 + beta/rho) + q^2/2 + q chi_2``; later releases may depend on earlier ones, so the losses
are convolved (`algorithms.primitives.accounting.loss_bound_delta`).

For one pair more is known. A customer who comes during the exploration is shown a price drawn from
the grid, whatever the data; it is in view, so the profile is the average over it. Given the price,
the tree's shift is a fixed matrix M at each of the c_t nodes of the customer's path. If the two
customers have the same context, the tree says nothing and each later call moves w by the fixed
``dy phi``: the releases are mu-GDP with ``mu^2 = K dy^2 ||phi||^2/nu^2``. That is exact when every
trial makes all K calls and no estimate meets the ball, and an upper bound in any case. Other
contexts give a bound: with the largest ``||g - g'||`` that the ball allows, averaged over classes
of prices at the worst price of each.

Claim: none; claims and accountants are computed with these formulas.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from algorithms.pricing.calibration import CALIBRATIONS
from algorithms.pricing.constants import Constants
from algorithms.pricing.market import Market
from algorithms.pricing.noise import NOISES, RELATIONS, Budget, check_theorem, loss_bound
from algorithms.pricing.transcript import features, path
from algorithms.primitives import tree
from algorithms.primitives.accounting import (
    gaussian_profile,
    gaussian_sum,
    loss_bound_delta,
    loss_bound_epsilon,
)
from algorithms.primitives.symmetric import SHAPES
from audit.claim import GaussianDp
from audit.errors import UsageError

Floats = npt.NDArray[np.float64]

_CLASSES = 16


def noise_for(
    public: Constants,
    epsilon: float,
    delta: float,
    covariance: str = "exact",
    estimator: str = "hs_rep",
) -> dict[str, float]:
    """Noise of a policy by the names of two calibrations, half of the budget for each releaser.

    Args:
        public: Public constants; their sigma and nu do not count.
        epsilon: Of the whole policy.
        delta: Of the whole policy.
        covariance: A name in `algorithms.pricing.calibration.CALIBRATIONS`.
        estimator: A name in `algorithms.pricing.noise.NOISES`, for replaced records.

    Returns:
        The constants ``sigma`` and ``nu``, to be changed in a policy.

    Raises:
        UsageError: For an unknown name, or a ridge outside of the estimator's theorem.
    """
    replacing = [name for name in NOISES if RELATIONS[name] == "replace-one"]
    for name, known in ((covariance, list(CALIBRATIONS)), (estimator, replacing)):
        if name not in known:
            raise UsageError(f"pricing: expected one of {', '.join(known)}, got {name!r}")
    nodes, sensitivity = tree.levels(public.records), SHAPES[public.shape].sensitivity
    sigma = CALIBRATIONS[covariance](epsilon / 2, delta / 2, nodes, sensitivity)
    budget = Budget(
        epsilon / 2, delta / 2, public.cap, public.ridge_mle, public.radius, public.link
    )
    check_theorem(estimator, budget)
    return {"sigma": sigma, "nu": NOISES[estimator](budget)}


@dataclass(frozen=True)
class Guarantee:
    """What the noise of a policy guarantees for any replaced customer.

    Attributes:
        public: Public constants, with the noise in question.
        delta: Of the whole policy.
    """

    public: Constants
    delta: float

    @property
    def covariance_mu(self) -> float:
        """Gaussian parameter of the covariance for the worst record."""
        sensitivity = SHAPES[self.public.shape].sensitivity
        return gaussian_sum(*[sensitivity / self.public.sigma] * tree.levels(self.public.records))

    @property
    def call(self) -> tuple[float, float]:
        """Offset and width of the bound on the loss of one call of the estimator."""
        c = self.public
        budget = Budget(1.0, self.delta, c.cap, c.ridge_mle, c.radius, c.link)
        return loss_bound(budget, c.nu)

    @property
    def parts(self) -> tuple[float, float]:
        """Epsilon of the covariance and of the estimator, each at half of delta."""
        covariance = GaussianDp(self.covariance_mu).epsilon_at(self.delta / 2)
        offset, width = self.call
        calls = self.public.cap
        return covariance, loss_bound_epsilon(
            self.delta / 2, calls=calls, offset=offset, width=width
        )

    @property
    def joint_epsilon(self) -> float:
        """Epsilon of both releasers together, their losses convolved."""
        offset, width = self.call
        return loss_bound_epsilon(
            self.delta, calls=self.public.cap, offset=offset, width=width, mu=self.covariance_mu
        )

    def profile(self, epsilon: float) -> float:
        """Profile of all releases together."""
        offset, width = self.call
        mu, calls = self.covariance_mu, self.public.cap
        return loss_bound_delta(epsilon, calls=calls, offset=offset, width=width, mu=mu)


@dataclass(frozen=True)
class PairGuarantee:
    """What the noise of a policy guarantees for one pair.

    Attributes:
        public: Public constants, with the noise really drawn.
        markets: Left and right, different in customer `place` only.
        place: 0-based, in the exploration.

    Raises:
        UsageError: For a later customer, whose price depends on the releases.
    """

    public: Constants
    markets: tuple[Market, Market]
    place: int

    def __post_init__(self) -> None:
        if self.place >= self.public.explore:
            raise UsageError(
                f"pricing: expected a customer of the exploration (0-based, below "
                f"{self.public.explore}), got {self.place}. Later ones have no profile of their own"
            )

    def profile(self, epsilon: float) -> float:
        """Profile of all releases together at `epsilon`; exact as the module says."""
        if self.same_context:
            parameters = np.sqrt(self.squares)
            each, counts = np.unique(parameters, return_counts=True)
            deltas = [gaussian_profile(float(mu), epsilon) for mu in each]
            return float(np.dot(deltas, counts) / counts.sum())
        return float(
            sum(
                share * loss_bound_delta(epsilon, calls=self.calls, offset=offset, width=q, mu=mu)
                for share, offset, q, mu in self._classes
            )
        )

    @property
    def squares(self) -> Floats:
        """Squared Gaussian parameter at every grid price, Jacobians left out; shape (prices,)."""
        return np.asarray(self.tree_squares + self.calls * self.steps**2, dtype=float)

    @property
    def calls(self) -> int:
        """The most calls that hold the customer."""
        return self.public.cap

    @cached_property
    def same_context(self) -> bool:
        """Whether the customers differ in what they would pay only."""
        left, right = (market.contexts[self.place] for market in self.markets)
        return bool(np.array_equal(left, right))

    @cached_property
    def tree_squares(self) -> Floats:
        """``c_t ||M||_O^2`` at every grid price, shape (prices,)."""
        shape, nodes = SHAPES[self.public.shape], path(self.place + 1, self.public.records)
        spread = self.public.sigma * shape.scales(self.public.dimension)
        left, right = (shape.outer(phi) for phi in self._features)
        squares = len(nodes) * np.sum(((left - right) / spread) ** 2, axis=1)
        return np.asarray(squares, dtype=float)

    @cached_property
    def steps(self) -> Floats:
        """The largest ``||g - g'||/nu`` at every grid price, shape (prices,).

        It is convex in the two residuals, so the corners of their ranges suffice.
        """
        phi, other = self._features
        if self.same_context:
            left, right = (m.respond(self.place, self.public.grid) for m in self.markets)
            return np.asarray(np.abs(left - right) * np.linalg.norm(phi, axis=1) / self.public.nu)
        sizes = [
            np.linalg.norm(a[:, None] * phi - b[:, None] * other, axis=1)
            for a, b in itertools.product(self._residuals(0), self._residuals(1))
        ]
        return np.asarray(np.max(sizes, axis=0) / self.public.nu, dtype=float)

    @cached_property
    def _classes(self) -> list[tuple[float, float, float, float]]:
        """Share, offset, width and tree parameter of prices that cost about the same, at most."""
        order = np.argsort(self.squares)
        found = []
        for prices in np.array_split(order, min(_CLASSES, len(order))):
            q, mu = float(self.steps[prices].max()), math.sqrt(self.tree_squares[prices].max())
            found.append((len(prices) / len(order), self._jacobian + q**2 / 2, q, mu))
        return found

    def _residuals(self, side: int) -> tuple[Floats, Floats]:
        """Least and largest ``f(phi^T theta) - y`` over the ball, each of shape (prices,)."""
        link, far = self.public.link, np.linalg.norm(self._features[side], axis=1)
        outcome = self.markets[side].respond(self.place, self.public.grid)
        reach = self.public.radius * far
        return link.mean(-reach) - outcome, link.mean(reach) - outcome

    @property
    def _jacobian(self) -> float:
        longest = max(float(np.max(np.sum(phi**2, axis=1))) for phi in self._features)
        return math.log1p(self.public.link.curvature * longest / self.public.ridge_mle)

    @cached_property
    def _features(self) -> tuple[Floats, Floats]:
        left, right = (features(m.contexts[self.place], self.public.grid) for m in self.markets)
        return left, right
