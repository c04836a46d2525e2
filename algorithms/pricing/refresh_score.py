"""What the covariance says about one customer when it is seen at some rounds only.

Prices show the released sum ``S_a`` at refreshes. Two prefixes share the noise of the nodes that
their decompositions have in common: with ``K_ab`` their number, the noises of ``S_a`` and ``S_b``
have covariance ``K_ab`` times that of one node. A customer who came before all of them shifts every
``S_a`` by the same M, so ``1^T K^-1 v`` with ``v_a = <S_a - (their mean), M>_O`` is the exact
log-likelihood ratio, and ``mu^2 = (1^T K^-1 1) ||M||_O^2`` replaces ``c_t ||M||_O^2``.

Prices show the matrix through the bonus only. An interior best price solves

    f(eta) + gamma sqrt(q) + p [f'(eta) eta_p + gamma q_p / (2 sqrt(q))] = 0,

with ``eta = phi^T theta``, ``q = phi^T Lam^-1 phi`` and derivatives in p. `recover_both` solves
them for theta and ``Lam^-1``, up to the antisymmetric part of its off-diagonal block, which no
feature ``(x, -p x)`` sees. It needs prices much finer than a grid of 101 steps.

Claim: none; nothing here is released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]


def common_nodes(prefixes: Sequence[int]) -> Floats:
    """K: how many tree nodes the decompositions of two prefixes share, shape (V, V)."""
    parts = [_decomposition(length) for length in prefixes]
    return np.array([[len(a & b) for b in parts] for a in parts], dtype=float)


def refresh_factor(prefixes: Sequence[int]) -> float:
    """``1^T K^-1 1``: what replaces the length of the customer's path.

    Args:
        prefixes: Different numbers of records, all of them with the customer.
    """
    return float(np.linalg.solve(common_nodes(prefixes), np.ones(len(prefixes))).sum())


def refresh_ratio(
    sums: Floats, means: tuple[Floats, Floats], variance: Floats, prefixes: Sequence[int]
) -> Floats:
    """Exact ``ln P_left/P_right`` of released sums at some rounds, shape (n,).

    Args:
        sums: Drawn entries of the released sums at those rounds, shape (n, V, D).
        means: Exact sums on the left and on the right side, each of shape (V, D) or (n, V, D).
        variance: Of one node's noise, by drawn entry, shape (D,).
        prefixes: The rounds: different numbers of records, length V.
    """
    middle, moved = (means[0] + means[1]) / 2, means[0] - means[1]
    weighted = np.linalg.solve(common_nodes(prefixes), moved / variance)
    return np.asarray(np.sum((sums - middle) * weighted, axis=(1, 2)), dtype=float)


def recover_both(
    contexts: Floats, prices: Floats, bonus: float, theta: Floats, inverse: Floats
) -> tuple[Floats, Floats]:
    """Estimate and inverse covariance behind the interior best prices of one trial.

    Args:
        contexts: Shape (S, k), S at least ``2 k + 3 k (k + 1)/2``, of different norms.
        prices: Shape (S,), real numbers.
        bonus: gamma > 0.
        theta: First guess, shape (2k,).
        inverse: First guess, shape (2k, 2k).

    Returns:
        Theta and ``Lam^-1`` with its off-diagonal block symmetrised.

    Raises:
        UsageError: For too few prices.
    """
    k = contexts.shape[1]
    unknown = 2 * k + 3 * k * (k + 1) // 2
    if len(prices) < unknown:
        raise UsageError(
            f"inversion: expected at least {unknown} interior prices, got {len(prices)}. "
            "Send more fake customers between two refreshes"
        )
    squares = _squares(contexts)

    def off(packed: Floats) -> Floats:
        return _first_order(packed[: 2 * k], packed[2 * k :], contexts, squares, prices, bonus)

    start = np.concatenate([theta, _packed(inverse, k)])
    found = optimize.least_squares(off, start, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15)
    return found.x[: 2 * k], _unpacked(found.x[2 * k :], k)


def _decomposition(length: int) -> set[int]:
    nodes = set()
    while length:
        nodes.add(length)
        length &= length - 1
    return nodes


def _squares(contexts: Floats) -> Floats:
    """Coefficients of a symmetric matrix's upper triangle in ``x^T A x``, shape (S, k(k+1)/2)."""
    rows, columns = np.triu_indices(contexts.shape[1])
    return contexts[:, rows] * contexts[:, columns] * np.where(rows == columns, 1.0, 2.0)


def _packed(inverse: Floats, k: int) -> Floats:
    upper = np.triu_indices(k)
    cross = (inverse[:k, k:] + inverse[k:, :k]) / 2
    return np.concatenate([inverse[:k, :k][upper], cross[upper], inverse[k:, k:][upper]])


def _unpacked(packed: Floats, k: int) -> Floats:
    blocks = []
    for part in np.split(packed, 3):
        block = np.zeros((k, k))
        block[np.triu_indices(k)] = part
        blocks.append(block + np.triu(block, 1).T)
    return np.block([[blocks[0], blocks[1]], [blocks[1], blocks[2]]])


def _first_order(
    theta: Floats, packed: Floats, contexts: Floats, squares: Floats, prices: Floats, bonus: float
) -> Floats:
    """Left side of the first-order condition at each price, logistic demand; shape (S,)."""
    k = contexts.shape[1]
    base, slope = contexts @ theta[:k] / math.sqrt(2), contexts @ theta[k:] / math.sqrt(2)
    own, cross, square = (squares @ part / 2 for part in np.split(packed, 3))
    mean = special.expit(base - prices * slope)
    width = np.sqrt(np.maximum(own - 2 * prices * cross + prices**2 * square, 1e-300))
    steeper = (prices * square - cross) / width
    return np.asarray(
        mean + bonus * width + prices * (bonus * steeper - mean * (1 - mean) * slope), dtype=float
    )
