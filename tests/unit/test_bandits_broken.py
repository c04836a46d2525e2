"""Broken twins: each keeps the claim and really leaks as much as it says."""

import math

import numpy as np
import pytest

from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.experts import PerRoundExp4
from algorithms.bandits.ftrl_tree import FtrlTree
from algorithms.broken.bandits import (
    FloorBatch,
    HalfNoise,
    NoClamp,
    OneSidedNoise,
    RawLoss,
    ReseededNoise,
    SharedNoise,
    SumNoise,
    SwappedScale,
)
from algorithms.broken.bandits_experts import (
    CountedMoves,
    InsideUpdates,
    NarrowSensitivity,
    NoBudget,
    NoFakeSwitch,
    ShortTree,
    UnscaledNoise,
    WeightedRelease,
)
from algorithms.broken.bandits_leaks import (
    FullInformation,
    KnownSeed,
    OverlappingBatches,
    Peek,
    RawSkip,
)
from algorithms.catalogue import CATALOGUE
from algorithms.primitives.laplace import product_profile
from audit.mechanism import Mechanism, capability

TWINS = [name for name in CATALOGUE if name.startswith("broken/bandit")]
RATES = {"batch": 6, "eta": 1.0, "gamma": 0.4}


def both_sides(mechanism, n=2000):
    pair = mechanism.pairs()[0]
    return [mechanism.run(pair.side(left), n, np.random.default_rng(left)) for left in (1, 0)]


def original(twin):
    """The class that the twin is a broken form of."""
    kinds = (BatchedLaplace, PerRoundExp4, BatchedExp4, Dartboard, FtrlTree)
    return next(kind for kind in kinds if isinstance(twin, kind))


@pytest.mark.parametrize("name", TWINS)
def test_twin_is_a_control_that_emits_what_the_original_emits(name):
    entry = CATALOGUE[name]
    twin = entry.build()
    assert entry.role == "control"
    assert isinstance(twin, Mechanism)
    assert twin.claim.relation == "replace-one"
    emitted = twin.run(twin.pairs()[0].left, 5, np.random.default_rng(0))
    assert emitted["actions"].shape == (5, twin.horizon)
    assert all(len(column) == 5 for column in emitted.values())


@pytest.mark.parametrize("name", [name for name in TWINS if "unscaled" not in name])
def test_twin_keeps_the_claim(name):
    entry = CATALOGUE[name]
    twin = entry.build()
    parameters = dict(entry.parameters)
    if isinstance(twin, Dartboard):
        parameters["epsilon"], expected = 1e9, twin.epsilon
        assert twin.claim.epsilon == expected
        parameters["rates"] = {"p": 0.5, "eta": 0.1, "budget": 2}
    same = original(twin)(**parameters)
    assert type(same.claim) is type(twin.claim)
    if not isinstance(twin, Dartboard):
        assert same.claim.epsilon == twin.claim.epsilon
        assert same.declared_scale > 0


@pytest.mark.parametrize(
    ("kind", "epsilon", "real"),
    [
        (HalfNoise, 1.0, 2.0),
        (HalfNoise, 0.3, 0.6),
        (SumNoise, 0.1, 1.0),
        (SumNoise, 0.3, 1.2),
        (SumNoise, 2.0, 2.0),
        (FloorBatch, 0.6, 1.0),
        (FloorBatch, 0.35, 0.5),
        (NoClamp, 0.5, 1.5),
        (SwappedScale, 0.1, 10.0),
        (SwappedScale, 0.5, 2.0),
        (SwappedScale, 1.0, 1.0),
    ],
)
def test_twin_with_another_scale_has_the_epsilon_it_says(kind, epsilon, real):
    twin = kind("htinf", epsilon, 40, 3)
    pair = twin.pairs()[0]
    assert twin.exact_profile(pair, epsilon) == pytest.approx(-math.expm1((epsilon - real) / 2))
    assert twin.exact_profile(pair, real + 1e-9) == 0.0
    views = both_sides(twin, n=10_000)[0]
    ratio = twin.log_likelihood_ratio(views, pair)
    assert ratio.max() == pytest.approx(real)
    # The median of abs(noise) is ln 2 scales; 15 % off is ten standard errors: below 1e-20.
    quiet = np.abs(views["noisy"][:, -1])
    distance = twin.shift(pair) * math.log(2) / np.median(quiet)
    assert distance == pytest.approx(real, rel=0.15)


@pytest.mark.parametrize(
    ("batch", "epsilon", "real"), [(1, 0.1, 10.0), (4, 0.1, 0.625), (10, 0.1, 0.1)]
)
def test_swapped_scale_hides_in_full_batches(batch, epsilon, real):
    # Scale eps tau for a mean that moves by 1 / tau: 1 / (eps tau^2).
    assert 1 / batch / (epsilon * batch) == pytest.approx(real)


