"""What the broken twins of the estimator really give away."""

import math

import numpy as np
import pytest
from scipy import optimize

from algorithms.broken import pricing_mle as broken
from algorithms.broken.pricing_softmax import SoftmaxClipNorm
from algorithms.pricing.private_mle import PrivateMle
from audit.claim import GaussianDp
from audit.errors import UsageError
from audit.mechanism import play
from audit.quantise import grid_of


def epsilon_of(mu, delta=1e-6):
    return GaussianDp(mu=mu).epsilon_at(delta)


TEN = {"calibration": "exact_label", "times": (30,) * 10}


@pytest.mark.parametrize(
    ("twin", "factor", "true"),
    [
        (broken.FullBudgetEach, math.sqrt(10), 3.525),
        (broken.RawFeatures, math.sqrt(26), 6.06),
        (broken.UnclippedOutcomes, 20, 33.0),
    ],
)
def test_what_each_broken_twin_really_gives(twin, factor, true):
    honest, wrong = PrivateMle(**TEN), twin(**TEN)
    assert wrong.claim == honest.claim
    mu = wrong.mu(wrong.flip_pair())
    assert mu / honest.mu(honest.flip_pair()) == pytest.approx(factor)
    assert epsilon_of(mu) == pytest.approx(true, rel=2e-3)


def test_full_budget_for_a_thousand_calls():
    for calls, true in ((10, 1.24), (1023, 17.5)):
        assert epsilon_of(math.sqrt(calls) / 10.958) == pytest.approx(true, rel=4e-3)
    wrong = broken.FullBudgetEach(calibration="exact_label", times=(30,) * 1023)
    assert epsilon_of(wrong.mu(wrong.flip_pair())) == pytest.approx(63.9, abs=0.05)


@pytest.mark.parametrize(
    ("radius", "at_one", "at_four"), [(math.inf, 0.077, 0.046), (1, 0.036, 0.028)]
)
def test_a_forgotten_jacobian(radius, at_one, at_four):
    wrong = broken.NoRidge(radius=radius)
    pair = wrong.pairs()[0]
    assert wrong.exact_profile(pair, 1.0) == pytest.approx(at_one, abs=6e-4)
    assert wrong.exact_profile(pair, 4.0) == pytest.approx(at_four, abs=6e-4)
    assert wrong.claim.delta == pytest.approx(1.7e-8, rel=0.05)


def test_one_step_and_early_stop():
    for step, true in ((0.01, 1.56), (0.001, 22.8)):
        wrong = broken.OneStep(step=step)
        pair = wrong.pairs()[0]
        moved = abs(wrong.law(pair.left)[0] - wrong.law(pair.right)[0])
        assert moved == pytest.approx(0.03922, abs=1e-5)
        assert epsilon_of(moved / (step * wrong.nu)) == pytest.approx(true, rel=3e-3)
        expected = GaussianDp(mu=moved / (step * wrong.nu)).delta_at(1.0)
        assert wrong.exact_profile(pair, 1.0) == pytest.approx(expected, rel=1e-5)
    wrong = broken.EarlyStop()
    assert wrong.exact_profile(wrong.pairs()[0], 1.0) == pytest.approx(0.541, abs=1e-3)
    exact = broken.EarlyStop(steps=10**6)
    assert exact.exact_profile(exact.pairs()[0], 1.0) == pytest.approx(5e-14, abs=1e-14)


def test_shared_noise_reveals_the_customer_between_two_calls():
    wrong = broken.SharedNoise(times=(10, 20), records=20)
    pair = wrong.pairs()[0]
    assert pair.differs == (10,)
    grid = grid_of(play(wrong, pair.left, 40, np.random.default_rng(0)))
    for side, sign in ((pair.left, 1), (pair.right, -1)):
        views = grid.apply(play(wrong, side, 40, np.random.default_rng(1)))
        np.testing.assert_array_equal(wrong.log_likelihood_ratio(views, pair), sign * np.inf)


@pytest.mark.parametrize(("calibration", "true"), [("exact", 1.455), ("kst_zeta", 0.521)])
def test_softmax_with_the_clipping_norm(calibration, true):
    wrong = SoftmaxClipNorm(calibration=calibration)
    pair = wrong.pairs()[0]
    assert wrong.mu(pair) * wrong.declared_scale == pytest.approx(math.sqrt(2))
    assert epsilon_of(wrong.mu(pair)) == pytest.approx(true, abs=1e-3)
    with pytest.raises(UsageError, match="one of exact, kst_zeta"):
        SoftmaxClipNorm(calibration="paper")


def test_softmax_derivatives():
    wrong = SoftmaxClipNorm()
    model = wrong._model(wrong.pairs()[0].left)
    theta = np.random.default_rng(0).normal(size=(1, 6))
    gradient, hessian = model.derivatives(theta)
    numeric = optimize.approx_fprime(theta[0], lambda t: model.value(t[None])[0], 1e-6)
    np.testing.assert_allclose(gradient[0], numeric, atol=1e-4)
    bend = optimize.approx_fprime(theta[0], lambda t: model.derivatives(t[None])[0][0], 1e-6)
    np.testing.assert_allclose(hessian[0], bend, atol=1e-4)
