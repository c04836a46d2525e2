"""Feature maps of a customer and a price, with norm at most 1 by construction.

With ``||x|| <= 1`` and ``0 <= p <= p_hi`` the maps below never leave the unit ball, which is what
the sensitivity of every release built on them rests on. Clipping is not a substitute: a feature
that is merely expected to be small voids the claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]

TOLERANCE = 1e-12


def interaction(contexts: Floats, prices: Floats, highest: float = 1.0) -> Floats:
    """``(x, -p x) / sqrt(1 + p_hi^2)``: the price acts through the customer.

    Args:
        contexts: Customers x of norm at most 1, shape (..., k).
        prices: Prices p in [0, `highest`], shape (...).
        highest: Public upper bound p_hi of the prices.

    Returns:
        Shape (..., 2k), norm at most 1.
    """
    pair = np.concatenate([contexts, -prices[..., None] * contexts], axis=-1)
    return np.asarray(pair / math.sqrt(1 + highest**2), dtype=float)


def intercept(contexts: Floats, prices: Floats) -> Floats:
    """``(x, 1) / sqrt(2)``: the customer only; `prices` gives nothing but its shape.

    Returns:
        Shape (..., k + 1), norm at most 1.
    """
    one = np.ones_like(prices, dtype=float)[..., None]
    return np.asarray(np.concatenate([contexts, one], axis=-1) / math.sqrt(2), dtype=float)


FEATURE_MAPS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "interaction": interaction,
    "intercept": intercept,
}


def checked(features: npt.ArrayLike, shape: tuple[int, int]) -> Floats:
    """Features supplied from outside, as floats, after checking what the privacy rests on.

    Args:
        features: One row per record.
        shape: The expected (N, d).

    Raises:
        UsageError: For another shape, a number that is not finite, or a norm above 1.
    """
    rows = np.asarray(features, dtype=float)
    if rows.shape != shape:
        raise UsageError(
            f"features: expected shape {shape} (records, dimension), got {rows.shape}. Set the "
            "mechanism's records and dimension to those of the data"
        )
    norms = np.linalg.norm(rows, axis=1)
    wrong = np.flatnonzero(~(norms <= 1 + TOLERANCE))
    if wrong.size:
        raise UsageError(
            f"features: expected a norm of at most 1 in every row, got {norms[wrong[0]]:g} in row "
            f"{wrong[0]} (0-based). Divide all features by a public bound on their norm"
        )
    return rows
