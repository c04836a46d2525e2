"""Actions alone: integrals, recursions, replays and the particle filter."""

import itertools
import math

import numpy as np
import pytest

from algorithms.bandits.actions import filtered_ratio
from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.ftrl import Htinf
from algorithms.bandits.learners import Setting
from algorithms.bandits.unnoised import UnnoisedExp3
from audit.errors import UsageError
from audit.mechanism import capability
from audit.pair import Pair


def sequences(rounds, arms=2):
    return np.array(list(itertools.product(range(arms), repeat=rounds)))


@pytest.mark.parametrize(
    ("learner", "options", "arms", "epsilon", "ratio"),
    [
        ("htinf", {}, 2, 1.0, 0.0023),
        ("htinf", {}, 10, 1.0, 0.0021),
        ("htinf", {}, 2, 0.1, 0.0020),
        ("htinf", {"skipping": math.inf}, 2, 1.0, 0.3558),
        ("htinf", {"skipping": math.inf}, 10, 1.0, 0.8357),
        ("htinf", {"skipping": math.inf}, 2, 0.1, 0.0319),
        ("exp3n", {"eta": 0.1, "gamma": 0.0}, 2, 1.0, 0.1030),
        ("exp3n", {"eta": 0.1, "gamma": 0.0}, 10, 1.0, 0.7034),
        ("exp3n", {"eta": 0.1, "gamma": 0.0}, 2, 0.1, 0.0099),
        ("exp3n", {"eta": 1.0, "gamma": 0.0}, 2, 1.0, 0.7134),
        ("exp3n", {"eta": 1.0, "gamma": 0.0}, 10, 1.0, 0.9973),
        ("exp3n", {"eta": 1.0, "gamma": 0.0}, 2, 0.1, 0.0587),
        ("exp3n", {"eta": 10.0, "gamma": 0.0}, 2, 1.0, 0.9959),
        ("exp3n", {"eta": 10.0, "gamma": 0.0}, 10, 1.0, 1.0000),
        ("exp3n", {"eta": 10.0, "gamma": 0.0}, 2, 0.1, 0.0966),
    ],
)
def test_two_batch_ratio_agrees_with_published_values(learner, options, arms, epsilon, ratio):
    batch = round(1 / epsilon)
    mechanism = BatchedLaplace(learner, epsilon, 2 * batch, arms, options=options, view="actions")
    assert "actions" in mechanism.likelihood_views
    assert mechanism.action_llr is None
    same = np.zeros((1, 2 * batch), dtype=int)
    found = mechanism.log_likelihood_ratio({"actions": same}, mechanism.pairs()[0])
    assert found == pytest.approx(ratio, abs=6e-5)


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 0.2548), (0.1, 0.0239)])
def test_two_batch_ratio_of_ftpl_sums_over_redraws(epsilon, ratio):
    batch = round(1 / epsilon)
    mechanism = BatchedLaplace("ftpl", epsilon, 2 * batch, 2, view="actions")
    same = np.zeros((1, 2 * batch), dtype=int)
    found = mechanism.log_likelihood_ratio({"actions": same}, mechanism.pairs()[0])
    assert found == pytest.approx(ratio, abs=6e-5)


def test_two_batch_law_is_a_law_and_its_profile_is_bounded():
    mechanism = BatchedLaplace("exp3n", 1.0, 2, 3, options={"eta": 2.0}, view="actions")
    pair = mechanism.pairs()[0]
    every = sequences(2, 3)
    ratio = mechanism.log_likelihood_ratio({"actions": every}, pair)
    assert np.abs(ratio).max() <= 1.0
    total = mechanism.exact_profile(pair, 0.0)
    assert 0 < total < 0.39347
    assert mechanism.exact_profile(pair, 1.0) == pytest.approx(0.0, abs=1e-9)
    last = mechanism.worst_pair(np.zeros((2, 3)), 1, "last")
    assert mechanism.exact_profile(last, 0.0) == pytest.approx(0.0, abs=1e-12)


def test_a_long_horizon_has_no_law():
    mechanism = BatchedLaplace("htinf", 1.0, 3, 2, view="actions")
    assert capability(mechanism, "log_likelihood_ratio", "actions") is None
    with pytest.raises(UsageError, match="two batches"):
        mechanism.log_likelihood_ratio({"actions": sequences(3)}, mechanism.pairs()[0])


