"""One price for everybody: explore a public schedule, then charge the best noisy price for ever.

Claim
-----
During exploration prices follow a fixed schedule, so a customer's outcome in [0, B] enters the
revenue sum of exactly one price g and moves it by at most ``g B``; with Laplace noise of scale
``g B / eps`` the sums are eps-DP (Dwork, McSherry, Nissim and Smith 2006), every price is
post-processing of them, and customers after exploration influence nothing. Prices are not personal,
so this holds with *all* prices in view: plain DP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from audit.claim import PureDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]

VIEWS = ("prices_all", "transcript")
_TAIL = 40.0


@dataclass(frozen=True)
class UniformPrice:
    """Noisy revenue sums of grid prices, then the best one for everybody.

    Data are a mapping with ``outcomes``, shape (rounds,), clipped to [0, bound].

    Attributes:
        rounds: T.
        grid: Prices > 0.
        each: n0, customers who see each grid price.
        epsilon: Pure budget.
        bound: B, public bound on an outcome.
        view: ``prices_all``, or ``transcript`` for the noisy sums.
        noise_factor: Multiplies all noise and leaves the claim as it is.

    Raises:
        UsageError: For a parameter out of its range.
    """

    rounds: int = 20
    grid: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    each: int = 3
    epsilon: float = 1.0
    bound: float = 1.0
    view: str = "prices_all"
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        explored = len(self.grid) * self.each
        _require(min(self.grid, default=0) > 0, "positive grid prices", grid=self.grid)
        _require(self.each >= 1, "each >= 1", each=self.each)
        _require(self.rounds > explored, f"rounds > {explored}", rounds=self.rounds)
        _require(0 < self.epsilon < math.inf, "a finite epsilon > 0", epsilon=self.epsilon)
        _require(0 < self.bound < math.inf, "a finite bound > 0", bound=self.bound)
        _require(self.view in VIEWS, f"one of {', '.join(VIEWS)}", view=self.view)

    @property
    def claim(self) -> PureDp:
        """Pure epsilon with all prices in view."""
        source = "Laplace mechanism on revenue sums: Dwork, McSherry, Nissim and Smith (2006)"
        return PureDp(epsilon=self.epsilon, view=self.view, relation="replace-one", source=source)

    @property
    def declared_scale(self) -> float:
        """Scale of the noise for a grid price of 1."""
        return self.bound / self.epsilon

    def noise_scaled(self, factor: float) -> UniformPrice:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """The view that is emitted, by all its names."""
        return (self.view, "output")

    def pairs(self) -> Sequence[Pair]:
        """The outcome of the first and of the last explored customer at either end."""
        explored = len(self.grid) * self.each
        return tuple(self.pair(place) for place in (explored - 1, 0))

    def pair(self, place: int) -> Pair:
        """The outcome at a 0-based place 0 or B; the others half of B."""
        left, right = np.full((2, self.rounds), self.bound / 2)
        left[place], right[place] = self.bound, 0.0
        label = f"outcome of customer {place + 1}"
        return Pair({"outcomes": left}, {"outcomes": right}, label, relation="replace-one")

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Play `n` times.

        Returns:
            ``prices``, shape (n, T), or the noisy revenue sums ``sums``, shape (n, J).
        """
        sums = self._revenue(data) + rng.laplace(size=(n, len(self.grid))) * self._scales
        if self.view == "transcript":
            return {"sums": sums}
        grid = np.array(self.grid)
        explored = np.broadcast_to(np.tile(grid, self.each), (n, len(grid) * self.each))
        best = grid[np.argmax(sums, axis=1)][:, None]
        return {
            "prices": np.concatenate(
                [explored, np.repeat(best, self.rounds - explored.shape[1], axis=1)], axis=1
            )
        }

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right`` of the sums or of the chosen price, shape (n,)."""
        left, right = self._revenue(pair.left), self._revenue(pair.right)
        if self.view == "transcript":
            gap = np.abs(views["sums"] - right) - np.abs(views["sums"] - left)
            return np.asarray((gap / self._scales).sum(axis=1), dtype=float)
        odds = np.log(self.choice_law(left)) - np.log(self.choice_law(right))
        chosen = np.abs(views["prices"][:, -1:] - np.array(self.grid)).argmin(axis=1)
        return np.asarray(odds[chosen], dtype=float)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence of the chosen price, the larger direction."""
        left, right = (self.choice_law(self._revenue(side)) for side in (pair.left, pair.right))
        grown = math.exp(epsilon)
        ways = (left - grown * right, right - grown * left)
        return float(max(np.maximum(way, 0).sum() for way in ways))

    def choice_law(self, revenue: Floats) -> Floats:
        """Probability that each grid price has the largest noisy revenue, shape (J,).

        By quadrature over the winner's value: ``int f_j(v) prod_{i != j} F_i(v) dv``, each piece
        between two kinks by 64-point Gauss-Legendre.
        """
        nodes, weights = np.polynomial.legendre.leggauss(64)
        reach = _TAIL * self._scales.max()
        kinks = np.sort(revenue)
        far = [kinks[0] - reach, *kinks, kinks[-1] + reach]
        edges = np.unique(np.concatenate([np.linspace(a, b, 9) for a, b in pairwise(far)]))
        half = np.diff(edges)[:, None] / 2
        value = (edges[:-1, None] + half * (1 + nodes)).ravel()
        unit = (value[:, None] - revenue) / self._scales
        log_below = np.where(unit < 0, unit - math.log(2), np.log1p(-np.exp(-np.abs(unit)) / 2))
        others = log_below.sum(axis=1, keepdims=True) - log_below
        density = np.exp(others - np.abs(unit)) / (2 * self._scales)
        law = (half * weights).ravel() @ density
        return np.asarray(law / law.sum(), dtype=float)

    @property
    def _scales(self) -> Floats:
        return np.array(self.grid) * self.declared_scale * self.noise_factor

    def _revenue(self, data: Mapping[str, Any]) -> Floats:
        outcomes = np.asarray(data["outcomes"], dtype=float)
        if outcomes.shape != (self.rounds,):
            raise UsageError(
                f"UniformPrice: expected {self.rounds} outcomes, got shape {outcomes.shape}. Set "
                "rounds to the length of the stream"
            )
        seen = np.clip(outcomes[: len(self.grid) * self.each], 0.0, self.bound)
        return np.asarray(seen.reshape(self.each, -1).sum(axis=0) * np.array(self.grid))


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"UniformPrice: expected {expected}, got {name}={value!r}")
