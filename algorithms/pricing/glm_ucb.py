"""Pricing without privacy: generalised linear UCB, the positive control.

Filippi, Cappe, Garivier and Szepesvari (2010); Li, Lu and Zhou (2017). The same optimiser as the
private policy, with exact sums, the exact estimator refitted whenever the determinant has doubled,
ridge 1 and the published bonus. It promises nothing: the claim attached to it is the one that an
audit must refute.

Claim
-----
None that holds. Exploration follows a fixed schedule, so the prices are a deterministic function
of the data, and any pair whose later prices differ reveals the customer: eps is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants
from algorithms.pricing.market import ALWAYS, NEVER, Market, market_of, sample_market
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import Course, play
from audit.claim import ApproxDp
from audit.errors import UsageError
from audit.pair import Pair

Floats = npt.NDArray[np.float64]

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class GlmUcb:
    """GLM-UCB pricing on the test market (Filippi et al. 2010; Li, Lu and Zhou 2017).

    Data are those of `algorithms.pricing.policy.PrivatePricing`.

    Attributes:
        rounds: T.
        epsilon: Of the false claim.
        delta: Of the false claim.
        bonus: Weight of the uncertainty; the published one when negative.
        explore: Rounds with prices spread over the grid by a fixed schedule.
        market_seed: Seed of the test market.

    Raises:
        UsageError: For a parameter out of its range.
    """

    rounds: int = 64
    epsilon: float = 1.0
    delta: float = 1e-6
    bonus: float = 0.1
    explore: int = 32
    market_seed: int = 1

    def __post_init__(self) -> None:
        if not self.rounds > max(self.explore, 2):
            raise UsageError(
                f"GlmUcb: expected rounds above 2 and the exploration, got rounds={self.rounds!r}"
            )

    @cached_property
    def public(self) -> Constants:
        """The constants, with no noise and no cap to speak of."""
        bonus = self.bonus if self.bonus >= 0 else published_bonus(self.rounds, 4, self.delta, 8.0)
        return Constants(
            rounds=self.rounds,
            explore=self.explore,
            cap=self.rounds,
            bonus=bonus,
            ridge_cov=1.0,
            ridge_mle=1.0,
            sigma=0.0,
            nu=0.0,
        )

    @property
    def claim(self) -> ApproxDp:
        """A claim that does not hold."""
        return ApproxDp(
            epsilon=self.epsilon,
            delta=self.delta,
            view="prices_after",
            relation="replace-one",
            source="none: Filippi et al. (2010) promise no privacy",
        )

    def pairs(self) -> Sequence[Pair]:
        """The first customer buys at any price, or at none."""
        left, right = (sample_market(self.rounds, 2, self.market_seed) for _ in range(2))
        left["valuations"][0], right["valuations"][0] = ALWAYS, NEVER
        return (Pair(left, right, label="outcome flipped, round 1", relation="replace-one"),)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Play `n` times: ``prices``, shape (n, T)."""
        market = market_of(data, self.public)
        return {"prices": self.course(market, n, rng).prices}

    def course(self, market: Market, n: int, rng: np.random.Generator) -> Course:
        """Prices and outcomes of `n` trials on a market."""
        return play_openly(self.public, market, n, rng)


def play_openly(public: Constants, market: Market, n: int, rng: np.random.Generator) -> Course:
    """Prices and outcomes of `n` trials whose releases are exact."""
    return play(public, market, _Scheduled(public, market, n, rng, keep=False), n)


class _Scheduled(Drawn):
    """Exact releases, exploration by multiples of the golden ratio (Weyl 1916)."""

    def exploring(self, t: int) -> Floats:
        """The same price for every trial, shape (n,)."""
        index = int((t + 1) * _GOLDEN % 1 * self.public.prices)
        return np.full(self.n, self.public.grid[index])


def published_bonus(rounds: int, dimension: int, delta: float, radius: float) -> float:
    """``(s/kappa) sqrt((d/2) ln(1 + 2 T/d) + ln(1/delta))`` (Li, Lu and Zhou 2017, Theorem 2).

    With outcomes in [0, 1] s is 1/2, and kappa is the smallest slope of logistic demand for
    ``|eta| <= R``.
    """
    mean = 1 / (1 + math.exp(-radius))
    log = dimension / 2 * math.log(1 + 2 * rounds / dimension) + math.log(1 / delta)
    return 0.5 / (mean * (1 - mean)) * math.sqrt(log)
