"""Private maximum likelihood: exact minimisers, exact densities, claims."""

import math
import pickle

import numpy as np
import pytest
from scipy import optimize

from algorithms.broken import pricing_mle as broken
from algorithms.pricing.demand import link
from algorithms.pricing.likelihoods import Common, Priced
from algorithms.pricing.private_mle import PrivateMle
from algorithms.primitives.objective import Tilted, minimise, quadratic_minimiser
from algorithms.primitives.objective_law import log_density, on_boundary
from audit.claim import GaussianDp
from audit.errors import UsageError
from audit.mechanism import Mechanism, play
from audit.quantise import grid_of
from audit.view import collect


def epsilon_of(mu, delta=1e-6):
    return GaussianDp(mu=mu).epsilon_at(delta)


def model_of(demand="logistic", n=25, d=3, ridge=0.7, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return Common(link(demand), features, (rng.random(n) < 0.5).astype(float), ridge)


@pytest.mark.parametrize("demand", ["logistic", "linear"])
def test_derivatives_are_those_of_the_loss(demand):
    model, theta = model_of(demand), np.array([[0.3, -1.0, 0.5]])
    gradient, hessian = model.derivatives(theta)
    numeric = optimize.approx_fprime(theta[0], lambda t: model.value(t[None])[0], 1e-6)
    np.testing.assert_allclose(gradient[0], numeric, atol=1e-5)
    bend = optimize.approx_fprime(theta[0], lambda t: model.derivatives(t[None])[0][0], 1e-6)
    np.testing.assert_allclose(hessian[0], bend, atol=1e-5)


def test_priced_layout_agrees_with_the_common_one():
    rng = np.random.default_rng(2)
    contexts, prices = rng.random((12, 2)) / 2, rng.random((3, 12))
    outcomes = (rng.random((3, 12)) < 0.5).astype(float)
    priced = Priced(link("logistic"), contexts, prices, outcomes, 0.4)
    theta = rng.normal(size=(3, 4))
    for i in range(3):
        features = np.hstack([contexts, -prices[i][:, None] * contexts]) / math.sqrt(2)
        one = Common(link("logistic"), features, outcomes[i], 0.4)
        np.testing.assert_allclose(priced.value(theta)[i], one.value(theta[i : i + 1])[0])
        for ours, theirs in zip(
            priced.derivatives(theta), one.derivatives(theta[i : i + 1]), strict=True
        ):
            np.testing.assert_allclose(ours[i], theirs[0], atol=1e-12)


@pytest.mark.parametrize("demand", ["logistic", "linear"])
@pytest.mark.parametrize("radius", [math.inf, 0.8])
def test_minimisers_are_exact(demand, radius):
    """Against scipy's constrained solver, and by their own optimality conditions."""
    model = model_of(demand)
    tilt = 6 * np.random.default_rng(1).normal(size=(60, 3))
    theta = minimise(Tilted(model, tilt), 60, radius=radius, scale=6.0)
    gradient = model.derivatives(theta)[0] + tilt
    held = on_boundary(theta, radius)
    assert bool(held.any()) == math.isfinite(radius)
    assert np.linalg.norm(gradient[~held], axis=1).max(initial=0) <= 6e-9
    pull = -np.einsum("nd,nd->n", gradient, theta)[held] / radius**2
    assert (pull >= 0).all()
    assert np.abs(gradient[held] + pull[:, None] * theta[held]).max(initial=0) <= 1e-8
    for i in range(4):
        ball = {"type": "ineq", "fun": lambda t: radius**2 - t @ t}
        best = optimize.minimize(
            lambda t, i=i: model.value(t[None])[0] + tilt[i] @ t,
            np.zeros(3),
            constraints=[ball] if math.isfinite(radius) else [],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(theta[i], best.x, atol=2e-5)


def test_wild_starts_converge():
    """Far minimisers with almost no ridge, where plain Newton overshoots."""
    model = Common(link("logistic"), np.eye(2), np.array([1.0, 0.0]), 1e-4)
    theta = minimise(Tilted(model, np.zeros((1, 2))), 1)
    assert np.abs(model.derivatives(theta)[0]).max() < 1e-9
    assert theta[0, 0] > 5


def test_quadratic_steps_on_the_ball():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(50, 3, 3))
    hessian = root @ root.swapaxes(1, 2) + 0.1 * np.eye(3)
    gradient = 5 * rng.normal(size=(50, 3))
    best = quadratic_minimiser(hessian, np.zeros((50, 3)), gradient, 0.5)
    norm = np.linalg.norm(best, axis=1)
    assert norm.max() <= 0.5 * (1 + 1e-9)
    slack = np.einsum("nij,nj->ni", hessian, best) + gradient
    inside = norm < 0.5 * (1 - 1e-9)
    assert np.abs(slack[inside]).max(initial=0) < 1e-9
    cosine = np.einsum("ni,ni->n", slack, best)[~inside] / (
        np.linalg.norm(slack[~inside], axis=1) * 0.5
    )
    np.testing.assert_allclose(cosine, -1, atol=1e-9)


@pytest.mark.parametrize(("nu", "radius"), [(6.0, 1.0), (1.0, 0.5), (1.5, 1.5)])
def test_density_integrates_to_one(nu, radius):
    """Polar quadrature inside plus the circle itself, d = 2."""
    model = model_of(d=2)
    angle = np.linspace(0, 2 * np.pi, 721)[:-1]
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    step = angle[1] - angle[0]
    edge = np.exp(log_density(model, radius * circle, nu, radius)).sum() * step * radius
    x, w = np.polynomial.legendre.leggauss(80)
    r, dr = (x + 1) / 2 * radius * (1 - 1e-6), w / 2 * radius
    points = (r[:, None, None] * circle).reshape(-1, 2)
    density = np.exp(log_density(model, points, nu, radius)).reshape(80, -1)
    inside = float((density.sum(axis=1) * r * dr).sum() * step)
    assert inside + edge == pytest.approx(1, abs=2e-6)
    assert 0.01 < edge < 0.99


def test_boundary_integral_closed_form_in_two_dimensions():
    from scipy.special import ndtr

    model, nu, radius = model_of(d=2), 2.0, 0.7
    theta = radius * np.array([[0.6, 0.8], [1.0, 0.0], [-0.8, 0.6]])
    gradient, hessian = model.derivatives(theta)
    unit = theta / radius
    tangent = np.stack([-unit[:, 1], unit[:, 0]], axis=1)
    b = np.einsum("ni,ni->n", unit, gradient)
    lam = np.einsum("ni,nij,nj->n", tangent, hessian, tangent)
    across = np.einsum("ni,ni->n", tangent, gradient)
    integral = (lam - b / radius) * nu * math.sqrt(2 * math.pi) * ndtr(-b / nu)
    integral += nu**2 * np.exp(-(b**2) / (2 * nu**2)) / radius
    expected = np.log(integral) - across**2 / (2 * nu**2) - math.log(2 * math.pi * nu**2)
    np.testing.assert_allclose(log_density(model, theta, nu, radius), expected, atol=1e-10)


def test_boundary_in_one_dimension_is_an_atom():
    """Mass at +-R plus the density between them is 1."""
    model, nu, radius = model_of(d=1), 3.0, 0.4
    ends = np.exp(log_density(model, np.array([[radius], [-radius]]), nu, radius)).sum()
    t = np.linspace(-radius, radius, 4001)[1:-1, None]
    inside = np.exp(log_density(model, t, nu, radius)).sum() * (t[1, 0] - t[0, 0])
    assert ends + inside == pytest.approx(1, abs=2e-4)


def test_jacobian_part_is_bounded_and_matches_the_rank_one_form():
    mle = PrivateMle(records=10, ridge=1.0)
    pair = mle.context_pair()
    theta = np.random.default_rng(0).normal(size=(20, 1, 2))
    views = collect({"thetas": theta}, 20)
    left, right = (model_at(mle, side) for side in (pair.left, pair.right))
    (g, h), (g2, h2) = (m.derivatives(theta[:, 0]) for m in (left, right))
    gauss = (np.sum(g2**2, 1) - np.sum(g**2, 1)) / (2 * mle.scale**2)
    jacobian = np.linalg.slogdet(h)[1] - np.linalg.slogdet(h2)[1]
    np.testing.assert_allclose(mle.log_likelihood_ratio(views, pair), gauss + jacobian, atol=1e-12)
    assert np.abs(jacobian).max() <= mle.budget.jacobian


def model_at(mle, data):
    return Common(mle.link, data["features"], data["outcomes"], mle.budget.ridge)


@pytest.mark.parametrize("radius", [math.inf, 1.0])
def test_an_opposite_record_with_the_same_outcome_is_a_flipped_one(radius):
    """``f(-eta) = 1 - f(eta)``: (-phi, y) has the gradient and the Hessian of (phi, 1 - y)."""
    mle = PrivateMle(records=12, epsilon=4.0, radius=radius)
    first, flip = np.eye(2)[0], mle.flip_pair()
    opposite = mle.pair((first, 1.0), (-first, 1.0))
    views = play(mle, flip.left, 50, np.random.default_rng(0))
    found = mle.log_likelihood_ratio(views, opposite)
    np.testing.assert_allclose(found, mle.log_likelihood_ratio(views, flip), atol=1e-9)
    assert found.std() > 0.05


def test_the_same_record_twice_shows_nothing():
    for radius in (math.inf, 0.5):
        mle = PrivateMle(records=10, radius=radius)
        pair = mle.null_pair()
        views = play(mle, pair.left, 50, np.random.default_rng(0))
        assert np.abs(mle.log_likelihood_ratio(views, pair)).max() < 1e-12


def test_boundary_survives_the_rounding_of_views():
    mle = PrivateMle(records=10, radius=0.5, epsilon=3.0)
    pair = mle.pairs()[0]
    views = play(mle, pair.left, 400, np.random.default_rng(0))
    rounded = grid_of(views).apply(views)
    exact = mle.log_likelihood_ratio(views, pair)
    np.testing.assert_allclose(mle.log_likelihood_ratio(rounded, pair), exact, atol=1e-6)


def test_claims_follow_the_calibration():
    for calibration, relation in (
        ("kst_zeta", "add-remove"),
        ("kst_gamma", "replace-one"),
        ("hs_rep", "replace-one"),
        ("exact_label", "declared"),
    ):
        claim = PrivateMle(calibration=calibration).claim
        assert (claim.epsilon, claim.delta, claim.relation) == (1.0, 1e-6, relation)
        assert calibration in claim.source
    label = PrivateMle(calibration="exact_label", claim_as="gaussian", times=(30,) * 10)
    assert label.declared_scale == pytest.approx(13.360, abs=1e-3)
    assert label.claim.mu == pytest.approx(label.mu(label.flip_pair()))
    assert label.exact_profile(label.flip_pair(), 1.0) == pytest.approx(1e-6, rel=1e-6)
    assert PrivateMle().accountant(1.0) == pytest.approx(1e-6, rel=1e-6)


def test_later_calls_do_not_hold_an_earlier_record():
    mle = PrivateMle(records=30, times=(10, 20, 30), calibration="exact_label")
    assert mle.mu(mle.flip_pair(15)) * mle.scale == pytest.approx(math.sqrt(2))
    assert mle.mu(mle.flip_pair(29)) * mle.scale == pytest.approx(1)


def test_same_seed_same_view_and_pickles():
    mle = pickle.loads(pickle.dumps(PrivateMle(records=8, times=(4, 8), radius=2.0)))
    assert isinstance(mle, Mechanism)
    one, two = (mle.run(mle.background(), 3, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one["thetas"], two["thetas"])
    assert one["thetas"].shape == (3, 2, 2)
    loud = mle.noise_scaled(0.5)
    assert loud.claim == mle.claim
    assert loud.scale == mle.scale / 2


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"dimension": 0}, "dimension >= 1"),
        ({"epsilon": -1.0}, "epsilon > 0"),
        ({"radius": 0.0}, "radius > 0"),
        ({"calibration": "paper"}, "one of kst_zeta"),
        ({"claim_as": "gaussian"}, "one of approx"),
        ({"times": (31,)}, "times from 1 to 30"),
        ({"calibration": "kst_gamma", "ridge": 0.1}, "ridge >= 0.5"),
        ({"calibration": "kst_zeta", "times": (3, 4)}, "no times when records come and go"),
        ({"calibration": "hs_add", "radius": 1.0, "ridge": 1.0}, "radius inf"),
        ({"calibration": "hs_add", "ridge": 0.2}, "ridge > 0.25"),
        ({"demand": "linear"}, "a finite radius"),
        ({"demand": "probit"}, "logistic or linear"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(UsageError, match=words):
        PrivateMle(**parameters)


def test_bad_data():
    mle, data = PrivateMle(records=4), PrivateMle(records=4).background()
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match="expected 4 outcomes"):
        mle.run({**data, "outcomes": [1.0]}, 1, rng)
    with pytest.raises(UsageError, match="norm of at most 1"):
        mle.run({**data, "features": 2 * data["features"]}, 1, rng)
    with pytest.raises(UsageError, match="differs in outcomes"):
        mle.mu(mle.context_pair())


