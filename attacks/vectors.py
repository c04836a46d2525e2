"""Vectors of query answers, each of which a record may change by a little.

Patterns of change that told faulty noisy maxima and sparse vectors from right ones (Ding et al.
2018, Table 1): one answer against the rest, halves against each other, all alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audit.domain import Domain
from audit.pair import Pair
from audit.view import Floats


def vector_pairs(domain: Domain) -> Iterator[Pair]:
    """Pairs of vectors all of whose coordinates are at most `distance` apart, within the bounds."""
    smallest, largest = domain.bounds or (0.0, 1.0)
    step = min(domain.distance or 1.0, largest - smallest)
    for base_name, base in _bases(domain.dimension, smallest + step / 2, largest - step / 2):
        for name, sign in _patterns(domain.dimension):
            left, right = base - step * sign / 2, base + step * sign / 2
            yield Pair(left.tolist(), right.tolist(), f"{name}, from {base_name}")


def _patterns(size: int) -> list[tuple[str, Floats]]:
    """Directions of change: 1 for one step up, -1 for one down."""
    first = np.arange(size) == 0
    half = np.arange(size) < size // 2
    even = np.arange(size) % 2 == 0
    found = [
        ("first down, others up", np.where(first, -1.0, 1.0)),
        ("first half up, others down", np.where(half, 1.0, -1.0)),
        ("first up, others down", np.where(first, 1.0, -1.0)),
        ("every other one up", np.where(even, 1.0, -1.0)),
        ("first up", np.where(first, 1.0, 0.0)),
        ("all but the first up", np.where(first, 0.0, 1.0)),
        ("all up", np.ones(size)),
    ]
    return [(name, sign.astype(float)) for name, sign in found]


def _bases(size: int, low: float, high: float) -> list[tuple[str, Floats]]:
    """What is changed: answers that tie, or one that stands out."""
    first = np.arange(size) == 0
    return [
        ("ties", np.full(size, (low + high) / 2)),
        ("the first lowest", np.where(first, low, high)),
        ("the first highest", np.where(first, high, low)),
        ("steps", np.linspace(low, high, size)),
    ]
