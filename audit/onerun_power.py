"""Power of a one-run audit, and the number of guesses that makes the most of it.

Everything here is decided before the run, from the claim alone: the point of the claim at which
it is confronted, the number of guesses, and what could be caught with them. As in `audit.power`
there are two families of alternatives: the revealing box, and the additive noise that people use
at that delta, put on every canary by itself. Canaries that interfere leave less to be caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from audit.bounds import LARGEST_EPSILON
from audit.claim import AnyClaim, GaussianDp, gaussian_mu
from audit.onerun import blow_down, one_run_rejects, trade_off_rejects
from audit.planned import Shares
from audit.power import POWER
from audit.record import Test

Family = Callable[[float, float], float]

_MOST_CHOICES = 16


@dataclass(frozen=True)
class Design:
    """What is fixed before a one-run audit.

    Attributes:
        canaries: Canaries m.
        guesses: Guesses r.
        epsilon: The epsilon at which the claim is confronted.
        delta: Its delta there.
        test: The test of epsilon with the lower critical number of right guesses.
        caught: Family of alternatives to the smallest true epsilon that would be refuted with
            probability 0.8; None where no epsilon would.
    """

    canaries: int
    guesses: int
    epsilon: float
    delta: float
    test: Test
    caught: Mapping[str, float | None]

    @property
    def reach(self) -> float:
        """The smallest epsilon caught in any family; infinite when there is none."""
        return min((e for e in self.caught.values() if e is not None), default=math.inf)


def plan_one_run(claim: AnyClaim, canaries: int, shares: Shares, guesses: int = 0) -> Design:
    """The design that could catch the smallest violation, relative to the claim.

    Args:
        claim: The claim.
        canaries: Canaries m.
        shares: The error budget: ``fixed`` tests epsilon, ``parameter`` tests mu.
        guesses: Guesses r; chosen when 0.
    """
    designs, points = [], claim.points()
    for r in [guesses] if guesses else _choices(canaries):
        needed = _critical_mu(claim, r, canaries, shares.parameter)
        for epsilon, delta in points:
            right, test = _critical(epsilon, delta, r, canaries, shares.fixed)
            caught = could_have_caught(epsilon, delta, canaries, r, min(right, needed))
            designs.append(Design(canaries, r, epsilon, delta, test, caught))
    return min(designs, key=lambda d: (_typical(d) / d.epsilon, d.reach / d.epsilon, -d.guesses))


def _typical(design: Design) -> float:
    """What is caught under additive noise; the box alone would always like to guess everything."""
    noise = [e for name, e in design.caught.items() if name != "revealing box"]
    return min((e for e in noise if e is not None), default=math.inf)


def could_have_caught(
    epsilon: float, delta: float, canaries: int, guesses: int, needed: int
) -> dict[str, float | None]:
    """Smallest true epsilon refuted with probability 0.8, per family.

    The number of right guesses is taken as binomial, which spreads a little more than the truth.

    Args:
        epsilon: The confronted epsilon.
        delta: Its delta.
        canaries: Canaries m.
        guesses: Guesses r.
        needed: Right guesses from which the claim is refuted; more than `guesses` for never.

    Returns:
        Family to epsilon at `delta`, None when no epsilon up to 60 would be refuted.
    """
    families: dict[str, Family] = {"revealing box": lambda e, s: _box_accuracy(e, delta, s)}
    if delta > 0:
        families["gaussian noise"] = lambda e, s: _gaussian_accuracy(e, delta, s)
    else:
        families["laplace noise"] = laplace_accuracy
    if needed > guesses:
        return dict.fromkeys(families)
    accuracy = float(special.betaincinv(needed, guesses - needed + 1, POWER))
    share = guesses / canaries
    return {name: _reaching(f, share, accuracy, epsilon) for name, f in families.items()}


def laplace_accuracy(epsilon: float, share: float) -> float:
    """Share of right guesses on the clearest canaries under Laplace noise of scale 1/epsilon.

    Args:
        epsilon: The epsilon that this noise gives to records 0 and 1.
        share: Share of the canaries that is guessed.
    """
    if share <= (1 + math.exp(-epsilon)) / 2:
        return float(special.expit(epsilon))
    # a guess is made up to a distance t beyond either record, epsilon t = -log(miss)
    miss = (1 - share) + math.sqrt((1 - share) ** 2 + math.exp(-epsilon))
    return (1 - miss / 2) / share


def gaussian_accuracy(mu: float, share: float) -> float:
    """Share of right guesses on the clearest canaries under Gaussian noise.

    Args:
        mu: Distance of the two records over the standard deviation.
        share: Share of the canaries that is guessed.
    """
    low, high = 0.0, 40.0 + mu
    for _ in range(60):
        middle = (low + high) / 2
        guessed = special.ndtr(mu / 2 - middle) + special.ndtr(-mu / 2 - middle)
        low, high = (middle, high) if guessed > share else (low, middle)
    right, wrong = special.ndtr(mu / 2 - low), special.ndtr(-mu / 2 - low)
    return float(right / (right + wrong))


def _gaussian_accuracy(epsilon: float, delta: float, share: float) -> float:
    return gaussian_accuracy(gaussian_mu(epsilon, delta), share)


def _box_accuracy(epsilon: float, delta: float, share: float) -> float:
    revealed = min(1.0, delta / share)
    return revealed + (1 - revealed) * float(special.expit(epsilon))


def _reaching(family: Family, share: float, accuracy: float, epsilon: float) -> float | None:
    low, high = epsilon, LARGEST_EPSILON
    if family(high, share) < accuracy:
        return None
    while high - low > 1e-3 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if family(middle, share) < accuracy else (low, middle)
    return high


def _choices(canaries: int) -> Iterable[int]:
    """Numbers of guesses worth trying: all of the canaries, and ever fewer."""
    spaced = np.geomspace(min(canaries, 10), canaries, _MOST_CHOICES)
    return sorted({int(r) for r in spaced} | {canaries})


def _critical(
    epsilon: float, delta: float, guesses: int, canaries: int, alpha: float
) -> tuple[int, Test]:
    """Right guesses from which epsilon is rejected, by the test that asks for fewer."""

    def needed(test: Test) -> int:
        return _smallest(
            lambda v: one_run_rejects(v, guesses, canaries, epsilon, alpha, delta=delta, test=test),
            guesses,
        )

    tests: tuple[Test, ...] = ("one-run", "trade-off") if delta > 0 else ("one-run",)
    return min((needed(test), test) for test in tests)


def _critical_mu(claim: AnyClaim, guesses: int, canaries: int, alpha: float) -> int:
    if not isinstance(claim, GaussianDp):
        return guesses + 1
    curve = blow_down(claim)
    return _smallest(lambda v: trade_off_rejects(curve, v, guesses, canaries, alpha), guesses)


def _smallest(refutes: Callable[[int], bool], guesses: int) -> int:
    low, high = -1, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


def posterior_reach(epsilon: float, canaries: int, alpha: float) -> dict[str, float | None]:
    """Smallest true epsilon that the e-value of exact posteriors refutes with probability 0.8.

    The log e-value is taken as normal.

    Args:
        epsilon: The claimed epsilon.
        canaries: Canaries m, independent of each other.
        alpha: Level.

    Returns:
        As `could_have_caught`, for canaries in a box that tells the truth with probability
        sigmoid(true epsilon).
    """
    target, below = -math.log(alpha), -float(special.ndtri(POWER))

    def power(true: float) -> float:
        p, odds = float(special.expit(true)), true - epsilon
        wrong = special.log_expit(-true) - special.log_expit(-epsilon)
        mean = canaries * (p * odds + wrong)
        return float(mean + below * math.sqrt(canaries * p * (1 - p)) * odds)

    return {"revealing box": _reaching(lambda e, _: power(e), 1.0, target, epsilon)}
