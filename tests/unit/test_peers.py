"""The rules of other auditors in the power benchmark, on scores with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmark.peers import PEERS, best_cut, corners


def test_corners_are_those_of_the_upper_hull() -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(0, 12, 60).astype(float) + 2, rng.integers(0, 12, 60).astype(float)
    hits, others = corners(left, right)
    cuts = np.unique(np.concatenate([left, right]))
    points = [(float((right >= c).sum()), float((left >= c).sum())) for c in cuts]
    found = list(zip(others.tolist(), hits.tolist(), strict=True))
    assert set(found) <= set(points)
    for slope in np.linspace(0.05, 20, 200):
        best = max(y - slope * x for x, y in [(0.0, 0.0), *points])
        assert max(y - slope * x for x, y in [(0.0, 0.0), *found]) == pytest.approx(best)


@pytest.mark.parametrize("name", PEERS)
def test_rules_find_a_clear_leak_and_none_in_noise(name: str) -> None:
    """Laplace 4: true 4; each rule certifies at least 2 and no more than 4.3 of it here."""
    rng = np.random.default_rng(3)
    left, right = (rng.laplace(c, 0.25, 10_000) for c in (0.0, 1.0))
    scores = [np.round(4 * (np.abs(y - 1) - np.abs(y)), 9) for y in (left, right)]
    assert 2.0 < PEERS[name](scores[0], scores[1], 0.05, 0.0) < 4.3
    assert PEERS[name](right, right, 0.05, 0.0) <= 0.2


def test_the_best_cut_separates_disjoint_scores() -> None:
    assert 0.0 < best_cut(np.ones(100), np.zeros(100), 0.05, 0.0) <= 1.0
