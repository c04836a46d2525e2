"""Experts, trees and darts against enumeration, closed forms and published numbers."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from algorithms.bandits.advice import standing_out, varied_advice
from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.experts import BatchedExperts, PerRoundExp4, first_chances
from algorithms.bandits.ftrl_tree import FtrlTree, touched
from algorithms.broken.bandits_experts import UnscaledNoise
from algorithms.primitives.laplace import laplace_profile, product_epsilon, product_profile
from audit.errors import UsageError
from audit.pair import Pair

SMALL = {"p": 0.25, "eta": 0.1, "budget": 3}
RATES = {"batch": 3, "eta": 0.3, "gamma": 0.4}


def composed(distances, epsilon):
    """The same curve by the accounting library."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = None
    for distance in distances:
        one = pld.from_laplace_mechanism(1 / distance, value_discretization_interval=1e-4)
        total = one if total is None else total.compose(one)
    return total.get_delta_for_epsilon(epsilon)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.4482), (0.5, 0.3505), (1.0, 0.2418), (1.5, 0.1239)]
)
def test_two_fold_curve_agrees_with_published_values(epsilon, delta):
    assert product_profile([1.0, 1.0], epsilon) == pytest.approx(delta, abs=6e-5)


@pytest.mark.parametrize("distances", [(0.3, 0.3, 0.3), (1.0, 0.2), (0.5, 0.25, 0.1, 0.05)])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6])
def test_product_curve_agrees_with_the_accounting_library(distances, epsilon):
    found = product_profile(distances, epsilon)
    assert found == pytest.approx(composed(distances, epsilon), rel=2e-3, abs=2e-5)


def test_product_curve_has_the_right_edges():
    assert product_profile([0.7, 0.0], 0.3) == pytest.approx(laplace_profile(0.7, 0.3))
    assert product_profile([0.7, 0.3], 1.0) == 0.0
    assert product_profile([], 0.0) == 0.0
    assert product_epsilon([1.0, 1.0], 0.2418) == pytest.approx(1.0, abs=1e-3)
    assert product_epsilon([0.1], 0.5) == 0.0


@pytest.mark.parametrize(
    ("epsilon", "values"),
    [(1.0, (0.0886, 0.1122, 0.1199, 0.1234)), (0.5, (0.0384, 0.0482, 0.0508, 0.0517))],
)
def test_unscaled_noise_curve_agrees_with_published_values(epsilon, values):
    for experts, expected in zip((4, 16, 64, 256), values, strict=True):
        distances = [epsilon / math.sqrt(experts)] * experts
        assert product_profile(distances, epsilon) == pytest.approx(expected, abs=6e-5)


def test_scaled_noise_is_far_more_private_than_claimed():
    distances = [1 / math.sqrt(8 * math.log(1000) * 64)] * 64
    assert product_profile(distances, 1.0) == pytest.approx(1.34e-18, rel=5e-3)
    assert product_epsilon(distances, 1e-3) == pytest.approx(0.2804, abs=6e-5)


