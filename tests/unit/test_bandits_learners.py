"""Base learners against brute force, root finding and published numbers."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize

from algorithms.bandits.canaries import Canary, quantile, threshold
from algorithms.bandits.exp3 import Exp3, Exp3Gains, Exp3Skipping, exp3_local, exp3_losses
from algorithms.bandits.ftpl import Ftpl
from algorithms.bandits.ftrl import Htinf, Inf, tsallis, tsallis_inf
from algorithms.bandits.learners import Leader, Setting, draw
from audit.errors import UsageError

LEARNERS = [Exp3, Exp3Gains, exp3_losses, exp3_local, Htinf, tsallis_inf, Inf, Ftpl, Leader]


def started(learner, n=1, seed=0):
    learner.start(n, np.random.default_rng(seed))
    return learner


def root(gaps):
    def excess(d):
        return ((gaps + d) ** -2.0).sum() - 1

    d = optimize.brentq(excess, 0.5, math.sqrt(len(gaps)) + 1, xtol=1e-15)
    return (gaps + d) ** -2.0


@pytest.mark.parametrize(
    ("losses", "eta", "expected"),
    [
        ((0, 1, 5, 2), 0.7, (0.42507, 0.28179, 0.09274, 0.20040)),
        ((0, -3, 50, 2), 0.1, (0.30646, 0.36447, 0.05392, 0.27515)),
    ],
)
def test_tsallis_agrees_with_published_values(losses, eta, expected):
    # Tsallis-INF states its weights as 4 / (eta (L - x))^2.
    gaps = eta / 2 * (np.array(losses, dtype=float) - min(losses))
    assert tsallis(gaps[:, None])[:, 0] == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize("arms", [2, 3, 7, 64])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-2, 1.0, 1e2, 1e6])
def test_tsallis_agrees_with_root_finding(arms, spread):
    gaps = spread * np.random.default_rng(arms).random((arms, 5))
    gaps -= gaps.min(axis=0)
    probs = tsallis(gaps)
    assert probs.sum(axis=0) == pytest.approx(np.ones(5), abs=1e-14)
    for column in range(5):
        assert probs[:, column] == pytest.approx(root(gaps[:, column]), rel=1e-10)


@pytest.mark.parametrize("kind", LEARNERS)
def test_probabilities_stay_probabilities(kind):
    rng = np.random.default_rng(1)
    learner = started(kind(Setting(arms=4, updates=50, scale=1.0)), n=300)
    for _ in range(50):
        arm = learner.act()
        assert arm.shape == (300,)
        assert set(np.unique(arm)) <= set(range(4))
        assert learner.probs().min() >= 0
        assert learner.probs().sum(axis=0) == pytest.approx(np.ones(300), abs=1e-12)
        learner.update(arm, rng.laplace(size=300))


def test_exp3_survives_extreme_feedback():
    learner = started(Exp3(Setting(2, 10, 1.0), eta=10.0, gamma=0.0), n=2)
    for _ in range(5):
        learner.update(learner.act(), np.array([-1e6, 1e6]))
    assert np.isfinite(learner.probs()).all()


def test_htinf_skips_feedback_beyond_its_threshold():
    # r_1 = Theta sigma / sqrt(K) is .3573 with two arms and .1598 with ten.
    for arms, largest in ((2, 0.3573), (10, 0.1598)):
        learner = started(Htinf(Setting(arms, 10, 1.0)), n=4)
        learner.follow(np.zeros(4, dtype=int))
        near = np.array([-1.0, -1.0, 1.0, 1.0]) * (largest + np.array([-1, 1, -1, 1]) * 1e-4)
        learner.update(np.zeros(4, dtype=int), near)
        assert (learner.losses[0] != 0).tolist() == [True, False, True, False]


def same_arm_again(learner, mean, scale, arms):
    """P(I_2 = I_1) by integrating the second probability against the first noise."""

    def density(y):
        grid = np.atleast_1d(y)
        started(learner, n=len(grid)).follow(np.zeros(len(grid), dtype=int))
        learner.update(np.zeros(len(grid), dtype=int), grid)
        return learner.probs()[0] * np.exp(-np.abs(grid - mean) / scale) / (2 * scale)

    first = 0.20629947 * math.sqrt(6 / arms)
    kinks = sorted({-60 * scale, -first, 0.0, first, mean, 1.0, 60 * scale})
    pieces = pairwise(kinks)
    return sum(integrate.quad_vec(lambda y: density(y)[0], *piece)[0] for piece in pieces)


@pytest.mark.parametrize(
    ("kind", "options", "arms", "batch", "left", "right", "ratio"),
    [
        (Htinf, {}, 2, 1, 0.50000, 0.49885, 0.0023),
        (Htinf, {}, 10, 1, 0.10022, 0.10001, 0.0021),
        (Htinf, {}, 2, 10, None, None, 0.0020),
        (Htinf, {"skipping": math.inf}, 2, 1, 0.5, 0.35030, 0.3558),
        (Htinf, {"skipping": math.inf}, 10, 1, 0.23319, 0.10111, 0.8357),
        (Htinf, {"skipping": math.inf}, 2, 10, None, None, 0.0319),
        (Exp3, {"eta": 0.1, "gamma": 0.0}, 2, 1, 0.5, 0.45109, 0.1030),
        (Exp3, {"eta": 0.1, "gamma": 0.0}, 10, 1, 0.15380, 0.07611, 0.7034),
        (Exp3, {"eta": 0.1, "gamma": 0.0}, 2, 10, None, None, 0.0099),
        (Exp3, {"eta": 1.0, "gamma": 0.0}, 2, 1, 0.5, 0.24498, 0.7134),
        (Exp3, {"eta": 1.0, "gamma": 0.0}, 10, 1, 0.40696, 0.15011, 0.9973),
        (Exp3, {"eta": 10.0, "gamma": 0.0}, 2, 1, 0.5, 0.18470, 0.9959),
    ],
)
def test_two_batches_agree_with_published_values(kind, options, arms, batch, left, right, ratio):
    learner = kind(Setting(arms, 2, 1.0, batch=batch), **options)
    lower = same_arm_again(learner, 0.0, 1.0, arms)
    upper = same_arm_again(learner, 1 / batch, 1.0, arms)
    assert math.log(lower / upper) == pytest.approx(ratio, abs=6e-5)
    if left is not None:
        assert (lower, upper) == pytest.approx((left, right), abs=6e-6)


def largest_log_ratio(rounds, **options):
    """Max over all action sequences of EXP3 without noise, first loss 1 against 0, later ones 1."""
    sequences = (np.arange(2**rounds)[:, None] >> np.arange(rounds)) & 1
    logs = []
    for first in (1.0, 0.0):
        learner = started(Exp3(Setting(2, rounds, 1.0), **options), n=len(sequences))
        total = np.zeros(len(sequences))
        for t in range(rounds):
            arm = sequences[:, t]
            total += learner.follow(arm)
            learner.update(arm, np.full(len(arm), first if t == 0 else 1.0))
        logs.append(total)
    return np.abs(logs[0] - logs[1]).max()


@pytest.mark.parametrize(
    ("eta", "gamma", "rounds", "expected"),
    [
        (0.1, 0.1, 4, 0.3409),
        (0.1, 0.1, 8, 1.2796),
        (0.1, 0.1, 12, 2.5048),
        (0.3, 0.1, 8, 4.1611),
        (0.1, 0.0, 4, 0.3932),
        (0.1, 0.0, 8, 1.9128),
    ],
)
def test_amplification_of_unnoised_exp3_agrees_with_published_values(eta, gamma, rounds, expected):
    assert largest_log_ratio(rounds, eta=eta, gamma=gamma) == pytest.approx(expected, abs=6e-5)


def test_leader_tries_every_arm_and_then_follows():
    learner = started(Leader(Setting(3, 10, 1.0)), n=2)
    feedback = np.array([[0.5, 0.1], [0.2, 0.9], [0.4, 0.9], [0.9, 0.1]])
    played = []
    for row in feedback:
        played.append(learner.act())
        learner.update(played[-1], row)
    played.append(learner.act())
    assert np.array(played).T.tolist() == [[0, 1, 2, 1, 2], [0, 1, 2, 0, 0]]


def test_draw_inverts_the_cumulative_probabilities():
    probs = np.repeat([[0.2], [0.0], [0.5], [0.3]], 1000, axis=1)
    uniform = np.random.default_rng(3).random(1000)
    expected = np.searchsorted([0.2, 0.2, 0.7], uniform, side="right")
    assert np.array_equal(draw(probs, np.random.default_rng(3)), expected)


def test_canary_writes_the_bin_of_one_feedback():
    canary = started(Canary(Setting(4, 5, 1.0), [0.0, 1.0], watched=1), n=3)
    canary.update(canary.act(), np.array([9.0, 9.0, 9.0]))
    assert canary.act().tolist() == [0, 0, 0]
    canary.update(canary.act(), np.array([-0.1, 0.0, 2.0]))
    canary.update(canary.act(), np.array([-9.0, -9.0, -9.0]))
    assert canary.act().tolist() == [0, 1, 2]


def test_canary_law_is_that_of_a_laplace_variable():
    from scipy import stats

    canary = Canary(Setting(5, 1, 0.7), [-0.5, 0.2, 3.0])
    below = stats.laplace(0.3, 0.7).cdf([-0.5, 0.2, 3.0])
    expected = [*np.diff([0, *below, 1]), 0.0]
    assert canary.law(0.3, 0.7) == pytest.approx(expected, abs=1e-15)


def test_quantile_edges_span_the_two_means():
    setting = Setting(arms=5, updates=4, scale=0.5, bound=2.0, batch=4)
    assert quantile(setting).edges == pytest.approx([0, 1 / 6, 1 / 3, 0.5])
    assert quantile(setting, low=1.0, high=4.0).edges == pytest.approx([1, 2, 3, 4])


@pytest.mark.parametrize(
    "make",
    [
        lambda s: Exp3(s, eta=0.0),
        lambda s: Exp3(s, gamma=1.5),
        lambda s: Htinf(s, sigma=-1.0),
        lambda s: Htinf(s, skipping=0.0),
        lambda s: Canary(s, [0.0, 0.5]),
        lambda s: Canary(s, []),
        lambda s: threshold(s, watched=3),
    ],
)
def test_bad_options_are_refused(make):
    with pytest.raises(UsageError, match="expected"):
        make(Setting(arms=2, updates=3, scale=1.0))


def test_inf_agrees_with_published_values():
    learner = started(Inf(Setting(4, 10, 0.0), eta=3.0, gamma=0.1))
    learner.losses[:, 0] = -np.array([0.0, 1.0, 5.0, 2.0])
    assert learner.probs()[:, 0] == pytest.approx([0.12972, 0.15657, 0.51846, 0.19525], abs=6e-6)


def test_exp3_recomputes_rather_than_accumulates():
    learner = started(Exp3(Setting(3, 50, 1.0), eta=0.7, gamma=0.05), n=200)
    rng = np.random.default_rng(2)
    for _ in range(200):
        learner.update(learner.act(), rng.laplace(scale=3.0, size=200))
        exponents = -0.7 * (learner.losses - learner.losses.min(axis=0))
        plain = np.exp(exponents) / np.exp(exponents).sum(axis=0)
        np.testing.assert_allclose(learner.probs(), 0.95 * plain + 0.05 / 3, rtol=1e-9)


def test_exp3_draws_by_its_law():
    learner = started(Exp3(Setting(3, 5, 1.0), eta=1.0, gamma=0.3), n=50_000)
    learner.losses[:] = np.array([[0.0], [1.0], [3.0]])
    learner.keep(np.arange(50_000))
    law = learner.probs()[:, 0]
    arm = learner.act()
    # Six standard errors: below 1e-8 for each of three.
    assert np.bincount(arm) / 50_000 == pytest.approx(law, abs=6 * 0.5 / math.sqrt(50_000))
    np.testing.assert_allclose(np.exp(learner.follow(arm)), law[arm], rtol=1e-12)


def test_gain_exp3_is_the_published_algorithm():
    gamma, arms = 0.3, 3
    learner = started(Exp3Gains(Setting(arms, 20, 0.0), gamma=gamma))
    scores, rng = np.zeros(arms), np.random.default_rng(0)
    for loss in rng.random(20):
        weights = np.exp(scores - scores.max())
        probs = (1 - gamma) * weights / weights.sum() + gamma / arms
        assert learner.probs()[:, 0] == pytest.approx(probs, rel=1e-12)
        arm = learner.act()
        learner.update(arm, np.array([loss]))
        scores[arm[0]] += gamma / arms * (1 - loss) / probs[arm[0]]


def test_skipping_learner_needs_unit_losses():
    with pytest.raises(UsageError, match="losses in"):
        Exp3Skipping(Setting(2, 3, 1.0, bound=2.0))


@pytest.mark.parametrize("kind", LEARNERS)
def test_keep_copies_trials(kind):
    learner = started(kind(Setting(arms=3, updates=20, scale=1.0)), n=50)
    rng = np.random.default_rng(1)
    for _ in range(5):
        learner.update(learner.act(), rng.laplace(size=50))
    before = learner.probs()
    rows = rng.integers(50, size=50)
    learner.keep(rows)
    assert learner.probs() == pytest.approx(before[:, rows], rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: Inf(s, eta=-1.0),
        lambda s: Inf(s, gamma=1.0),
        lambda s: Ftpl(s, rate=0.0),
        lambda s: Ftpl(s, cap=0),
    ],
)
def test_bad_options_of_other_learners_are_refused(make):
    with pytest.raises(UsageError, match="expected"):
        make(Setting(arms=2, updates=3, scale=1.0))
