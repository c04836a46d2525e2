"""Targets as users write them: good ones, and everything that can be wrong with one."""

import os

import numpy as np

GLOBAL = np.random.default_rng()
CALLS: list[int] = []
number = 3


def noisy(data, rng):
    return data + rng.laplace()


def noisy_block(data, n, rng):
    return data + rng.laplace(size=n)


def half_noise(data, n, rng):
    return data + rng.laplace(scale=0.5, size=n)


def slow(data, rng):
    return data + rng.laplace(size=2000)[0]


def raises_always(data, rng):
    raise RuntimeError("never works")


def raises_on_one_side(data, rng):
    if data > 0.5:
        raise ValueError("too large")
    return 0.0


def leaves(data, rng):
    raise SystemExit(0)


class Abort(BaseException):
    """What frameworks raise past all handlers."""


def aborts(data, rng):
    raise Abort


def constant():
    return 1


async def later(data, rng):
    return data


def dies(data, rng):
    os._exit(0)


def wrong_axis(data, n, rng):
    return np.zeros(n + 1)


def nothing(data, rng):
    return None


def not_a_number(data, rng):
    return float("nan")


def nan_on_one_side(data, rng):
    return float("nan") if data > 0.5 else 0.0


def none_on_one_side(data, rng):
    return None if data > 0.5 else 0.0


def word(data, rng):
    return "low" if data + rng.laplace() < 0.5 else "high"


def plain_word(data, rng):
    return "low" if data < 0.5 else "high"


def mapping(data, rng):
    return {"value": data + rng.laplace(), "kind": "sum"}


def key_on_one_side(data, rng):
    return {"value": 0.0, "extra": 1} if data > 0.5 else {"value": 0.0}


def shared_draw(data, n, rng):
    return np.full(n, data + rng.laplace())


def own_generator(data, n, rng):
    return data + GLOBAL.laplace(size=n)


def remembers(data, rng):
    CALLS.append(1)
    return data + rng.laplace() + len(CALLS)


def changes_input(data, rng):
    data.append(0.0)
    return data[0] + rng.laplace()


def four_arguments(data, n, rng, extra):
    return data


class CannotBeBuilt:
    def __init__(self):
        raise ValueError("no way")


class Average:
    """A policy that shows the running average as it is."""

    def start(self, n, rng):
        self.n, self.total, self.rounds = n, np.zeros(n), 0

    def act(self, context):
        return self.total / max(1, self.rounds)

    def observe(self, outcome):
        self.total, self.rounds = self.total + outcome, self.rounds + 1


class Slip:
    """A mechanism with a claim and pairs of its own, and half the noise that the claim needs."""

    @property
    def claim(self):
        from audit import PureDp

        return PureDp(epsilon=1.0, source="Slip")

    def pairs(self):
        from audit import Pair

        return (Pair(0.0, 1.0, "one apart"),)

    def run(self, data, n, rng):
        return {"value": data + rng.laplace(scale=0.5, size=n)}


KEPT: dict[float, float] = {}


def kept_answer(data, rng):
    if data not in KEPT:
        KEPT[data] = data + rng.laplace()
    return KEPT[data]


def leaky_sum(data, n, rng):
    return sum(data) + rng.laplace(scale=0.1, size=n)
