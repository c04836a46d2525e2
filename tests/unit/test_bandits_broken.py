"""Broken twins: each keeps the claim and really leaks as much as it says."""

import math

import numpy as np
import pytest

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.broken.bandits import (
    FloorBatch,
    HalfNoise,
    NoClamp,
    OneSidedNoise,
    RawLoss,
    SharedNoise,
    SumNoise,
)
from algorithms.catalogue import CATALOGUE
from audit.mechanism import Mechanism, capability

TWINS = [name for name in CATALOGUE if name.startswith("broken/bandit")]


def both_sides(mechanism, n=2000):
    pair = mechanism.pairs()[0]
    return [mechanism.run(pair.side(left), n, np.random.default_rng(left)) for left in (1, 0)]


@pytest.mark.parametrize("name", TWINS)
def test_twin_keeps_the_claim_and_is_a_control(name):
    entry = CATALOGUE[name]
    twin, original = entry.build(), BatchedLaplace(**entry.parameters)
    assert entry.role == "control"
    assert isinstance(twin, Mechanism)
    assert twin.claim == original.claim
    assert twin.run(twin.pairs()[0].left, 5, np.random.default_rng(0))["noisy"].shape[0] == 5


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


def test_noise_on_the_sum_has_the_published_delta():
    twin = SumNoise("htinf", 0.1, 40, 3)
    assert twin.exact_profile(twin.pairs()[0], 0.1) == pytest.approx(0.3624, abs=6e-5)


def test_shared_noise_cancels():
    left, right = both_sides(SharedNoise("htinf", 1.0, 21, 3))
    for views, difference in ((left, 0.0), (right, 1.0)):
        noisy = views["noisy"]
        assert noisy[:, 0] - noisy[:, 1] == pytest.approx(np.full(2000, difference), abs=1e-9)
        assert noisy[:, 2:20:2] == pytest.approx(noisy[:, 3:20:2], abs=1e-9)
        assert np.abs(noisy[:, 1] - noisy[:, 2]).min() > 0


def test_raw_loss_shows_in_the_actions():
    left, right = both_sides(RawLoss("leader", 1.0, 20, 2, view="actions"))
    assert np.all(left["actions"][:, 2:] == 0)
    assert np.all(right["actions"][:, 2:] == 1)


def test_one_sided_noise_shows_in_the_support():
    twin = OneSidedNoise("exp3n", 0.5, 20, 3)
    left, right = both_sides(twin, n=20_000)
    assert right["noisy"][:, 0].min() >= 0.5
    delta = twin.exact_profile(twin.pairs()[0], 5.0)
    assert delta == pytest.approx(1 - math.exp(-0.5))
    # Hoeffding: a deviation of .025 in 20,000 draws has probability 2 exp(-25) < 1e-10.
    assert np.mean(left["noisy"][:, 0] < 0.5) == pytest.approx(delta, abs=0.025)


@pytest.mark.parametrize("kind", [SharedNoise, RawLoss, OneSidedNoise])
def test_twin_with_another_law_offers_no_likelihood(kind):
    twin = kind("htinf", 1.0, 20, 3, view="actions")
    assert capability(twin, "log_likelihood_ratio", "transcript") is None
    assert capability(twin, "exact_profile") is None