def test_a_removed_record_has_no_exact_profile():
    mle = PrivateMle(records=12, calibration="kst_zeta")
    with pytest.raises(UsageError, match="differs in outcomes"):
        mle.exact_profile(mle.pairs()[0], 1.0)


def test_calls_on_the_same_records_are_solved_together_but_apart():
    settings = {"records": 12, "calibration": "exact_label", "epsilon": 4.0, "ridge": 2.0}
    mle = PrivateMle(times=(6, 12, 6), **settings)
    single = PrivateMle(times=(12,), **settings)
    data, rng = mle.background(), np.random.default_rng(0)
    tilts = rng.normal(size=(5, 3, 2))
    together = mle._release(mle._models(data), tilts)
    alone = single._release(single._models(data), tilts[:, 1:2])
    np.testing.assert_allclose(together[:, 1], alone[:, 0], atol=1e-9)
    assert np.abs(together[:, 0] - together[:, 2]).min() > 0


def test_tilted_steps_are_weighted_back():
    """Mean of 1,000 weights, 5 standard errors: false alarm 6e-7."""
    twin = broken.OneStep(step=0.01)
    pair = twin.pairs()[0]
    emitted, weights = twin.tilted_run(pair, 2.0, 1000, np.random.default_rng(0))
    losses = twin.log_likelihood_ratio(collect(emitted, 1000), pair)
    weight, square = np.exp(weights), twin.mu(pair) ** 2
    assert abs(weight.mean() - 1) < 5 * weight.std() / math.sqrt(1000)
    assert losses.mean() == pytest.approx(2.5 * square, abs=5 * math.sqrt(square / 1000))
