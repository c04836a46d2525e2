"""Experts, trees and darts against enumeration, closed forms and published numbers."""

import math

import numpy as np
import pytest
from scipy import stats

from algorithms.bandits.advice import standing_out, varied_advice
from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.experts import BatchedExperts, PerRoundExp4, first_chances
from algorithms.bandits.ftrl_tree import FtrlTree
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
