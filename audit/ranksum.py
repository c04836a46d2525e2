"""Certified mu of a Gaussian claim from the rank sum of all scores (Wilcoxon 1945).

It uses how well the scores are ordered, not only on which side of a threshold they fall, and
needs about a third fewer trials than counting right guesses.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.bounds import Counts

SMALLEST_ALPHA = 2e-3
_STEP = 1 / 2048
_REACH = 6.0
_SIMULATIONS = 5_000
_EXCEEDANCES = 20
_DRAWN_SINGLY = 200_000
_NEAR = 100


def rank_sum_mu(left: npt.ArrayLike, right: npt.ArrayLike, alpha: float, seed: int) -> float:
    """Certified mu: the mechanism is mu'-GDP for no mu' below it.

    Why this is valid: under mu-GDP the views are a post-processing of N(0, 1) and N(mu, 1)
    (Blackwell 1953; Dong, Roth and Su 2022, Theorem 2.10), so given the pooled Gaussian values
    the labels are independent with odds that increase in them. Swapping two neighbours in an
    order changes U = #{(left, right) pairs in order} only by the pair itself, so no order, chosen
    without labels, makes U stochastically larger than sorting by the Gaussian values does, given
    how many trials were left and right. Ties are broken by lot. The null law is simulated on a
    lattice of step h, its ties counted as if they were in order; shifting the left cells by k
    gives the law at mu = k h. So the Monte Carlo p-values (1 + exceedances)/(1 + simulations),
    each valid by itself, increase in mu, and the first lattice null that is not rejected is at
    most the first true one, except with probability alpha.

    Args:
        left: Left trials per bin, the bin that looks least like left first.
        right: Right trials per bin, same order.
        alpha: Probability with which the result may exceed the true mu; at least 2e-3.
        seed: Seed of the simulation, independent of the data; the level holds on average over it.

    Returns:
        A multiple of 1/2048.
    """
    one, other = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
    simulations = min(_SIMULATIONS, math.ceil(_EXCEEDANCES / alpha))
    allowed = math.floor(alpha * (simulations + 1)) - 1
    if allowed < 0 or one.sum() == 0 or other.sum() == 0:
        return 0.0
    rng = np.random.default_rng(seed)
    observed = _pairs_in_order(one, other, rng)
    steps = _first_steps(int(one.sum()), int(other.sum()), observed, simulations, rng)
    # A simulation exceeds at every null from its own step on, so the (allowed + 1)-th smallest
    # step is the first null that is not rejected.
    return max(0, int(np.partition(steps, allowed)[allowed]) - 1) * _STEP


def _pairs_in_order(left: Counts, right: Counts, rng: np.random.Generator) -> int:
    """U with ties broken by lot, which is an order chosen without labels."""
    below = np.concatenate([[0], np.cumsum(right)[:-1]])
    pairs = int((left * below).sum())
    for lefts, rights in zip(left, right, strict=True):
        if lefts and rights:
            order = rng.permutation(int(lefts + rights)) < rights
            pairs += int(np.cumsum(order)[~order].sum())
    return pairs


def _first_steps(
    lefts: int, rights: int, observed: int, simulations: int, rng: np.random.Generator
) -> Counts:
    """For every simulation the smallest shift at which its U reaches the observed one."""
    steps = np.empty(simulations, dtype=np.int64)
    guess = 0
    for i in range(simulations):
        left, right = _cells(lefts, rng), np.cumsum(_cells(rights, rng))
        steps[i] = guess = _first_step(left, right, observed, guess)
    return steps


def _cells(number: int, rng: np.random.Generator) -> Counts:
    """How many of `number` standard Gaussians fall into each cell; the outer ones are open."""
    cells = round(2 * _REACH / _STEP)
    if number > _DRAWN_SINGLY:
        return rng.multinomial(number, _chances(cells))
    drawn = np.floor((rng.standard_normal(number) + _REACH) / _STEP).astype(np.int64)
    return np.bincount(np.clip(drawn, 0, cells - 1), minlength=cells)


@cache
def _chances(cells: int) -> npt.NDArray[np.float64]:
    inner = special.ndtr(np.arange(1, cells) * _STEP - _REACH)
    return np.diff(np.concatenate([[0.0], inner, [1.0]]))


def _first_step(left: Counts, not_above: Counts, observed: int, guess: int) -> int:
    """Smallest shift of the left cells that puts `observed` pairs in order, near a guess."""
    where = np.flatnonzero(left)
    number, last = left[where], len(left) - 1

    def reached(shift: int) -> bool:
        return int(number @ not_above[np.minimum(where + shift, last)]) >= observed

    low, high = -1, len(left)
    probes = iter((guess - _NEAR, guess + _NEAR))
    while high - low > 1:
        shift = next(probes, (low + high) // 2)
        if low < shift < high:
            low, high = (low, shift) if reached(shift) else (shift, high)
    return high
