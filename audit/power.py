"""Power: what an audit of this size could have caught.

For a family of alternatives ordered by their true epsilon, the smallest one that the final test
refutes with probability at least 0.8. Two families are generic: the *revealing box*, the easiest
mechanism with a given (epsilon, delta) to catch, and the additive-noise mechanism that people
use at that delta: Laplace for delta = 0, Gaussian otherwise. They ignore early stopping and the
attack's own losses, so they are the best that could be hoped for; scouting's attack is judged
beside them by its estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from scipy import special

from audit.bounds import (
    LARGEST_EPSILON,
    binomial_epsilon,
    gaussian_mu_lower,
    revealed_allowance,
)
from audit.claim import GaussianDp, RenyiClaim, gaussian_mu
from audit.renyi import gaussian_growth

POWER = 0.8
_HIGHEST = 1e6


def could_have_caught(
    epsilon: float, delta: float, trials: int, alpha: float
) -> dict[str, float | None]:
    """Smallest true epsilon refuted with probability 0.8, per generic family.

    Args:
        epsilon: The confronted epsilon.
        delta: Its delta.
        trials: Testifying trials.
        alpha: Share of the error budget of the final test.

    Returns:
        Family to epsilon at `delta`, None when no epsilon up to 60 would be refuted.
    """
    families: dict[str, Callable[[float], list[tuple[float, float]]]] = {
        "revealing box": lambda e: [_box(e, delta)],
    }
    if delta > 0:
        families["gaussian noise"] = lambda e: _gaussian(e, delta)
    else:
        families["laplace noise"] = lambda e: [(float(special.expit(e)), (1 + math.exp(-e)) / 2)]

    def power_within(family: Callable[[float], list[tuple[float, float]]]) -> float | None:
        return _smallest(lambda e: _power(family(e), epsilon, delta, trials, alpha), epsilon)

    return {name: power_within(family) for name, family in families.items()}


def smallest(families: Mapping[str, float | None]) -> float | None:
    """The smallest epsilon that any family could have shown; None when there is none."""
    return min((e for e in families.values() if e is not None), default=None)


def gaussian_reach(mu: float, delta: float, trials: int, alpha: float) -> float | None:
    """Smallest true epsilon at `delta` whose Gaussian mechanism refutes "is mu-GDP" by counting.

    Args:
        mu: The claimed mu.
        delta: Delta at which the epsilon is stated.
        trials: Testifying trials.
        alpha: Share of the error budget of the test of mu.

    Returns:
        The epsilon refuted with probability 0.8, None when no mu up to 60 would be.
    """
    truth = mu_reach(mu, trials, alpha)
    return None if truth is None else min(LARGEST_EPSILON, GaussianDp(mu=truth).epsilon_at(delta))


def mu_reach(mu: float, trials: int, alpha: float) -> float | None:
    """Smallest true mu that refutes "is mu-GDP" by counting; as `gaussian_reach`."""
    share = accuracy_needed(mu, trials, alpha)
    return None if share is None else max(mu, 2 * float(special.ndtri(share)))


@lru_cache(maxsize=256)
def renyi_reach(claim: RenyiClaim, trials: int, alpha: float) -> float | None:
    """Smallest true parameter of a Gaussian mechanism that the best Renyi bet refutes.

    It is stated in the claim's own terms: an epsilon at some delta says little about a divergence,
    so that a hundredfold violation can lie below the epsilon that the claim implies there.

    Args:
        claim: The claim.
        trials: Testifying trials.
        alpha: Share of the error budget of the test.

    Returns:
        The rho, or the epsilon of the claim's order, that is refuted with probability 0.8; None
        when no mu up to 60 would be.
    """

    def power(mu: float) -> float:
        return POWER if gaussian_growth(mu, claim).refutes(trials, alpha, POWER) else 0.0

    order = min(claim.largest_order, _HIGHEST)
    mu = _smallest(power, math.sqrt(2 * claim.divergence_at(order) / order))
    return None if mu is None else claim.parameter_at(order, order * mu**2 / 2)


def accuracy_needed(mu: float, trials: int, alpha: float) -> float | None:
    """Share of right guesses at which counting refutes "is mu-GDP" with probability 0.8.

    Args:
        mu: The claimed mu.
        trials: Testifying trials, none of which abstains.
        alpha: Share of the error budget of the test of mu.

    Returns:
        The share, None when not even right guesses alone would refute.
    """
    low, high = 0, trials + 1
    while high - low > 1:
        middle = (low + high) // 2
        refutes = gaussian_mu_lower(middle, trials, alpha) > mu
        low, high = (low, middle) if refutes else (middle, high)
    if high > trials:
        return None
    return float(special.betaincinv(high, trials - high + 1, POWER))


def _smallest(power: Callable[[float], float], epsilon: float) -> float | None:
    low, high = epsilon, LARGEST_EPSILON
    if power(high) < POWER:
        return None
    while high - low > 1e-3 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high


def _power(
    rules: list[tuple[float, float]], epsilon: float, delta: float, trials: int, alpha: float
) -> float:
    """Best power over decision rules given as (P(right | guess), P(guess))."""
    return max(
        power_of_rule(p, round(rate * trials), epsilon, delta, trials, alpha) for p, rate in rules
    )


def power_of_rule(
    p: float, guesses: int, epsilon: float, delta: float, trials: int, alpha: float
) -> float:
    """Probability that `guesses` guesses, each right with probability `p`, refute `epsilon`."""
    k, _ = revealed_allowance(trials, delta, alpha)
    if guesses <= k:
        return 0.0
    needed = _right_needed(guesses, epsilon, delta, trials, alpha)
    return float(special.betainc(needed, guesses - needed + 1, p)) if needed <= guesses else 0.0


@lru_cache(maxsize=4096)
def _right_needed(guesses: int, epsilon: float, delta: float, trials: int, alpha: float) -> int:
    """Fewest right guesses that refute; one more than there are guesses when none do."""
    low, high = 0, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        refutes = (
            binomial_epsilon(middle, guesses - middle, alpha, delta=delta, trials=trials) > epsilon
        )
        low, high = (low, middle) if refutes else (middle, high)
    return high


def _box(epsilon: float, delta: float) -> tuple[float, float]:
    return delta + (1 - delta) * float(special.expit(epsilon)), 1.0


def _gaussian(epsilon: float, delta: float) -> list[tuple[float, float]]:
    mu = gaussian_mu(epsilon, delta)
    rules = []
    for cut in np.linspace(0.0, 4.0 + mu, 33):
        right, wrong = special.ndtr(mu / 2 - cut), special.ndtr(-mu / 2 - cut)
        rules.append((float(right / (right + wrong)), float(right + wrong)))
    return rules
