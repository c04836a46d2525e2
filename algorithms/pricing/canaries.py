"""Streams of records that are on nobody's side, with one record replaced: canary pairs.

Claim: none; neighbours are inputs, not releases.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from algorithms.pricing.demand import Link
from algorithms.pricing.features import checked
from audit.pair import Pair

Floats = npt.NDArray[np.float64]


def background(records: int, dimension: int, link: Link) -> dict[str, Floats]:
    """Axis vectors in turn with balanced outcomes: ``features`` (N, d) and ``outcomes`` (N,)."""
    turn = np.arange(records)
    low = link.bound - link.spread
    outcomes = np.where(turn // dimension % 2, low, link.bound)
    return {"features": np.eye(dimension)[turn % dimension], "outcomes": outcomes}


def canary_pair(
    data: dict[str, Floats],
    left: tuple[Floats, float],
    right: tuple[Floats, float],
    label: str,
    position: int = 0,
    relation: str = "replace-one",
) -> Pair:
    """Neighbours that differ in one record.

    Args:
        data: The other records; not changed.
        left: Features, shape (d,), and outcome of the record on the left side.
        right: The same on the right side.
        label: Name for reports.
        position: 0-based place of the record.
        relation: Neighbour relation.

    Raises:
        UsageError: For features of norm above 1.
    """
    sides = []
    for features, outcome in (left, right):
        side = {name: column.copy() for name, column in data.items()}
        side["features"][position], side["outcomes"][position] = features, outcome
        checked(side["features"], side["features"].shape)
        sides.append(side)
    return Pair(sides[0], sides[1], label=label, relation=relation)