def test_noise_on_the_sum_has_the_published_delta():
    twin = SumNoise("htinf", 0.1, 40, 3)
    assert twin.exact_profile(twin.pairs()[0], 0.1) == pytest.approx(0.3624, abs=6e-5)


def test_overlapping_batches_have_the_published_delta():
    twin = OverlappingBatches("htinf", 1.0, 10, 2)
    pair = twin.pairs()[0]
    assert twin.exact_profile(pair, 1.0) == pytest.approx(0.2418, abs=6e-5)
    longer = OverlappingBatches("htinf", 0.5, 11, 2)
    losses = np.arange(22.0).reshape(11, 2) / 22
    means = longer.means({"losses": losses})
    assert means[0] == pytest.approx(losses[:3].sum(axis=0) / 2)
    assert means[4] == pytest.approx(losses[8:11].sum(axis=0) / 2)
    ratio = twin.log_likelihood_ratio(both_sides(twin)[0], pair)
    assert ratio.max() == pytest.approx(2.0)


def test_shared_noise_cancels():
    left, right = both_sides(SharedNoise("htinf", 1.0, 21, 3))
    for views, difference in ((left, 0.0), (right, 1.0)):
        noisy = views["noisy"]
        assert noisy[:, 0] - noisy[:, 1] == pytest.approx(np.full(2000, difference), abs=1e-9)
        assert noisy[:, 2:20:2] == pytest.approx(noisy[:, 3:20:2], abs=1e-9)
        assert np.abs(noisy[:, 1] - noisy[:, 2]).min() > 0


def test_reseeded_noise_is_the_same_in_every_batch():
    left, right = both_sides(ReseededNoise("exp3n", 1.0, 21, 3))
    for views, difference in ((left, 0.0), (right, 1.0)):
        noisy = views["noisy"]
        assert noisy[:, [0]] - noisy[:, 1:] == pytest.approx(np.full((2000, 20), difference))
        assert np.unique(noisy[:, 1]).size == 2000


def test_raw_loss_shows_in_the_actions():
    left, right = both_sides(RawLoss("leader", 1.0, 20, 2, view="actions"))
    assert np.all(left["actions"][:, 2:] == 0)
    assert np.all(right["actions"][:, 2:] == 1)


def test_raw_skip_shows_in_the_skip_bits():
    left, right = both_sides(RawSkip("htinf", 1.0, 10, 3))
    assert np.all(left["skipped"][:, 0] == 0)
    assert np.all(right["skipped"][:, 0] == 1)


def test_known_seed_leaves_no_noise():
    left, right = both_sides(KnownSeed("htinf", 1.0, 10, 3))
    assert np.ptp(left["noisy"][:, 0]) == np.ptp(right["noisy"][:, 0]) == 0.0
    assert right["noisy"][0, 0] - left["noisy"][0, 0] == pytest.approx(1.0)


def test_one_sided_noise_shows_in_the_support():
    twin = OneSidedNoise("exp3n", 0.5, 20, 3)
    left, right = both_sides(twin, n=20_000)
    assert right["noisy"][:, 0].min() >= 0.5
    delta = twin.exact_profile(twin.pairs()[0], 5.0)
    assert delta == pytest.approx(1 - math.exp(-0.5))
    # Hoeffding: a deviation of .025 in 20,000 draws has probability 2 exp(-25) < 1e-10.
    assert np.mean(left["noisy"][:, 0] < 0.5) == pytest.approx(delta, abs=0.025)


def test_full_information_loses_an_epsilon_per_arm():
    twin = FullInformation("htinf", 0.5, 12, 4)
    pair = twin.pairs()[0]
    assert twin.exact_profile(pair, 0.2) == pytest.approx(product_profile([0.5] * 4, 0.2))
    left, _ = both_sides(twin, n=20_000)
    assert left["noisy"].shape == (20_000, 6, 4)
    ratio = twin.log_likelihood_ratio(left, pair)
    assert np.abs(ratio).max() == pytest.approx(2.0)
    found = np.maximum(0.0, -np.expm1(0.2 - ratio)).mean()
    # Hoeffding for values in [0, 1]: a deviation of .025 has probability 2 exp(-25).
    assert found == pytest.approx(twin.exact_profile(pair, 0.2), abs=0.025)


def test_peeking_shows_in_one_action():
    twin = Peek("htinf", 1.0, 5, 2, view="actions", options={"sigma": 0.05, "skipping": 1e9})
    left, right = both_sides(twin, n=20_000)
    shares = [np.mean(views["actions"][:, 0] == 0) for views in (left, right)]
    # About 1 - 1 / 21^2 against 1 / 21^2: 45 of 20,000 expected; 7 standard errors.
    assert shares[0] > 1 - 0.005
    assert shares[1] < 0.005


