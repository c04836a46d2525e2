"""Addressed random streams: every draw of a run has an address, whoever makes it, whenever.

A stream is ``SeedSequence(root, spawn_key=(case, phase, side, block))``. Since nothing is ever
drawn from a shared generator, the number of jobs, the order of the blocks, a resume or a cluster
cannot change a result, and the two sides of a pair never share a stream.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from functools import lru_cache

import numpy as np


class Phase(IntEnum):
    """What a stream is for."""

    CONTRACT = 0
    SCOUT = 1
    FIT = 2
    TESTIFY = 3
    CERTIFY = 4
    CALIBRATE = 5
    TWIN = 6
    SEED = 7
    SEARCH = 8
    ORDER = 9


class Side(IntEnum):
    """Whose stream it is: one side of the pair, or the labels."""

    LEFT = 0
    RIGHT = 1
    LABELS = 2


@lru_cache(maxsize=1024)
def case_key(name: str) -> int:
    """Stable 32-bit address of a case, from its name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


def stream(
    root: int, case: str, phase: Phase, side: Side, block: int, pair: int = 0
) -> np.random.Generator:
    """The generator at an address.

    Args:
        root: Seed of the run.
        case: Name of the case.
        phase: What the draws are for.
        side: Left, right, or the labels.
        block: Index of the block of trials.
        pair: Index of the pair of inputs.
    """
    key = (case_key(case), int(phase), int(side), block, pair)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(root, spawn_key=key)))
