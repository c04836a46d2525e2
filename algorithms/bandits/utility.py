"""What privacy costs: regret on the true losses, measured and promised.

Regret of a run is the sum of the true losses of its actions less that of the best fixed arm. In a
stochastic world with known mean losses the pseudo-regret replaces both by their means, which takes
the noise of the losses out of the estimate.

Claim: none. Nothing here is released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

USUAL_HORIZONS = (250, 1000, 4000)
USUAL_EPSILONS = (0.1, 0.3, 1.0, 3.0)
BEST, OTHERS = 0.3, 0.5


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
        policy: ``private``, or ``uniform play``, which costs nothing and learns nothing.
        rounds: Number of rounds T.
        epsilon: Promised epsilon; 0 for uniform play, infinite without a promise.
        regret: Mean over runs, in units of a loss.
        error: Its standard error; NaN for a single run.
        guarantee: Promised regret, or None.
    """

    policy: str
    rounds: int
    epsilon: float
    regret: float
    error: float
    guarantee: float | None


class Measured:
    """A bandit mechanism whose regret can be measured: a dataclass with fields horizon and arms."""

    def at(self, **sizes: Any) -> Any:
        """The same mechanism with another ``horizon`` or ``epsilon``."""
        return replace(self, **sizes)  # type: ignore[type-var]

    def utility_curves(
        self,
        horizons: Sequence[int] | None = None,
        epsilons: Sequence[float] | None = None,
        runs: int = 200,
        seed: int = 0,
    ) -> dict[str, list[Point]]:
        """Pseudo-regret against T and against epsilon, beside the guarantee and uniform play.

        One arm has mean loss .3, the others .5. Where there are experts, each insists on one arm.

        Args:
            horizons: Numbers of rounds, at the mechanism's own epsilon; usual ones when omitted.
            epsilons: Promised epsilons, at the longest horizon; usual ones when omitted.
            runs: Runs per point.
            seed: Root of the random streams.

        Returns:
            Points by what they are against: ``rounds`` and, if there is one to vary, ``epsilon``.

        Raises:
            UsageError: For a size that the mechanism does not take.
        """
        rounds = sorted(USUAL_HORIZONS if horizons is None else horizons)
        varied = [self.at(horizon=horizon) for horizon in rounds]
        found = {"rounds": _points(varied, runs, seed)}
        if hasattr(self, "epsilon"):
            longest = max(rounds, default=max(USUAL_HORIZONS))
            chosen = sorted(USUAL_EPSILONS if epsilons is None else epsilons)
            varied = [self.at(horizon=longest, epsilon=epsilon) for epsilon in chosen]
            found["epsilon"] = _points(varied, runs, seed)
        return found


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


def _points(mechanisms: Sequence[Any], runs: int, seed: int) -> list[Point]:
    """Two points for each mechanism, from a random stream of its own."""
    points = []
    children = np.random.SeedSequence(seed).spawn(len(mechanisms))
    for mechanism, child in zip(mechanisms, children, strict=True):
        means, tables = (BEST, *[OTHERS] * (mechanism.arms - 1)), 4 if runs % 4 == 0 else 1
        rng, public = np.random.default_rng(child), _advice(mechanism)
        found = stochastic_regret(mechanism, means, runs, rng, public, tables)
        promised = getattr(mechanism, "guarantee", lambda: None)()
        rounds, epsilon = mechanism.horizon, float(getattr(mechanism, "epsilon", math.inf))
        points.append(Point("private", rounds, epsilon, found.mean, found.error, promised))
        idle = rounds * (sum(means) / len(means) - BEST)
        points.append(Point("uniform play", rounds, 0.0, idle, 0.0, None))
    return points


def _advice(mechanism: Any) -> dict[str, Floats]:
    """Advice of experts who each insist on one arm, where the mechanism has experts."""
    if not hasattr(mechanism, "experts"):
        return {}
    rows = np.eye(mechanism.arms)[np.arange(mechanism.experts) % mechanism.arms]
    return {"advice": np.broadcast_to(rows, (mechanism.horizon, *rows.shape))}
