"""How fast the bandit family plays, as ratios measured in one run.

A ratio compares the best of several rounds that take turns, so that a busy machine slows both
sides alike. *Loop* is the same algorithm one trial at a time, with numpy inside: for EXP3 written
out by hand, for the others a call of ``run`` per trial.
"""

import math
import time

import numpy as np
import pytest

from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.experts import BatchedExperts, PerRoundExp4
from algorithms.bandits.ftrl_tree import FtrlTree
from algorithms.bandits.per_round import agarwal_singh, dp_exp3_lap
from algorithms.bandits.unnoised import UnnoisedExp3

pytestmark = pytest.mark.benchmark

N, ROUNDS, ARMS = 4_000, 100, 5
RATES = {"batch": 10, "eta": 0.1, "gamma": 0.4}


def generator():
    return np.random.Generator(np.random.SFC64(0))


def best(*tasks, rounds=7):
    """Shortest time of every task, seconds; the tasks take turns."""
    shortest = [math.inf] * len(tasks)
    for _ in range(rounds):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            shortest[i] = min(shortest[i], time.perf_counter() - start)
    return shortest


def player(mechanism, n, rng):
    data = mechanism.pairs()[-1].left
    return lambda: mechanism.run(data, n, rng)


def converted(learner, rounds=ROUNDS):
    return BatchedLaplace(learner, 1.0, rounds, ARMS)


def exp3_by_hand(losses, learner, rng):
    """One trial of EXP3 for noisy losses."""
    arms = losses.shape[1]
    total = np.zeros(arms)
    for row in losses:
        weights = np.exp(learner.eta * (total.min() - total))
        probs = (1 - learner.gamma) * weights / weights.sum() + learner.gamma / arms
        arm = np.searchsorted(np.cumsum(probs)[:-1], rng.random(), side="right")
        total[arm] += (row[arm] + rng.laplace(0.0, 1.0)) / probs[arm]


def test_exp3_against_its_own_draws_and_a_loop():
    mechanism, rng = converted("exp3n"), generator()
    losses, learner = np.full((ROUNDS, ARMS), 0.5), mechanism.new_learner()

    def draws():
        for _ in range(ROUNDS):
            rng.laplace(0.0, 1.0, N)
            rng.random(N)

    def loop():
        for _ in range(10):
            exp3_by_hand(losses, learner, rng)

    played, drawn, looped = best(player(mechanism, N, rng), draws, loop, rounds=15)
    report("exp3n / its draws", played / drawn)
    report("loop / exp3n", looped / 10 / (played / N))
    assert played / drawn <= 4
    assert looped / 10 / (played / N) >= 100


@pytest.mark.parametrize(("learner", "most"), [("htinf", 6), ("ftpl", 12)])
def test_learners_against_exp3(learner, most):
    rng = generator()
    plain, other = best(
        player(converted("exp3n"), N, rng), player(converted(learner), N, rng), rounds=15
    )
    report(f"{learner} / exp3n", other / plain)
    assert other / plain <= most


@pytest.mark.parametrize(
    "mechanism",
    [
        converted("htinf"),
        converted("ftpl"),
        converted("tsallis-inf"),
        converted("inf"),
        converted("exp3-gains"),
        BatchedExperts("htinf", 1.0, ROUNDS, ARMS, experts=4),
        PerRoundExp4(1.0, ROUNDS, ARMS, experts=4),
        BatchedExp4(1.0, 1e-3, ROUNDS, ARMS, experts=4, rates=RATES),
        agarwal_singh(1.0, ROUNDS, ARMS),
        dp_exp3_lap(1.0, ROUNDS, ARMS),
        UnnoisedExp3("losses-mixed", ROUNDS, ARMS),
        UnnoisedExp3("gains", ROUNDS, ARMS, batch=4),
        FtrlTree(1.0, ROUNDS, ARMS),
        Dartboard(1.0, ROUNDS, ARMS),
    ],
    ids=lambda m: f"{type(m).__name__}-{getattr(m, 'learner', getattr(m, 'kind', ''))}",
)
def test_blocks_against_a_loop(mechanism):
    rng = generator()
    single = player(mechanism, 1, rng)
    whole, alone = best(player(mechanism, N, rng), lambda: [single() for _ in range(5)], rounds=5)
    gain = alone / 5 / (whole / N)
    report(f"loop / {type(mechanism).__name__} {getattr(mechanism, 'learner', '')}", gain)
    assert gain >= 40


@pytest.mark.parametrize("learner", ["exp3n", "htinf", "ftpl"])
def test_cost_is_linear_in_trials_and_rounds(learner):
    rng = generator()
    once, trials, rounds = best(
        player(converted(learner), N, rng),
        player(converted(learner), 4 * N, rng),
        player(converted(learner, 4 * ROUNDS), N, rng),
    )
    report(f"{learner}: four times the trials, the rounds", (trials / once, rounds / once))
    # Linear is 4; caches and other users of the machine may cost up to twice that.
    assert trials / once < 8
    assert rounds / once < 8


def report(name, value):
    """Print a ratio; shown by ``pytest -s``."""
    print(f"\n{name}: {np.round(value, 2)}", end="")
