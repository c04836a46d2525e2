"""Related systems: calibrations, exact likelihood ratios and what they never exceed."""

import math

import numpy as np
import pytest

from algorithms.catalogue import CATALOGUE
from algorithms.pricing.glm_ucb import GlmUcb, published_bonus
from algorithms.pricing.linucb import PrivateLinUcb
from algorithms.pricing.nonparametric import CellPricing
from algorithms.pricing.one_shot import AnalyzeGauss, LaplaceTree
from algorithms.pricing.private_erm import ApproximateMinima, GammaPerturbation
from algorithms.pricing.uniform_price import UniformPrice
from algorithms.primitives import tree
from audit.claim import GaussianDp
from audit.errors import UsageError
from audit.mechanism import Mechanism, play
from audit.pair import Pair
from audit.view import collect


def ratios(mechanism, pair, n, seed=0):
    rng = np.random.default_rng(seed)
    views = [play(mechanism, side, n, rng) for side in (pair.left, pair.right)]
    return [mechanism.log_likelihood_ratio(view, pair) for view in views]


def test_gaussian_linucb_constants():
    bandit = PrivateLinUcb(rounds=1024, epsilon=1.0, delta=1e-6)
    assert bandit.levels == 11
    worst = math.sqrt(bandit.levels) * bandit.size / bandit.declared_scale
    assert worst == pytest.approx(0.016445, abs=5e-7)
    assert GaussianDp(mu=worst).epsilon_at(1e-6) == pytest.approx(0.0575, abs=5e-5)
    logs = math.log(8 * 11 / 1e-6) * math.log(2 / 1e-6)
    assert PrivateLinUcb(rounds=1024).freedom == 3 + math.ceil(224 * 11 * logs)


@pytest.mark.parametrize("noise", ["gaussian", "wishart"])
def test_linucb_node_densities(noise):
    """One node, one arm: against scipy's matrix densities."""
    from scipy import stats

    bandit = PrivateLinUcb(rounds=2, arms=1, noise=noise, epsilon=30.0, delta=1e-2)
    pair = bandit.pairs()[0]
    sums = bandit.run(pair.left, 5, np.random.default_rng(0))["sums"]
    rows, columns = np.triu_indices(3)
    density = []
    for data in (pair.left, pair.right):
        z = np.append(data["contexts"][0, 0], data["rewards"][0, 0])
        entries = sums[:, 0] - np.outer(z, z)[rows, columns]
        if noise == "gaussian":
            sd = bandit.declared_scale * np.where(rows == columns, math.sqrt(2), 1)
            density.append(stats.norm.logpdf(entries, scale=sd).sum(axis=1))
            continue
        whole = np.zeros((5, 3, 3))
        whole[:, rows, columns] = whole[:, columns, rows] = entries
        law = stats.wishart(bandit.freedom, bandit.size * np.eye(3))
        density.append(np.array([law.logpdf(w) for w in whole]))
    found = bandit.log_likelihood_ratio(collect({"sums": sums}, 5), pair)
    np.testing.assert_allclose(found, density[0] - density[1], atol=1e-6)


def test_linucb_actions_are_optimistic():
    """Against the rule written out, from the released matrices."""
    bandit = PrivateLinUcb(rounds=6, arms=3, epsilon=500.0)
    data = bandit.pairs()[0].left
    released = {}

    def keep(exact, t):
        released[t] = exact + 0.1 * t
        return released[t]

    actions, _ = bandit._play(data, 1, keep)
    whole = bandit._symmetric(released[4])[0] + bandit.shift(5) * np.eye(3)
    inverse = np.linalg.inv(whole[:2, :2])
    x = data["contexts"][5]
    score = x @ inverse @ whole[:2, 2] + np.sqrt(np.einsum("ki,ij,kj->k", x, inverse, x))
    assert actions[0, 5] == np.argmax(score)


def test_wishart_outside_its_support_is_impossible():
    bandit = PrivateLinUcb(rounds=2, arms=1, noise="wishart")
    pair = bandit.pairs()[0]
    z = np.append(pair.left["contexts"][0, 0], pair.left["rewards"][0, 0])
    small = (np.outer(z, z) + 1e-3 * np.eye(3))[np.triu_indices(3)]
    found = bandit.log_likelihood_ratio(collect({"sums": small[None, None]}, 1), pair)
    assert found[0] == np.inf