def test_weighted_release_loses_epsilon_over_the_probability():
    twin = WeightedRelease(0.5, 8, 4, experts=4)
    pair = twin.pairs()[0]
    assert twin.exact_profile(pair, 0.5) == pytest.approx(-math.expm1(-(2.0 - 0.5) / 2))
    ratio = twin.log_likelihood_ratio(both_sides(twin)[0], pair)
    assert np.abs(ratio).max() == pytest.approx(2.0)


def test_unscaled_noise_is_advertised_as_pure():
    twin = UnscaledNoise(1.0, 1e-3, 12, 2, experts=16, rates=RATES)
    assert str(twin.claim) == "1-DP"
    healthy = BatchedExp4(1.0, 1e-3, 12, 2, experts=16, rates=RATES)
    factor = healthy.declared_scale / twin.declared_scale
    assert factor == pytest.approx(math.sqrt(8 * math.log(1000)))


def test_narrow_sensitivity_forgets_the_exploration():
    twin = NarrowSensitivity(1.0, 1e-3, 12, 2, experts=4, rates=RATES)
    assert twin.noise_scale == pytest.approx(0.4 * twin.declared_scale)


def test_inside_updates_follow_bare_losses():
    twin = InsideUpdates(1.0, 1e-3, 20, 2, experts=2, rates={**RATES, "batch": 20, "gamma": 0.2})
    shares = []
    for views in both_sides(twin, n=40_000):
        actions = views["actions"]
        shares.append(np.mean(actions[actions[:, 0] == 0, 10] == 0))
    # Half of about 20,000 runs on the left, about .41 of them on the right. Hoeffding: .025 off has
    # probability 2 exp(-25).
    assert shares[0] == pytest.approx(0.5, abs=0.025)
    assert shares[1] < 0.45
    assert capability(twin, "log_likelihood_ratio", "transcript") is None


def test_dartboard_without_the_coin_moves_only_after_a_loss():
    twin = NoFakeSwitch(1.0, 4, 2, rates={"eta": 0.3, "budget": 3})
    left, right = both_sides(twin, n=40_000)
    assert not np.any(left["actions"][:, 1][left["actions"][:, 0] == 0])
    moved = right["actions"][:, 1][right["actions"][:, 0] == 0]
    # Expert 0 lost on the right: eta (1 - P(0)) = .3 / 1.7. Hoeffding: 2 exp(-25) at .025.
    assert moved.mean() == pytest.approx(0.3 / 1.7, abs=0.025)
    assert twin.worst_loss() == math.inf


def test_dartboard_without_a_budget_has_the_published_loss():
    rates = {"p": 0.01, "eta": 0.0005}
    twin = NoBudget(1.0, 10_000, 2, rates=rates)
    # ln(1 + .99 * .05) + 2 * 9,999 * .0005001 = 10.05: T - 1 draws after the first.
    assert twin.worst_loss() == pytest.approx(10.05, abs=6e-3)


def test_counted_moves_draw_more_often_than_the_budget():
    twin = CountedMoves(1.0, 30, 2, rates={"p": 0.5, "eta": 0.2, "budget": 2})
    emitted = both_sides(twin)[0]
    moves = np.diff(emitted["actions"], axis=1) != 0
    assert moves.sum(axis=1).max() == 1
    assert emitted["switches"].sum(axis=1).max() > 3
    healthy = Dartboard(2.0, 30, 2, rates={"p": 0.5, "eta": 0.2, "budget": 2})
    assert both_sides(healthy)[0]["switches"].sum(axis=1).max() == 1


@pytest.mark.parametrize("arms", [2, 3])
def test_short_tree_loses_twice_epsilon(arms):
    twin = ShortTree(4.0, 16, arms, bound=2.0)
    pair = twin.pairs()[0]
    ratio = twin.log_likelihood_ratio(both_sides(twin, n=20_000)[0], pair)
    assert np.abs(ratio).max() <= 8.0 + 1e-9
    distance = 2.0 / twin.noise_scale
    assert 4 * arms * distance == pytest.approx(8.0)
    assert twin.exact_profile(pair, 4.0) == pytest.approx(
        product_profile([distance] * 4 * arms, 4.0)
    )
    assert twin.exact_profile(pair, 4.0) > 0.05


@pytest.mark.parametrize("kind", [SharedNoise, RawLoss, OneSidedNoise, KnownSeed, RawSkip, Peek])
def test_twin_with_another_law_offers_no_likelihood(kind):
    twin = kind("htinf", 1.0, 20, 3, view="actions")
    assert capability(twin, "log_likelihood_ratio", "transcript") is None
    assert capability(twin, "exact_profile") is None
    assert capability(twin, "action_llr") is None
