"""A known case that sets prices: what is promised depends on which prices are looked at.

Claim: price t is the customer's own covariate plus a tree-noised sum of past demand. The prices
*after* a customer depend on the customer's demand only through the tree, each of whose nodes has
Laplace noise: with as many nodes over a demand as the noise scale, that is 1-DP in the
anticipating view. The customer's own price shows the covariate without noise, so no epsilon
holds for the view of all prices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.broken.cases_sums import add_up, node_sums, take_apart
from algorithms.calibration.additive import laplace_llr
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Array, Floats, Views


def personal_prices(
    data: Any, n: int, rng: np.random.Generator, *, scale: float
) -> dict[str, Array]:
    """Prices of T customers in turn.

    Args:
        data: Mapping with ``covariates`` and ``demands``, shape (T,) each, demands in [0, 1].
        n: Number of trials.
        rng: Source of the noise.
        scale: Noise scale of a tree node.

    Returns:
        ``prices``, shape (n, T).
    """
    covariates = np.asarray(data["covariates"], dtype=float)
    past = np.cumsum(data["demands"])[:-1] + add_up(
        rng.laplace(0.0, scale, (n, len(covariates) - 1))
    )
    return {"prices": covariates + np.concatenate([np.zeros((n, 1)), past], axis=1)}


def prices_after_llr(views: Views, pair: Pair, *, scale: float) -> Floats:
    """Exact log-likelihood ratio of the prices after the first customer, shape (n,).

    Raises:
        UsageError: When another customer differs: then the view shows sums over nodes only.
    """
    if pair.differs != (0,):
        raise UsageError(
            f"pair {pair.label!r}: expected customer 0 to differ, got {pair.differs}; audit other "
            "customers without the likelihood"
        )
    past = views["prices"] - np.asarray(pair.left["covariates"][1:], dtype=float)
    left, right = (node_sums(side["demands"][:-1]) for side in (pair.left, pair.right))
    return laplace_llr(take_apart(past), left, right, scale)
