"""How far apart two laws can be: hockey-stick divergences and the lines of trade-off curves."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Hockey-stick divergence of N(0,1) and N(mu,1) at `epsilon` (Balle and Wang 2018)."""
    first = special.ndtr(mu / 2 - epsilon / mu)
    second = math.exp(epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu)))
    return max(0.0, float(first) - second)


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu at which the Gaussian mechanism is exactly (`epsilon`, `delta`)-DP (rounded down)."""
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon) < delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if middle <= 0:
            break
        low, high = (middle, high) if gaussian_delta(middle, epsilon) < delta else (low, middle)
    return low


def box_delta(claimed: float, revealed: float, epsilon: float) -> float:
    """Profile at `epsilon` of the box that tells the side (Kairouz, Oh and Viswanath 2015).

    Args:
        claimed: Log odds with which it tells the truth where it does not reveal it.
        revealed: Probability with which it reveals it.
        epsilon: Where the profile is taken.
    """
    if epsilon >= claimed:
        return revealed
    # exp(claimed) may overflow: divide numerator and denominator by it.
    told = -math.expm1(epsilon - claimed) / (1 + math.exp(-claimed))
    return revealed + (1 - revealed) * told


def two_lines(alarm: Floats, epsilon: float, delta: float) -> Floats:
    """Trade-off function of (epsilon, delta)-DP at false alarms of any shape."""
    steep = 1 - delta - math.exp(min(epsilon, 700.0)) * alarm
    flat = math.exp(-epsilon) * (1 - delta - alarm)
    return np.maximum(0.0, np.maximum(steep, flat))


@lru_cache(maxsize=4096)
def renyi_delta(orders: tuple[float, ...], bounds: tuple[float, ...], epsilon: float) -> float:
    """Smallest delta at `epsilon` that bounds on some Renyi divergences imply."""
    from dp_accounting.rdp import rdp_privacy_accountant

    return float(rdp_privacy_accountant.compute_delta(orders, bounds, epsilon)[0])