def test_experts_are_followed():
    mechanism = BatchedExperts("htinf", 0.5, 11, 3, experts=4)
    advice = varied_advice(11, 4, 3)
    losses = np.random.default_rng(0).random((11, 3))
    emitted = mechanism.run({"losses": losses, "advice": advice}, 20_000, np.random.default_rng(1))
    assert emitted["experts"].shape == (20_000, 6)
    assert emitted["noisy"].shape == (20_000, 5)
    for t in (0, 1, 10):
        hidden = emitted["experts"][:, t // 2]
        for expert in range(4):
            mine = emitted["actions"][hidden == expert, t]
            shares = np.bincount(mine, minlength=3) / len(mine)
            # About 5,000 draws: six standard errors of a share, below 1e-8.
            assert shares == pytest.approx(advice[t, expert], abs=6 * 0.5 / math.sqrt(len(mine)))
    noise = emitted["noisy"][:, 0] - losses[:2][[0, 1], emitted["actions"][:, :2]].mean(axis=1)
    # Kolmogorov's statistic of 20,000 draws exceeds .025 with probability 2 exp(-25).
    assert stats.kstest(noise, stats.laplace(0, 1.0).cdf).statistic < 0.025


def test_expert_pairs_and_profiles_belong_together():
    for mechanism in (
        BatchedExperts("htinf", 0.4, 20, 3, experts=4),
        PerRoundExp4(0.4, 20, 3, experts=4),
    ):
        for pair in mechanism.pairs():
            assert mechanism.shift(pair) / mechanism.declared_scale == pytest.approx(0.4)
            assert mechanism.exact_profile(pair, 0.1) == pytest.approx(laplace_profile(0.4, 0.1))
            emitted = mechanism.run(pair.right, 2000, np.random.default_rng(0))
            ratio = mechanism.log_likelihood_ratio(emitted, pair)
            assert np.abs(ratio).max() == pytest.approx(0.4)
    assert BatchedExperts("htinf", 1.0, 10, 5, experts=3).guarantee() == pytest.approx(
        30 * math.sqrt(6 * 3 * 11) + 1
    )


def test_per_round_exp4_agrees_with_a_loop():
    mechanism = PerRoundExp4(0.8, 6, 3, experts=2)
    advice, losses = varied_advice(6, 2, 3), np.random.default_rng(0).random((6, 3))
    emitted = mechanism.run({"losses": losses, "advice": advice}, 5, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    noise = rng.laplace(0, 1 / 0.8, (6, 5))
    uniforms = np.stack([rng.random(5) for _ in range(6)])
    size = 1 + math.log(2 * 3 * 36) / 0.8
    eta = math.sqrt(math.log(2) / 18) / (2 * size)
    gamma = min(0.5, eta * 3 * size)
    for trial in range(5):
        weights = np.ones(2)
        for t in range(6):
            probs = (1 - gamma) * (weights / weights.sum()) @ advice[t] + gamma / 3
            arm = int(np.searchsorted(np.cumsum(probs)[:-1], uniforms[t, trial], side="right"))
            y = losses[t, arm] + noise[t, trial]
            assert emitted["actions"][trial, t] == arm
            assert emitted["noisy"][trial, t] == pytest.approx(y)
            weights *= np.exp(-eta * advice[t][:, arm] * y / probs[arm])
    assert first_chances(mechanism, {"advice": advice}).sum() == pytest.approx(1.0)


def test_batched_exp4_agrees_with_a_loop():
    mechanism = BatchedExp4(1.0, 1e-2, 7, 2, experts=3, rates=RATES)
    scale = math.sqrt(8 * math.log(100)) * math.sqrt(3) * 2 / 0.4
    assert mechanism.declared_scale == pytest.approx(scale)
    advice, losses = varied_advice(7, 3, 2), np.random.default_rng(0).random((7, 2))
    emitted = mechanism.run({"losses": losses, "advice": advice}, 4, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    noise = rng.laplace(0, scale, (2, 3, 4))
    uniforms = np.stack([rng.random(4) for _ in range(7)])
    for trial in range(4):
        weights, sums = np.ones(3), np.zeros(3)
        for t in range(7):
            probs = 0.6 * (weights / weights.sum()) @ advice[t] + 0.2
            arm = int(np.searchsorted(np.cumsum(probs)[:-1], uniforms[t, trial], side="right"))
            assert emitted["actions"][trial, t] == arm
            sums += advice[t][:, arm] * losses[t, arm] / probs[arm]
            if t % 3 == 2:
                released = sums + noise[t // 3, :, trial]
                assert emitted["noisy"][trial, t // 3] == pytest.approx(released)
                weights, sums = weights * np.exp(-0.3 * released), np.zeros(3)


def test_batched_exp4_has_its_standard_rates():
    mechanism = BatchedExp4(1.0, 1e-3, 10**8, 2, experts=4)
    c = math.sqrt(8 * math.log(1000))
    expected = max((c * c * 4 * 1e8 / (2 * math.log(4))) ** (1 / 3), c * 2 * math.log(4e16))
    assert mechanism.batch == math.ceil(expected)
    assert mechanism.eta == pytest.approx(math.sqrt(math.log(4) / (1e8 * mechanism.batch * 2)))
    assert mechanism.gamma == pytest.approx(4 * mechanism.eta * mechanism.batch)
    assert 0 < mechanism.guarantee() < 1e8
    with pytest.raises(UsageError, match="gamma <= 1/2"):
        BatchedExp4(1.0, 1e-3, 100, 2, experts=4)


def test_batched_exp4_ratio_is_the_difference_of_the_densities():
    mechanism = BatchedExp4(1.0, 1e-2, 6, 2, experts=3, rates=RATES)
    advice, rng = varied_advice(6, 3, 2), np.random.default_rng(0)
    losses = rng.random((6, 2))
    other = losses.copy()
    other[4] = rng.random(2)
    pair = Pair({"losses": losses, "advice": advice}, {"losses": other, "advice": advice})
    emitted = mechanism.run(pair.left, 8, rng)
    expected = np.zeros(8)
    for trial in range(8):
        for side, sign in ((losses, 1), (other, -1)):
            exponents = -0.3 * emitted["noisy"][trial, 0]
            weights = np.exp(exponents) / np.exp(exponents).sum()
            sums = np.zeros(3)
            for t in range(3, 6):
                arm = emitted["actions"][trial, t]
                chance = (0.6 * weights @ advice[t] + 0.2)[arm]
                sums += advice[t][:, arm] * side[t, arm] / chance
            law = stats.laplace(sums, mechanism.noise_scale)
            expected[trial] += sign * law.logpdf(emitted["noisy"][trial, 1]).sum()
    assert mechanism.log_likelihood_ratio(emitted, pair) == pytest.approx(expected, abs=1e-10)


def test_batched_exp4_profile_is_a_mixture_over_arms():
    mechanism = UnscaledNoise(1.0, 1e-3, 6, 2, experts=4, rates=RATES)
    pair = mechanism.pairs()[-1]
    for chance, distances in mechanism.distances(pair):
        assert sum(distances) <= math.sqrt(4)
        assert chance >= 0.2
    emitted = mechanism.run(pair.left, 100_000, np.random.default_rng(0))
    ratio = mechanism.log_likelihood_ratio(emitted, pair)
    found = np.maximum(0.0, -np.expm1(0.1 - ratio)).mean()
    # Hoeffding for values in [0, 1]: a deviation of .012 has probability 2 exp(-28).
    assert found == pytest.approx(mechanism.exact_profile(pair, 0.1), abs=0.012)
    with pytest.raises(UsageError, match="first batch"):
        mechanism.exact_profile(mechanism.pairs()[0], 0.1)


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dartboard(0.1, 4, 2, rates=SMALL), "rates that cost at most"),
        (lambda: Dartboard(1.0, 4, 2, rates={"q": 1}), "expected rates"),
        (lambda: Dartboard(1.0, 4, 2, delta=1.0), "delta"),
        (lambda: Dartboard(1.0, 4, 2, rates={"p": 1.0}), "0 <= p < 1"),
        (lambda: FtrlTree(1.0, 4, 1), "arms >= 2"),
        (lambda: PerRoundExp4(1.0, 4, 2, experts=0), "experts >= 1"),
        (lambda: BatchedExp4(1.0, 0.0, 9, 2, experts=2), "0 < delta"),
        (lambda: BatchedExp4(1.0, 0.1, 9, 2, experts=2, rates={"q": 1}), "expected rates"),
        (lambda: BatchedExp4(1.0, 0.1, 9, 2, experts=2, view="prices"), "expected a view"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.parametrize(
    "advice",
    [None, np.ones((5, 2, 2)), np.full((6, 2, 2), 0.4), standing_out(6, 2, 2) - 0.5],
)
def test_bad_advice_is_refused(advice):
    mechanism = PerRoundExp4(1.0, 6, 2, experts=2)
    data = {"losses": np.zeros((6, 2))} | ({} if advice is None else {"advice": advice})
    with pytest.raises(UsageError, match="advice"):
        mechanism.run(data, 3, np.random.default_rng(0))
