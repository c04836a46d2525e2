"""Broken twins of the algorithms with experts.

Every twin keeps the claim of its original, and every docstring gives the epsilon that it really has
on the pairs it offers.

Claim: as the original's, and false.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from algorithms.bandits.advice import softmax
from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.experts import PerRoundExp4, first_chances
from algorithms.bandits.ftrl_tree import FtrlTree
from algorithms.bandits.release import Array, Floats
from algorithms.primitives.laplace import laplace_profile
from audit.claim import AnyClaim, PureDp
from audit.pair import Pair


class WeightedRelease(PerRoundExp4):
    """EXP4 in which noise for a loss is added to the loss divided by its arm's probability.

    Really ``eps / P(arm)``: K eps when all arms are equally likely, up to ``eps K / gamma``.
    """

    def observed(self, loss: Floats, noise: Floats, chance: Floats) -> Floats:
        """The importance-weighted loss plus noise, shape (n,)."""
        return loss / chance + noise

    def estimate(self, released: Floats, chance: Floats) -> Floats:
        """What was released, in units of R: it is weighted already."""
        del chance
        return released / self.bound

    def pairs(self) -> tuple[Pair, ...]:
        """The first round only: there the probabilities are known."""
        return super().pairs()[:1]

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts of inputs that differ in the first round."""
        arm = np.asarray(views["actions"])[:, 0].astype(np.intp)
        chance = first_chances(self, pair.left)[arm]
        left, right = (self.means(side)[0][arm] / chance for side in (pair.left, pair.right))
        noisy = np.asarray(views["noisy"])[:, 0]
        return np.asarray((np.abs(noisy - right) - np.abs(noisy - left)) / self.noise_scale)

    def transcript_profile(self, pair: Pair, epsilon: float) -> float:
        """Mean over the first arm of the curve of one Laplace pair."""
        shift = self.shift(pair) / self.noise_scale
        chances = first_chances(self, pair.left).tolist()
        return math.fsum(p * laplace_profile(shift / p, epsilon) for p in chances)


class UnscaledNoise(BatchedExp4):
    """Batched EXP4 with ``c = 1``, advertised as pure eps-DP. Really ``sqrt(N) eps``."""

    @property
    def claim(self) -> AnyClaim:
        """Pure eps-DP."""
        return PureDp(
            epsilon=self.epsilon,
            view=self.view,
            relation="replace-one",
            source="advertised: batched EXP4 with sqrt(N) noise is pure",
        )

    @property
    def composition(self) -> float:
        """1: the constant of the published rate, taken at its word."""
        return 1.0


class NarrowSensitivity(BatchedExp4):
    """Batched EXP4 whose noise is for sums that move by K R, not ``K R / gamma``.

    Really worse by ``1 / gamma``, when an arm of chance gamma / K is played.
    """

    @property
    def noise_scale(self) -> float:
        """The declared scale times gamma."""
        return super().noise_scale * self.gamma


class InsideUpdates(BatchedExp4):
    """Batched EXP4 whose weights follow the sums inside the batch, before noise is added.

    Really without bound: the actions of the rest of the batch depend on the bare losses.
    """

    likelihood_views: tuple[str, ...] = ()
    exact_profile = None

    def inside(self, weights: Floats, exponents: Floats, sums: Floats) -> Floats:
        """Weights that have seen the sums so far, shape (N, n)."""
        del weights
        return softmax(exponents - self.eta * sums)

    def pairs(self) -> tuple[Pair, ...]:
        """Arm 0 is bad in the first round, or not; all other losses are 0."""
        pair = super().pairs()[0]
        sides = [np.zeros((self.horizon, self.arms)) for _ in range(2)]
        sides[1][0, 0] = self.bound
        left, right = ({"losses": s, "advice": pair.left["advice"]} for s in sides)
        return (Pair(left, right, label="first round", relation="replace-one"),)


class _Careless(Dartboard):
    """A dartboard that does not check whether its rates keep its claim."""

    def check_claim(self) -> None:
        """Accept any rates."""


class NoFakeSwitch(_Careless):
    """The dartboard algorithm without the coin of chance p.

    Really infinite: a move after a loss of 0 is possible on one side only, with probability
    ``eta (1 - P(x))``.
    """

    @property
    def p(self) -> float:
        """Zero."""
        return 0.0


class NoBudget(_Careless):
    """The dartboard algorithm that draws as often as the coins say.

    Really ``ln(1 + (1 - p) eta / p) - 2 (T - 1) ln(1 - eta)``.
    """

    @property
    def budget(self) -> int:
        """More than can be used."""
        return self.steps + 1


class CountedMoves(_Careless):
    """The dartboard algorithm whose budget is used up only by draws of another expert.

    A draw of the same expert is free, so there is no bound on their number: like `NoBudget`.
    """

    exact_profile = None
    tilted_run = None

    def pairs(self) -> tuple[Pair, ...]:
        """Expert 0 turns good or bad in the first round; expert 1 then loses a few times.

        So a draw is likely to be of expert 0 again, which is free and tells a little each time.
        """
        pair = super().pairs()[0]
        sides = [side["losses"].copy() for side in (pair.left, pair.right)]
        for side in sides:
            side[1:5, 1] = 1.0
        left, right = ({"losses": side} for side in sides)
        return (Pair(left, right, label="favoured expert", relation="replace-one"),)

    def counts(self, switched: Array, expert: Array, before: Array) -> Array:
        """Draws that change the expert. Shape (n,), boolean."""
        return np.asarray(switched & (expert != before))


class ShortTree(FtrlTree):
    """Tree noise for log2(T) levels and losses in [0, 1], used with losses up to R.

    Really ``R h / log2(T) eps``, h being the nodes that see the differing round: 2 eps for R = 2
    and T = 16.
    """

    @property
    def noise_scale(self) -> float:
        """``N log2(T) / eps``."""
        return self.arms * math.log2(self.horizon) / self.epsilon * self.noise_factor
