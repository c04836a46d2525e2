"""The test that blocks of trials agree keeps its level and sees shared draws."""

import numpy as np
import pytest
from scipy import stats

from audit.budget import block_sizes
from audit.dispersion import _tail, blocks_agree, quadratic_tail
from audit.evidence import Evidence

POSTERIOR = (0.2, 0.8)


def evidence_of(rng, lean):
    """Two bins; the share of the upper one moves with standard deviation `lean` per block."""
    blocks = {}
    for block, size in enumerate(block_sizes(8_000)):
        sides = [size // 2, size - size // 2]
        shares = np.clip([0.3, 0.7] + lean * rng.standard_normal(2), 0, 1)
        upper = rng.binomial(sides, shares)
        blocks[block] = np.array([[n - k, k] for n, k in zip(sides, upper, strict=True)])
    return Evidence(2, blocks)


@pytest.mark.parametrize("degrees", [1, 2, 7, 40])
@pytest.mark.parametrize("tail", [0.1, 1e-3, 1e-5, 1e-8])
def test_equal_weights_give_a_chi_squared_tail(degrees, tail):
    value = stats.chi2.isf(tail, degrees)
    assert quadratic_tail(3 * value, np.full(degrees, 3.0)) == pytest.approx(tail, rel=0.12)


def test_unequal_weights_keep_their_heavy_tail():
    """The weighted sum of two exponentials has an exact tail (hypoexponential law)."""
    pairs, value = np.array([1.0, 1.0, 20.0, 20.0]), 500.0
    exact = (40 * np.exp(-value / 40) - 2 * np.exp(-value / 2)) / 38
    assert quadratic_tail(value, pairs) == pytest.approx(exact, rel=0.05)


def test_independent_blocks_agree():
    """1,000 times at level 1e-5: two disagreements have probability 5e-5; the seed is fixed."""
    rng = np.random.default_rng(1)
    assert sum(not blocks_agree(evidence_of(rng, 0.0), POSTERIOR) for _ in range(1_000)) <= 1


@pytest.mark.parametrize("sizes", [[100, 200, 400], [16, 32, 64, 128, 256, 512], [40] * 20])
def test_few_blocks_of_unequal_sizes_keep_the_level(sizes):
    """20,000 times at level .001: more than 40 have probability 2e-5; the seed is fixed."""
    rng, trials = np.random.default_rng(3), np.array(sizes)
    tails = [_tail(rng.binomial(trials, 0.3), trials) for _ in range(20_000)]
    assert sum(tail < 1e-3 for tail in tails) <= 40


def test_blocks_that_lean_together_disagree():
    rng = np.random.default_rng(2)
    assert not any(blocks_agree(evidence_of(rng, 0.15), POSTERIOR) for _ in range(20))
