"""What privacy costs a seller: expected regret in the test market, next to three yardsticks.

Regret of a run is the sum over customers of the largest expected revenue that a grid price has with
this customer less that of the price charged. Customers and their valuations are drawn afresh:
contexts for every point, valuations for every trial.

Beside the policy stands one private price for everybody (`algorithms.pricing.uniform_price`) of the
same epsilon. The yardsticks: generalised linear UCB without privacy
(`algorithms.pricing.glm_ucb`), the fixed price for everybody that is best in hindsight, and
uniformly random prices. In the test market optimal prices hardly differ between customers, so a
fixed price loses little: what is measured is the cost of learning, of which personal prices need
more.

Claim: none. Nothing here is released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from algorithms.pricing.constants import Constants
from algorithms.pricing.glm_ucb import play_openly
from algorithms.pricing.market import Market, draw_contexts, draw_valuations, truth
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import play
from algorithms.pricing.uniform_price import UniformPrice

Floats = npt.NDArray[np.float64]

USUAL_HORIZONS = (512, 1024, 2048)
USUAL_EPSILONS = (2.0, 4.0, 8.0, 16.0)
_HALVINGS = 15
_TEN = tuple(float(price) for price in np.linspace(0.1, 1.0, 10))


@dataclass(frozen=True)
class Point:
    """One point of a utility curve.

    Attributes:
        policy: ``private``, ``uniform``, ``glm-ucb``, ``fixed`` or ``random``.
        rounds: T.
        epsilon: What the policy promises at its delta; ``inf`` without privacy.
        regret: Mean over trials, in units of the highest price.
        error: Standard error of the mean.
        refreshes: Mean number of refreshes.
        guarantee: None: regret bounds of the policy are stated up to constants only.
    """

    policy: str
    rounds: int
    epsilon: float
    regret: float
    error: float
    refreshes: float
    guarantee: float | None = None


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


def uniform_point(public: Constants, epsilon: float, trials: int, seed: int = 0) -> Point:
    """Regret of one private price for everybody, of ten, with about as much exploration."""
    rng = np.random.default_rng(seed)
    market = _market(public, trials, rng)
    each = max(1, public.explore // len(_TEN))
    policy = UniformPrice(public.rounds, _TEN, each, epsilon)
    bought = np.zeros((trials, public.rounds))
    shown = np.tile(_TEN, each)
    for t, price in enumerate(shown):
        bought[:, t] = market.respond(t, np.full(trials, price))
    plays = [policy.run({"outcomes": outcomes}, 1, rng)["prices"][0] for outcomes in bought]
    found = regret(public, market.contexts, np.array(plays))
    return _point("uniform", public, epsilon, found, np.zeros(1))


def yardsticks(public: Constants, trials: int, seed: int = 0) -> tuple[Point, Point, Point]:
    """GLM-UCB without privacy, the best fixed price, and random prices, on such markets."""
    rng = np.random.default_rng(seed)
    market = _market(public, trials, rng)
    course = play_openly(_without_privacy(public), market, trials, rng)
    fixed = np.repeat(public.grid[:, None], public.rounds, axis=1)
    drawn = public.grid[rng.integers(public.prices, size=(trials, public.rounds))]
    found = [regret(public, market.contexts, prices) for prices in (course.prices, fixed, drawn)]
    none = np.zeros(1)
    return (
        _point("glm-ucb", public, math.inf, found[0], course.calls),
        _point("fixed", public, math.inf, found[1].min(keepdims=True), none),
        _point("random", public, 0.0, found[2], none),
    )


def _without_privacy(public: Constants) -> Constants:
    """Constants of GLM-UCB on the same customers and prices."""
    return replace(
        public,
        explore=min(public.explore, 100),
        cap=public.rounds,
        bonus=0.5,
        ridge_cov=1.0,
        ridge_mle=1.0,
        sigma=0.0,
        nu=0.0,
    )


def curves(
    base: PrivatePricing,
    horizons: Sequence[int] | None = None,
    epsilons: Sequence[float] | None = None,
    runs: int = 40,
    seed: int = 0,
) -> dict[str, list[Point]]:
    """Regret against the number of customers and against epsilon, beside the yardsticks.

    A tenth of the rounds explore. Along the horizon the noise is the base's own; along epsilon
    both noises and the covariance's ridge, which must cover its noise, are scaled together.

    Args:
        base: The policy whose constants are varied.
        horizons: Numbers of rounds; usual ones when omitted.
        epsilons: Promised epsilons, at the base's rounds; usual ones when omitted.
        runs: Trials per point.
        seed: Root of the random streams.

    Returns:
        Points by what they are against: ``rounds`` and ``epsilon``.
    """
    found: dict[str, list[Point]] = {"rounds": [], "epsilon": []}
    for rounds in sorted(USUAL_HORIZONS if horizons is None else horizons):
        policy = _changed(base, rounds=rounds, explore=rounds // 10)
        found["rounds"] += _private_points(policy, runs, seed)
        found["rounds"] += yardsticks(policy.public, runs, seed)
    for epsilon in sorted(USUAL_EPSILONS if epsilons is None else epsilons):
        found["epsilon"] += _private_points(at_epsilon(base, epsilon), runs, seed)
    found["epsilon"] += yardsticks(base.public, runs, seed)
    return found


def _private_points(policy: PrivatePricing, runs: int, seed: int) -> tuple[Point, Point]:
    private = private_point(policy, runs, seed)
    return private, uniform_point(policy.public, private.epsilon, runs, seed)


def at_epsilon(base: PrivatePricing, epsilon: float) -> PrivatePricing:
    """The policy with both noises scaled until it promises `epsilon` (or a little less)."""
    low, high = math.log(1e-2), math.log(1e3)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _scaled(base, math.exp(middle)).claim.epsilon > epsilon
        low, high = (middle, high) if above else (low, middle)
    return _scaled(base, math.exp(high))


def _scaled(base: PrivatePricing, factor: float) -> PrivatePricing:
    c = base.public
    return _changed(
        base, sigma=c.sigma * factor, nu=c.nu * factor, ridge_cov=max(1.0, c.ridge_cov * factor)
    )


def _changed(base: PrivatePricing, **constants: float) -> PrivatePricing:
    return replace(base, changes={**base.changes, **constants})


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
