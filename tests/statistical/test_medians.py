"""Median certified epsilon on pairs with a known likelihood ratio, at alpha .05.

Each median is over 61 experiments; its standard error is 1.25 sd / sqrt(61), sd the standard
deviation of one bound (stated in each row). The tolerance is five standard errors: a right bound
fails one row with probability below 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from audit import bounds
from audit.claim import gaussian_mu

ALPHA, EXPERIMENTS = 0.05, 61
STANDARD_ERRORS = 5 * 1.25 / EXPERIMENTS**0.5
BINOMIAL = [  # law, epsilon, delta, runs per side, median with the best fixed threshold, sd
    ("laplace", 1.0, 0.0, 1_000, 0.902, 0.057),
    ("laplace", 1.0, 0.0, 10_000, 0.967, 0.019),
    ("laplace", 4.0, 0.0, 1_000, 3.62, 0.18),
    ("laplace", 4.0, 0.0, 10_000, 3.88, 0.073),
    ("gaussian", 1.0, 1e-5, 1_000, 0.30, 0.12),
    ("gaussian", 1.0, 1e-5, 10_000, 0.54, 0.092),
    ("gaussian", 4.0, 1e-5, 1_000, 1.77, 0.25),
    ("gaussian", 4.0, 1e-5, 10_000, 2.31, 0.20),
]
RANKED = [
    ("laplace", 1.0, 0.0, 1_000, 0.822, 0.052),
    ("laplace", 1.0, 0.0, 10_000, 0.937, 0.018),
    ("gaussian", 4.0, 1e-5, 1_000, 1.68, 0.25),
    ("gaussian", 4.0, 1e-5, 10_000, 2.30, 0.19),
]
Pairs = tuple[np.ndarray, np.ndarray]


def sure_and_right(
    law: str, epsilon: float, delta: float, runs: int, rng: np.random.Generator
) -> Pairs:
    """Size of the log-likelihood ratio and whether its sign is right, for each of `runs` trials."""
    if law == "laplace":
        y = rng.laplace(0.0, 1 / epsilon, runs)
        ratio = epsilon * (np.abs(y - 1) - np.abs(y))
    else:
        mu = gaussian_mu(epsilon, delta)
        ratio = mu * rng.normal(mu / 2, 1.0, runs)
    ratio = np.round(ratio, 9)
    return np.abs(ratio), ratio > 0


def best_threshold(law: str, epsilon: float, delta: float, trials: int) -> float:
    """Size of the log ratio from which to guess, so that the expected counts certify most."""
    if law == "laplace":
        return epsilon - 1e-6
    mu = gaussian_mu(epsilon, delta)
    cuts = np.linspace(0.0, 4.5, 91)
    right, wrong = (stats.norm.sf(cuts, side * mu / 2) for side in (1, -1))
    certified = [
        bounds.binomial_epsilon(r * trials, w * trials, ALPHA, delta=delta, trials=trials)
        for r, w in zip(right, wrong, strict=True)
    ]
    return float(mu * cuts[int(np.argmax(certified))])


def binned(size: np.ndarray, right: np.ndarray) -> Pairs:
    """Right and wrong counts in about 128 bins, surest first, finer in the tail."""
    tail = 1 - np.geomspace(0.02, 4 / len(size), 12)
    edges = np.unique(np.quantile(size, [0, *np.linspace(0.02, 0.98, 116), *tail]))
    where = len(edges) - np.searchsorted(edges, size, side="right")
    bins = len(edges) + 1
    return np.bincount(where[right], minlength=bins), np.bincount(where[~right], minlength=bins)


@pytest.mark.parametrize(("law", "epsilon", "delta", "side", "expected", "sd"), BINOMIAL)
def test_median_of_the_binomial_bound(
    law: str, epsilon: float, delta: float, side: int, expected: float, sd: float
) -> None:
    rng = np.random.default_rng(11)
    cut = best_threshold(law, epsilon, delta, 2 * side)
    found = []
    for _ in range(EXPERIMENTS):
        size, right = sure_and_right(law, epsilon, delta, 2 * side, rng)
        v, w = int((right & (size >= cut)).sum()), int((~right & (size >= cut)).sum())
        found.append(bounds.binomial_epsilon(v, w, ALPHA, delta=delta, trials=2 * side))
    assert np.median(found) == pytest.approx(expected, abs=STANDARD_ERRORS * sd)


@pytest.mark.parametrize(("law", "epsilon", "delta", "side", "expected", "sd"), RANKED)
def test_median_of_the_ranked_walk(
    law: str, epsilon: float, delta: float, side: int, expected: float, sd: float
) -> None:
    rng = np.random.default_rng(12)
    found = [
        bounds.ranked_epsilon(
            *binned(*sure_and_right(law, epsilon, delta, 2 * side, rng)),
            ALPHA,
            delta=delta,
            trials=2 * side,
        )
        for _ in range(EXPERIMENTS)
    ]
    assert np.median(found) == pytest.approx(expected, abs=STANDARD_ERRORS * sd)


def test_median_stopping_time_on_a_true_2_against_a_claim_of_1() -> None:
    """53 runs with a known posterior and the whole of alpha on the betting test.

    Over 400 experiments; stopping times spread by about 40, standard error 2.5: the range
    43 to 63 is four standard errors wide on each side, false alarm 1e-4.
    """
    rng = np.random.default_rng(13)
    runs, bins = 300, 41
    size, right = sure_and_right("laplace", 2.0, 0.0, 400 * runs, rng)
    where = np.rint(size / 2.0 * (bins - 1)).astype(int)
    tables = np.zeros((400 * runs, 2, bins), dtype=np.int64)
    tables[np.arange(400 * runs), (~right).astype(int), where] = 1
    running = np.cumsum(tables.reshape(400, runs, 2, bins), axis=1).reshape(-1, 2, bins)
    posterior = special.expit(np.linspace(0.0, 2.0, bins))
    wealth = bounds.log_wealth(running, posterior, [1.0], 0.0)[0].reshape(400, runs)
    crossed = wealth >= -np.log(ALPHA)
    stops = np.where(crossed.any(axis=1), crossed.argmax(axis=1) + 1, runs)
    assert 43 < np.median(stops) < 63