@pytest.mark.parametrize("noise", ["gaussian", "wishart"])
def test_linucb_shifts_keep_the_matrices_positive(noise):
    """300 plays of 16 rounds; the theorem allows failures with probability 0.05 in all."""
    bandit = PrivateLinUcb(noise=noise)
    views = play(bandit, bandit.pairs()[0].left, 300, np.random.default_rng(0))
    failed = np.zeros(300, dtype=bool)
    for t in range(1, 16):
        whole = bandit._symmetric(views["sums"][:, t - 1]) + bandit.shift(t) * np.eye(3)
        failed |= np.linalg.eigvalsh(whole)[:, 0] <= 0
    assert failed.mean() < 0.05


def test_gaussian_linucb_on_its_pairs():
    """Flipped rewards are the worst: z and z' are orthogonal. Replaced arms are not quite."""
    bandit = PrivateLinUcb(rounds=16)
    arms, flip = bandit.pairs()
    worst = bandit.epsilon / (4 * math.log(4 / bandit.delta))
    assert bandit.mu(flip) == pytest.approx(math.sqrt(4 / 5) * worst)
    assert bandit.mu(arms) == pytest.approx(math.sqrt(6 / 8) * bandit.mu(flip))
    assert bandit.noise_scaled(2.0).mu(flip) == pytest.approx(bandit.mu(flip) / 2)
    exact = GaussianDp(mu=bandit.mu(flip)).delta_at(0.01)
    assert bandit.exact_profile(flip, 0.01) == pytest.approx(exact)
    last = bandit.pair((np.eye(2)[0], 1.0), (np.eye(2)[0], -1.0), "rewards flipped")
    for side in (last.left, last.right):
        side["rewards"][0, 1] = 0.0
    assert bandit.mu(last) == pytest.approx(bandit.mu(flip))
    for other in (PrivateLinUcb(noise="wishart"), PrivateLinUcb(view="actions_after")):
        with pytest.raises(UsageError, match="for a profile"):
            other.exact_profile(flip, 0.1)


def test_linucb_views():
    bandit = PrivateLinUcb(view="actions_except")
    out = bandit.run(bandit.pairs()[0].left, 4, np.random.default_rng(0))
    assert list(out) == ["actions"]
    assert out["actions"].shape == (4, 16)
    assert bandit.likelihood_views == ()


@pytest.mark.parametrize(("relation", "factor"), [("replace-one", math.sqrt(2)), ("add-remove", 1)])
def test_analyze_gauss(relation, factor):
    release = AnalyzeGauss(relation=relation)
    assert release.declared_scale == pytest.approx(factor * math.sqrt(2 * math.log(1.25e5)) / 0.9)
    assert release.exact_profile(release.pairs()[0], 0.9) < 1e-5
    assert release.claim.relation == release.pairs()[0].relation == relation


@pytest.mark.parametrize("place", [0, 1, 4, 14])
def test_laplace_tree_spends_exactly_its_nodes(place):
    release = LaplaceTree(records=15, epsilon=1.0)
    pair = release.pair(place)
    nodes = sum(place + 1 > n - (n & -n) and place + 1 <= n for n in range(1, 16))
    assert release.exact_epsilon(pair) == pytest.approx(nodes / tree.levels(15))
    found = np.concatenate(ratios(release, pair, 4000))
    assert np.abs(found).max() == pytest.approx(nodes / tree.levels(15))


def profile_of(losses, epsilon):
    """Hockey-stick divergence from losses on the left, and its standard error."""
    gain = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses)))
    return gain.mean(), gain.std() / math.sqrt(len(gain))


@pytest.mark.parametrize(
    ("mechanism", "exact"),
    [
        (LaplaceTree(), 1.0),
        (CellPricing(), 0.875),
        (CellPricing(local=True), 0.875),
        (GammaPerturbation(records=30), 0.41996),
        (GammaPerturbation(records=30, dimension=1), 0.41996),
    ],
    ids=["tree", "central", "local", "gamma", "gamma on a line"],
)
def test_profiles_of_pure_releases(mechanism, exact):
    """Against losses of 20,000 plays, 5 standard errors: false alarm 2e-6 a mechanism."""
    pair = mechanism.pairs()[0]
    losses, _ = ratios(mechanism, pair, 20_000)
    for epsilon in (0.0, 0.2, 0.5):
        found, error = profile_of(losses, epsilon)
        assert abs(found - mechanism.exact_profile(pair, epsilon)) < 5 * error + 1e-4
    assert mechanism.exact_profile(pair, exact) == 0
    assert mechanism.exact_profile(pair, exact - 0.01) > 0


