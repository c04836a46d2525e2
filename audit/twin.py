"""The noise-scaled twin: what the frozen attack could have caught of too little noise.

The generic families of `audit.power` say what the best attack on the friendliest mechanism could
have caught. Where a mechanism can scale its noise and knows its exact profile, the attack that
testifies is asked itself: it plays against simulated twins with less noise, whose true epsilon is
known. None of these trials testifies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from audit.bounds import LARGEST_EPSILON
from audit.certificate import accountant_epsilon
from audit.claim import GaussianDp
from audit.freeze import Frozen
from audit.mechanism import capability
from audit.power import POWER, accuracy_needed, power_of_rule
from audit.record import PlannedCase
from audit.streams import Phase, Side, stream

_SHARE = 16
_MOST_RUNS, _FEWEST_RUNS = 2_000, 200
_ROUNDS = 3
_MOST_PRECISE = 64.0


@dataclass(frozen=True)
class _Rates:
    """What the frozen rule does on a twin: share of right guesses, guesses, share guessed."""

    right: float
    guesses: int
    guessed: float


def twin_epsilon(frozen: Frozen, planned: PlannedCase, seed: int) -> float | None:
    """Smallest true epsilon of a noise-scaled twin that the final test refutes with probability .8.

    Three rounds: a twin is simulated, the log odds of right guesses are taken to grow like one
    over the noise (through the origin, all rounds together), and the next twin is the one that
    should just be caught. An estimate, from trials that are no evidence.

    Args:
        frozen: The frozen attack, on its pair.
        planned: The case's plan.
        seed: Root of all random streams.

    Returns:
        The epsilon at the frozen delta; None when the mechanism does not offer twins, or when
        none with at least 1/64 of the noise would be caught.
    """
    scaled = capability(frozen.game.mechanism, "noise_scaled")
    if scaled is None or _exact(frozen, 1.0) is None:
        return None
    precision, products, squares = 1.0, 0.0, 0.0
    for round_ in range(_ROUNDS):
        rates = _simulate(frozen, scaled(1 / precision), planned, seed, round_)
        weight = rates.guesses * rates.right * (1 - rates.right)
        products += weight * precision * float(special.logit(rates.right))
        squares += weight * precision**2
        needed = _log_odds_needed(frozen, planned, rates.guessed)
        if needed is None or products <= 0:
            return None
        precision = min(max(needed * squares / products, 1 / _MOST_PRECISE), _MOST_PRECISE)
    return None if precision >= _MOST_PRECISE else _exact(frozen, 1 / precision)


def _exact(frozen: Frozen, factor: float) -> float | None:
    """True epsilon of the twin with that factor of noise, where the mechanism knows it."""
    mechanism: Any = capability(frozen.game.mechanism, "noise_scaled")(factor)
    return accountant_epsilon(mechanism, (frozen.game.pair,), frozen.choice.delta)


def _simulate(frozen: Frozen, twin: Any, planned: PlannedCase, seed: int, round_: int) -> _Rates:
    per_side = min(_MOST_RUNS, max(_FEWEST_RUNS, planned.trials // _SHARE)) // 2
    game = replace(frozen.game, mechanism=twin)
    left, right = (
        game.play(is_left, per_side, stream(seed, planned.name, Phase.TWIN, side, round_))
        for is_left, side in ((True, Side.LEFT), (False, Side.RIGHT))
    )
    order = stream(seed, planned.name, Phase.ORDER, Side.RIGHT, round_)
    counts = frozen.tabulate(left, right, order)
    guess = _guesses(frozen, planned)
    hits = int(counts[0, guess > 0].sum() + counts[1, guess < 0].sum())
    guessed = int(counts[:, guess != 0].sum())
    return _Rates((hits + 0.5) / (guessed + 1), guessed, guessed / (2 * per_side))


def _guesses(frozen: Frozen, planned: PlannedCase) -> Any:
    """The frozen rule; a Gaussian claim is tested on guesses without abstention."""
    if isinstance(planned.claim, GaussianDp):
        return np.sign(np.asarray(frozen.choice.posterior) - 0.5)
    return np.asarray(frozen.choice.guess)


def _log_odds_needed(frozen: Frozen, planned: PlannedCase, guessed: float) -> float | None:
    """Log odds of a right guess at which the final test has power 0.8."""
    trials = sum(planned.blocks)
    if isinstance(planned.claim, GaussianDp):
        share = accuracy_needed(planned.claim.mu, trials, planned.shares.parameter)
        return None if share is None else float(special.logit(share))
    choice, guesses = frozen.choice, round(guessed * trials)

    def power(odds: float) -> float:
        p = float(special.expit(odds))
        alpha = planned.shares.fixed
        return power_of_rule(p, guesses, choice.epsilon, choice.delta, trials, alpha)

    low, high = 0.0, LARGEST_EPSILON
    if power(high) < POWER:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high
