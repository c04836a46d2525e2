"""Bounds for comparison, and for numbers of guesses that were fixed in advance.

The audit certifies by the bounds of `audit.bounds`. These two are kept beside it: the form that
most other auditors use, as a check that nobody has to take on trust, and the form of the binomial
bound for a number of guesses that no data chose.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.bounds import (
    LARGEST_EPSILON,
    Counts,
    clopper_pearson_lower,
    clopper_pearson_upper,
    last_rejected,
)
from audit.errors import UsageError

Floats = npt.NDArray[np.float64]

_SPREAD = 9.0


def two_sided_epsilon(
    total: npt.ArrayLike, guess: npt.ArrayLike, alpha: float, delta: float
) -> float:
    """Epsilon from two marginal Clopper-Pearson bounds, the better of both directions.

    Why this is valid: given how many trials were left and right, the numbers of them on which a
    frozen rule says left are binomial. (epsilon, delta)-DP bounds the first rate by e^epsilon
    times the second plus delta, and the same with the sides exchanged. Four one-sided bounds
    share alpha. It ignores how the two rates hang together, so it is looser than the binomial
    bound on right guesses; it is shown as a cross-check only and has no share of the error budget
    of a run.

    Args:
        total: Counts, shape (2, bins), row 0 left.
        guess: Per bin: 1 guesses left, -1 guesses right, 0 abstains.
        alpha: Probability with which the result may exceed the true epsilon.
        delta: The delta at which epsilon is stated.

    Returns:
        The epsilon, between 0 and 60.
    """
    counts, says = np.asarray(total), np.asarray(guess)
    trials = counts.sum(axis=1)
    found = 0.0
    for direction, side in ((1, 0), (-1, 1)):
        hits = counts[:, says == direction].sum(axis=1)
        low = clopper_pearson_lower(int(hits[side]), int(trials[side]), alpha / 4)
        high = clopper_pearson_upper(int(hits[1 - side]), int(trials[1 - side]), alpha / 4)
        if low > delta and high < 1:
            found = max(found, math.log((low - delta) / high))
    return min(found, LARGEST_EPSILON)


def fixed_guesses_epsilon(
    right: int, guesses: int, alpha: float, *, delta: float, trials: int
) -> float:
    """Certified epsilon when the number of guesses was fixed before any trial.

    Why this is valid: K of the trials are revealed, K ~ Binomial(trials, delta), independently of
    all labels. The adversary guesses the revealed trials first: min(K, guesses) guesses are
    right for sure and each other one with probability at most sigmoid(epsilon), given the views.
    So ``sum over K of P(K) P(Bin(guesses - min(K, guesses), sigmoid(epsilon)) >= right - K)``
    bounds the probability of so many right guesses, and increases in epsilon. Nothing is written
    off, which is why it needs a number of guesses that the data did not choose: an adversary who
    may choose it by K would break the mixture, but not `audit.bounds.binomial_epsilon`.

    Args:
        right: Right guesses.
        guesses: Guesses, a number that was fixed in advance: the so many surest ones.
        alpha: Probability with which the result may exceed the true epsilon.
        delta: The delta at which epsilon is certified.
        trials: All testifying trials.

    Raises:
        UsageError: When there are more guesses than trials, or more right ones than guesses.
    """
    if not 0 <= right <= guesses <= trials:
        raise UsageError(
            f"expected right <= guesses <= trials, got {right}, {guesses} and {trials}"
        )

    def rejects(epsilon: float) -> bool:
        return _mixture_p_value(right, guesses, trials, epsilon, delta) <= alpha

    return last_rejected(rejects, LARGEST_EPSILON, precision=1e-10)


def _mixture_p_value(right: int, guesses: int, trials: int, epsilon: float, delta: float) -> float:
    known, weights = _revealed(trials, delta)
    left = guesses - np.minimum(known, guesses)
    needed = right - np.minimum(known, guesses)
    tail = np.where(needed <= 0, 1.0, 0.0)
    open_ = (needed > 0) & (needed <= left)
    sure = special.expit(epsilon)
    # P(Bin(n, p) >= v) = I_p(v, n - v + 1)
    tail[open_] = special.betainc(needed[open_], (left - needed + 1)[open_], sure)
    return float(min(1.0, weights @ tail + (1 - weights.sum())))


def _revealed(trials: int, delta: float) -> tuple[Counts, Floats]:
    """Numbers of revealed trials that matter, and their probabilities."""
    if delta <= 0:
        return np.array([0]), np.array([1.0])
    mean = trials * delta
    reach = _SPREAD * math.sqrt(mean) + 30
    known = np.arange(max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach)) + 1)
    log_weights = (
        special.gammaln(trials + 1)
        - special.gammaln(known + 1)
        - special.gammaln(trials - known + 1)
        + special.xlogy(known, delta)
        + special.xlog1py(trials - known, -delta)
    )
    return known, np.exp(log_weights)
