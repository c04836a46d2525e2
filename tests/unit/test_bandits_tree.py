"""The tree of noisy prefix sums against closed forms and published numbers."""

import numpy as np
import pytest

from algorithms.bandits.ftrl_tree import FtrlTree, touched
from algorithms.primitives.laplace import product_profile


@pytest.mark.parametrize(
    ("rounds", "short", "long"),
    [(4, 2, 3), (5, 3, 3), (8, 3, 4), (16, 4, 5), (17, 5, 5), (64, 6, 7), (100, 7, 7)],
)
def test_tree_heights_agree_with_published_values(rounds, short, long):
    assert FtrlTree(1.0, rounds, 2).height == touched(1, rounds - 1) == short
    assert touched(1, rounds) == long
    assert max(touched(t, rounds - 1) for t in range(1, rounds)) == short


def test_tree_loses_exactly_epsilon_on_the_first_round():
    mechanism = FtrlTree(1.5, 12, 3, bound=2.0)
    first, middle = mechanism.pairs()
    assert mechanism.declared_scale == pytest.approx(3 * 2 * 4 / 1.5)
    distances = [2.0 / mechanism.declared_scale] * (3 * 4)
    assert sum(distances) == pytest.approx(1.5)
    assert mechanism.exact_profile(first, 0.3) == pytest.approx(product_profile(distances, 0.3))
    fewer = touched(middle.position + 1, 11)
    assert fewer < 4
    assert mechanism.exact_profile(middle, 0.0) == pytest.approx(
        product_profile(distances[: 3 * fewer], 0.0)
    )
    emitted = mechanism.run(first.left, 50_000, np.random.default_rng(0))
    ratio = mechanism.log_likelihood_ratio(emitted, first)
    assert np.abs(ratio).max() <= 1.5 + 1e-9
    found = np.maximum(0.0, -np.expm1(0.3 - ratio)).mean()
    # Hoeffding for values in [0, 1]: a deviation of .016 has probability 2 exp(-25).
    assert found == pytest.approx(mechanism.exact_profile(first, 0.3), abs=0.016)


def test_tree_follows_its_noisy_prefix_sums():
    mechanism = FtrlTree(1e9, 9, 3, eta=2.0)
    losses = np.random.default_rng(0).random((9, 3))
    emitted = mechanism.run({"losses": losses}, 30_000, np.random.default_rng(1))
    for t in (0, 3, 8):
        weights = np.exp(-2.0 * losses[:t].sum(axis=0))
        shares = np.bincount(emitted["actions"][:, t], minlength=3) / 30_000
        # Six standard errors of a share: below 1e-8.
        assert shares == pytest.approx(weights / weights.sum(), abs=0.018)