@pytest.mark.parametrize(
    ("learner", "options", "arms", "ratio"),
    [
        ("htinf", {}, 2, 0.0023),
        ("htinf", {"skipping": math.inf}, 2, 0.3558),
        ("exp3n", {"eta": 1.0, "gamma": 0.0}, 2, 0.7134),
        ("exp3n", {"eta": 0.1, "gamma": 0.0}, 10, 0.7034),
        ("ftpl", {}, 2, 0.2548),
    ],
)
def test_filter_reproduces_the_integrals(learner, options, arms, ratio):
    mechanism = BatchedLaplace(learner, 1.0, 2, arms, options=options, view="actions")
    estimate = filtered_ratio(mechanism)
    same = {"actions": np.zeros((1, 2), dtype=int)}
    rng = np.random.default_rng(3)
    found = estimate(same, mechanism.pairs()[0], rng, particles=20_000)
    # The standard deviation is about .005: six of them are exceeded with probability 2e-9.
    assert found == pytest.approx(ratio, abs=0.03)


def test_filter_is_steady_and_within_epsilon():
    mechanism = BatchedLaplace("htinf", 1.0, 40, 2)
    pair = mechanism.worst_pair(np.zeros((40, 2)), 14, "batch 15")
    actions = mechanism.run(pair.left, 12, np.random.default_rng(0))["actions"]
    first, second = (
        mechanism.action_llr({"actions": actions}, pair, np.random.default_rng(s), particles=2000)
        for s in (1, 2)
    )
    assert np.abs(first).max() <= 1.0
    # Published: a standard deviation of at most .02 with 4,000 particles; here at most .03 * sqrt 2
    # between two runs with 2,000. A root mean square beyond twice that is a rare event (chi-square
    # of 12 at 48: below 1e-5).
    assert np.sqrt(np.mean((first - second) ** 2)) < 2 * 0.03 * math.sqrt(2)


def test_estimates_belong_to_sequences():
    mechanism = BatchedLaplace("ftpl", 1.0, 6, 2)
    pair = mechanism.pairs()[0]
    every = sequences(6)

    def estimate(actions):
        return mechanism.action_llr({"actions": actions}, pair, np.random.default_rng(0))

    whole = estimate(every)
    alone = np.concatenate([estimate(every[i : i + 1]) for i in (0, 7, 63)])
    assert whole[[0, 7, 63]] == pytest.approx(alone, abs=1e-12)
    assert estimate(every[[5, 5, 9]])[:2] == pytest.approx([whole[5]] * 2, abs=1e-12)


def test_impossible_sequences_have_no_estimate():
    mechanism = BatchedLaplace("leader", 1.0, 6, 2)
    actions = np.zeros((1, 6), dtype=int)
    found = mechanism.action_llr(
        {"actions": actions}, mechanism.pairs()[0], np.random.default_rng(0)
    )
    assert np.isnan(found).all()


def test_skipping_edges_agree_with_published_values():
    for arms, edge in ((2, 0.3573), (10, 0.1598)):
        learner = Htinf(Setting(arms, 5, 1.0))
        learner.start(1, np.random.default_rng(0))
        learner.follow(np.zeros(1, dtype=int))
        assert learner.kinks() == pytest.approx([-edge, edge], abs=6e-5)


