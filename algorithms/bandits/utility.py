"""What privacy costs: regret on the true losses, measured and promised.

Regret of a run is the sum of the true losses of its actions less that of the best fixed arm. In a
stochastic world with known mean losses the pseudo-regret replaces both by their means, which takes
the noise of the losses out of the estimate.

Claim: none. Nothing here is released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


class Player(Protocol):
    """A bandit mechanism."""

    @property
    def horizon(self) -> int:
        """Number of rounds."""

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play n trials; the column ``actions`` has shape (n, T)."""


@dataclass(frozen=True)
class Regret:
    """Regret of some runs.

    Attributes:
        mean: Mean over runs, in units of a loss.
        error: Its standard error; NaN for a single run.
        runs: Number of runs.
    """

    mean: float
    error: float
    runs: int

    @classmethod
    def of(cls, values: Floats) -> Regret:
        """Summary of the regrets of independent runs, shape (n,)."""
        spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        return cls(float(values.mean()), spread / math.sqrt(len(values)), len(values))


@dataclass(frozen=True)
class Point:
    """One point of a utility curve.

    Attributes:
        horizon: Number of rounds T.
        epsilon: Promised epsilon.
        regret: Measured.
        guarantee: Promised, or None.
    """

    horizon: int
    epsilon: float
    regret: Regret
    guarantee: float | None


def regret(
    mechanism: Player,
    losses: Floats,
    runs: int,
    rng: np.random.Generator,
    public: Mapping[str, Any] | None = None,
) -> Regret:
    """Regret against the best fixed arm on one table of losses.

    Args:
        mechanism: Who plays.
        losses: Shape (T, K).
        runs: Number of independent runs.
        rng: Source of the mechanism's draws.
        public: Further columns of the input, such as advice.
    """
    actions = mechanism.run({"losses": losses, **(public or {})}, runs, rng)["actions"]
    paid = losses[np.arange(len(losses)), actions].sum(axis=1)
    return Regret.of(paid - losses.sum(axis=0).min())


def stochastic_regret(
    mechanism: Player,
    means: Sequence[float],
    runs: int,
    rng: np.random.Generator,
    public: Mapping[str, Any] | None = None,
    tables: int = 1,
) -> Regret:
    """Pseudo-regret against independent Bernoulli losses.

    Args:
        mechanism: Who plays.
        means: Mean loss of every arm, shape (K,).
        runs: Number of runs in all, a multiple of `tables`.
        rng: Source of the losses and of the mechanism's draws.
        public: Further columns of the input, such as advice.
        tables: Number of tables of losses drawn; runs on the same table share its luck, which the
            standard error does not know.

    Raises:
        UsageError: When `runs` is no positive multiple of `tables`.
    """
    if tables < 1 or runs < 1 or runs % tables:
        raise UsageError(
            f"utility: expected runs to be a positive multiple of tables, got runs={runs!r} and "
            f"tables={tables!r}"
        )
    level = np.asarray(means, dtype=float)
    found = []
    for _ in range(tables):
        losses = (rng.random((mechanism.horizon, len(level))) < level).astype(float)
        data = {"losses": losses, **(public or {})}
        actions = mechanism.run(data, runs // tables, rng)["actions"]
        found.append((level - level.min())[actions].sum(axis=1))
    return Regret.of(np.concatenate(found))


def curve(
    make: Callable[[float, int], Any],
    sizes: Iterable[tuple[float, int]],
    means: Sequence[float],
    runs: int,
    seed: int = 0,
) -> list[Point]:
    """Pseudo-regret against epsilon and the horizon, beside the guarantee.

    Args:
        make: Builds the mechanism for an epsilon and a horizon.
        sizes: Pairs of epsilon and horizon.
        means: Mean loss of every arm.
        runs: Runs per point.
        seed: Root of the random streams; one child per point.
    """
    listed = list(sizes)
    children = np.random.SeedSequence(seed).spawn(len(listed))
    points = []
    for (epsilon, horizon), child in zip(listed, children, strict=True):
        mechanism = make(epsilon, horizon)
        measured = stochastic_regret(mechanism, means, runs, np.random.default_rng(child))
        promised = getattr(mechanism, "guarantee", lambda: None)()
        points.append(Point(horizon, epsilon, measured, promised))
    return points
