"""Faults of scale, sensitivity, clipping and composition."""

import math

import numpy as np

from audit.domain import Domain
from tests.faults.table import DELTA, HALF, Line

GAUSS = 3.730632  # exactly (1, 1e-5) for a distance of 1


def noise(n, rng, scale=1.0, *shape):
    return rng.laplace(scale=scale, size=(n, *shape))


def one_bound_twice(data, n, rng):
    low, high = 1.0, 1.0  # meant: 0 and 1
    return sum(data) + noise(n, rng, high - low)


def clipped_in_a_copy(data, rng):
    [min(max(x, 0.0), 1.0) for x in data]
    return sum(data) + rng.laplace()


def score_difference(data, n, rng):
    return sum(2 * x for x in data) - sum(-2 * x for x in data) + noise(n, rng, 2.0)


def scale_from_private_n(data, n, rng):
    return sum(data) / len(data) + noise(n, rng, 1 / len(data))


def even_rows_only(data, rng):
    kept = data[len(data) % 2 :]
    return [a + 2 * b + rng.laplace(scale=3) for a, b in zip(kept[::2], kept[1::2], strict=True)]


def inverted_scale(data, n, rng):
    return data + noise(n, rng, 0.5)


def heavy_contributor(data, n, rng):
    return sum(value for _, value in data) + noise(n, rng)


def switched_off(data, n, rng, noisy=False):
    return sum(data) + noise(n, rng, 1.0 if noisy else 0.0)


def half_the_sensitivity(data, n, rng):
    return sum(data) + noise(n, rng, 1 / 2)


def charged_once(data, n, rng):
    return {"mean": data + noise(n, rng), "sum": data + noise(n, rng)}


def renewed_each_period(data, n, rng):
    return data + noise(n, rng, 1.0, 12)


def fresh_prefix_sums(data, n, rng):
    return np.cumsum(data) + noise(n, rng, 3.0, len(data))


def natural_logarithm(data, n, rng):
    levels = math.log(len(data))  # meant: to the base of 2, and one more
    nodes = [np.asarray(data, dtype=float)]
    while len(nodes[-1]) > 1:
        nodes.append(nodes[-1].reshape(-1, 2).sum(axis=1))
    everything = np.concatenate(nodes)
    return everything + noise(n, rng, levels, len(everything))


def uncharged_threshold(data, n, rng):
    bar = np.median(data)
    return {"above": (np.mean(data) > bar) + np.zeros(n), "sum": np.sum(data) + noise(n, rng)}


def clipped_after_the_sum(data, n, rng):
    return np.clip(sum(data), 0.0, 5.0) + noise(n, rng)


def clipped_per_coordinate(data, n, rng):
    total = np.clip(data, -1.0, 1.0).sum(axis=0)
    return total + rng.normal(scale=GAUSS, size=(n, len(total)))


def replaced_not_added(data, n, rng):
    return np.clip(data, -1.0, 1.0).sum() + noise(n, rng)


UNIT = Domain(bounds=(0, 1), sizes=(0, 20))
GROWING = Domain(bounds=(0, 1), sizes=(1, 20), relation="add-remove")

SCALE = (
    Line("one bound used twice", one_bound_twice, [0.0], [1.0], slow=False),
    Line("range clipped in a copy", clipped_in_a_copy, domain=UNIT, single=True),
    Line("score difference of 4 charged as 2", score_difference, [0.0], [1.0], slow=False),
    Line("noise scale from the private n", scale_from_private_n, [0.0], [0.0] * 2, trials=8000),
    Line("a row dropped to make the count even", even_rows_only, domain=GROWING, single=True),
    Line("scale and inverse confused", inverted_scale, 0.0, 1.0, HALF, slow=False),
    Line("heavy contributor", heavy_contributor, [("a", 1.0)], [("a", 1.0)] + [("b", 1.0)] * 50),
    Line("settings that switch the noise off", switched_off, [0.0], [1.0]),
    Line("half the sensitivity deducted", half_the_sensitivity, [0.0], [1.0]),
    Line("two releases charged once", charged_once, 0.0, 1.0, trials=4000, slow=False),
    Line("budget renewed each period", renewed_each_period, 0.0, 1.0),
    Line("fresh noise for each prefix sum", fresh_prefix_sums, [0.0] * 32, [1.0] + [0.0] * 31),
    Line(
        "natural logarithm of the levels", natural_logarithm, [0.0] * 4, [1.0, 0, 0, 0], trials=8000
    ),
    Line("adaptive threshold not charged", uncharged_threshold, [0, 1, 0.4], [0, 1, 0.6]),
    Line("clipped after the aggregation", clipped_after_the_sum, [0.0] * 3, [0.0] * 2 + [5.0]),
    Line(
        "clipped per coordinate",
        clipped_per_coordinate,
        np.zeros((1, 100)),
        np.ones((1, 100)),
        DELTA,
        trials=2000,
    ),
    Line("noise for adding, record replaced", replaced_not_added, [-1.0], [1.0]),
)
