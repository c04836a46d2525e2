"""Betting on the canaries of one run: for pure claims, and canaries that interfere.

Where many canaries act on one statistic, their scores are poor guesses one by one; but a posterior
that knows the coins before its own loses nothing to them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.bounds import epsilon_grid

Floats = npt.NDArray[np.float64]


def posterior_log_e_value(
    posterior: npt.ArrayLike, left: npt.ArrayLike, epsilons: npt.ArrayLike
) -> Floats:
    """Log e-value of epsilon-DP from a posterior for every canary.

    Why this is valid: if each posterior uses the output and only coins revealed before its own,
    then under epsilon-DP the coin is *left* with a probability in [sigmoid(-e), sigmoid(e)] given
    those. The ratio of the posterior to its projection onto that interval has mean at most 1,
    coin by coin, so the product over all coins of one run is an e-value, however the canaries
    interfere. This does not carry over to delta > 0.

    Args:
        posterior: P(left | output, coins before), in (0, 1), shape (m,).
        left: Whether the coin came up *left*, shape (m,).
        epsilons: Nulls, shape (nulls,).

    Returns:
        Shape (nulls,).
    """
    log_odds = special.logit(np.asarray(posterior, dtype=float))
    sure = np.abs(log_odds)
    right = (log_odds > 0) == np.asarray(left, dtype=bool)
    order = np.argsort(-sure, kind="stable")
    gained = special.log_expit(np.where(right, sure, -sure))[order]
    gains = np.concatenate([[0.0], np.cumsum(gained)])
    hits = np.concatenate([[0], np.cumsum(right[order])])
    nulls = np.asarray(epsilons, dtype=float)
    beyond = np.searchsorted(-sure[order], -nulls, side="left")
    allowed = hits[beyond] * special.log_expit(nulls)
    allowed += (beyond - hits[beyond]) * special.log_expit(-nulls)
    return np.asarray(gains[beyond] - allowed, dtype=float)


def posterior_epsilon(
    posterior: npt.ArrayLike, left: npt.ArrayLike, alpha: float, confronted: float
) -> float:
    """Certified epsilon of a pure claim from a posterior for every canary of one run.

    Why this is valid: by Markov's inequality the e-value of a true null reaches 1/alpha with
    probability at most alpha; the argument about the fixed grid is that of
    `audit.bounds.anytime_epsilon`.

    Args:
        posterior: P(left | output, coins before), in (0, 1), shape (m,).
        left: Whether the coin came up *left*, shape (m,).
        alpha: Probability with which the result may exceed the true epsilon.
        confronted: The claim's epsilon, a hair above which is one of the nulls.

    Returns:
        The last null of the grid before the first one that is not rejected; 0 when none is.
    """
    grid = epsilon_grid(confronted)
    kept = posterior_log_e_value(posterior, left, grid) < -math.log(alpha)
    first = int(np.argmax(kept)) if kept.any() else len(grid)
    return float(grid[first - 1]) if first else 0.0
