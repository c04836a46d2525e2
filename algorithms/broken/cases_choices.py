"""Known cases that release decisions: coins, dropped arms, sparse vectors, an exception.

Claim: a decision taken on noisy numbers inherits their guarantee, as long as every number that
the decision depends on is noisy, the noise is not reused, and not deciding at all (an exception)
counts as a decision. The faulty sparse vectors are those dissected by Lyu, Su and Li (2017).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audit.pair import Pair
from audit.view import Array, Floats, Views


def sparse_vector_exact_queries(
    data: Any, n: int, rng: np.random.Generator, *, scale: float
) -> dict[str, Array]:
    """Sparse vector with a noisy threshold of 0, exact queries and no cut-off.

    Algorithm 5 of Lyu, Su and Li (2017), due to Stoddard, Chen and Machanavajjhala (2014).

    Args:
        data: Exact answers of the queries, shape (J,).
        n: Number of trials.
        rng: Source of the noise.
        scale: Noise scale of the threshold.

    Returns:
        ``above``, shape (n, J): 1 where the query is above the threshold, else 0.
    """
    threshold = rng.laplace(0.0, scale, (n, 1))
    return {"above": (np.asarray(data, dtype=float) >= threshold).astype(int)}


def sparse_vector_small_noise(
    data: Any, n: int, rng: np.random.Generator, *, epsilon: float, threshold: float, cutoff: int
) -> dict[str, Array]:
    """Sparse vector whose query noise ignores the cut-off.

    Algorithm 4 of Lyu, Su and Li (2017), due to Lee and Clifton (2014): threshold noise of scale
    4/epsilon, query noise of scale 4/(3 epsilon) where cut-off times that would be needed.

    Args:
        data: Exact answers of the queries, shape (J,), sensitivity 1.
        n: Number of trials.
        rng: Source of the noise.
        epsilon: The epsilon claimed.
        threshold: The public threshold.
        cutoff: Queries are no longer answered after this many positives.

    Returns:
        ``answers``, shape (n, J): 1 above, 0 below, -1 not answered.
    """
    queries = np.asarray(data, dtype=float)
    noisy_threshold = threshold + rng.laplace(0.0, 4 / epsilon, (n, 1))
    noise = rng.laplace(0.0, 4 / (3 * epsilon), (n, len(queries)))
    above = (queries + noise >= noisy_threshold).astype(int)
    answered = np.cumsum(above, axis=1) - above < cutoff
    return {"answers": np.where(answered, above, -1)}


def drop_arm(
    data: Any, n: int, rng: np.random.Generator, *, lead: float, scale: float
) -> dict[str, Array]:
    """Drop the second arm when its noisy sum trails the first by more than `lead`.

    Args:
        data: Reward sums of the two arms.
        n: Number of trials.
        rng: Source of the noise.
        lead: The lead that must be exceeded.
        scale: Noise scale of each sum.

    Returns:
        ``dropped``, shape (n,): 1 or 0.
    """
    noisy = np.asarray(data, dtype=float) + rng.laplace(0.0, scale, (n, 2))
    return {"dropped": (noisy[:, 0] - noisy[:, 1] > lead).astype(int)}


def drop_arm_llr(views: Views, pair: Pair, *, lead: float, scale: float) -> Floats:
    """Exact log-likelihood ratio of `drop_arm`, shape (n,)."""
    left, right = (
        _two_laplace_tail((lead - side[0] + side[1]) / scale) for side in (pair.left, pair.right)
    )
    return np.where(
        views["dropped"] == 1, math.log(left / right), math.log((1 - left) / (1 - right))
    )


def _two_laplace_tail(x: float) -> float:
    # P(sum of two standard Laplace draws > x)
    half = math.exp(-abs(x)) * (2 + abs(x)) / 4
    return half if x >= 0 else 1 - half


def second_coin(data: int, n: int, rng: np.random.Generator, *, truth: float) -> dict[str, Array]:
    """Randomised response in which a lie gets a second chance to be the truth.

    Args:
        data: The bit, 0 or 1.
        n: Number of trials.
        rng: Source of the coins.
        truth: Probability that a coin tells the truth.

    Returns:
        ``answer``, shape (n,): 0 or 1.
    """
    told = (rng.random((n, 2)) < truth).any(axis=1)
    return {"answer": np.where(told, data, 1 - data)}


def second_coin_llr(views: Views, pair: Pair, *, truth: float) -> Floats:
    """Exact log-likelihood ratio of `second_coin` between two different bits, shape (n,)."""
    lie = (1 - truth) ** 2
    odds = math.log((1 - lie) / lie)
    return np.where(views["answer"] == pair.left, odds, -odds)


def fragile_maximum(data: Any, rng: np.random.Generator, *, epsilon: float) -> float:
    """Maximum of records in [0, 1] by the exponential mechanism, one trial at a time.

    The quantile mechanism of Smith (2011) at the top quantile. The weight of an interval is
    exp(-epsilon/2 times the records above it), computed without shifting the exponents: when all
    records sit at 1 the only interval with a width has weight exp(-epsilon m / 2), which
    underflows to zero at one record too many.

    Args:
        data: Records, shape (m,).
        rng: Source of the draw.
        epsilon: The epsilon claimed.

    Returns:
        A point in [0, 1].

    Raises:
        ValueError: When every weight underflows.
    """
    records = np.sort(np.clip(np.asarray(data, dtype=float), 0.0, 1.0))
    edges = np.concatenate([[0.0], records, [1.0]])
    above = len(records) - np.arange(len(edges) - 1)
    weights = np.diff(edges) * np.exp(-epsilon / 2 * above)
    if not weights.sum() > 0:
        raise ValueError("total of weights must be greater than zero")
    chosen = rng.choice(len(weights), p=weights / weights.sum())
    return float(rng.uniform(edges[chosen], edges[chosen + 1]))