def test_only_a_flipped_outcome_has_a_profile_under_gamma_noise():
    fit = GammaPerturbation(records=30)
    flip, moved = fit.pairs()
    assert fit.noise_scaled(2.0).exact_profile(flip, 0.2) < fit.exact_profile(flip, 0.2)
    assert fit.exact_profile(Pair(flip.left, flip.left), 0.0) == 0
    with pytest.raises(UsageError, match="differs in outcomes"):
        fit.exact_profile(moved, 0.1)


def test_customers_of_later_phases_have_no_profile():
    policy = CellPricing()
    for other, pair in (
        (policy, policy.pair((0.0, 2.0), (1.0, 2.0), "moved", 20)),
        (CellPricing(view="prices_after"), policy.pairs()[0]),
    ):
        with pytest.raises(UsageError, match=r"before 16|for a profile"):
            other.exact_profile(pair, 0.1)


def test_gamma_perturbation_never_exceeds_epsilon():
    fit = GammaPerturbation(epsilon=1.0, records=30)
    flip, moved = fit.pairs()
    assert fit.share[0] == pytest.approx(1 - 2 * math.log1p(0.25 / 3))
    found = np.abs(np.concatenate(ratios(fit, flip, 4000)))
    assert 0.98 * fit.share[0] / 2 < found.max() <= fit.share[0] / 2 + 1e-9
    assert np.abs(np.concatenate(ratios(fit, moved, 4000))).max() < 1.0
    little = GammaPerturbation(epsilon=0.05, records=30, ridge=1e-3)
    assert little.share[0] == 0.025
    assert little.share[1] == pytest.approx(0.25 / math.expm1(0.0125))


def test_approximate_minima_constants():
    fit = ApproximateMinima(epsilon=1.0, delta=1e-6, records=50)
    assert fit.strength == pytest.approx(0.5 / (0.99 - 0.891))
    root = math.sqrt(2 * math.log(1 / (0.99e-6)))
    assert fit.declared_scale == pytest.approx(50 * (2 / 50) * (1 + root) / 0.891)
    out = math.sqrt(2 * math.log(1 / 1e-8))
    assert fit.output_scale == pytest.approx(50 * 50**-2 / fit.strength * (1 + out) / 0.01)
    with pytest.raises(UsageError, match="epsilon below"):
        ApproximateMinima(epsilon=11.0)


def test_approximate_minima_have_a_law_that_quadrature_knows(monkeypatch):
    fit = ApproximateMinima()
    pair = fit.pairs()[1]
    theta = fit.run(pair.left, 50, np.random.default_rng(0))
    coarse = fit.log_likelihood_ratio(collect(theta, 50), pair)
    monkeypatch.setattr("algorithms.pricing.private_erm._NODES", 72)
    fine = fit.log_likelihood_ratio(collect(theta, 50), pair)
    assert np.abs(fine - coarse).max() < 1e-5 < 1e-3 < np.abs(fine).max()
    assert fit.likelihood_views
    assert not ApproximateMinima(dimension=3).likelihood_views
    assert not ApproximateMinima(gradient=1e-6).likelihood_views


def test_uniform_price_choice_law():
    """Against 100,000 draws; 5 standard errors each, false alarm 3e-6 in all."""
    policy = UniformPrice()
    pair = policy.pairs()[0]
    law = policy.choice_law(policy._revenue(pair.left))
    assert law.sum() == pytest.approx(1)
    last = policy.run(pair.left, 100_000, np.random.default_rng(0))["prices"][:, -1]
    counted = np.array([np.mean(last == price) for price in policy.grid])
    assert np.all(np.abs(counted - law) < 5 * np.sqrt(law * (1 - law) / 100_000))


