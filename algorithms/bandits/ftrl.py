"""Follow the regularised leader: HTINF, Tsallis-INF and INF, whose regularisers are power sums.

Claim: none. A base learner promises no privacy of its own; see `algorithms.bandits.conversion`.
"""

from __future__ import annotations

import math

import numpy as np

from algorithms.bandits.learners import Array, Estimating, Floats, Setting
from audit.errors import UsageError

SKIPPING = 1 - 2 ** (-1 / 3)
_NEWTON_STEPS = 30
_NEWTON_TOLERANCE = 1e-13


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
        used = np.abs(feedback) <= self.largest()
        self._add(arm, np.where(used, feedback, 0.0) / self._chance)

    def largest(self) -> Floats:
        """Size beyond which the coming feedback is skipped, shape (n,)."""
        return np.asarray(self.skipping * self.inverse_rate * np.sqrt(self._chance))

    def kinks(self) -> list[float]:
        """The edges of the skipping rule, in the first trial."""
        edge = float(self.largest()[0])
        return [-edge, edge] if math.isfinite(edge) else []


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


def tsallis_inf(setting: Setting) -> Htinf:
    """Tsallis-INF with importance weighting: `Htinf` at ``sigma = 1`` without skipping.

    Zimmert and Seldin, "Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits"
    (2021): learning rate ``2 / sqrt(t)``, which is ``eta = 1 / sqrt(t)`` in the units of HTINF.
    Regret at most ``4 sqrt(KT) + 1`` on losses in [0, 1] without noise.
    """
    return Htinf(setting, sigma=1.0, skipping=math.inf)


class Inf(Estimating):
    """INF with a quadratic potential: ``p_i = (eta / (C - V_i))^2 + gamma / K``, V the gains.

    Audibert and Bubeck, "Minimax policies for adversarial and stochastic bandits" (2009).

    Args:
        setting: What the learner knows beforehand.
        eta: Rate; ``sqrt(5 J)`` when omitted.
        gamma: Share of uniform exploration; ``min(1/2, sqrt(3 K / J))`` when omitted.

    Raises:
        UsageError: For eta <= 0 or gamma outside [0, 1).
    """

    def __init__(
        self, setting: Setting, eta: float | None = None, gamma: float | None = None
    ) -> None:
        super().__init__(setting)
        self.eta = math.sqrt(5 * max(1, setting.updates)) if eta is None else eta
        usual = min(0.5, math.sqrt(3 * setting.arms / max(1, setting.updates)))
        self.gamma = usual if gamma is None else gamma
        if not (self.eta > 0 and 0 <= self.gamma < 1):
            raise UsageError(
                f"inf: expected eta > 0 and gamma in [0, 1), got eta={eta!r}, gamma={gamma!r}; "
                "omit both for the standard rates"
            )

    def probs(self) -> Floats:
        """Powers of the distance to the potential's pole, mixed with exploration; shape (K, n)."""
        kept = 1 - self.gamma
        gaps = self.losses - self.losses.min(axis=0)
        gaps *= math.sqrt(kept) / self.eta
        return np.asarray(kept * tsallis(gaps) + self.gamma / len(gaps))

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the importance-weighted loss of the arm just played, as a negative gain."""
        self._add(arm, (feedback - self.setting.bound) / self._chance)


def guarantee_heavy(setting: Setting) -> float:
    """Regret ceiling of `Htinf` over J updates: ``30 sqrt(6) sqrt(K (J + 1))``, losses in [0, 1].

    The rate is that of Huang, Dai and Huang (2022) for second moments of at most 6; the constant 30
    is a reconstruction, since the published one is not stated.
    """
    return 30 * math.sqrt(6 * setting.arms * (setting.updates + 1))
