"""The rounding trap: an ulp must not decide a claim about real numbers.

The log-likelihood ratio of a Laplace pair with epsilon 1 is 1 or -1 on most of the trials, and
the last bits of ``|y| - |y - 1|`` differ between the sides. The same clean procedure (scout,
freeze, count fresh trials, exact binomial bound) is run on raw doubles and on the rounding grid.
"""

from __future__ import annotations

import numpy as np

from audit import bounds
from audit.evidence import tabulate
from audit.quantise import grid_of, round_scores
from audit.view import Views, collect, concatenate

PER_SIDE = 10_000
SEEDS = range(10)


def played(rng: np.random.Generator) -> tuple[Views, Views]:
    """Noisy counts of 0 (left) and 1 (right)."""
    return tuple(collect(data + rng.laplace(size=PER_SIDE), PER_SIDE) for data in (0.0, 1.0))  # type: ignore[return-value]


def score(views: Views) -> np.ndarray:
    """The exact log-likelihood ratio, as a careful person would write it."""
    return np.abs(views["value"] - 1) - np.abs(views["value"])


def certified(seed: int, *, rounded: bool) -> float:
    """Epsilon certified at alpha .05; every distinct scouted score has a bin of its own."""
    rng = np.random.default_rng(seed)
    scouted, fresh = played(rng), played(rng)
    scores = [[score(views) for views in pair] for pair in (scouted, fresh)]
    if rounded:
        grid = grid_of(concatenate(*scouted))
        pairs = [[score(grid.apply(views)) for views in pair] for pair in (scouted, fresh)]
        scores = [[round_scores(side, 1.0) for side in pair] for pair in pairs]
    edges = np.unique(np.concatenate(scores[0]))
    left, right = tabulate(*scores[0], edges)
    odds = (left + 5) / (right + 5)
    sure = np.abs(np.log(odds))
    best = max(np.unique(sure[left + right >= 20]), key=lambda cut: _count(left, right, odds, cut))
    return _count(*tabulate(*scores[1], edges), odds, best)


def _count(left: np.ndarray, right: np.ndarray, odds: np.ndarray, cut: float) -> float:
    says_left, says_right = odds >= np.exp(cut), odds <= np.exp(-cut)
    v = int(left[says_left].sum() + right[says_right].sum())
    w = int(right[says_left].sum() + left[says_right].sum())
    return bounds.binomial_epsilon(v, w, 0.05)


def test_raw_doubles_certify_an_epsilon_that_the_mechanism_does_not_have() -> None:
    found = [certified(seed, rounded=False) for seed in SEEDS]
    assert min(found) > 3.0


def test_on_the_grid_the_same_procedure_stays_below_the_truth() -> None:
    """More than 4 of 10 valid bounds at alpha .05 exceed the truth with probability 3e-6."""
    found = [certified(seed, rounded=True) for seed in SEEDS]
    assert sum(bound > 1.0 for bound in found) <= 4
    assert np.median(found) > 0.85
