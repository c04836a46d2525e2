"""Addressed streams: distinct, stable, independent."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import stats

from audit.streams import Phase, Side, case_key, stream


def test_all_addresses_are_distinct_streams() -> None:
    addresses = itertools.product((0, 1), ("a", "b"), Phase, Side, (0, 1, 2**31), (0, 1))
    first = {tuple(stream(*address).integers(2**63, size=2).tolist()) for address in addresses}
    assert len(first) == 2 * 2 * len(Phase) * len(Side) * 3 * 2


def test_children_of_a_stream_are_streams_of_their_own() -> None:
    left = stream(0, "case", Phase.TESTIFY, Side.LEFT, 0).spawn(50)
    right = stream(0, "case", Phase.TESTIFY, Side.RIGHT, 0).spawn(50)
    assert len({child.random() for child in (*left, *right)}) == 100


def test_an_address_always_gives_the_same_draws() -> None:
    draws = [stream(7, "case", Phase.SCOUT, Side.LEFT, 3).random(4).tolist() for _ in range(2)]
    assert draws[0] == draws[1]
    assert case_key("calibration/laplace") == case_key("calibration/laplace") < 2**32


def test_sides_and_neighbouring_blocks_are_uncorrelated() -> None:
    """Pearson at level 1e-6 in all for three pairs of streams of 20,000 draws."""
    sides = [
        stream(0, "case", Phase.TESTIFY, side, block).normal(size=20_000)
        for side, block in ((Side.LEFT, 0), (Side.RIGHT, 0), (Side.LEFT, 1))
    ]
    for one, other in itertools.combinations(sides, 2):
        assert stats.pearsonr(one, other).pvalue > 3e-7
    assert np.all([abs(np.mean(side)) < 0.05 for side in sides])  # 7 standard errors
