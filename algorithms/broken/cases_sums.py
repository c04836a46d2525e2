"""Known cases that release counts, sums and prefix sums.

Claim: noise on a sum is calibrated to how far one record moves *everything* that is released.
The faults here are the usual ones: clipping each coordinate instead of the vector, replacing a
record where the noise was meant for adding one, one draw for all bins, fresh noise for every
prefix sum, two answers charged once. Beside them stand releases that look alike and keep their
claim with zero slack: a binary tree (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song
2011) and a symmetrised second moment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.calibration.additive import gaussian_llr, laplace_llr
from audit.pair import Pair
from audit.view import Array, Floats, Views


def clipped_sum(
    data: Any, n: int, rng: np.random.Generator, *, dimension: int, scale: float
) -> dict[str, Array]:
    """Sum of records, each coordinate clipped to [-1, 1] by itself, plus Gaussian noise.

    Args:
        data: Records, shape (m, dimension) or (m,) when `dimension` is 1; m may be 0.
        n: Number of trials.
        rng: Source of the noise.
        dimension: Length of a record.
        scale: Standard deviation of the noise, enough for one coordinate that moves by 1.

    Returns:
        ``sum``, shape (n, dimension).
    """
    return {"sum": _clipped(data, dimension) + rng.normal(0.0, scale, (n, dimension))}


def clipped_sum_llr(views: Views, pair: Pair, *, dimension: int, scale: float) -> Floats:
    """Exact log-likelihood ratio of `clipped_sum`, shape (n,)."""
    left, right = (_clipped(side, dimension) for side in (pair.left, pair.right))
    return gaussian_llr(views["sum"], left, right, scale)


def _clipped(data: Any, dimension: int) -> Floats:
    records = np.asarray(data, dtype=float).reshape(-1, dimension)
    return np.asarray(np.clip(records, -1.0, 1.0).sum(axis=0), dtype=float)


def shared_draw_histogram(
    data: Any, n: int, rng: np.random.Generator, *, scale: float
) -> dict[str, Array]:
    """Histogram whose bins all get the same Laplace draw: differences of bins are exact.

    Args:
        data: Counts, shape (K,).
        n: Number of trials.
        rng: Source of the noise.
        scale: Noise scale.

    Returns:
        ``counts``, shape (n, K).
    """
    return {"counts": np.asarray(data, dtype=float) + rng.laplace(0.0, scale, (n, 1))}


def tree_prefix_sums(
    data: Any, n: int, rng: np.random.Generator, *, scale: float
) -> dict[str, Array]:
    """All prefix sums from a binary tree whose nodes carry one Laplace draw each.

    Args:
        data: Items in [0, 1], shape (T,).
        n: Number of trials.
        rng: Source of the noise.
        scale: Noise scale of a node.

    Returns:
        ``prefix``, shape (n, T): entry t - 1 is the noisy sum of the first t items.
    """
    items = np.asarray(data, dtype=float)
    return {"prefix": np.cumsum(items) + add_up(rng.laplace(0.0, scale, (n, len(items))))}


def tree_prefix_sums_llr(views: Views, pair: Pair, *, scale: float) -> Floats:
    """Exact log-likelihood ratio of `tree_prefix_sums`, shape (n,).

    The prefix sums and the nodes they are made of determine each other, so this is the ratio of
    the nodes, which are independent.
    """
    left, right = (node_sums(side) for side in (pair.left, pair.right))
    return laplace_llr(take_apart(views["prefix"]), left, right, scale)


def add_up(nodes: Floats) -> Floats:
    """Prefix sums from the nodes of a binary tree.

    Args:
        nodes: Shape (n, T): entry t - 1 covers the items after t with its lowest bit cleared, up
            to t.

    Returns:
        Shape (n, T).
    """
    prefix = np.zeros((nodes.shape[0], nodes.shape[1] + 1))
    for t in range(1, prefix.shape[1]):
        prefix[:, t] = nodes[:, t - 1] + prefix[:, t & (t - 1)]
    return np.asarray(prefix[:, 1:], dtype=float)


def take_apart(prefix: Floats) -> Floats:
    """Inverse of `add_up`: the nodes, shape (n, T), that prefix sums were added up from."""
    times = np.arange(1, prefix.shape[1] + 1)
    padded = np.concatenate([np.zeros((len(prefix), 1)), prefix], axis=1)
    return np.asarray(prefix - padded[:, times & (times - 1)], dtype=float)


def node_sums(items: Any) -> Floats:
    """Exact sums in the nodes of the tree over `items`, shape (T,)."""
    nodes = take_apart(np.cumsum(np.asarray(items, dtype=float))[None])
    return np.asarray(nodes[0], dtype=float)


def fresh_prefix_sums(
    data: Any, n: int, rng: np.random.Generator, *, scale: float
) -> dict[str, Array]:
    """All prefix sums with a fresh Laplace draw each: averaging removes the noise.

    Args:
        data: Items in [0, 1], shape (T,).
        n: Number of trials.
        rng: Source of the noise.
        scale: Noise scale, enough for one of the sums.

    Returns:
        ``prefix``, shape (n, T).
    """
    sums = np.cumsum(np.asarray(data, dtype=float))
    return {"prefix": sums + rng.laplace(0.0, scale, (n, len(sums)))}


def fresh_prefix_sums_llr(views: Views, pair: Pair, *, scale: float) -> Floats:
    """Exact log-likelihood ratio of `fresh_prefix_sums`, shape (n,)."""
    return laplace_llr(views["prefix"], np.cumsum(pair.left), np.cumsum(pair.right), scale)


def answered_twice(
    data: float, n: int, rng: np.random.Generator, *, scale: float
) -> dict[str, Array]:
    """The same count answered twice, Laplace noise each, but charged once.

    Args:
        data: The count.
        n: Number of trials.
        rng: Source of the noise.
        scale: Noise scale of one answer.

    Returns:
        ``answers``, shape (n, 2).
    """
    return {"answers": float(data) + rng.laplace(0.0, scale, (n, 2))}


def answered_twice_llr(views: Views, pair: Pair, *, scale: float) -> Floats:
    """Exact log-likelihood ratio of `answered_twice`, shape (n,)."""
    return laplace_llr(views["answers"], pair.left, pair.right, scale)


def second_moment(
    data: Any, n: int, rng: np.random.Generator, *, dimension: int, scale: float
) -> dict[str, Array]:
    """Sum of x x^T plus a symmetrised Gaussian matrix (N + N^T) / 2.

    Off the diagonal the noise has half the variance, but every entry is released twice: the
    privacy loss is that of noise `scale` on the Frobenius norm of x x^T, which is at most 1.

    Args:
        data: Vectors of norm at most 1, shape (m, dimension); m may be 0.
        n: Number of trials.
        rng: Source of the noise.
        dimension: Length of a vector.
        scale: Standard deviation of the entries of N.

    Returns:
        ``moment``, shape (n, dimension, dimension), symmetric.
    """
    noise = rng.normal(0.0, scale, (n, dimension, dimension))
    return {"moment": _moment(data, dimension) + (noise + noise.transpose(0, 2, 1)) / 2}


def second_moment_llr(views: Views, pair: Pair, *, dimension: int, scale: float) -> Floats:
    """Exact log-likelihood ratio of `second_moment`, shape (n,)."""
    left, right = (_moment(side, dimension) for side in (pair.left, pair.right))
    return gaussian_llr(views["moment"], left, right, scale)


def _moment(data: Any, dimension: int) -> Floats:
    vectors = np.asarray(data, dtype=float).reshape(-1, dimension)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    clipped = vectors / np.maximum(norms, 1.0)
    return np.asarray(clipped.T @ clipped, dtype=float)
