"""What privacy costs a seller: expected regret in the test market, next to three yardsticks.

Regret of a run is the sum over customers of the largest expected revenue that a grid price has with
this customer less that of the price charged. Customers and their valuations are drawn afresh:
contexts for every point, valuations for every trial.

The yardsticks: generalised linear UCB without privacy (`algorithms.pricing.glm_ucb`), the fixed
price for everybody that is best in hindsight, and uniformly random prices. In the test market
optimal prices hardly differ between customers, so the fixed price, which nobody knows in advance,
loses little: what is measured is the cost of learning.

Claim: none. Nothing here is released.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from algorithms.pricing.constants import Constants
from algorithms.pricing.glm_ucb import GlmUcb
from algorithms.pricing.market import Market, draw_contexts, draw_valuations, truth
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import play

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """One point of a utility curve.

    Attributes:
        policy: ``private``, ``glm-ucb``, ``fixed`` or ``random``.
        rounds: T.
        epsilon: What the policy promises at its delta; ``inf`` without privacy.
        regret: Mean over trials, in units of the highest price.
        error: Standard error of the mean.
        refreshes: Mean number of refreshes.
    """

    policy: str
    rounds: int
    epsilon: float
    regret: float
    error: float
    refreshes: float


def expected_revenue(contexts: Floats, prices: Floats) -> Floats:
    """Expected revenue in the test market.

    Args:
        contexts: Shape (T, k).
        prices: Shape (..., T).

    Returns:
        Shape (..., T).
    """
    base, slope = np.split(truth(contexts.shape[1]), 2)
    eta = (contexts @ base - prices * (contexts @ slope)) / math.sqrt(2)
    return np.asarray(prices * special.expit(eta), dtype=float)


def regret(public: Constants, contexts: Floats, prices: Floats) -> Floats:
    """Regret of every trial, shape (n,), from contexts (T, k) and prices (n, T)."""
    every = expected_revenue(contexts, np.repeat(public.grid[:, None], len(contexts), axis=1))
    earned = expected_revenue(contexts, prices).sum(axis=1)
    return np.asarray(every.max(axis=0).sum() - earned, dtype=float)


def private_point(policy: PrivatePricing, trials: int, seed: int = 0) -> Point:
    """Regret of the private policy at its constants and its claim."""
    rng = np.random.default_rng(seed)
    public = policy.public
    market = _market(public, trials, rng)
    course = play(public, market, Drawn(public, market, trials, rng, keep=False), trials)
    found = regret(public, market.contexts, course.prices)
    return _point("private", public, policy.claim.epsilon, found, course.calls)


def yardsticks(public: Constants, trials: int, seed: int = 0) -> tuple[Point, Point, Point]:
    """GLM-UCB without privacy, the best fixed price, and random prices, on such markets."""
    rng = np.random.default_rng(seed)
    market = _market(public, trials, rng)
    open_ = GlmUcb(rounds=public.rounds, explore=min(public.explore, 100), bonus=0.5)
    course = open_.course(market, trials, rng)
    fixed = np.repeat(public.grid[:, None], public.rounds, axis=1)
    drawn = public.grid[rng.integers(public.prices, size=(trials, public.rounds))]
    found = [regret(public, market.contexts, prices) for prices in (course.prices, fixed, drawn)]
    none = np.zeros(1)
    return (
        _point("glm-ucb", public, math.inf, found[0], course.calls),
        _point("fixed", public, math.inf, found[1].min(keepdims=True), none),
        _point("random", public, 0.0, found[2], none),
    )


def curve(
    base: PrivatePricing,
    *,
    horizons: Iterable[int],
    noises: Iterable[float],
    trials: int = 50,
    seed: int = 0,
) -> list[Point]:
    """Regret against the horizon and against the noise.

    Args:
        base: The policy whose constants are varied.
        horizons: Numbers of rounds, at the base's noise, each with its yardsticks.
        noises: Factors on both noises, at the base's rounds; claims follow.
        trials: Trials per point.
        seed: Root of the random streams.
    """
    points = []
    for rounds in horizons:
        policy = replace(base, changes={**base.changes, "rounds": rounds})
        points += [private_point(policy, trials, seed), *yardsticks(policy.public, trials, seed)]
    for factor in noises:
        scaled = {"sigma": base.public.sigma * factor, "nu": base.public.nu * factor}
        policy = replace(base, changes={**base.changes, **scaled})
        points.append(private_point(policy, trials, seed))
    return points


def _market(public: Constants, trials: int, rng: np.random.Generator) -> Market:
    contexts = draw_contexts(public.rounds, public.wide, rng)
    uniforms = rng.random((trials, public.rounds))
    return Market(contexts, draw_valuations(contexts, truth(public.wide), uniforms))


def _point(
    policy: str, public: Constants, epsilon: float, found: Floats, calls: npt.NDArray[Any]
) -> Point:
    error = float(found.std(ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else 0.0
    mean = float(found.mean())
    return Point(policy, public.rounds, epsilon, mean, error, float(np.mean(calls)))
