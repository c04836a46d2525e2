"""Nonparametric personalised pricing: a price search in every cell of the context space.

After Chen, Miao and Wang (2021), *Differential Privacy in Personalized Pricing with Nonparametric
Demand Models*: contexts are cut into cells; in every cell a price interval shrinks, phase by phase,
around the best of a few test prices. Their phases end when a cell has seen enough customers; here
phases are public rounds and test prices take turns by the round, so that no schedule depends on
data. Two trust models: a curator adds Laplace noise to the counters of a phase (**central**), or
every customer adds it to their own report (**local**).

Claim
-----
A customer enters one counter pair (visits, revenue) of one phase, each entry in [0, 1]; replacing
the customer empties one pair and fills another, an L1 change of at most 4. Noise Lap(4/eps) on
each counter makes all counters together eps-DP, and later prices are post-processing. A local
report is a vector with one non-zero pair, so the same noise makes each report eps-DP by itself.
The customer's own price depends on their context, so the view leaves it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.primitives.laplace import product_profile
from audit.claim import PureDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]
Release = Callable[[int, Floats], Floats]

_CHANGE = 4.0
VIEWS = ("transcript", "prices_after", "prices_except")


@dataclass(frozen=True)
class CellPricing:
    """A shrinking price search per context cell (after Chen, Miao and Wang 2021).

    Data are a mapping with ``contexts`` in [0, 1], shape (rounds,), and ``valuations``, shape
    (rounds,): a customer buys when the price is at most their valuation.

    Attributes:
        rounds: T.
        cells: Equal intervals of contexts.
        phases: Searches per cell, of equally many rounds.
        tests: Prices tested in a phase, evenly spaced in the interval.
        epsilon: Pure budget.
        local: Whether every customer adds their own noise.
        view: ``transcript`` for all noisy counters or reports, or a projection of the prices.
        noise_factor: Multiplies all noise and leaves the claim as it is.

    Raises:
        UsageError: For a parameter out of its range.
    """

    rounds: int = 48
    cells: int = 2
    phases: int = 3
    tests: int = 3
    epsilon: float = 1.0
    local: bool = False
    view: str = "transcript"
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        for name, low in (("cells", 1), ("phases", 1), ("tests", 2)):
            value = getattr(self, name)
            _require(value >= low, f"{name} >= {low}", **{name: value})
        step = self.phases * self.tests
        whole = self.rounds >= step and self.rounds % self.phases == 0
        _require(whole, f"rounds >= {step}, divisible by the phases", rounds=self.rounds)
        _require(0 < self.epsilon < math.inf, "a finite epsilon > 0", epsilon=self.epsilon)
        _require(self.view in VIEWS, f"one of {', '.join(VIEWS)}", view=self.view)

    @property
    def claim(self) -> PureDp:
        """Pure epsilon for replacing one customer."""
        source = "after Chen, Miao and Wang (2021), " + ("local" if self.local else "central")
        return PureDp(epsilon=self.epsilon, view=self.view, relation="replace-one", source=source)

    @property
    def declared_scale(self) -> float:
        """Scale 4/eps of a counter's noise."""
        return _CHANGE / self.epsilon

    def noise_scaled(self, factor: float) -> CellPricing:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """The likelihood ratio is that of the counters."""
        return ("transcript", "output") if self.view == "transcript" else ()

    def pairs(self) -> Sequence[Pair]:
        """A customer of the first phase, at the highest test price, moved to another cell."""
        place = self.tests - 1
        return (
            self.pair((0.0, 2.0), (1.0, 2.0), "customer moved", place),
            self.pair((0.0, 2.0), (0.0, -1.0), "outcome flipped", place),
        )

    def pair(
        self, left: tuple[float, float], right: tuple[float, float], label: str, place: int
    ) -> Pair:
        """Neighbours that differ in one customer: context and valuation."""
        spread = np.arange(self.rounds) * 0.618 % 1
        sides = []
        for context, valuation in (left, right):
            data = {"contexts": spread.copy(), "valuations": spread[::-1].copy()}
            data["contexts"][place], data["valuations"][place] = context, valuation
            sides.append(data)
        return Pair(sides[0], sides[1], label=label, relation="replace-one")

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Play `n` times.

        Returns:
            ``counters``, shape (n, phases, cells, tests, 2): noisy visits and revenues; or local
            ``reports``, shape (n, T, cells, 2); or ``prices``, shape (n, T).
        """
        scale = self.declared_scale * self.noise_factor
        kept = []

        def release(_phase: int, exact: Floats) -> Floats:
            shape = (n, *exact.shape[1:])
            kept.append(exact + rng.laplace(0.0, scale, shape))
            return kept[-1]

        prices = self._play(data, n, release)
        if self.view != "transcript":
            return {"prices": prices}
        if self.local:
            return {"reports": np.concatenate(kept, axis=1)}
        return {"counters": np.stack(kept, axis=1)}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right`` of all counters or reports, shape (n,)."""
        column = views["reports" if self.local else "counters"]
        n, length = len(column), self.rounds // self.phases
        distances = []
        for data in (pair.left, pair.right):
            distance = np.zeros(n)

            def release(phase: int, exact: Floats, distance: Floats = distance) -> Floats:
                part = slice(phase * length, (phase + 1) * length)
                seen = column[:, part] if self.local else column[:, phase]
                distance += np.abs(seen - exact).reshape(n, -1).sum(axis=1)
                return np.asarray(seen, dtype=float)

            self._play(data, n, release)
            distances.append(distance)
        scale = self.declared_scale * self.noise_factor
        return np.asarray((distances[1] - distances[0]) / scale, dtype=float)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence of all counters or reports, first-phase customers only.

        Their prices do not depend on any noise; one Laplace release per number that moves.

        Raises:
            UsageError: For a customer of a later phase, or when only prices are in view.
        """
        _require(self.view == "transcript", "view transcript for a profile", view=self.view)
        last = self.rounds // self.phases
        _require(pair.position < last, f"a customer before {last}", customer=pair.position)
        change = self._first_phase(pair.left) - self._first_phase(pair.right)
        moves = np.abs(change) / (self.declared_scale * self.noise_factor)
        return product_profile(moves.ravel().tolist(), epsilon)

    def _first_phase(self, data: Mapping[str, Any]) -> Floats:
        """Counters or reports of the first phase without their noise."""
        kept: list[Floats] = []

        def release(_phase: int, exact: Floats) -> Floats:
            kept.append(exact)
            return exact

        self._play(data, 1, release)
        return kept[0]

    def _play(self, data: Mapping[str, Any], n: int, release: Release) -> Floats:
        contexts, valuations = self._checked(data)
        cell = np.minimum((contexts * self.cells).astype(np.intp), self.cells - 1)
        length = self.rounds // self.phases
        interval = np.tile([0.0, 1.0], (n, self.cells, 1))
        prices = np.empty((n, self.rounds))
        test = np.arange(length) % self.tests
        for phase in range(self.phases):
            who = slice(phase * length, (phase + 1) * length)
            shares = (np.arange(self.tests) + 1) / (self.tests + 1)
            grid = interval[..., :1] + shares * (interval[..., 1:] - interval[..., :1])
            prices[:, who] = grid[:, cell[who], test]
            revenue = prices[:, who] * (prices[:, who] <= valuations[who])
            seen = self._totals(release(phase, self._exact(cell[who], test, revenue)), test)
            interval = self._shrunk(interval, grid, seen)
        return prices

    def _exact(self, cell: npt.NDArray[np.intp], test: Any, revenue: Floats) -> Floats:
        """Reports of every customer when local, else the counters of the phase."""
        n, length = revenue.shape
        reports = np.zeros((n, length, self.cells, 2))
        reports[:, np.arange(length), cell, 0] = 1.0
        reports[:, np.arange(length), cell, 1] = revenue
        return reports if self.local else self._by_test(reports, test)

    def _totals(self, released: Floats, test: Any) -> Floats:
        return self._by_test(released, test) if self.local else released

    def _by_test(self, reports: Floats, test: Any) -> Floats:
        """Sum reports (n, T', cells, 2) by test price: (n, cells, tests, 2)."""
        sums = [reports[:, test == i].sum(axis=1) for i in range(self.tests)]
        return np.stack(sums, axis=2)

    def _shrunk(self, interval: Floats, grid: Floats, counters: Floats) -> Floats:
        """Two test steps around the price with the best noisy average revenue."""
        mean = counters[..., 1] / np.maximum(counters[..., 0], 1.0)
        best = np.take_along_axis(grid, mean.argmax(axis=2)[..., None], axis=2)
        step = (interval[..., 1:] - interval[..., :1]) / (self.tests + 1)
        return np.concatenate([best - step, best + step], axis=2)

    def _checked(self, data: Mapping[str, Any]) -> tuple[Floats, Floats]:
        contexts = np.clip(np.asarray(data["contexts"], dtype=float), 0.0, 1.0)
        valuations = np.asarray(data["valuations"], dtype=float)
        if contexts.shape != (self.rounds,) or valuations.shape != (self.rounds,):
            raise UsageError(
                f"CellPricing: expected contexts and valuations of length {self.rounds}, got "
                f"shapes {contexts.shape} and {valuations.shape}. Set rounds to that of the data"
            )
        return contexts, valuations


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"CellPricing: expected {expected}, got {name}={value!r}")
