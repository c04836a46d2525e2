"""Noise on every loss: the batched conversion with batches of one round.

`PerRoundLaplace` with the learner ``exp3-local`` is the bandit algorithm of Agarwal and Singh, "The
price of differential privacy for online learning" (2017). `SkippingLaplace` with ``exp3-skipping``
is DP-EXP3-Lap of Tossou and Dimitrakakis, "Algorithms for differentially private multi-armed
bandits" (2016).

Claim: eps-DP by the argument of `algorithms.bandits.release` with ``tau = 1``: every loss leaves
once, with Laplace noise of scale ``R / eps``. Skipping looks at the noisy loss only, so it is a
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.release import Floats, differing
from algorithms.primitives.laplace import laplace_profile
from audit.errors import UsageError
from audit.pair import Pair


@dataclass(frozen=True)
class PerRoundLaplace(BatchedLaplace):
    """A bandit learner fed every loss with noise of scale ``R / eps`` of its own.

    The parameters are those of `BatchedLaplace`; eps may be as small as one likes. It is even
    locally private: whoever incurs a loss may add the noise.
    """

    source = "Agarwal and Singh, The Price of Differential Privacy for Online Learning (2017)"

    @property
    def batch(self) -> int:
        """One round."""
        return 1

    def guarantee(self) -> float | None:
        """None: the published rate, sqrt(K T ln(K T)) / eps, has no public constant."""
        return None


@dataclass(frozen=True)
class SkippingLaplace(PerRoundLaplace):
    """DP-EXP3-Lap: noisy gains far out of range are neither used nor released.

    A gain ``1 - loss`` with noise is kept when it lies in ``[-B, B + 1]``, ``B = ln(T) / eps``,
    which it does but for one round in T. A missing round shows as NaN in ``noisy``; its privacy
    loss is the logarithm of the ratio of the two chances to be skipped, below eps.
    """

    source = "Tossou and Dimitrakakis, Algorithms for Differentially Private MAB (2016)"
    not_finite = ("noisy",)

    @property
    def margin(self) -> float:
        """The bound B."""
        return self.declared_scale * math.log(max(2, self.updates))

    def released(self, noisy: Floats) -> Floats:
        """The noisy loss, NaN where it is out of range."""
        kept = (noisy >= -self.margin) & (noisy <= 1 + self.margin)
        return np.where(kept, noisy, np.nan)

    def skip_chance(self, loss: Floats) -> Floats:
        """Probability that a round of this loss is skipped, same shape."""
        sides = np.exp(-(self.margin + loss) / self.noise_scale)
        sides += np.exp(-(self.margin + 1 - loss) / self.noise_scale)
        return np.asarray(sides / 2)

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts with missing rounds."""
        left, right = self.means(pair.left), self.means(pair.right)
        actions = np.asarray(views["actions"]).astype(np.intp)
        ratio = np.zeros(len(actions))
        for j in differing(left, right):
            noisy = np.asarray(views["noisy"])[:, j]
            here, there = (self.exact_means(m, actions, int(j)) for m in (left, right))
            seen = (np.abs(noisy - there) - np.abs(noisy - here)) / self.noise_scale
            missing = np.log(self.skip_chance(here)) - np.log(self.skip_chance(there))
            ratio += np.where(np.isnan(noisy), missing, seen)
        return ratio

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """The transcript only."""
        return ("transcript", "output")

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Exact hockey-stick divergence of a pair whose arms are all alike; None for actions."""
        return self._kept_profile if self.view == "transcript" else None

    def _kept_profile(self, pair: Pair, epsilon: float) -> float:
        distance = self.shift(pair) / self.noise_scale
        if epsilon >= distance:
            return 0.0
        left, right = self.means(pair.left), self.means(pair.right)
        row = int(differing(left, right)[0])
        if max(np.ptp(left[row]), np.ptp(right[row])) > 0:
            raise UsageError(
                f"pair {pair.label!r}: an exact profile with missing rounds needs equal losses on "
                "all arms in the differing round. Use the likelihood ratio"
            )
        means = left[row].flat[0], right[row].flat[0]
        return max(self._one_way(*means, epsilon), self._one_way(*means[::-1], epsilon))

    def _one_way(self, mean: float, other: float, epsilon: float) -> float:
        """Kept rounds count as in one Laplace pair without its tail, skipped ones as one event."""
        scale, grown = self.noise_scale, math.exp(epsilon)
        if mean < other:
            edge, far = self.margin + mean, self.margin + other
        else:
            edge, far = self.margin + 1 - mean, self.margin + 1 - other
        tail = (math.exp(-edge / scale) - grown * math.exp(-far / scale)) / 2
        skipped = self.skip_chance(np.array([mean, other]))
        whole = laplace_profile(abs(mean - other) / scale, epsilon)
        return whole - tail + max(0.0, float(skipped[0] - grown * skipped[1]))

    @property
    def action_llr(self) -> None:
        """None: the filter does not know missing rounds."""
        return


def agarwal_singh(epsilon: float, horizon: int, arms: int, **more: Any) -> PerRoundLaplace:
    """The bandit algorithm of Agarwal and Singh (2017): per-round noise and EXP3 at their rates."""
    return PerRoundLaplace("exp3-local", epsilon, horizon, arms, **more)


def dp_exp3_lap(epsilon: float, horizon: int, arms: int, **more: Any) -> SkippingLaplace:
    """DP-EXP3-Lap: per-round noise, EXP3 for gains, out-of-range rounds skipped."""
    return SkippingLaplace("exp3-skipping", epsilon, horizon, arms, **more)
