"""Base learners for adversarial bandits, playing many independent trials side by side.

State is laid out as (arms, trials), so that one step is a few passes over contiguous rows. A
learner is told its `Setting`, is started with the number of trials and their generator, and then
alternates ``act`` and ``update``. It must cope with feedback of either sign: what it is fed are
losses plus noise.

Claim: none. A base learner promises no privacy of its own; see `algorithms.bandits.conversion`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

SKIPPING = 1 - 2 ** (-1 / 3)
_NEWTON_STEPS = 30
_NEWTON_TOLERANCE = 1e-13


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
    """A bandit learner, playing n trials side by side."""

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
    arm = np.zeros(probs.shape[1], dtype=np.intp)
    below = np.zeros(probs.shape[1])
    for row in probs[:-1]:
        below += row
        arm += uniform >= below
    return arm


class Estimating:
    """Shared state of the learners that sum importance-weighted loss estimates.

    Attributes:
        losses: Estimated total loss of each arm, shape (K, n).
        current: Probabilities from which the last action was drawn, shape (K, n).
        count: Number of updates so far.
    """

    losses: Floats
    current: Floats
    count: int

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
        self.current = self.probs()
        return draw(self.current, self._rng)

    def _chosen(self, arm: Array) -> Floats:
        return np.asarray(self.current.reshape(-1)[self._where(arm)])

    def _add(self, arm: Array, estimate: Floats) -> None:
        self.losses.reshape(-1)[self._where(arm)] += estimate
        self.count += 1

    def _where(self, arm: Array) -> Array:
        # One flat index is four times as fast as a pair of index arrays.
        return arm * len(self._trials) + self._trials


class Exp3(Estimating):
    """EXP3 for noisy losses that may be negative.

    After Auer, Cesa-Bianchi, Freund and Schapire, "The nonstochastic multiarmed bandit problem"
    (2002), with rates for feedback bounded by M with high probability. Those rates are a
    reconstruction: with gamma >= eta K M every ``eta |y| / p`` is at most 1, which the second-order
    expansion of the exponential needs when y is negative.

    Args:
        setting: What the learner knows beforehand.
        eta: Learning rate; ``sqrt(ln K / (K J)) / (2 M)`` when omitted, with
            ``M = R + b ln(2 K J^2)``.
        gamma: Share of uniform exploration; ``min(1/2, eta K M)`` when omitted.

    Raises:
        UsageError: For eta <= 0 or gamma outside [0, 1].
    """

    def __init__(
        self, setting: Setting, eta: float | None = None, gamma: float | None = None
    ) -> None:
        super().__init__(setting)
        arms, updates = setting.arms, setting.updates
        largest = setting.bound + setting.scale * math.log(2 * arms * updates**2)
        rate = math.sqrt(math.log(arms) / (arms * updates)) / (2 * largest)
        self.eta = rate if eta is None else eta
        self.gamma = min(0.5, self.eta * arms * largest) if gamma is None else gamma
        if not (self.eta > 0 and 0 <= self.gamma <= 1):
            raise UsageError(
                f"exp3n: expected eta > 0 and gamma in [0, 1], got eta={eta!r}, gamma={gamma!r}; "
                "omit both for the standard rates"
            )

    def probs(self) -> Floats:
        """Exponential weights mixed with uniform exploration, shape (K, n)."""
        weights = self.losses.min(axis=0) - self.losses
        weights *= self.eta
        np.exp(weights, out=weights)
        weights *= (1 - self.gamma) / weights.sum(axis=0)
        weights += self.gamma / self.setting.arms
        return np.asarray(weights)

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the importance-weighted loss of the arm just played."""
        self._add(arm, feedback / self._chosen(arm))


class Htinf(Estimating):
    """HTINF: follow the regularised leader for heavy-tailed losses.

    Huang, Dai and Huang, "Adaptive best-of-both-worlds algorithm for heavy-tailed multi-armed
    bandits" (2022), with alpha = 2: Tsallis entropy of order 1/2, and feedback skipped when it is
    too large for the probability of its arm.

    Args:
        setting: What the learner knows beforehand.
        sigma: Root of the second moment of the feedback; ``sqrt(6) R`` when omitted, which holds
            for a loss in [0, R] plus Laplace noise of scale at most R.
        skipping: The factor Theta of the skipping threshold ``Theta sigma sqrt(t x)``; infinity
            skips nothing.

    Raises:
        UsageError: For sigma <= 0 or skipping <= 0.
    """

    def __init__(
        self, setting: Setting, sigma: float | None = None, skipping: float = SKIPPING
    ) -> None:
        super().__init__(setting)
        self.sigma = math.sqrt(6) * setting.bound if sigma is None else sigma
        self.skipping = skipping
        if not (self.sigma > 0 and skipping > 0):
            raise UsageError(
                f"htinf: expected sigma > 0 and skipping > 0, got sigma={sigma!r}, "
                f"skipping={skipping!r}; omit both for the standard rates"
            )

    @property
    def inverse_rate(self) -> float:
        """``1 / eta = sigma sqrt(t)`` for the coming update t."""
        return self.sigma * math.sqrt(self.count + 1)

    def probs(self) -> Floats:
        """Minimiser of the regularised estimated loss over the simplex, shape (K, n)."""
        gaps = self.losses - self.losses.min(axis=0)
        gaps /= self.inverse_rate
        return tsallis(gaps)

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the importance-weighted feedback, unless it is too large to be trusted."""
        chosen = self._chosen(arm)
        largest = self.skipping * self.inverse_rate * np.sqrt(chosen)
        self._add(arm, np.where(np.abs(feedback) <= largest, feedback, 0.0) / chosen)


def tsallis(gaps: Floats) -> Floats:
    """Probabilities ``x_i = (gaps_i + d)^-2`` with d such that every column sums to 1.

    Newton's method on ``1 - (sum x)^(-1/2)``. As a function of d, ``(sum x)^(-1/2)`` is a power
    mean of order -2 of the ``gaps + d``, so it is increasing and concave: from the left of the root
    every step stays on the left and the iteration is monotone. ``max(1, sqrt(K) - mean gap)`` is
    on the left, since the smallest gap is 0 and since ``sum x >= K (mean gap + d)^-2``.

    Args:
        gaps: Shape (K, n), non-negative, the smallest of each column 0.

    Returns:
        Shape (K, n), columns summing to 1.
    """
    shift = np.maximum(1.0, math.sqrt(len(gaps)) - gaps.mean(axis=0))
    for _ in range(_NEWTON_STEPS):
        root = 1 / (gaps + shift)
        probs = root * root
        total = probs.sum(axis=0)
        if total.max(initial=1.0) - 1 <= _NEWTON_TOLERANCE:
            break
        root *= probs
        shift += total * (np.sqrt(total) - 1) / root.sum(axis=0)
    return np.asarray(probs / total)


class Leader(Estimating):
    """Follow the leader: every arm once, then the arm with the lowest average feedback.

    A deterministic learner (ties go to the lowest arm), whose actions depend on its feedback as
    openly as an honest learner's can. Regret may be linear against an adversary.
    """

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Forget everything and get ready for `n` independent trials."""
        super().start(n, rng)
        self._plays = np.zeros_like(self.losses)

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
