"""Exponential weights for bandits: EXP3 for noisy losses, for losses and for gains.

Sources: Auer, Cesa-Bianchi, Freund and Schapire, "The nonstochastic multiarmed bandit problem"
(2002); Bubeck and Cesa-Bianchi, "Regret analysis of stochastic and nonstochastic multi-armed
bandit problems" (2012).

Claim: none. A base learner promises no privacy of its own; see `algorithms.bandits.conversion` for
what makes it private, and `algorithms.bandits.unnoised` for what its bare actions give away.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from algorithms.bandits.learners import Array, Estimating, Floats, Setting
from audit.errors import UsageError

_SMALLEST_TOTAL = 1e-100
_LARGEST_EXPONENT = 230.0


class Exp3(Estimating):
    """EXP3 for noisy losses that may be negative.

    After Auer et al. (2002), with rates for feedback bounded by M with high probability. Those
    rates are a reconstruction: with gamma >= eta K M every ``eta |y| / p`` is at most 1, which the
    second-order expansion of the exponential needs when y is negative.

    An update changes one arm's estimate, so the weights are kept and one of them is recomputed from
    its estimate: nothing is multiplied up, no error accumulates.

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
        arms, updates = setting.arms, max(1, setting.updates)
        largest = largest_feedback(setting)
        rate = math.sqrt(math.log(arms) / (arms * updates)) / (2 * largest)
        self.eta = rate if eta is None else eta
        self.gamma = min(0.5, self.eta * arms * largest) if gamma is None else gamma
        if not (self.eta > 0 and 0 <= self.gamma <= 1):
            raise UsageError(
                f"exp3: expected eta > 0 and gamma in [0, 1], got eta={eta!r}, gamma={gamma!r}; "
                "omit both for the standard rates"
            )

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Forget everything and get ready for `n` independent trials."""
        super().start(n, rng)
        self._refresh()

    def probs(self) -> Floats:
        """Exponential weights mixed with uniform exploration, shape (K, n)."""
        mixed = self._weights * ((1 - self.gamma) / self._weights.sum(axis=0))
        mixed += self.gamma / self.setting.arms
        return np.asarray(mixed)

    def act(self) -> Array:
        """Draw an arm in every trial, without forming the probabilities; shape (n,)."""
        total = self._weights.sum(axis=0)
        uniform = self._rng.random(len(total))
        arm = self._drawn(uniform, total).astype(np.intp)
        self._index = self._where(arm)
        self._chance = self._weights.reshape(-1)[self._index]
        self._chance *= 1 - self.gamma
        self._chance /= total
        self._chance += self.gamma / self.setting.arms
        self._smallest = total.min(initial=np.inf)
        return arm

    def follow(self, arm: Array) -> Floats:
        """Play given arms; their log-probabilities, shape (n,), exact however small they are."""
        exponents = -self.eta * self.losses
        kept = self._at(exponents, arm) - special.logsumexp(exponents, axis=0)
        mixture = np.full_like(kept, self.gamma / self.setting.arms)
        with np.errstate(divide="ignore"):
            logs = np.logaddexp(math.log1p(-self.gamma) + kept, np.log(mixture))
        self._index = self._where(arm)
        with np.errstate(over="ignore"):
            self._chance = np.exp(logs)
        self._smallest = 0.0
        return np.asarray(logs)

    def keep(self, rows: Array) -> None:
        """Go on with copies of the trials `rows`, shape (n,), in place of the present ones."""
        super().keep(rows)
        self._refresh()

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the importance-weighted loss of the arm just played."""
        del arm
        estimates, index = self.losses.reshape(-1), self._index
        estimate = feedback / self._chance
        estimate += estimates[index]
        estimates[index] = estimate
        exponent = self._base - estimate
        exponent *= self.eta
        self.count += 1
        if self._smallest < _SMALLEST_TOTAL or exponent.max(initial=0.0) > _LARGEST_EXPONENT:
            self._refresh()
        else:
            self._weights.reshape(-1)[index] = np.exp(exponent, out=exponent)

    def _refresh(self) -> None:
        self._base = self.losses.min(axis=0)
        self._weights = np.exp(self.eta * (self._base - self.losses))

    def _drawn(self, uniform: Floats, total: Floats) -> Array:
        """Arms by inversion of the mixed law, without forming it; shape (n,), small integers."""
        if self.gamma == 1:
            return (uniform * self.setting.arms).astype(np.intp)
        target = total / (1 - self.gamma)
        share = target * (self.gamma / self.setting.arms)
        target *= uniform
        arm: Array = np.zeros(len(uniform), dtype=np.int8 if self.setting.arms < 128 else np.int64)
        below = np.zeros_like(total)
        for row in self._weights[:-1]:
            below += row
            below += share
            reached: Array = target >= below
            arm += reached.view(np.int8)
        return arm


