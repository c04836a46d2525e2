"""Correct twins of the faults: their claims hold, most of them with no slack."""

import numpy as np

from audit.domain import Domain
from tests.faults.table import DELTA, HALF, Line

GAUSS = 3.730632


def count(data, n, rng):
    return data + rng.laplace(size=n)


def clipped_sum(data, rng):
    return sum(min(max(x, 0.0), 1.0) for x in data) + rng.laplace()


def clipped_vector(data, n, rng):
    rows = np.asarray(data, dtype=float)
    norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    total = (rows / norms).sum(axis=0)
    return total + rng.normal(scale=GAUSS, size=(n, len(total)))


def mean_of_public_n(data, n, rng):
    return np.clip(data, 0, 1).mean() + rng.laplace(scale=1 / len(data), size=n)


def histogram(data, n, rng):
    return np.asarray(data) + rng.laplace(size=(n, len(data)))


def noisy_max(data, n, rng):
    return (np.asarray(data) + rng.laplace(scale=2, size=(n, len(data)))).argmax(axis=1)


def sparse_vector(data, n, rng):
    bar = rng.laplace(scale=2, size=(n, 1))
    above = np.asarray(data) + rng.laplace(scale=4, size=(n, len(data))) >= bar
    first = np.cumsum(above, axis=1) - above < 1
    return np.where(first, above * 1.0, np.nan)


def tree_sums(data, n, rng):
    nodes = [np.asarray(data, dtype=float)]
    while len(nodes[-1]) > 1:
        nodes.append(nodes[-1].reshape(-1, 2).sum(axis=1))
    everything = np.concatenate(nodes)
    return everything + rng.laplace(scale=float(len(nodes)), size=(n, len(everything)))


def coin(data, n, rng):
    truth = np.e / (1 + np.e)
    return np.where(rng.random(n) < truth, data, 1 - data)


def public_keys(data, rng):
    return {label: data.count(label) + rng.laplace() for label in ("a", "b", "c")}


def geometric(data, n, rng):
    up, down = rng.geometric(1 - np.exp(-1), size=(2, n))
    return data + up - down


def exponential_mechanism(data, rng):
    weights = np.exp(np.asarray(data) / 2 - max(data) / 2)
    return int(rng.choice(len(data), p=weights / weights.sum()))


def noisy_number_in_a_text(data, rng):
    return f"about {sum(data) + rng.laplace():.2f} of 3"


class Result:
    def __init__(self, noisy):
        self.noisy, self.kind = noisy, "sum"


def noisy_attribute(data, rng):
    return Result(sum(data) + rng.laplace())


def first_row_of_each(data, rng):
    firsts = {}
    for user, value in data:
        firsts.setdefault(user, value)
    return sum(firsts.values()) + rng.laplace()


def always_raises_alike(data, rng):
    if rng.random() < 0.5:
        raise ValueError("half of the time, whatever the data")
    return sum(data) + rng.laplace()


def two_halves(data, n, rng):
    return data + rng.laplace(scale=2, size=(n, 2))


def distinct(data, rng):
    return len(set(data)) + rng.laplace()


def post_processed(data, n, rng):
    noisy = np.maximum(data + rng.laplace(size=n), 0.0)
    return {"count": np.rint(noisy), "many": noisy > 3, "root": np.sqrt(noisy)}


UNIT = Domain(bounds=(0, 1), sizes=(0, 20), relation="both")

CORRECT = (
    Line("count", count, 0.0, 1.0, slow=False),
    Line("records clipped, then summed", clipped_sum, domain=UNIT, single=True, slow=False),
    Line(
        "vectors clipped by their norm", clipped_vector, np.zeros((1, 50)), np.ones((1, 50)), DELTA
    ),
    Line("mean of a public number", mean_of_public_n, [0.0] * 5, [1.0] + [0.0] * 4),
    Line("histogram of a public domain", histogram, [3.0, 4.0], [4.0, 4.0], slow=False),
    Line("noisy maximum", noisy_max, [0, 3, 3, 3, 3], [-1, 4, 4, 4, 4]),
    Line("sparse vector", sparse_vector, [0.0, 1.0, 0.0], [1.0, 0.0, 1.0], slow=False),
    Line("tree sums", tree_sums, [0.0] * 16, [1.0] + [0.0] * 15),
    Line("randomised response", coin, 0, 1, slow=False),
    Line("half the claim", two_halves, 0.0, 0.5, HALF),
    Line("public keys", public_keys, ["a", "b"], ["a"], single=True),
    Line("two-sided geometric noise", geometric, 0, 1),
    Line("exponential mechanism", exponential_mechanism, [0, 1, 2], [1, 0, 3], single=True),
    Line(
        "a noisy number in a text", noisy_number_in_a_text, [0, 0], [0, 1], single=True, slow=False
    ),
    Line("a noisy attribute", noisy_attribute, [0, 0], [0, 1], single=True),
    Line(
        "one row of each customer",
        first_row_of_each,
        [("a", 1.0)],
        [("a", 1.0)] + [("b", 1.0)] * 50,
        single=True,
    ),
    Line("an exception by chance", always_raises_alike, [0.0], [1.0], single=True, slow=False),
    Line("two answers, half the budget each", two_halves, 0.0, 1.0),
    Line("distinct records", distinct, "aab", "aabc", single=True),
    Line("post-processed", post_processed, 2.0, 3.0),
    Line("count without rounding in scope", count, 0.0, 1.0, threats=("seed",)),
)