@pytest.mark.parametrize(
    ("kind", "options", "values", "largest"),
    [
        ("gains", {"gamma": 0.1}, (0.1261, 0.2503, 0.3410, 0.3774), 0.0460),
        ("gains", {"gamma": 0.3}, (0.2663, 0.4328, 0.5076, 0.5284), 0.1101),
        ("losses-mixed", {"eta": 0.1, "gamma": 0.1}, (0.3409, 1.2796, 2.5048, 2.9453), 0.5505),
        ("losses-mixed", {"eta": 0.3, "gamma": 0.1}, (1.5644, 4.1611, 8.0998, 10.8435), 2.8529),
    ],
)
def test_amplification_agrees_with_published_values(kind, options, values, largest):
    later = 0.0 if kind == "gains" else 1.0
    for rounds, expected in zip((4, 8, 12, 14), values, strict=True):
        mechanism = UnnoisedExp3(kind, rounds, 2, options=options)
        pair = mechanism.pairs()[0 if later == 0 else 1]
        every = sequences(rounds)
        ratio = np.abs(mechanism.log_likelihood_ratio({"actions": every}, pair))
        assert ratio.max() == pytest.approx(expected, abs=6e-5)
        assert ratio.max() <= mechanism.claim.epsilon
        if expected == 2.5048:
            assert every[ratio.argmax()].tolist() in ([0] + [1] * 11, [1] + [0] * 11)
    steps = largest_step(mechanism, pair)
    assert steps == pytest.approx(largest, abs=6e-5)
    assert steps <= mechanism.largest_step
    if options == {"eta": 0.3, "gamma": 0.1}:
        assert mechanism.largest_step == pytest.approx(2.944, abs=6e-4)


def largest_step(mechanism, pair):
    every, found = sequences(14), 0.0
    before = np.zeros(len(every))
    for rounds in range(1, 15):
        short = UnnoisedExp3(mechanism.kind, rounds, 2, options=mechanism.options)
        left, right = ({"losses": side["losses"][:rounds]} for side in (pair.left, pair.right))
        cut = {"actions": every[:, :rounds]}
        ratio = short.log_likelihood_ratio(cut, Pair(left, right))
        found, before = max(found, np.abs(ratio - before).max()), ratio
    return found


@pytest.mark.parametrize(
    ("rounds", "expected"), [(4, 0.3932), (8, 1.9128), (10, 8.1506), (11, 701.27)]
)
def test_amplification_without_mixing_explodes(rounds, expected):
    mechanism = UnnoisedExp3("losses-mixed", rounds, 2, options={"eta": 0.1, "gamma": 0.0})
    ratio = mechanism.log_likelihood_ratio({"actions": sequences(rounds)}, mechanism.pairs()[1])
    assert np.abs(ratio).max() == pytest.approx(expected, abs=6e-3 if expected > 100 else 6e-5)
    assert mechanism.claim is None


def test_amplification_with_three_arms_agrees_with_published_values():
    mechanism = UnnoisedExp3("gains", 8, 3, options={"gamma": 0.3})
    every = sequences(8, 3)
    ratio = mechanism.log_likelihood_ratio({"actions": every}, mechanism.pairs()[0])
    assert np.abs(ratio).max() == pytest.approx(0.5782, abs=6e-5)


def test_log_probabilities_sum_to_one():
    for mechanism in (
        UnnoisedExp3("gains", 7, 2),
        UnnoisedExp3("losses", 7, 2),
        UnnoisedExp3("losses-mixed", 7, 2, batch=2),
    ):
        losses = np.random.default_rng(0).random((7, 2))
        every = sequences(-(-7 // mechanism.batch))
        actions = np.repeat(every, mechanism.batch, axis=1)[:, :7]
        total = np.exp(mechanism.log_probability({"losses": losses}, actions)).sum()
        assert total == pytest.approx(1.0, abs=1e-12)


def test_mini_batches_have_the_published_epsilon():
    mechanism = UnnoisedExp3("gains", 1000, 2, batch=10, delta=0.001)
    assert mechanism.claim.epsilon == pytest.approx(4.769, abs=6e-4)
    assert UnnoisedExp3("gains", 1000, 2, batch=10).claim.epsilon == 10
    assert UnnoisedExp3("gains", 100, 4).quoted_epsilon() == 100
    mixed = UnnoisedExp3("gains", 100, 4, options={"gamma": 0.9})
    assert mixed.quoted_epsilon() == pytest.approx(100 * math.log((4 * 0.1 + 0.9) / 0.9))


@pytest.mark.parametrize(
    "changes",
    [{"kind": "regret"}, {"batch": 0}, {"delta": 1.0}, {"arms": 1}, {"options": {"speed": 1}}],
)
def test_bad_parameters_are_refused(changes):
    with pytest.raises(UsageError, match="exp"):
        UnnoisedExp3(**{"kind": "gains", "horizon": 5, "arms": 2, **changes})