def test_uniform_price_is_private_with_all_prices_in_view():
    for view in ("prices_all", "transcript"):
        policy = UniformPrice(view=view)
        for pair in policy.pairs():
            assert np.abs(np.concatenate(ratios(policy, pair, 2000))).max() <= 1 + 1e-9
    assert policy.pairs()[0].differs == (11,)
    exact = UniformPrice()
    assert exact.exact_profile(exact.pairs()[0], 1.0) < 1e-12
    assert exact.exact_profile(exact.pairs()[0], 0.5) > 0.01


def test_uniform_price_ignores_customers_after_exploration():
    policy = UniformPrice()
    pair = policy.pair(15)
    assert np.abs(np.concatenate(ratios(policy, pair, 100))).max() == 0


@pytest.mark.parametrize("local", [False, True])
def test_cell_pricing_spends_what_it_says(local):
    policy = CellPricing(local=local)
    moved, flip = policy.pairs()
    found = np.abs(np.concatenate(ratios(policy, moved, 2000))).max()
    # Visits move by 1 in two cells, revenue by the price 3/4 in each.
    assert found == pytest.approx((2 + 2 * 0.75) / 4)
    assert np.abs(np.concatenate(ratios(policy, flip, 2000))).max() == pytest.approx(0.75 / 4)


def test_cell_pricing_finds_a_good_price_without_noise():
    """Valuations uniform on [0, 1] by cell: revenue p (1 - p) is best at 1/2."""
    policy = CellPricing(rounds=3000, phases=3, view="prices_after").noise_scaled(1e-9)
    rng = np.random.default_rng(0)
    data = {"contexts": rng.random(3000), "valuations": rng.random(3000)}
    last = policy.run(data, 1, rng)["prices"][0, -300:]
    assert np.abs(last - 0.5).max() < 0.2
    shown = CellPricing(local=True).run(CellPricing().pairs()[0].left, 2, rng)["reports"]
    assert shown.shape == (2, 48, 2, 2)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: PrivateLinUcb(noise="laplace"), "gaussian or wishart"),
        (lambda: PrivateLinUcb(noise="wishart").noise_scaled(2.0), "noise_factor 1"),
        (lambda: AnalyzeGauss(epsilon=2.0), "epsilon < 1"),
        (lambda: LaplaceTree(records=0), "records >= 1"),
        (lambda: LaplaceTree().run({"values": [0.0]}, 1, np.random.default_rng(0)), "15 values"),
        (lambda: GammaPerturbation(epsilon=0.0), "epsilon > 0"),
        (lambda: UniformPrice(rounds=5), "rounds > 12"),
        (lambda: UniformPrice(grid=(0.0, 1.0)), "positive grid prices"),
        (lambda: CellPricing(rounds=50), "divisible by the phases"),
        (lambda: CellPricing(view="prices_all"), "one of transcript"),
    ],
)
def test_bad_parameters(build, words):
    with pytest.raises(UsageError, match=words):
        build()


def test_pricing_without_privacy_reveals_the_first_customer():
    control = GlmUcb()
    pair = control.pairs()[0]
    rng = np.random.default_rng(0)
    left, right = (control.run(side, 3, rng)["prices"] for side in (pair.left, pair.right))
    assert np.ptp(left, axis=0).max() < 1e-9
    assert np.abs(left - right).max() > 0.005
    assert control.claim.view == "prices_after"
    expected = 0.5 / 0.25 * math.sqrt(2 * math.log(1 + 2 * 10 / 4) + math.log(10))
    assert published_bonus(10, 4, 0.1, 0.0) == pytest.approx(expected)
    with pytest.raises(UsageError, match="rounds above"):
        GlmUcb(rounds=2)


def test_catalogue_lines_build_and_play():
    names = [
        name
        for name, entry in CATALOGUE.items()
        if ":" in entry.target
        and entry.target.startswith(("algorithms.pricing", "algorithms.broken.pricing"))
        and "policy" not in name
        and "apple" not in name
    ]
    assert len(names) > 30
    for name in names:
        mechanism = CATALOGUE[name].build()
        assert isinstance(mechanism, Mechanism)
        pair = mechanism.pairs()[0]
        for side in (pair.left, pair.right):
            views = play(mechanism, side, 2, np.random.default_rng(0))
            assert not any(str(form).startswith("raised") for form in views.form), name
        if hasattr(mechanism, "log_likelihood_ratio"):
            assert mechanism.log_likelihood_ratio(views, pair).shape == (2,)
