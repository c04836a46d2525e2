"""The batched Laplace conversion against a loop, closed forms and published numbers."""

import math
import pickle

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from algorithms.bandits.conversion import LEARNERS, BatchedLaplace
from algorithms.bandits.ftrl import Htinf
from algorithms.catalogue import CATALOGUE
from algorithms.primitives.laplace import laplace_profile
from audit.errors import UsageError
from audit.mechanism import Mechanism, capability, play
from audit.pair import Pair
from audit.view import project

SUBJECTS = [name for name in CATALOGUE if name.startswith("bandits/")]
NO_PROFILE = {
    "bandits/batched-htinf-actions",
    "bandits/batched-exp3n-actions",
    "bandits/dartboard-actions",
    "bandits/exp3-gains",
    "bandits/exp3-losses",
    "bandits/exp3-mini-batch",
    "bandits/passes-every-loss-noised",
    "bandits/passes-noisy-threshold",
}


def scalar_htinf(losses, epsilon, noise, uniforms):
    """The published pseudo-code for one trial, with given noise and uniform draws."""
    rounds, arms = losses.shape
    batch = math.ceil(1 / epsilon)
    theta, sigma = 1 - 2 ** (-1 / 3), math.sqrt(6)
    total, actions, released = np.zeros(arms), [], []

    def play_one(t, uniform):
        eta = 1 / (sigma * math.sqrt(t))
        gaps = eta * (total - total.min())
        d = optimize.brentq(lambda d: ((gaps + d) ** -2.0).sum() - 1, 0.9, arms, xtol=1e-15)
        probs = (gaps + d) ** -2.0
        return int(np.searchsorted(np.cumsum(probs[:-1]), uniform, side="right")), probs, eta

    for j in range(rounds // batch):
        arm, probs, eta = play_one(j + 1, uniforms[j])
        actions += [arm] * batch
        mean = np.clip(losses[j * batch : (j + 1) * batch, arm], 0, 1).mean()
        released.append(mean + noise[j])
        if abs(released[-1]) <= theta * math.sqrt(probs[arm]) / eta:
            total[arm] += released[-1] / probs[arm]
    arm, _, _ = play_one(rounds // batch + 1, uniforms[-1])
    return actions + [arm] * (rounds - len(actions)), released


def test_run_agrees_with_a_loop_given_the_same_draws():
    mechanism = BatchedLaplace("htinf", epsilon=0.4, horizon=23, arms=3)
    losses = np.random.default_rng(0).normal(0.5, 0.5, (23, 3))
    emitted = mechanism.run({"losses": losses}, 40, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    noise = rng.laplace(0, 1 / (0.4 * 3), (7, 40))
    uniforms = np.stack([rng.random(40) for _ in range(8)])
    for trial in range(40):
        actions, noisy = scalar_htinf(losses, 0.4, noise[:, trial], uniforms[:, trial])
        assert emitted["actions"][trial].tolist() == actions
        assert emitted["noisy"][trial] == pytest.approx(noisy, abs=1e-12)


@pytest.mark.parametrize("name", SUBJECTS)
def test_catalogue_line_is_a_mechanism(name):
    mechanism = pickle.loads(pickle.dumps(CATALOGUE[name].build()))
    assert isinstance(mechanism, Mechanism)
    pair = mechanism.pairs()[0]
    first, again, other = (
        mechanism.run(pair.left, 50, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first["actions"].shape == (50, mechanism.horizon)
    assert all(len(column) == 50 for column in first.values())
    assert all(np.array_equal(first[k], again[k], equal_nan=True) for k in first)
    assert any(not np.array_equal(first[k], other[k]) for k in first)
    views = play(mechanism, pair.left, 50, np.random.default_rng(1))
    seen = project(views, mechanism.claim.view, pair.differs)
    ratio = capability(mechanism, "log_likelihood_ratio", mechanism.claim.view)
    if ratio is not None:
        assert ratio(seen, pair).shape == (50,)
    exact = capability(mechanism, "exact_profile")
    assert (exact is None) == (name in NO_PROFILE)
    if exact is not None:
        assert exact(mechanism.pairs()[-1 if name.endswith("exp4") else 0], 0.0) > 0.01


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("epsilon", "batch", "scale"),
    [(0.1, 10, 1.0), (0.4, 3, 1 / 1.2), (1.0, 1, 1.0), (4.0, 1, 0.25)],
)
def test_claim_pairs_and_scale_belong_together(learner, epsilon, batch, scale):
    mechanism = BatchedLaplace(learner, epsilon, horizon=33, arms=2, view="actions")
    assert str(mechanism.claim) == f"{epsilon:g}-DP"
    assert (mechanism.claim.view, mechanism.claim.relation) == ("actions", "replace-one")
    assert "Asi" in mechanism.claim.source
    assert mechanism.batch == batch
    assert mechanism.declared_scale == pytest.approx(scale)
    first, middle, adaptive = mechanism.pairs()
    assert first.differs == (0,)
    assert 0 < middle.position // batch < mechanism.updates - 1
    assert adaptive.left["losses"].shape == (33, 2, 2)
    for pair in (first, middle, adaptive):
        distance = mechanism.shift(pair) / mechanism.declared_scale
        assert distance == pytest.approx(epsilon, rel=1e-12)


def test_batches_survive_rounding():
    # 1 / (1 / 49) exceeds 49 by one ulp.
    assert all(BatchedLaplace("leader", 1 / k, 100, 2).batch == k for k in range(1, 101))


@pytest.mark.parametrize(
    ("distance", "epsilon", "delta"),
    [
        (1.0, 0.0, 0.39347),
        (1.0, 0.25, 0.3127),
        (1.0, 0.5, 0.22120),
        (1.0, 0.75, 0.1175),
        (1.0, 1.0, 0.0),
        (0.1, 0.0, 0.04877),
        (0.1, 0.05, 0.02469),
    ],
)
def test_transcript_profile_is_that_of_a_laplace_pair(distance, epsilon, delta):
    assert laplace_profile(distance, epsilon) == pytest.approx(delta, abs=6e-5)
    mechanism = BatchedLaplace("htinf", distance, 20, 3)
    assert mechanism.exact_profile(mechanism.pairs()[1], epsilon) == pytest.approx(delta, abs=6e-5)

    def excess(y):
        law = stats.laplace
        return max(0.0, law.pdf(y, 0) - math.exp(epsilon) * law.pdf(y, distance))

    brute = integrate.quad(excess, -40, 40, points=[0, distance], limit=500)[0]
    assert laplace_profile(distance, epsilon) == pytest.approx(brute, abs=1e-6)


@pytest.mark.parametrize(
    ("arms", "deltas"),
    [(2, (0.3161, 0.2638, 0.1967, 0.1106)), (10, (0.3935, 0.3127, 0.2212, 0.1175))],
)
def test_quantile_canary_profile_agrees_with_published_values(arms, deltas):
    mechanism = BatchedLaplace("quantile", 1.0, 10, arms, view="actions")
    if arms == 2:
        mechanism = BatchedLaplace("threshold", 1.0, 10, arms, view="actions")
    pair = mechanism.pairs()[0]
    found = [mechanism.exact_profile(pair, e) for e in (0.0, 0.25, 0.5, 0.75)]
    assert found == pytest.approx(deltas, abs=6e-5)
    assert mechanism.exact_profile(pair, 1.0) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_threshold_canary_action_ratio_attains_epsilon(epsilon):
    mechanism = BatchedLaplace("threshold", epsilon, 20, 2, view="actions")
    pair = mechanism.pairs()[0]
    actions = np.zeros((2, 20), dtype=int)
    actions[1, mechanism.batch :] = 1
    ratio = mechanism.log_likelihood_ratio({"actions": actions}, pair)
    low, high = 0.5, math.exp(-epsilon) / 2
    assert ratio == pytest.approx([epsilon, math.log((1 - low) / (1 - high))])


def test_canary_shows_nothing_of_other_batches():
    mechanism = BatchedLaplace("threshold", 1.0, 6, 2, view="actions")
    middle = mechanism.pairs()[1]
    assert mechanism.exact_profile(middle, 0.0) == 0.0
    assert mechanism.log_likelihood_ratio({"actions": np.ones((3, 6))}, middle).tolist() == [0] * 3
    late = BatchedLaplace("threshold", 1.0, 1, 2, view="actions")
    assert late.exact_profile(late.pairs()[0], 0.0) == 0.0


def test_ratio_is_the_difference_of_the_densities():
    mechanism = BatchedLaplace("exp3n", 0.5, 9, 3, noise_factor=0.7)
    rng = np.random.default_rng(0)
    left, right = rng.random((9, 3)), rng.random((9, 3))
    pair = Pair({"losses": left}, {"losses": right})
    emitted = mechanism.run(pair.left, 30, rng)
    arms = emitted["actions"][:, :8:2]
    expected = np.zeros(30)
    for side, sign in ((left, 1), (right, -1)):
        means = side[:8].reshape(4, 2, 3).mean(axis=1)
        density = stats.laplace(means[np.arange(4), arms], 0.7).logpdf(emitted["noisy"])
        expected += sign * density.sum(axis=1)
    assert mechanism.log_likelihood_ratio(emitted, pair) == pytest.approx(expected, abs=1e-12)


def test_scaling_the_noise_keeps_the_claim():
    mechanism = BatchedLaplace("htinf", 1.0, 20, 3)
    half = mechanism.noise_scaled(0.5)
    assert half.claim == mechanism.claim
    assert half.declared_scale == mechanism.declared_scale
    pair = mechanism.pairs()[0]
    assert half.exact_profile(pair, 1.0) == pytest.approx(-math.expm1(-0.5))
    whole, less = (m.run(pair.left, 10, np.random.default_rng(0)) for m in (mechanism, half))
    assert less["noisy"][:, 0] == pytest.approx(whole["noisy"][:, 0] / 2)


def test_losses_are_clamped_before_they_are_averaged():
    mechanism = BatchedLaplace("leader", 0.5, 4, 2, bound=2.0)
    losses = np.array([[5.0, -3.0], [1.0, 1.0], [np.inf, 0.5], [-np.inf, 0.5]])
    assert mechanism.means({"losses": losses}).tolist() == [[1.5, 0.5], [1.0, 0.5]]


def test_left_over_rounds_feed_nothing():
    mechanism = BatchedLaplace("htinf", 0.25, 10, 2)
    zero, one = np.zeros((10, 2)), np.zeros((10, 2))
    one[8:] = 1.0
    first, second = (
        mechanism.run({"losses": x}, 20, np.random.default_rng(0)) for x in (zero, one)
    )
    assert first["noisy"].shape == (20, 2)
    assert all(np.array_equal(first[k], second[k]) for k in first)


def test_a_learner_of_ones_own_may_be_converted():
    mechanism = BatchedLaplace(Htinf, 1.0, 10, 2)
    named = BatchedLaplace("htinf", 1.0, 10, 2)
    data = mechanism.pairs()[1].left
    ours, theirs = (m.run(data, 20, np.random.default_rng(3)) for m in (mechanism, named))
    assert np.array_equal(ours["actions"], theirs["actions"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.01}, "at least 100 rounds"),
        ({"epsilon": -1.0}, "finite epsilon > 0"),
        ({"epsilon": math.nan}, "finite epsilon > 0"),
        ({"bound": math.inf}, "finite bound > 0"),
        ({"noise_factor": 0.0}, "finite noise_factor > 0"),
        ({"horizon": 0}, "horizon >= 1"),
        ({"horizon": 2.5}, "whole number horizon"),
        ({"arms": 1}, "arms >= 2"),
        ({"view": "prices"}, "expected a view in transcript, actions"),
        ({"learner": "ucb"}, "expected a learner in htinf"),
        ({"options": {"speed": 3}}, "does not take the options"),
        ({"learner": "threshold", "options": {"watched": 20}}, "watched batch"),
    ],
)
def test_bad_parameters_are_refused(changes, message):
    good = {"learner": "htinf", "epsilon": 1.0, "horizon": 20, "arms": 2}
    with pytest.raises(UsageError, match=message):
        BatchedLaplace(**{**good, **changes})


@pytest.mark.parametrize("losses", [np.zeros((19, 2)), np.zeros(20), np.full((20, 2), np.nan)])
def test_bad_losses_are_refused(losses):
    mechanism = BatchedLaplace("htinf", 1.0, 20, 2)
    with pytest.raises(UsageError, match="expected losses of shape"):
        mechanism.run({"losses": losses}, 5, np.random.default_rng(0))


def test_a_pair_without_a_closed_form_is_refused():
    mechanism = BatchedLaplace("htinf", 1.0, 4, 2)
    low, uneven, twice = np.zeros((4, 2)), np.zeros((4, 2)), np.zeros((4, 2))
    uneven[1] = 0.5, 1.0
    twice[1:3] = 1.0
    for other in (uneven, twice):
        with pytest.raises(UsageError, match="exact profile"):
            mechanism.exact_profile(Pair({"losses": low}, {"losses": other}), 0.0)


def test_actions_of_a_real_learner_have_no_closed_form():
    mechanism = BatchedLaplace("htinf", 1.0, 4, 2)
    with pytest.raises(UsageError, match="no closed form"):
        mechanism.log_likelihood_ratio({"actions": np.zeros((2, 4))}, mechanism.pairs()[0])


def test_adaptive_losses_depend_on_the_arm_before():
    mechanism = BatchedLaplace("leader", 0.5, 5, 2)
    losses = np.random.default_rng(0).random((5, 2, 2))
    means = mechanism.means({"losses": losses})
    assert means.shape == (2, 2, 2)
    for before in (0, 1):
        for arm in (0, 1):
            expected = (losses[2, before, arm] + losses[3, arm, arm]) / 2
            assert means[1, before, arm] == pytest.approx(expected)
    emitted = mechanism.run({"losses": losses}, 50, np.random.default_rng(1))
    quiet = mechanism.noise_scaled(1e-9).run({"losses": losses}, 50, np.random.default_rng(1))
    before, arm = quiet["actions"][:, 1], quiet["actions"][:, 2]
    assert quiet["noisy"][:, 1] == pytest.approx(means[1, before, arm], abs=1e-7)
    assert emitted["noisy"].shape == (50, 2)


def test_oblivious_losses_are_a_special_adaptive_table():
    mechanism = BatchedLaplace("htinf", 0.5, 11, 3)
    losses = np.random.default_rng(0).random((11, 3))
    table = np.repeat(losses[:, None], 3, axis=1)
    plain, tabled = (
        mechanism.run({"losses": x}, 30, np.random.default_rng(5)) for x in (losses, table)
    )
    assert np.array_equal(plain["actions"], tabled["actions"])
    assert plain["noisy"] == pytest.approx(tabled["noisy"], abs=1e-12)


def test_blocks_are_joined():
    mechanism = BatchedLaplace("ftpl", 1.0, 4, 2)
    emitted = mechanism.run(mechanism.pairs()[0].left, 9001, np.random.default_rng(0))
    assert emitted["actions"].shape == emitted["redraws"].shape == (9001, 4)
    assert len(np.unique(emitted["noisy"])) == 9001 * 4
    assert mechanism.run(mechanism.pairs()[0].left, 0, np.random.default_rng(0))["noisy"].size == 0
