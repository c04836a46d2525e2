"""Exact privacy curves of Laplace releases: of one, and of several at once.

Two Laplace laws of equal scale at distance e (in scales) have the hockey-stick divergence
``1 - exp((epsilon - e) / 2)`` (Balle, Barthe and Gaboardi 2018). The curve of a product of such
pairs is the convolution of their privacy loss distributions. Each is put on a common grid by
connecting the dots (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots: tighter
discrete approximations of privacy loss distributions" (2022)): the discrete law has the exact curve
at the grid's points and lies above it between them, so every curve here is an upper bound, with an
error that falls with the square of the step. Convolution is direct: all terms are positive, so tiny
deltas keep their relative accuracy, which a Fourier transform would lose.

Tilted noise makes rare privacy losses common: the law proportional to ``exp(tilt L)`` times a
Laplace law is piecewise exponential, so its normaliser has a formula and it is drawn exactly, by
inversion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

STEPS = 256
_MOST_POINTS = 16_000
_SMALLEST = 2.0**-60


def laplace_profile(distance: float, epsilon: float) -> float:
    """Hockey-stick divergence of two Laplace laws of scale 1 at `distance`: symmetric.

    ``1 - exp((epsilon - distance) / 2)`` up to `distance`, then 0 (Balle, Barthe and Gaboardi,
    "Privacy amplification by subsampling" (2018)).
    """
    return -math.expm1((epsilon - distance) / 2) if epsilon < distance else 0.0


def product_profile(distances: Sequence[float], epsilon: float) -> float:
    """Hockey-stick divergence of two products of Laplace laws of scale 1.

    Args:
        distances: Distance of the means in every coordinate, non-negative, in scales.
        epsilon: Non-negative.

    Returns:
        The divergence, symmetric; from above within a relative error of about 1e-4, exact for a
        single coordinate that moves.
    """
    moved = sorted(float(d) for d in distances if d > 0)
    if epsilon >= sum(moved):
        return 0.0
    if len(moved) == 1:
        return laplace_profile(moved[0], epsilon)
    losses, masses = _product(tuple(moved))
    return float(np.sum(masses * np.maximum(0.0, -np.expm1(epsilon - losses))))


def product_epsilon(distances: Sequence[float], delta: float) -> float:
    """Smallest epsilon at which `product_profile` is at most `delta`, by bisection."""
    low, high = 0.0, float(sum(distances))
    if product_profile(distances, 0.0) <= delta:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        above = product_profile(distances, middle) > delta
        low, high = (middle, high) if above else (low, middle)
    return high


def log_tilted_mass(shifts: npt.ArrayLike, tilt: float) -> Floats:
    """``ln E exp(tilt L)`` for the loss L of a Laplace law of scale 1 against itself, shifted.

    Args:
        shifts: How far the other law lies, in scales, any shape; the sign does not matter.
        tilt: The tilt, above -1/2.

    Returns:
        Same shape.
    """
    distance = np.abs(np.asarray(shifts, dtype=float))
    rate = 1 + 2 * tilt
    parts = 1 - np.expm1(-rate * distance) / rate + np.exp(-rate * distance)
    return np.asarray(tilt * distance + np.log(parts / 2))


def tilted_laplace(shifts: npt.ArrayLike, tilt: float, rng: np.random.Generator) -> Floats:
    """Noise from the law proportional to ``exp(tilt L)`` times the Laplace law of scale 1.

    Args:
        shifts: Where the law that L compares with is centred, in scales, any shape.
        tilt: The tilt, above -1/2; 0 gives Laplace noise.
        rng: Source of one uniform per entry.

    Returns:
        Same shape, in scales.
    """
    shift = np.asarray(shifts, dtype=float)
    distance, rate = np.abs(shift), 1 + 2 * tilt
    between, beyond = -np.expm1(-rate * distance) / rate, np.exp(-rate * distance)
    uniform = np.maximum(rng.random(shift.shape), _SMALLEST) * (1 + between + beyond)
    # Masses 1 below 0, `between` up to the distance and `beyond` from there on.
    inside = np.clip(uniform - 1, 0.0, between)
    left = np.maximum(1 + between + beyond - uniform, _SMALLEST * beyond)
    noise = np.where(uniform < 1, np.log(uniform), -np.log1p(-rate * inside) / rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = distance - np.log(left / beyond)
    noise = np.where(uniform - 1 > between, tail, noise)
    return np.asarray(np.where(shift < 0, -noise, noise))


@lru_cache(maxsize=64)
def _product(distances: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Losses and masses of the product under the left law."""
    step = max(max(distances) / STEPS, 2 * sum(distances) / _MOST_POINTS)
    total = np.ones(1)
    for distance in sorted(set(distances)):
        own = _masses(distance, step)
        total = np.convolve(total, _power(own, distances.count(distance)))
    half = (len(total) - 1) // 2
    return np.asarray(step * np.arange(-half, half + 1), dtype=float), total


def _power(masses: Floats, count: int) -> Floats:
    """The `count`-fold convolution of `masses` with itself, by squaring."""
    result = np.ones(1)
    while count:
        if count & 1:
            result = np.convolve(result, masses)
        count >>= 1
        masses = np.convolve(masses, masses) if count else masses
    return result


def _masses(distance: float, step: float) -> Floats:
    """Masses on ``-m step, ..., m step`` whose curve is exact at these points."""
    half = math.ceil(distance / step - 1e-9)
    grid = step * np.arange(-half - 1, half + 2)
    ratio = np.exp(grid)
    above = np.maximum(0.0, -np.expm1((np.abs(grid) - distance) / 2))
    curve = np.where(grid < 0, -np.expm1(grid) + ratio * above, above)
    # Linear in exp(epsilon) between the dots: a kink is mass of the right law at that loss.
    slopes = np.diff(curve) / np.diff(ratio)
    return np.asarray(np.maximum(np.diff(slopes), 0.0) * ratio[1:-1])
