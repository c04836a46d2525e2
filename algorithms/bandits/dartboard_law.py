"""What the transcript of the dartboard algorithm loses: bounds, the exact curve, tilted runs.

The expert and the number of draws so far are a Markov chain, and the privacy loss is a sum over its
steps. So the law of the loss follows by a recursion over steps on a grid. A loss between two points
of the grid is split between them such that its mass on both sides is kept (Doroshenko, Ghazi,
Kamath, Kumar and Manurangsi, "Connect the dots" (2022)): the original is a post-processing of that,
so the curve is an upper bound, with an error that falls with the square of the step.

Claim: none; these are the formulas that claims and certificates are computed with.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from algorithms.bandits.release import Array, Floats
from audit.errors import UsageError

_CELLS = 1_000
_MOST_WORK = 400_000_000
MOST_STATES = 4_000_000


def composed_epsilon(coin: float, draw: float, draws: int, delta: float) -> float:
    """Smallest epsilon at `delta` of one release with loss `coin` and up to `draws` with `draw`.

    Each is dominated by randomised response with its loss, also when chosen adaptively (Kairouz, Oh
    and Viswanath 2015; Murtagh and Vadhan 2016), whose losses add up to few values.

    Args:
        coin: Largest loss of the one release.
        draw: Largest loss of each of the others.
        draws: Their number.
        delta: The delta, in (0, 1).

    Returns:
        The epsilon, rounded up; infinite losses give infinity.
    """
    if math.isinf(coin):
        return math.inf
    wins = np.arange(draws + 1)
    counts = special.gammaln(draws + 1) - special.gammaln(wins + 1)
    counts -= special.gammaln(draws - wins + 1)
    counts += wins * special.log_expit(draw) + (draws - wins) * special.log_expit(-draw)
    mass = np.exp(np.add.outer(special.log_expit([coin, -coin]), counts))
    loss = np.add.outer([coin, -coin], draw * (2 * wins - draws))
    low, high = 0.0, coin + draws * draw
    if _excess(loss, mass, low) <= delta:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        above = _excess(loss, mass, middle) > delta
        low, high = (middle, high) if above else (low, middle)
    return high


def _excess(loss: Floats, mass: Floats, epsilon: float) -> float:
    return float(np.sum(mass * np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0)))))


Chain = tuple[Floats, Floats]
"""Law of a draw and chance of a switch by expert, both of shape (steps - 1, d)."""


def loss_profile(left: Chain, right: Chain, budget: int, epsilon: float) -> float:
    """Hockey-stick divergence of transcripts from the left to the right chain.

    Args:
        left: The law under which the transcripts are drawn.
        right: The other.
        budget: Most draws, the first included.
        epsilon: Non-negative.

    Raises:
        UsageError: When the recursion would take too long.
    """
    steps, experts = left[0].shape
    width = min(budget, steps + 1)
    if steps * width * experts * 2 * _CELLS > _MOST_WORK:
        raise UsageError(
            f"dartboard: the exact curve of {steps + 1} steps, {experts} experts and budget "
            f"{budget} takes too long; use the composition bound, or fewer steps"
        )
    told = np.stack([*left, *right]).tobytes()
    losses, masses, revealed = _curve(told, steps, experts, width, budget)
    return _excess(losses, masses, epsilon) + revealed


@lru_cache(maxsize=16)
def _curve(
    told: bytes, steps: int, experts: int, width: int, budget: int
) -> tuple[Floats, Floats, float]:
    """Losses, their masses under the left chain, and the mass of infinite losses."""
    law, chance, other, chance_other = np.frombuffer(told).reshape(4, steps, experts)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = _logs((law, chance), (other, chance_other))
        drawn, coin, kept = (a - b for a, b in logs)
    grid = _Grid.spanning(drawn, coin, kept, min(budget, width) - 1)
    mass = np.zeros((width, experts, grid.cells))
    mass[0, :, grid.zero] = 1 / experts
    free = min(width, budget - 1)
    for t in range(steps):
        moved = grid.shifted(mass[:free] * chance[t][:, None], coin[t]).sum(axis=1)
        landed = grid.shifted(moved[:, None] * law[t][:, None], drawn[t])
        mass[:free] = grid.shifted(mass[:free] * (1 - chance[t][:, None]), kept[t])
        mass[1 : free + 1] += landed[: width - 1]
    return grid.losses, mass.sum(axis=(0, 1)), grid.revealed


class _Grid:
    """Equally spaced losses on which masses are moved; what leaves it upwards is revealed."""

    def __init__(self, step: float, zero: int) -> None:
        self.step, self.zero, self.cells = step, zero, 2 * zero + 1
        self.losses = step * np.arange(-zero, zero + 1.0)
        self.revealed = 0.0

    @classmethod
    def spanning(cls, drawn: Floats, coin: Floats, kept: Floats, draws: int) -> _Grid:
        """A grid that holds all sums of so many draws and of one coin per step."""

        def largest(values: Floats) -> Floats:
            sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
            return np.asarray(sizes.max(axis=1))

        coins = np.maximum(largest(coin), largest(kept))
        span = float(coins.sum() + draws * largest(drawn).max())
        # A split may lift a loss by a cell each time.
        splits = np.count_nonzero(coins) + draws + 2
        return cls(max(span, 1e-12) / _CELLS, _CELLS + int(splits))

    def shifted(self, mass: Floats, losses: Floats) -> Floats:
        """Mass of shape (rows, d, cells) after each expert's loss, shape (d,), is added."""
        moved = np.zeros(np.broadcast_shapes(mass.shape, (1, len(losses), 1)))
        source = np.broadcast_to(mass, moved.shape)
        for x, loss in enumerate(losses):
            if loss == 0.0:
                moved[:, x] = source[:, x]
            elif np.isfinite(loss):
                self._move(source[:, x], float(loss), moved[:, x])
            else:
                self.revealed += float(source[:, x].sum())
        return moved

    def _move(self, mass: Floats, loss: float, out: Floats) -> None:
        cells = math.floor(loss / self.step)
        upper = math.expm1(cells * self.step - loss) / math.expm1(-self.step)
        for by, share in ((cells, 1 - upper), (cells + 1, upper)):
            if by >= 0:
                out[:, by:] += share * mass[:, : self.cells - by]
                self.revealed += share * float(mass[:, self.cells - by :].sum())
            else:
                out[:, :by] += share * mass[:, -by:]
                # Raised to the lowest loss of the grid: from above.
                out[:, 0] += share * mass[:, :-by].sum(axis=1)


