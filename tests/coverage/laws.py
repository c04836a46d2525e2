"""Exact (or simulated) probability that a bound exceeds the truth, at the boundary of its null.

Every law is the worst one: randomised response for delta = 0; for delta > 0 the box that reveals
the label with probability delta and tells it truthfully with probability sigmoid(epsilon)
otherwise, played by an adversary who knows which trials are revealed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from audit import bounds

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """One line of the coverage table.

    Attributes:
        who: The bound, and the adversary.
        epsilon: The true epsilon, which is also the null.
        delta: Its delta.
        trials: Testifying trials.
        abstention: Share of the trials that are not guessed, as a word or a number.
        nominal: The probability that the bound may exceed the truth.
        measured: The probability with which it does.
        tolerance: Monte Carlo error allowed; 0 when `measured` is exact.
    """

    who: str
    epsilon: float
    delta: float
    trials: int
    abstention: str
    nominal: float
    measured: float
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the bound keeps its level."""
        return self.measured <= self.nominal + self.tolerance + 1e-12


def smallest(certifies: Callable[[int], bool], top: int) -> int:
    """Smallest v in 0..top with ``certifies(v)``, a predicate that stays true; top + 1 if none."""
    low, high = -1, top + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certifies(middle) else (middle, high)
    return high


def revealed(trials: int, delta: float) -> tuple[Integers, Floats]:
    """Numbers of revealed trials that matter, and their probabilities."""
    if delta == 0:
        return np.array([0]), np.array([1.0])
    low, high = stats.binom.ppf([1e-13, 1 - 1e-13], trials, delta).astype(int)
    numbers = np.arange(low, high + 1)
    return numbers, stats.binom.pmf(numbers, trials, delta)


def binomial_critical(epsilon: float, delta: float, trials: int, guesses: int, alpha: float) -> int:
    """Right guesses from which `binomial_epsilon` certifies more than `epsilon`."""
    return smallest(
        lambda v: (
            bounds.binomial_epsilon(v, guesses - v, alpha, delta=delta, trials=trials) > epsilon
        ),
        guesses,
    )


def binomial_excess(
    epsilon: float, delta: float, trials: int, guesses: list[int], alpha: float
) -> float:
    """P(certified > true) when the adversary picks the worst of `guesses` given what is revealed.

    Exact: for every number K of revealed trials, the best number r of guesses, min(K, r) of which
    are on revealed trials.
    """
    numbers, weights = revealed(trials, delta)
    worst = np.zeros(len(numbers))
    for r in guesses:
        critical = binomial_critical(epsilon, delta, trials, r, alpha)
        known = np.minimum(numbers, r)
        tail = stats.binom.sf(critical - known - 1, r - known, special.expit(epsilon))
        worst = np.maximum(worst, tail)
    return float(weights @ worst)


def guess_counts(trials: int, delta: float, alpha: float) -> list[int]:
    """Numbers of guesses among which an adaptive adversary chooses."""
    k, _ = bounds.revealed_allowance(trials, delta, alpha)
    near = np.arange(max(1, k - 3), k + 25)
    wide = np.geomspace(1, trials, 60).astype(int)
    return [int(r) for r in np.unique(np.concatenate([near, wide])) if r <= trials]


def ranked_excess(epsilon: float, delta: float, trials: int, alpha: float) -> float:
    """P(the ranked walk ever rejects the truth), a look after every guess, revealed ones first.

    Exact, by dynamic programming over the number of right guesses on unrevealed trials.
    """
    k, beta = bounds.revealed_allowance(trials, delta, alpha)

    def rejects(w: int, v: int) -> bool:
        wealth = bounds.ranked_log_wealth(np.array([float(v)]), np.array([float(w)]), epsilon)
        return wealth >= -np.log(alpha - beta)

    edge = [smallest(partial(rejects, w), trials) for w in range(trials + 1)]
    numbers, weights = revealed(trials, delta)
    return first_passage(
        np.array(edge), float(special.expit(epsilon)), trials, numbers - k, weights
    )


