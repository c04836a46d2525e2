"""From counts to certified bounds.

All bounds rest on one fact. Each trial draws a fair coin b, plays side b once, and a frozen rule
looks at the view and guesses b or abstains. For an (epsilon, delta)-DP mechanism a view is a
post-processing of a box that reveals b with probability delta and otherwise tells it truthfully
with probability sigmoid(epsilon) (Kairouz, Oh and Viswanath 2015, Theorem 3.3). So, *given all
views and which trials were revealed*, the labels are independent and every unrevealed guess is
right with probability at most sigmoid(epsilon): thresholds, order and abstention may depend on
the views, never on the labels that testify. At most K ~ Binomial(trials, delta) guesses are on
revealed trials.

Every function says why its bound is valid; the coverage tests check each at the exact boundary
of its null.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

LARGEST_EPSILON = 60.0
ALLOWANCE_SHARE = 1 / 20
_KAPPAS = ((1.0, 0.75), (0.5, 0.25))
_CAPS = (0.02, 0.1, 0.3)


def clopper_pearson_lower(right: float, guesses: float, alpha: float) -> float:
    """One-sided lower confidence bound on a binomial proportion (Clopper and Pearson 1934).

    Why this is valid: it is the set of proportions at which P(Bin >= right) > alpha; exact for
    every number of guesses. Fractional counts are interpolated by the beta quantile, which
    scouting uses for forecasts.
    """
    return float(clopper_pearson_lowers(right, guesses, alpha))


def clopper_pearson_lowers(right: npt.ArrayLike, guesses: npt.ArrayLike, alpha: float) -> Floats:
    """`clopper_pearson_lower` of many proportions; counts and result share one shape."""
    hits, tries = np.asarray(right), np.asarray(guesses)
    some = hits > 0
    quantiles = special.betaincinv(np.where(some, hits, 1.0), tries - hits + 1, alpha)
    return np.where(some, quantiles, 0.0)


def clopper_pearson_upper(right: float, guesses: float, alpha: float) -> float:
    """One-sided upper confidence bound on a binomial proportion (Clopper and Pearson 1934)."""
    if right >= guesses:
        return 1.0
    return float(special.betaincinv(right + 1, guesses - right, 1 - alpha))


@lru_cache(maxsize=4096)
def revealed_allowance(trials: int, delta: float, alpha: float) -> tuple[int, float]:
    """How many guesses to write off as revealed, and what that costs.

    Why this is valid: the number of revealed trials is Binomial(trials, delta) and independent
    of the labels, so with probability at least 1 - beta at most k guesses are revealed.

    Returns:
        ``k``, the smallest integer with P(Bin(trials, delta) > k) <= alpha / 20, and that
        probability's bound beta; (0, 0) for delta = 0.
    """
    if delta <= 0:
        return 0, 0.0
    beta = alpha * ALLOWANCE_SHARE
    low, high = -1, trials
    while high - low > 1:
        middle = (low + high) // 2
        # P(Bin > k) = I_delta(k + 1, trials - k)
        tail = special.betainc(middle + 1, trials - middle, delta) if middle < trials else 0.0
        low, high = (low, middle) if tail <= beta else (middle, high)
    return high, beta


def binomial_epsilon(
    right: float, wrong: float, alpha: float, *, delta: float = 0.0, trials: int = 0
) -> float:
    """Certified epsilon from right and wrong guesses of one frozen rule.

    Why this is valid: unless more than k guesses are revealed (probability at most beta), the
    right guesses beyond k are at most Bin(guesses - k, sigmoid(epsilon)) given the views; so
    P(reject) <= beta + (alpha - beta). Holds for any label-free choice of which trials to guess.

    Args:
        right: Right guesses.
        wrong: Wrong guesses.
        alpha: Probability with which the result may exceed the true epsilon.
        delta: The delta at which epsilon is certified.
        trials: All testifying trials, abstentions included; needed when delta > 0.

    Returns:
        The largest epsilon rejected, at least 0.

    Raises:
        UsageError: When delta > 0 and `trials` is less than the number of guesses.
    """
    return float(binomial_epsilons(right, wrong, alpha, delta=delta, trials=trials))


def binomial_epsilons(
    right: npt.ArrayLike, wrong: npt.ArrayLike, alpha: float, *, delta: float, trials: int
) -> Floats:
    """`binomial_epsilon` of many frozen rules, each valid alone, counts in arrays."""
    hits = np.asarray(right)
    guesses = hits + np.asarray(wrong)
    if delta > 0 and trials + 0.5 < guesses.max():
        raise UsageError(f"delta > 0 needs all trials: got {trials} for {guesses.max():g} guesses")
    k, beta = revealed_allowance(trials, delta, alpha)
    lower = clopper_pearson_lowers(hits - k, guesses - k, alpha - beta)
    certified: Floats = np.minimum(special.logit(np.maximum(lower, 0.5)), LARGEST_EPSILON)
    return certified


def ranked_epsilon(
    rights: npt.ArrayLike, wrongs: npt.ArrayLike, alpha: float, *, delta: float, trials: int
) -> float:
    """Certified epsilon without a threshold: a walk from the surest bin downwards.

    Why this is valid: given the views, at the null each guess in turn is right with probability
    at most s = sigmoid(epsilon), so the mixture likelihood ratio of Beta(1/2, 1/2) on (s, 1)
    against s is a non-negative supermartingale along any label-free order, and exceeds 1/alpha
    anywhere with probability at most alpha (Ville 1939). Looking only at the ends of bins looks
    less often. With delta > 0, k right guesses are written off as in `binomial_epsilon`. For
    this prior the rejected epsilons form an interval, so bisection finds its end.

    Args:
        rights: Right guesses per bin, surest bin first.
        wrongs: Wrong guesses per bin, same order.
        alpha: Probability with which the result may exceed the true epsilon.
        delta: The delta at which epsilon is certified.
        trials: All testifying trials.
    """
    k, beta = revealed_allowance(trials, delta, alpha)
    v, w = np.maximum(np.cumsum(rights) - k, 0), np.cumsum(wrongs)
    target = -math.log(alpha - beta)
    return last_rejected(lambda e: ranked_log_wealth(v, w, e) >= target, LARGEST_EPSILON)


def last_rejected(
    rejects: Callable[[float], bool], largest: float, *, precision: float = 1e-9
) -> float:
    """End of an interval [0, e) of rejected parameters, rounded down; 0 when 0 is not rejected."""
    if not rejects(0.0):
        return 0.0
    low, high = 0.0, largest
    while high - low > precision * max(1.0, low):
        middle = (low + high) / 2
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low


def ranked_log_wealth(right: Floats, wrong: Floats, epsilon: float) -> float:
    """Largest log-wealth along the walk.

    Args:
        right: Cumulative right guesses, shape (steps,).
        wrong: Cumulative wrong guesses, shape (steps,).
        epsilon: The null.
    """
    s, log_s, log_not = special.expit(epsilon), _log_sigmoid(epsilon), _log_sigmoid(-epsilon)
    ahead = right > s * (right + wrong)
    if not np.any(ahead):
        return -1.0
    v, w = right[ahead], wrong[ahead]
    mixture = special.betaln(0.5 + v, 0.5 + w) + np.log(special.betaincc(0.5 + v, 0.5 + w, s))
    prior = special.betaln(0.5, 0.5) + math.log(special.betaincc(0.5, 0.5, s))
    return float(np.max(mixture - prior - v * log_s - w * log_not))


def gaussian_mu_lower(right: int, trials: int, alpha: float) -> float:
    """Certified mu of a Gaussian-DP claim from guesses without abstention.

    Why this is valid: under mu-GDP no rule guesses a fair label with probability above
    Phi(mu/2) (the trade-off function at equal error rates; Dong, Roth and Su 2022), trials are
    independent, so right <= Bin(trials, Phi(mu/2)). It refutes "is mu-GDP", a stronger claim than
    (epsilon, delta)-DP, and must not be read as the latter.
    """
    return 2 * max(0.0, float(special.ndtri(clopper_pearson_lower(right, trials, alpha))))


def log_bets(posterior: npt.ArrayLike, epsilons: npt.ArrayLike, delta: float) -> Floats:
    """Log of the bets placed on left and right in every score bin.

    Why this is valid: for delta = 0 the bet is a likelihood ratio between the scouted posterior
    and its projection onto [sigmoid(-e), sigmoid(e)], where every epsilon-DP posterior lies, so
    its mean is at most 1 given the view. For delta > 0 it is the capped linear form
    ``c + h (b - e^eps (1-b)) + g ((1-b) - e^eps b)`` with h, g <= H and c = 1 - H delta, whose
    mean is at most 1 because P(right) <= e^eps P(wrong) + delta for every event. Averages over
    strategies (shrunk posteriors, caps H) keep this.

    Args:
        posterior: Scouted P(left | bin), in (0, 1), shape (bins,).
        epsilons: Nulls, shape (nulls,).
        delta: Delta of all nulls.

    Returns:
        Shape (strategies, nulls, 2, bins): log of the bet when the label is left and right. Add
        `log_weights` before averaging.
    """
    strategies = []
    for kappa, _ in _KAPPAS:
        eta = special.expit(kappa * special.logit(np.asarray(posterior)))
        grid = np.asarray(epsilons)[:, None]
        if delta <= 0:
            strategies.append(_pure_bet(eta, grid))
        else:
            strategies.extend(_capped_bet(eta, grid, delta, cap) for cap in _CAPS)
    return np.stack(strategies)


def log_weights(delta: float) -> Floats:
    """Log of the share of wealth that each strategy of `log_bets` starts with."""
    shares = [share for _, share in _KAPPAS]
    if delta > 0:
        shares = [share / len(_CAPS) for share in shares for _ in _CAPS]
    return np.log(shares)


def log_wealth(
    prefixes: Counts, posterior: npt.ArrayLike, epsilons: npt.ArrayLike, delta: float
) -> Floats:
    """Log-wealth of the betting test after every block.

    Args:
        prefixes: Running counts, shape (blocks, 2, bins), row 0 left.
        posterior: Scouted P(left | bin), shape (bins,).
        epsilons: Nulls, shape (nulls,).
        delta: Delta of all nulls.

    Returns:
        Shape (nulls, blocks).
    """
    bets = log_bets(posterior, epsilons, delta)
    gains = np.tensordot(bets, prefixes, axes=((2, 3), (1, 2)))
    wealth: Floats = np.logaddexp.reduce(gains + log_weights(delta)[:, None, None], axis=0)
    return wealth


def epsilon_grid(confronted: float) -> Floats:
    """Nulls at which `anytime_epsilon` tests: fixed before any label is seen.

    Steps of 1 %, and one null a hair above the confronted epsilon, so that rejecting the claim
    certifies more than it allows.
    """
    steps = np.concatenate([[0.0], np.geomspace(0.005, LARGEST_EPSILON, 946)])
    return np.unique(np.append(steps, confronted * (1 + 1e-9)))


def anytime_epsilon(
    prefixes: Counts, posterior: npt.ArrayLike, alpha: float, *, delta: float, confronted: float
) -> float:
    """Certified epsilon that holds whenever one stops looking.

    Why this is valid: let g be the first null of the fixed grid whose wealth never reaches
    1/alpha. The true epsilon lies at or below some grid null g' that is true; its wealth reaches
    1/alpha with probability at most alpha (Ville 1939), and otherwise g <= g', so that the grid
    null before g lies below the true epsilon. Wealth need not be monotone in epsilon.

    Returns:
        The last null of the grid before the first one that is not rejected; 0 when none is.
    """
    grid = epsilon_grid(confronted)
    if len(prefixes) == 0:
        return 0.0
    for start in range(0, len(grid), 128):
        nulls = grid[start : start + 128]
        kept = np.arange(len(nulls))
        for looks in (prefixes[-1:], prefixes):  # the last look alone rejects most of them
            wealth = log_wealth(looks, posterior, nulls[kept], delta).max(axis=1)
            kept = kept[wealth < -math.log(alpha)]
            if not len(kept):
                break
        else:
            first = start + int(kept[0])
            return float(grid[first - 1]) if first else 0.0
    return float(grid[-1])


def _pure_bet(eta: Floats, epsilons: Floats) -> Floats:
    null = np.clip(eta, special.expit(-epsilons), special.expit(epsilons))
    left = np.log(eta) - np.log(null)
    right = np.log1p(-eta) - np.log1p(-null)
    return np.stack([left, right], axis=1)


def _capped_bet(eta: Floats, epsilons: Floats, delta: float, cap: float) -> Floats:
    most = cap * np.exp(-epsilons)
    base = 1 - most * delta
    odds = np.exp(epsilons)
    sure = special.expit(epsilons)
    on_left = np.minimum(most, base * np.maximum(eta / sure - 1, 0))
    on_right = np.minimum(most, base * np.maximum((1 - eta) / sure - 1, 0))
    left = base + on_left - odds * on_right
    right = base - odds * on_left + on_right
    bets: Floats = np.log(np.stack([left, right], axis=1))
    return bets


def _log_sigmoid(x: float) -> float:
    return float(special.log_expit(x))