class TiltedChain:
    """The law of transcripts proportional to ``exp(tilt L)`` times that of the left chain.

    Every step's own factor times the mean factor of all later steps, by a recursion from the end,
    gives the chances of the step: the tilted chain is a Markov chain too, and exact.

    Args:
        left: The chain that is tilted.
        right: The chain that the loss compares with; all losses are finite.
        tilt: The tilt.
        budget: Most draws, the first included.

    Attributes:
        log_mass: ``ln E_left exp(tilt L)``.
    """

    def __init__(self, left: Chain, right: Chain, tilt: float, budget: int) -> None:
        self._budget = budget
        drawn, coin, kept = ((1 + tilt) * a - tilt * b for a, b in _logs(left, right))
        steps, experts = drawn.shape
        width = min(budget, steps + 1)
        free, rows = min(width, budget - 1), np.arange(1, min(width, budget - 1) + 1)
        later = np.zeros((width, experts))
        self._draws = np.zeros((steps, free, experts))
        self._coins = np.zeros((steps, free, experts))
        for t in reversed(range(steps)):
            # The last row is out of reach, or has no budget left.
            landed = drawn[t] + later[np.minimum(rows, width - 1)]
            total = special.logsumexp(landed, axis=1, keepdims=True)
            moved, stayed = coin[t] + total, kept[t] + later[:free]
            self._draws[t] = np.cumsum(np.exp(landed - total), axis=1)
            self._coins[t] = special.expit(moved - stayed)
            later[:free] = np.logaddexp(moved, stayed)
        start = special.logsumexp(later[0])
        self._start = np.cumsum(np.exp(later[0] - start))
        self.log_mass = float(start) - math.log(experts)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Experts, shape (steps, n), and whether a draw was made before each but the first."""
        steps, free, experts = self._draws.shape
        actions = np.empty((steps + 1, n), dtype=np.int32)
        switches = np.zeros((steps, n), dtype=np.int32)
        actions[0] = np.searchsorted(self._start[:-1], rng.random(n), side="right")
        used = np.zeros(n, dtype=np.intp)
        for t in range(steps):
            actions[t + 1] = actions[t]
            rows = np.flatnonzero(used < free)
            rows = rows[rng.random(len(rows)) < self._coins[t, used[rows], actions[t, rows]]]
            passed = rng.random((len(rows), 1)) >= self._draws[t, used[rows], : experts - 1]
            actions[t + 1, rows] = passed.sum(axis=1)
            switches[t, rows] = 1
            used[rows] += 1
        return actions, switches


def _logs(left: Chain, right: Chain) -> list[tuple[Floats, Floats]]:
    """Logarithms on both sides of the laws, and of the chances to switch and not to."""
    (law, chance), (other, chance_other) = left, right
    return [
        (np.log(law), np.log(other)),
        (np.log(chance), np.log(chance_other)),
        (np.log1p(-chance), np.log1p(-chance_other)),
    ]
