"""The binary tree of partial sums, in prefix form.

Node n (1-based) covers the records ``(n - lowbit(n), n]`` with ``lowbit(n) = n & -n``. The
released prefix sum ``S_n`` adds the nodes found by clearing the lowest set bits of n one by one,
so node n is ``S_n - S_{n - lowbit(n)}``: prefixes and nodes carry the same information, and the
noise of all prefixes is obtained from the nodes' noise without walking a tree.

Sources: Dwork, Naor, Pitassi and Rothblum (2010); Chan, Shi and Song (2011); Fenwick (1994).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def levels(records: int) -> int:
    """Number of nodes that the first of `records` records touches: ``floor(log2 N) + 1``."""
    return records.bit_length()


def prefix_sums(nodes: Floats) -> Floats:
    """Turn values of the nodes into the prefix sums built from them, in place.

    Args:
        nodes: Shape (n, N, ...); axis 1 runs over the nodes. Overwritten.

    Returns:
        The same array: entry ``[:, i]`` is the sum over the nodes of the prefix of length i + 1.
    """
    for level in reversed(range(levels(nodes.shape[1]) - 1)):
        step = 2 << level
        # S_n needs S_{n - lowbit(n)}, whose lowbit is larger: it is ready when levels descend.
        own = nodes[:, step + step // 2 - 1 :: step]
        own += nodes[:, step - 1 :: step][:, : own.shape[1]]
    return nodes


def node_values(sums: Floats, which: npt.NDArray[Any]) -> Floats:
    """Recover nodes from prefix sums: ``S_n - S_{n - lowbit(n)}``.

    Args:
        sums: Shape (n, N, ...); axis 1 runs over the prefixes.
        which: 0-based nodes wanted, shape (k,).

    Returns:
        Shape (n, k, ...).
    """
    number = np.asarray(which, dtype=np.int64) + 1
    parent = number - (number & -number)
    values = np.asarray(sums[:, number - 1], dtype=float)
    inner = np.flatnonzero(parent)
    values[:, inner] -= sums[:, parent[inner] - 1]
    return values


def node_counts(records: int) -> Integers:
    """How many nodes each prefix is made of: the number of set bits of 1, ..., N; shape (N,)."""
    number = np.arange(1, records + 1)
    bits = (number[:, None] >> np.arange(levels(records))) & 1
    return np.asarray(bits.sum(axis=1), dtype=np.int64)
