"""Base learners for adversarial bandits, playing many independent trials side by side.

State is laid out as (arms, trials), so that one step is a few passes over contiguous rows. A
learner is told its `Setting`, is started with the number of trials and their generator, and then
alternates ``act`` and ``update``. It must cope with feedback of either sign: what it is fed are
losses plus noise.

Claim: none. A base learner promises no privacy of its own; see `algorithms.bandits.conversion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Setting:
    """What a base learner knows beforehand. Nothing here depends on the losses.

    Attributes:
        arms: Number of arms K.
        updates: Number of updates J that it will receive.
        scale: Scale b of the Laplace noise on its feedback.
        bound: Largest loss R; true losses lie in [0, R].
        batch: Rounds per update (tau).
    """

    arms: int
    updates: int
    scale: float
    bound: float = 1.0
    batch: int = 1


class Learner(Protocol):
    """A bandit learner, playing n trials side by side.

    Attributes:
        hidden: Draws of the last update that the state depends on besides arm and feedback, name
            to shape (n,).
    """

    @property
    def hidden(self) -> Mapping[str, Array]:
        """Draws of the last update, to be shown in the transcript."""

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Forget everything and get ready for `n` independent trials."""

    def act(self) -> Array:
        """Choose an arm in every trial; integers of shape (n,)."""

    def update(self, arm: Array, feedback: Floats) -> None:
        """Learn the noisy loss of the arm just played; both of shape (n,)."""


def draw(probs: Floats, rng: np.random.Generator) -> Array:
    """Sample one arm per column.

    Args:
        probs: Shape (K, n), columns summing to 1.
        rng: Source of one uniform per trial.

    Returns:
        Arms, shape (n,).
    """
    uniform = rng.random(probs.shape[1])
    arm: Array = np.zeros(probs.shape[1], dtype=np.int8 if len(probs) < 128 else np.int64)
    below = np.zeros(probs.shape[1])
    for row in probs[:-1]:
        below += row
        reached: Array = uniform >= below
        arm += reached.view(np.int8)
    return arm.astype(np.intp)


class Estimating:
    """Shared state of the learners that sum importance-weighted loss estimates.

    Attributes:
        losses: Estimated total loss of each arm, shape (K, n).
        count: Number of updates so far.
        hidden: Draws of the last update that the state depends on besides arm and feedback, name
            to shape (n,); they belong to the transcript.
    """

    losses: Floats
    count: int
    hidden: Mapping[str, Array] = MappingProxyType({})

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Forget everything and get ready for `n` independent trials."""
        self.losses = np.zeros((self.setting.arms, n))
        self.count = 0
        self._rng = rng
        self._trials = np.arange(n)

    def probs(self) -> Floats:
        """Probability of every arm in the next round, shape (K, n)."""
        raise NotImplementedError

    def act(self) -> Array:
        """Draw an arm in every trial; shape (n,)."""
        probs = self.probs()
        arm = draw(probs, self._rng)
        self._chance = self._at(probs, arm)
        return arm

    def follow(self, arm: Array) -> Floats:
        """Play given arms instead of drawn ones.

        Args:
            arm: Shape (n,).

        Returns:
            Their log-probabilities, shape (n,).
        """
        self._chance = self._at(self.probs(), arm)
        return np.asarray(np.log(self._chance))

    def kinks(self) -> list[float]:
        """Values of the coming feedback at which the next probabilities are not smooth."""
        return []

    def keep(self, rows: Array) -> None:
        """Go on with copies of the trials `rows`, shape (n,), in place of the present ones."""
        self.losses = np.take(self.losses, rows, axis=1)

    def update(self, arm: Array, feedback: Floats) -> None:
        """Learn the noisy loss of the arm just played; both of shape (n,)."""
        raise NotImplementedError

    def _add(self, arm: Array, estimate: Floats) -> None:
        self.losses.reshape(-1)[self._where(arm)] += estimate
        self.count += 1

    def _at(self, table: Floats, arm: Array) -> Floats:
        return np.asarray(table.reshape(-1)[self._where(arm)])

    def _where(self, arm: Array) -> Array:
        # One flat index is four times as fast as a pair of index arrays.
        return arm * len(self._trials) + self._trials


class Leader(Estimating):
    """Follow the leader: every arm once, then the arm with the lowest average feedback.

    A deterministic learner (ties go to the lowest arm), whose actions depend on its feedback as
    openly as an honest learner's can. Regret may be linear against an adversary.
    """

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Forget everything and get ready for `n` independent trials."""
        super().start(n, rng)
        self._plays = np.zeros_like(self.losses)

    def keep(self, rows: Array) -> None:
        """Go on with copies of the trials `rows`, shape (n,), in place of the present ones."""
        super().keep(rows)
        self._plays = np.take(self._plays, rows, axis=1)

    def probs(self) -> Floats:
        """All mass on one arm, shape (K, n)."""
        if self.count < self.setting.arms:
            best = np.full(self.losses.shape[1], self.count)
        else:
            best = np.argmin(self.losses / self._plays, axis=0)
        return np.asarray(np.arange(self.setting.arms)[:, None] == best, dtype=float)

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the feedback of the arm just played."""
        self._plays.reshape(-1)[self._where(arm)] += 1
        self._add(arm, feedback)
