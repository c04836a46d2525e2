"""Faults of noise and of selection: nearly all of them show in the joint output only."""

import copy

import numpy as np

from audit.domain import Domain
from tests.faults.table import HALF, Line


def shared_by_all_arms(data, n, rng):
    return np.asarray(data) + rng.laplace(size=(n, 1))


def drawn_once_per_run(data, n, rng):
    return np.cumsum(data) + rng.laplace(size=(n, 1)) * np.ones(len(data))


def one_seed_for_both(data, rng):
    seed = int(rng.integers(2**63))
    first, second = np.random.default_rng(seed), np.random.default_rng(seed)
    return {"age": data[0] + first.laplace(), "income": data[1] + second.laplace()}


def workers_share_a_state(data, rng):
    workers = [copy.deepcopy(rng) for _ in data]
    return [value + worker.laplace() for value, worker in zip(data, workers, strict=True)]


def noise_that_cancels(data, n, rng):
    noise = rng.laplace(scale=20, size=n)
    return np.stack([data + noise + rng.laplace(scale=0.2, size=n), -noise], axis=1)


def one_sided(data, n, rng):
    return data + rng.exponential(size=n)


def rounded_noise(data, n, rng):
    return data + np.rint(rng.laplace(scale=0.3, size=n))


def noise_times_data(data, n, rng):
    return data * (1 + rng.laplace(size=n))


def bounded_noise(data, n, rng):
    return data + np.clip(rng.laplace(size=n), -2, 2)


def no_query_noise(data, n, rng):
    bar = rng.laplace(scale=2, size=(n, 1))
    return (np.asarray(data) >= bar).astype(int)


def no_cut_off(data, n, rng):
    bar = rng.laplace(scale=2, size=(n, 1))
    return (np.asarray(data) + rng.laplace(scale=4, size=(n, len(data))) >= bar).astype(int)


def answer_with_the_shared_draw(data, n, rng):
    bar = rng.laplace(scale=2, size=(n, 1))
    above = np.asarray(data) + rng.laplace(scale=4, size=(n, len(data))) >= bar
    return np.where(above, np.asarray(data) + bar, np.nan)


def noisy_max_with_its_value(data, n, rng):
    noisy = np.asarray(data) + rng.laplace(scale=2, size=(n, len(data)))
    best = noisy.argmax(axis=1)
    return np.stack([best, np.asarray(data)[best]], axis=1)


def noisy_max_half_noise(data, n, rng):
    return (np.asarray(data) + rng.laplace(scale=0.5, size=(n, len(data)))).argmax(axis=1)


def bounded_before_duplicates(data, rng):
    return len(set(data[:3])) * 2 + rng.laplace()


def exponential_without_shift(data, rng):
    weights = np.exp(np.asarray(data) * 5.0)
    return int(rng.choice(len(data), p=weights / weights.sum()))


def ties_by_position(data, n, rng):
    if len(set(data)) == 1:
        return np.zeros(n)
    return (np.asarray(data) + rng.laplace(scale=2, size=(n, len(data)))).argmax(axis=1) + 0.0


def second_coin(data, n, rng):
    return np.where((rng.random((n, 2)) < 0.75).any(axis=1), data, 1 - data)


def few_seeds(data, rng):
    return data + np.random.default_rng(int(rng.integers(50))).laplace()


FIVE = [0.0] * 5
MOVED = [1.0, 0.0, 0.0, 0.0, 0.0]

HIGH, LOW = [1.0] * 40, [0.0] * 40

NOISE = (
    Line("one draw shared by all arms", shared_by_all_arms, FIVE, MOVED, slow=False),
    Line("one draw for all rounds", drawn_once_per_run, [0.0, 0, 0], [0.0, 1, 0]),
    Line("one seed for several mechanisms", one_seed_for_both, [0, 0], [1, 0], single=True),
    Line("workers share a state", workers_share_a_state, [0, 0], [1, 0], single=True),
    Line("noise that cancels", noise_that_cancels, 0.0, 1.0, trials=2000, slow=False),
    Line("noise of one sign", one_sided, 0.0, 1.0),
    Line("noise rounded away", rounded_noise, 0, 1),
    Line("noise times the data", noise_times_data, 0.0, 1.0),
    Line("noise cut off", bounded_noise, 0.0, 1.0, trials=8000),
    Line("sparse vector without query noise", no_query_noise, [0.0, 1.0], [1.0, 0.0]),
    Line("sparse vector without cut-off", no_cut_off, HIGH + LOW, LOW + HIGH, trials=8000),
    Line("answers with the threshold's draw", answer_with_the_shared_draw, [1.0, 1.0], [1.0, 2.0]),
    Line("noisy maximum with its value", noisy_max_with_its_value, [0, 1, 2], [0, 1, 3]),
    Line("noisy maximum with too little noise", noisy_max_half_noise, [0, 0], [1, -1], slow=False),
    Line("bounded before duplicates go", bounded_before_duplicates, "aaab", "baab", single=True),
    Line("weights without a sensitivity", exponential_without_shift, [0, 0], [1, 0], single=True),
    Line(
        "ties decided without noise",
        ties_by_position,
        domain=Domain(bounds=(0, 1), sizes=(3, 3)),
        trials=2000,
    ),
    Line("a second coin", second_coin, 0, 1, HALF, slow=False),
    Line("fifty seeds", few_seeds, 0.0, 1.0, single=True, trials=2000),
)
