"""Tilted runs of batched EXP4: rare privacy losses made common, with exact weights.

The loss of a transcript is a sum over the batches with a differing round, and within one over its
experts' Laplace releases, given the arms. So the arm of a differing round is drawn from its chances
times the normalisers of the tilted noise that the arm leads to, and the noise from the tilted
Laplace laws given the arms; every draw's ratio to its own law is accumulated.

Claim: none; nothing that the mechanism releases is drawn here.
"""

from __future__ import annotations

import numpy as np

from algorithms.bandits.learners import draw
from algorithms.bandits.release import Array, Floats
from algorithms.primitives.laplace import log_tilted_mass, tilted_laplace


class Tilting:
    """One tilted run.

    Args:
        change: Losses on the right less those on the left, shape (T, K).
        scale: Scale of the Laplace noise.
        tilt: The tilt.
        n: Number of trials.
        rng: Source of the tilted draws.

    Attributes:
        log_weights: Log importance weights so far, shape (n,).
    """

    def __init__(
        self, change: Floats, scale: float, tilt: float, n: int, rng: np.random.Generator
    ) -> None:
        self.log_weights = np.zeros(n)
        self._change, self._scale, self._tilt, self._rng = change, scale, tilt, rng
        self._differs = set(np.flatnonzero(change.any(axis=1)).tolist())
        self._shift: Floats | None = None

    def differs(self, t: int) -> bool:
        """Whether the losses of round `t` differ."""
        return t in self._differs

    def draw(self, t: int, probs: Floats, advice: Floats) -> Array:
        """Draw the arm of a differing round.

        Args:
            t: The round.
            probs: Chances of the arms, shape (K, n).
            advice: Of that round, shape (N, K).

        Returns:
            Arms, shape (n,).
        """
        moves = self._change[t][:, None] / (probs * self._scale)
        mass = sum(log_tilted_mass(row[:, None] * moves, self._tilt) for row in advice)
        exponents = np.log(probs) + mass
        highest = exponents.max(axis=0)
        tilted = np.exp(exponents - highest)
        tilted /= tilted.sum(axis=0)
        arm, trials = draw(tilted, self._rng), np.arange(probs.shape[1])
        self.log_weights += np.log(probs[arm, trials]) - np.log(tilted[arm, trials])
        shift = advice[:, arm] * moves[arm, trials]
        self._shift = shift if self._shift is None else self._shift + shift
        return arm

    def noise(self, noise: Floats) -> None:
        """Replace the noise of a batch with a differing round by tilted noise, in place.

        Args:
            noise: Shape (N, n).
        """
        if self._shift is None:
            return
        drawn = tilted_laplace(self._shift, self._tilt, self._rng)
        losses = (np.abs(drawn - self._shift) - np.abs(drawn)).sum(axis=0)
        self.log_weights += log_tilted_mass(self._shift, self._tilt).sum(axis=0)
        self.log_weights -= self._tilt * losses
        noise[:] = drawn * self._scale
        self._shift = None
