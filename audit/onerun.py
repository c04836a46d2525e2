"""Certified bounds from one run with many canaries.

Each of m positions of one input holds one of two public records by a fair coin of its own (or,
for add-remove claims, holds a record or not). The mechanism runs once; from its output, r of the
coins are guessed, and v guesses are right. The canaries share one run, so they are *not*
independent trials: every bound here is valid for canaries that depend on each other in any way
that the claim allows. Pooling several runs is one larger experiment, since a canary touches one
run only.

r is fixed before the run; which canaries are guessed, and how, may depend on the output but never
on the coins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.bounds import LARGEST_EPSILON, last_rejected
from audit.claim import Claim, GaussianDp
from audit.errors import UsageError

Floats = npt.NDArray[np.float64]
Curve = Callable[[float], float]

STEPS = 1024
LARGEST_MU = 40.0


def one_run_p_value(
    right: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0
) -> float:
    """P-value of (epsilon, delta)-DP from the right guesses of one run.

    Steinke, Nasr and Jagielski (2023), "Privacy Auditing with One (1) Training Run", with the
    delta term optimised exactly: ``P(B >= v) + 2 m delta max_i P(v > B >= v - i) / i`` for B ~
    Binomial(r, sigmoid(epsilon)) and 1 <= i <= v.

    Why this is valid: given the output and the other coins, a coin is as hidden as the input of
    randomised response, so that for delta = 0 the number of right guesses is stochastically at
    most B, whatever ties the canaries together. For delta > 0 the coins deviate from that by
    events whose expected number is at most 2 m delta; the second term is the most that an
    adversary can make of them.

    Args:
        right: Right guesses v.
        guesses: Guesses r, fixed in advance.
        canaries: Canaries m, guessed or not.
        epsilon: The null.
        delta: Its delta.

    Raises:
        UsageError: Unless ``0 <= right <= guesses <= canaries``.
    """
    _check_counts(right, guesses, canaries)
    if right == 0:
        return 1.0
    tail = _at_least(right, guesses, epsilon)
    if delta <= 0:
        return tail
    return min(1.0, tail + 2 * canaries * delta * _steepest(right, guesses, epsilon))


def one_run_rejects(
    right: int,
    guesses: int,
    canaries: int,
    epsilon: float,
    alpha: float,
    *,
    delta: float = 0.0,
    test: str = "one-run",
) -> bool:
    """Whether the right guesses of one run refute (epsilon, delta)-DP at level alpha.

    Args:
        right: Right guesses.
        guesses: Guesses, fixed in advance.
        canaries: Canaries, guessed or not.
        epsilon: The null.
        alpha: Level.
        delta: Its delta.
        test: ``one-run`` for `one_run_p_value`, which is the sharper one for delta = 0, or
            ``trade-off`` for `trade_off_rejects`, which is sharper for delta > 0 and small alpha.

    Raises:
        UsageError: Unless ``0 <= right <= guesses <= canaries``.
    """
    if test == "one-run":
        return one_run_p_value(right, guesses, canaries, epsilon, delta) <= alpha
    curve = _polygon_of([(epsilon, delta)])
    return trade_off_rejects(curve, right, guesses, canaries, alpha)


def one_run_epsilon(
    right: int,
    guesses: int,
    canaries: int,
    alpha: float,
    *,
    delta: float = 0.0,
    test: str = "one-run",
) -> float:
    """Certified epsilon from the right guesses of one run.

    Why this is valid: it ends the epsilons that the test rejects, which form an interval. For
    ``one-run``: for each i, the p-value is the mean, over B, of a function of B that crosses any
    level below 1 only once, upwards; then its mean crosses that level only once in
    sigmoid(epsilon) (variation diminishing; Karlin 1968, chapter 5). For ``trade-off``: curves
    fall as epsilon grows, and with them every step of the recursion.

    Args:
        right: Right guesses.
        guesses: Guesses, fixed in advance.
        canaries: Canaries, guessed or not.
        alpha: Probability with which the result may exceed the true epsilon.
        delta: The delta at which epsilon is certified.
        test: As in `one_run_rejects`, chosen before the coins are seen.

    Returns:
        The largest epsilon rejected, at least 0.

    Raises:
        UsageError: Unless ``0 <= right <= guesses <= canaries``.
    """
    return last_rejected(
        lambda e: one_run_rejects(right, guesses, canaries, e, alpha, delta=delta, test=test),
        LARGEST_EPSILON,
    )


def trade_off_rejects(curve: Curve, right: int, guesses: int, canaries: int, alpha: float) -> bool:
    """Whether the right guesses of one run refute a trade-off function f.

    The recursion of Mahloujifar, Melis and Chaudhuri (2024), "Auditing f-Differential Privacy in
    One Run".

    Why this is valid: let p_j be the probability of j right guesses. Flip the coin of a random
    canary: a right guess among i or more right ones becomes a wrong one among i - 1 or more, and
    since f binds the two, ``R_i = sum_{j >= i} p_j j/m`` and ``H_i = sum_{j >= i} p_j (r-j)/m``
    satisfy ``R_i <= 1 - f(H_{i-1})``. If v or more guesses were right with probability alpha, then
    going down from ``R_v >= alpha v/m`` this would bound all R_i and H_i from below, but
    ``R_0 + H_0`` is the share r/m of guessed canaries; more than that is a contradiction. The
    recursion is taken in at most `STEPS` steps, denser near v; waiting for the end of a step makes
    h, and with it R, only smaller, so that the test rejects less.

    Args:
        curve: Inverse of 1 - f on [0, 1], as `blow_down` makes it.
        right: Right guesses v.
        guesses: Guesses r, fixed in advance.
        canaries: Canaries m.
        alpha: Level.

    Raises:
        UsageError: Unless ``0 <= right <= guesses <= canaries``.
    """
    _check_counts(right, guesses, canaries)
    h, total = alpha * (guesses - right) / canaries, alpha * right / canaries
    for i in _stops(right):
        grown = max(h, curve(min(1.0, total)))
        total += i / (guesses - i) * (grown - h)
        h = grown
        if total + h > guesses / canaries:
            return True
    return False


def blow_down(claim: Claim) -> Curve:
    """The inverse of 1 - f for the trade-off function f of a claim.

    f is its own inverse, since neighbours may be swapped, so that this is ``f(1 - x)``. A
    converted claim's f is the largest of its tangents, found once.
    """
    if isinstance(claim, GaussianDp):
        return partial(_gaussian_curve, claim.mu)
    return _polygon_of([(0.0, claim.delta_at(0.0)), *claim.points()])


def one_run_mu(right: int, guesses: int, canaries: int, alpha: float) -> float:
    """Certified mu of a Gaussian-DP claim from the right guesses of one run.

    Why this is valid: trade-off functions fall as mu grows, and with them every step of the
    recursion, so the rejected mu form an interval; see `trade_off_rejects`.

    Args:
        right: Right guesses.
        guesses: Guesses, fixed in advance.
        canaries: Canaries, guessed or not.
        alpha: Probability with which the result may exceed the true mu.
    """

    def rejects(mu: float) -> bool:
        curve = partial(_gaussian_curve, mu)
        return trade_off_rejects(curve, right, guesses, canaries, alpha)

    return last_rejected(rejects, LARGEST_MU)


def _check_counts(right: int, guesses: int, canaries: int) -> None:
    if not 0 <= right <= guesses <= canaries:
        raise UsageError(
            f"one run: expected 0 <= right <= guesses <= canaries, got right={right}, "
            f"guesses={guesses}, canaries={canaries}; count every canary once"
        )


def _at_least(v: int, r: int, epsilon: float) -> float:
    """P(B >= v), exact in both tails."""
    if v <= 0:
        return 1.0
    return float(special.betainc(v, r - v + 1, special.expit(epsilon))) if v <= r else 0.0


def _below(v: int, r: int, epsilon: float) -> float:
    """P(B < v), exact in both tails."""
    return float(special.betainc(r - v + 1, v, special.expit(-epsilon))) if v > 0 else 0.0


def _exactly(k: int, r: int, epsilon: float) -> float:
    """P(B = k)."""
    ways = math.lgamma(r + 1) - math.lgamma(k + 1) - math.lgamma(r - k + 1)
    log_right, log_wrong = special.log_expit([epsilon, -epsilon])
    return math.exp(ways + k * log_right + (r - k) * log_wrong)


def _steepest(v: int, r: int, epsilon: float) -> float:
    """``max over 1 <= i <= v of P(v > B >= v - i) / i``.

    It is the mean of the i probabilities below v. They rise down to the mode and fall from there,
    so the mean grows exactly as long as the next probability exceeds it.
    """

    def mean(i: int) -> float:
        return (_below(v, r, epsilon) - _below(v - i, r, epsilon)) / i

    mode = math.floor((r + 1) * special.expit(epsilon))
    low, high = min(v, max(1, v - mode)), v
    while low < high:
        middle = (low + high) // 2
        if _exactly(v - middle - 1, r, epsilon) > mean(middle):
            low = middle + 1
        else:
            high = middle
    return mean(low)


def _stops(right: int) -> Sequence[int]:
    """Values of i at which h moves, from right - 1 down to 0."""
    if right <= STEPS:
        return range(right - 1, -1, -1)
    distances = np.unique(np.geomspace(1, right, STEPS).astype(np.int64))
    stops: list[int] = (right - distances).tolist()
    return stops


def _gaussian_curve(mu: float, x: float) -> float:
    return float(special.ndtr(special.ndtri(x) - mu))


def _polygon_of(points: Sequence[tuple[float, float]]) -> Curve:
    return partial(_polygon, [(math.exp(min(e, 700.0)), d) for e, d in points])


def _polygon(tangents: Sequence[tuple[float, float]], x: float) -> float:
    return max(0.0, *(max(1 - d - o * (1 - x), (x - d) / o) for o, d in tangents))