def first_passage(
    edge: Integers, sure: float, steps: int, starts: Integers, weights: Floats
) -> float:
    """P(v >= edge[w] at some step) for a walk of right and wrong guesses.

    Args:
        edge: Smallest v that rejects, for every number w of wrong guesses.
        sure: Probability that a guess is right.
        steps: Number of guesses.
        starts: Values of v before the first guess, any sign.
        weights: Probabilities of the starts.
    """
    alive = np.zeros((len(starts), steps + 1))
    alive[:, 0] = weights
    rejected = 0.0
    for m in range(steps + 1):
        if m:
            alive[:, 1:], alive[:, 0] = (
                alive[:, 1:] * (1 - sure) + alive[:, :-1] * sure,
                alive[:, 0] * (1 - sure),
            )
        right = np.arange(m + 1)
        over = starts[:, None] + right >= edge[m - right]
        rejected += float(alive[:, : m + 1][over].sum())
        alive[:, : m + 1][over] = 0.0
    return rejected


def told(epsilon: float) -> float:
    """A scouted posterior that believes in more than `epsilon` allows, so that the bet bets."""
    return float(special.expit(1.5 * epsilon + 0.5))


def betting_excess(epsilon: float, trials: int, posterior: float, alpha: float) -> float:
    """P(wealth against the truth ever reaches 1/alpha), a look after every trial; delta = 0, exact.

    Args:
        epsilon: The true epsilon.
        trials: Number of trials, none abstains.
        posterior: What scouting believes of P(right).
        alpha: Level.
    """
    v, w = (a.ravel() for a in np.indices((trials + 1, trials + 1)))
    tables = np.zeros((len(v), 2, 1), dtype=np.int64)
    tables[:, 0, 0], tables[:, 1, 0] = v, w
    wealth = bounds.log_wealth(tables, [posterior], [epsilon], 0.0)[0]
    over = wealth.reshape(trials + 1, trials + 1) >= -np.log(alpha)
    edge = np.where(over.any(axis=0), over.argmax(axis=0), 2 * trials)
    return first_passage(edge, float(special.expit(epsilon)), trials, np.array([0]), np.ones(1))


def box_tables(
    rng: np.random.Generator, epsilon: float, delta: float, trials: int, repetitions: int
) -> Integers:
    """Running counts of the revealing box, one trial a block.

    Bins: revealed right, told right, told left, revealed left.

    Returns:
        Shape (repetitions, trials, 2, 4).
    """
    shape = (repetitions, trials)
    left = rng.random(shape) < 0.5
    honest = rng.random(shape) < special.expit(epsilon)
    says = np.where(honest == left, 2, 1)
    where = np.where(rng.random(shape) < delta, np.where(left, 3, 0), says)
    counts = np.zeros((*shape, 2, 4), dtype=np.int64)
    np.put_along_axis(
        counts.reshape(*shape, 8), (where + 4 * ~left)[..., None], np.int64(1), axis=-1
    )
    return np.cumsum(counts, axis=1)


def box_betting_excess(
    epsilon: float, delta: float, trials: int, repetitions: int, alpha: float, seed: int = 0
) -> float:
    """P(wealth against the truth ever reaches 1/alpha) on the revealing box, simulated."""
    rng = np.random.default_rng(seed)
    sure = told(epsilon)
    posterior = [1e-4, 1 - sure, sure, 1 - 1e-4]
    crossed, chunk = 0, 100
    for _ in range(repetitions // chunk):
        tables = box_tables(rng, epsilon, delta, trials, chunk).reshape(-1, 2, 4)
        wealth = bounds.log_wealth(tables, posterior, [epsilon], delta)[0].reshape(chunk, trials)
        crossed += int((wealth.max(axis=1) >= -np.log(alpha)).sum())
    return crossed / (repetitions // chunk * chunk)


def gaussian_excess(mu: float, trials: int, alpha: float) -> float:
    """P(certified mu > mu) for the best guess at mu-GDP: exact."""
    critical = smallest(lambda v: bounds.gaussian_mu_lower(v, trials, alpha) > mu, trials)
    return float(stats.binom.sf(critical - 1, trials, special.ndtr(mu / 2)))


def margin(nominal: float, repetitions: int, deviations: float = 3.7) -> float:
    """Monte Carlo tolerance: exceeded with probability 1e-4 by a bound exactly at its level."""
    return deviations * float(np.sqrt(nominal * (1 - nominal) / repetitions))
