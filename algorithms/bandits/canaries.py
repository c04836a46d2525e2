"""Canary learners: legal base learners that write one noisy feedback into their actions.

The batched conversion promises privacy for *every* base learner, so these are fair inputs to it.
Real learners average the noise away and their actions show little; a canary's actions show one
feedback value, coarsened into bins, and nothing is lost at the edge of the bins that matters: with
an edge at the smaller of two means the event "left of the edge" has probabilities 1/2 and
exp(-eps)/2, whose ratio is exp(eps) exactly.

Claim: none of their own; see `algorithms.bandits.conversion`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from algorithms.bandits.learners import Array, Floats, Setting
from audit.errors import UsageError


class Canary:
    """Plays arm 0 up to the watched batch, then forever the arm of the bin its feedback fell in.

    Args:
        setting: What the learner knows beforehand.
        edges: Increasing bin edges, fewer than arms.
        watched: Index of the batch whose feedback is written into the actions (0-based).

    Raises:
        UsageError: When there are not more arms than edges, the edges do not increase, or there is
            no such batch.
    """

    hidden: Mapping[str, Array] = MappingProxyType({})

    def __init__(self, setting: Setting, edges: Sequence[float], watched: int = 0) -> None:
        self.setting = setting
        self.edges = np.asarray(edges, dtype=float)
        self.watched = watched
        _check(setting, self.edges, watched)

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Forget everything and get ready for `n` independent trials; uses no randomness."""
        del rng
        self._arm: Array = np.zeros(n, dtype=np.intp)
        self._count = 0

    def act(self) -> Array:
        """The arm of the bin, or arm 0 until it is known; shape (n,)."""
        return self._arm

    def update(self, arm: Array, feedback: Floats) -> None:
        """Look at the watched feedback; ignore all others."""
        del arm
        if self._count == self.watched:
            self._arm = np.searchsorted(self.edges, feedback, side="right")
        self._count += 1

    def law(self, mean: float, scale: float) -> Floats:
        """Law of the arm played after the watched batch.

        Args:
            mean: Mean loss of arm 0 in the watched batch.
            scale: Scale of the Laplace noise.

        Returns:
            Probabilities, shape (K,).
        """
        signed = (self.edges - mean) / scale
        tail = np.exp(-np.abs(signed)) / 2
        below = np.concatenate([[0.0], np.where(signed < 0, tail, 1 - tail), [1.0]])
        law = np.zeros(self.setting.arms)
        law[: len(below) - 1] = np.diff(below)
        return law


def threshold(setting: Setting, cut: float = 0.0, watched: int = 0) -> Canary:
    """A canary with one edge: arm 0 forever if the watched feedback is below `cut`, else arm 1."""
    return Canary(setting, [cut], watched)


def quantile(
    setting: Setting, low: float = 0.0, high: float | None = None, watched: int = 0
) -> Canary:
    """A canary with as many bins as arms, edges equally spaced between two means.

    Args:
        setting: What the learner knows beforehand.
        low: The smaller of the two means that the adversary wants to tell apart.
        high: The larger; by default `low` plus the most that one loss can move a batch's mean.
        watched: Index of the batch whose feedback is written into the actions (0-based).
    """
    top = low + setting.bound / setting.batch if high is None else high
    return Canary(setting, np.linspace(low, top, setting.arms - 1).tolist(), watched)


def _check(setting: Setting, edges: Floats, watched: int) -> None:
    if not 1 <= len(edges) < setting.arms or np.any(np.diff(edges) <= 0):
        raise UsageError(
            f"canary: expected 1 to {setting.arms - 1} increasing edges for {setting.arms} arms, "
            f"got {edges.tolist()}; add arms or drop edges"
        )
    if not 0 <= watched < setting.updates:
        raise UsageError(
            f"canary: expected a watched batch in 0..{setting.updates - 1}, got {watched!r}; "
            "lengthen the horizon or watch an earlier batch"
        )
