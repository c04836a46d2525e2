"""The tree in prefix form against the literal algorithm, and its covariance in closed form."""

import numpy as np
import pytest

from algorithms.primitives import tree


def literal_tree(records, noise):
    """The textbook loop: one buffer per level, noise added when a level is completed."""
    levels = len(records).bit_length()
    exact, noisy, released = np.zeros(levels), np.zeros(levels), []
    for n in range(1, len(records) + 1):
        j = (n & -n).bit_length() - 1
        exact[j] = exact[:j].sum() + records[n - 1]
        noisy[j] = exact[j] + noise[n - 1]
        exact[:j] = noisy[:j] = 0
        released.append(sum(noisy[i] for i in range(levels) if n >> i & 1))
    return np.array(released)


def covariance(count):
    """Covariance of the noise in all prefix sums: number of nodes common to both."""
    root = tree.prefix_sums(np.eye(count))
    return root.T @ root


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 13, 31, 64, 100])
def test_prefix_form_is_the_literal_tree(count):
    rng = np.random.default_rng(count)
    records, noise = rng.integers(-9, 9, count) * 1.0, rng.integers(-9, 9, count) * 1.0
    prefix = np.cumsum(records) + tree.prefix_sums(noise[None].copy())[0]
    np.testing.assert_array_equal(prefix, literal_tree(records, noise))


@pytest.mark.parametrize("count", [1, 5, 16, 63])
def test_nodes_are_recovered_from_prefix_sums(count):
    nodes = np.random.default_rng(0).normal(size=(3, count, 2))
    sums = tree.prefix_sums(nodes.copy())
    np.testing.assert_allclose(tree.node_values(sums, np.arange(count)), nodes, atol=1e-12)
    some = np.arange(count)[::2]
    np.testing.assert_allclose(tree.node_values(sums, some), nodes[:, some], atol=1e-12)


def membership(count):
    """Which nodes (columns) hold which record (rows), from what a lone record adds to the sums."""
    return tree.node_values(np.triu(np.ones((count, count))), np.arange(count))


def test_a_record_is_in_the_nodes_that_cover_it():
    for count in (1, 6, 37):
        covers = [[n - (n & -n) < t <= n for n in range(1, count + 1)] for t in range(1, count + 1)]
        np.testing.assert_array_equal(membership(count), covers)


def test_number_of_nodes_that_hold_a_record():
    lengths = membership(1023).sum(axis=1)
    assert lengths[0] == lengths.max() == tree.levels(1023) == 10
    assert lengths.mean() == pytest.approx(5.005, abs=5e-4)
    assert lengths[-1] == 1
    longer = membership(1024).sum(axis=1)
    assert longer.max() == tree.levels(1024) == 11
    assert longer.mean() == pytest.approx(6.0, abs=0.01)


def test_node_counts_are_popcounts():
    expected = [len(f"{n:b}".replace("0", "")) for n in range(1, 300)]
    assert tree.node_counts(299).tolist() == expected
    np.testing.assert_array_equal(np.diag(covariance(60)), tree.node_counts(60))


@pytest.mark.parametrize(
    ("record", "length", "factor"),
    [
        (1, 8, 8),
        (2, 7, 7),
        (4, 6, 6),
        (9, 7, 4.75),
        (65, 7, 1.857),
        (129, 7, 0.875),
        (255, 1, 0.125),
    ],
)
def test_what_later_prefixes_alone_reveal(record, length, factor):
    """The prefixes from a record on, without the earlier ones: 1' K^-1 1 in place of c_t."""
    assert membership(255)[record - 1].sum() == length
    later = covariance(255)[record - 1 :, record - 1 :]
    assert np.linalg.solve(later, np.ones(len(later))).sum() == pytest.approx(factor, abs=6e-4)


@pytest.mark.parametrize(
    ("times", "factor"),
    [
        ([2**k for k in range(10)], 10),
        ([3 * 2**k for k in range(9)], 4.5),
        ([2**k - 1 for k in range(1, 11)], 2.929),
        ([5, 11, 20, 43, 90, 170, 355, 700], 2.45),
    ],
)
def test_what_some_prefixes_reveal_of_the_first_record(times, factor):
    seen = np.array(times) - 1
    common = covariance(1536)[np.ix_(seen, seen)]
    assert np.linalg.solve(common, np.ones(len(seen))).sum() == pytest.approx(factor, abs=6e-3)
