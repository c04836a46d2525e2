"""The dartboard against enumeration, closed forms and published numbers."""

import itertools
import math

import numpy as np
import pytest

from algorithms.bandits.dartboard import Dartboard
from audit.pair import Pair

SMALL = {"p": 0.25, "eta": 0.1, "budget": 3}


def enumerated(mechanism, losses):
    """Law of experts and switches by walking through all of them."""
    d, eta, p = mechanism.arms, mechanism.eta, mechanism.p
    found = {}

    def walk(t, path, coins, used, chance):
        if t == mechanism.horizon:
            found[path, coins] = found.get((path, coins), 0.0) + chance
            return
        weights = (1 - eta) ** losses[:t].sum(axis=0)
        law = weights / weights.sum()
        switch = 1 - (1 - p) * (1 - eta) ** losses[t - 1, path[-1]]
        if used >= mechanism.budget:
            switch = 0.0
        walk(t + 1, (*path, path[-1]), (*coins, 0), used, chance * (1 - switch))
        for x in range(d):
            if switch:
                walk(t + 1, (*path, x), (*coins, 1), used + 1, chance * switch * law[x])

    for x in range(d):
        walk(1, (x,), (), 1, 1 / d)
    return found


def test_dartboard_likelihoods_agree_with_enumeration():
    mechanism = Dartboard(0.7, 4, 2, rates=SMALL)
    rng = np.random.default_rng(0)
    left, right = rng.random((4, 2)), rng.random((4, 2))
    pair = Pair({"losses": left}, {"losses": right})
    laws = [enumerated(mechanism, x) for x in (left, right)]
    assert sum(laws[0].values()) == pytest.approx(1.0)
    keys = [key for key, chance in laws[0].items() if chance > 0]
    views = {
        "actions": np.array([path for path, _ in keys]),
        "switches": np.array([coins for _, coins in keys]),
    }
    expected = [math.log(laws[0][key] / laws[1][key]) for key in keys]
    assert mechanism.log_likelihood_ratio(views, pair) == pytest.approx(expected, abs=1e-12)
    for path in itertools.product((0, 1), repeat=4):
        chances = [sum(c for (way, _), c in law.items() if way == path) for law in laws]
        ratio = mechanism.log_likelihood_ratio({"actions": np.array([path])}, pair)
        expected = math.log(chances[0] / chances[1]) if chances[0] else 0.0
        assert ratio == pytest.approx(expected, abs=1e-12)


def test_dartboard_plays_by_its_law():
    mechanism = Dartboard(0.7, 4, 2, rates=SMALL)
    data = mechanism.pairs()[0].left
    law = enumerated(mechanism, data["losses"])
    emitted = mechanism.run(data, 50_000, np.random.default_rng(2))
    rows = [
        (tuple(path), tuple(coins))
        for path, coins in zip(
            emitted["actions"].tolist(), emitted["switches"].tolist(), strict=True
        )
    ]
    assert set(rows) <= {key for key, chance in law.items() if chance > 0}
    for key, chance in law.items():
        # Seven standard errors of a count: below 1e-10 for each of about 50.
        spread = 7 * math.sqrt(50_000 * chance) + 7
        assert rows.count(key) == pytest.approx(50_000 * chance, abs=spread)


def test_small_dartboard_agrees_with_published_values():
    mechanism = Dartboard(0.7, 4, 2, rates=SMALL)
    pair = mechanism.pairs()[0]
    every = np.array(list(itertools.product((0, 1), repeat=4)))
    ratio = np.abs(mechanism.log_likelihood_ratio({"actions": every}, pair))
    assert ratio.max() == pytest.approx(0.3972, abs=6e-5)
    assert every[ratio.argmax()].tolist() in ([0, 1, 1, 1], [1, 0, 0, 0])
    laws = [enumerated(mechanism, side["losses"]) for side in (pair.left, pair.right)]
    chances = [
        [sum(c for (way, _), c in law.items() if way == tuple(path)) for path in every]
        for law in laws
    ]
    apart = np.abs(np.subtract(*chances)).sum() / 2
    assert apart == pytest.approx(0.0608, abs=6e-5)
    assert mechanism.worst_loss() == pytest.approx(0.6838, abs=6e-5)


def test_standard_dartboard_agrees_with_published_values():
    mechanism = Dartboard(1.0, 10_000, 2)
    assert (mechanism.p, mechanism.eta, mechanism.budget) == pytest.approx((0.01, 0.0005, 400))
    assert mechanism.worst_loss() == pytest.approx(0.4474, abs=6e-5)
    assert mechanism.published_epsilon() == pytest.approx(0.85)
    assert mechanism.guarantee() < 10_000
    free = Dartboard(20.0, 10_000, 2, rates={"p": 0.01, "eta": 0.0005, "budget": 10_000})
    assert free.worst_loss() == pytest.approx(10.05, abs=6e-3)


@pytest.mark.parametrize(("arms", "ratio"), [(10, 1.80), (100, 1.98)])
def test_a_draw_loses_almost_twice_eta_among_many(arms, ratio):
    mechanism = Dartboard(5.0, 3, arms, rates={"p": 0.5, "eta": 0.01, "budget": 3})
    pair = mechanism.pairs()[1]
    laws = [mechanism.laws(side)[0][0] for side in (pair.left, pair.right)]
    assert np.abs(np.log(laws[0] / laws[1])).max() / 0.01 == pytest.approx(ratio, abs=0.02)


def test_batched_dartboard_has_its_published_rates():
    mechanism = Dartboard(0.5, 50_000, 8, delta=1e-3)
    logs = math.log(1000)
    size = logs**0.4 * math.log(8) ** 0.6 / (50_000**0.2 * 0.5**0.6)
    assert mechanism.batch == max(1, math.ceil(size))
    assert mechanism.p == pytest.approx((mechanism.batch / (50_000 * logs)) ** (1 / 3))
    assert mechanism.eta == pytest.approx(mechanism.batch * mechanism.p * 0.5 / 40)
    assert mechanism.budget == int(4 * 50_000 * mechanism.p / mechanism.batch)
    assert mechanism.worst_loss() > 0.5


def test_batched_dartboard_keeps_an_expert_for_a_batch():
    mechanism = Dartboard(5.0, 7, 3, rates={"batch": 3, "p": 0.4, "eta": 0.2, "budget": 9})
    losses = np.random.default_rng(0).random((7, 3))
    emitted = mechanism.run({"losses": losses}, 500, np.random.default_rng(1))
    assert emitted["switches"].shape == (500, 2)
    assert np.all(emitted["actions"][:, :3] == emitted["actions"][:, :1])
    assert np.all(emitted["actions"][:, 3:6] == emitted["actions"][:, 3:4])
    assert mechanism.steps_losses({"losses": losses})[:2] == pytest.approx(
        losses[:6].reshape(2, 3, 3).mean(axis=1)
    )
    kept = 0.8 ** (1 / 3)
    expected = math.log(1 + 0.6 * (1 - kept) / 0.4) + 2 * 8 * -math.log(0.8) / 3
    assert mechanism.worst_loss() == pytest.approx(expected)