class Exp3Gains(Exp3):
    """EXP3 as published, for gains: exponent ``gamma / K`` and mixing ``gamma``.

    The gain of a round is ``R - loss``. Regret at most ``2 sqrt(e - 1) sqrt(g K ln K)`` if no arm
    gains more than g (Auer et al. 2002, Corollary 3.2).

    Args:
        setting: What the learner knows beforehand.
        gamma: Mixing; ``min(1, sqrt(K ln K / ((e - 1) g)))`` when omitted.
        most: The bound g; the number of updates when omitted.
    """

    def __init__(
        self, setting: Setting, gamma: float | None = None, most: float | None = None
    ) -> None:
        arms = setting.arms
        gain = max(1, setting.updates) if most is None else most
        usual = min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1) * gain)))
        mixing = usual if gamma is None else gamma
        super().__init__(setting, eta=mixing / arms, gamma=mixing)

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the importance-weighted gain of the arm just played, as a negative loss."""
        super().update(arm, feedback - self.setting.bound)


class Exp3Skipping(Exp3Gains):
    """EXP3 for gains fed with noisy gains, rescaled to [0, 1] and skipped when out of range.

    Noisy gains r in ``[-B, B + 1]`` become ``(r + B) / (2 B + 1)``; others change nothing. With
    ``B = b ln J`` at most one round in J is skipped (units: the largest loss R is 1).

    Args:
        setting: What the learner knows beforehand; R must be 1.
        gamma: Mixing, as for `Exp3Gains`.
    """

    def __init__(self, setting: Setting, gamma: float | None = None) -> None:
        if setting.bound != 1:
            raise UsageError(
                f"exp3-skipping: expected losses in [0, 1], got bound={setting.bound!r}; rescale "
                "the losses"
            )
        super().__init__(setting, gamma)
        self.margin = setting.scale * math.log(max(2, setting.updates))

    def update(self, arm: Array, feedback: Floats) -> None:
        """Add the rescaled noisy gain; NaN feedback was skipped and adds nothing."""
        gain = np.where(np.isnan(feedback), -self.margin, 1 - feedback)
        super().update(arm, 1 - (gain + self.margin) / (2 * self.margin + 1))


def exp3_losses(setting: Setting) -> Exp3:
    """EXP3 for losses without mixing: regret at most ``sqrt(2 T K ln K)`` on losses in [0, 1].

    Bubeck and Cesa-Bianchi (2012), Theorem 3.1: ``eta = sqrt(2 ln K / (K T))``.
    """
    arms = setting.arms
    eta = math.sqrt(2 * math.log(arms) / (arms * max(1, setting.updates)))
    return Exp3(setting, eta=eta, gamma=0.0)


def exp3_local(setting: Setting) -> Exp3:
    """EXP3 at the rates of Agarwal and Singh for losses with Laplace noise.

    "The price of differential privacy for online learning" (2017): rates
    ``eta = sqrt(ln K / (2 K T)) / s`` and ``gamma = min(1, eta K s)`` with
    ``s^2 = 1 + 2 b^2 ln(K T)``, for losses in [0, 1].
    """
    arms, rounds = setting.arms, max(1, setting.updates)
    size = math.sqrt(1 + 2 * math.log(arms * rounds) * (setting.scale / setting.bound) ** 2)
    eta = math.sqrt(math.log(arms) / (2 * arms * rounds)) / (size * setting.bound)
    return Exp3(setting, eta=eta, gamma=min(1.0, eta * arms * size * setting.bound))


def largest_feedback(setting: Setting) -> float:
    """``M = R + b ln(2 K J^2)``: exceeded in size by any of J feedbacks with chance 1/(2 K J)."""
    return setting.bound + setting.scale * math.log(2 * setting.arms * max(1, setting.updates) ** 2)


def guarantee_noisy(setting: Setting) -> float:
    """Regret of `Exp3` over J updates with Laplace feedback, on true mean losses.

    ``(2 M + (2 + 4 b^2 + M) / (2 M)) sqrt(K J ln K) + 1`` for ``J >= K ln K`` and losses in [0, 1]:
    the second-order bound of exponential weights at the rates of `Exp3`.
    """
    arms, largest = setting.arms, largest_feedback(setting)
    root = math.sqrt(arms * setting.updates * math.log(arms))
    return (2 * largest + (2 + 4 * setting.scale**2 + largest) / (2 * largest)) * root + 1
