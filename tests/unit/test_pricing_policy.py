"""The pricing policy against a literal implementation, its regime, claims, views and replay."""

import math
import pickle

import numpy as np
import pytest
from scipy import optimize

from algorithms.pricing.constants import PRESETS, Constants, constants
from algorithms.pricing.market import (
    ALWAYS,
    NEVER,
    PROBES,
    draw_valuations,
    market_of,
    probed,
    sample_market,
    truth,
)
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.releasers import Drawn, covariance_of, log_determinants
from algorithms.pricing.rounds import Optimiser, play
from algorithms.pricing.transcript import Replayed
from algorithms.primitives.accounting import loss_bound_epsilon
from algorithms.primitives.symmetric import SHAPES
from audit.claim import GaussianDp
from audit.errors import UsageError
from audit.mechanism import Mechanism, capability
from audit.pair import Pair
from audit.view import collect, project

SMALL = {
    "rounds": 40,
    "explore": 12,
    "ridge_cov": 2.0,
    "ridge_mle": 1.0,
    "sigma": 0.3,
    "nu": 1.5,
    "cap": 6,
}


def small(**changes):
    return PrivatePricing(changes=SMALL, allow_vacuous=True, **changes)


def literal_policy(public, data, transcript):
    """The algorithm as published, one trial, one round at a time, on recorded releases."""
    d, grid, x = public.dimension, public.grid, data["contexts"]
    theta, lam = np.zeros(d), public.ridge_cov * np.eye(d)
    logdet, calls, released, prices, times = d * math.log(public.ridge_cov), 0, None, [], []
    rows, columns = np.triu_indices(d)
    for t in range(public.rounds):
        current = public.ridge_cov * np.eye(d)
        if t:
            released = transcript["sums"][t - 1]
            current[rows, columns] += released
            current[columns, rows] = current[rows, columns]
        if t < public.explore:
            prices.append(transcript["explored"][t])
            continue
        sign, log = np.linalg.slogdet(current)
        positive = sign > 0 and np.linalg.eigvalsh(current)[0] > 0
        if calls < public.cap and positive and log > logdet + math.log(2):
            theta, lam, logdet = transcript["thetas"][calls], current, log
            times.append(t + 1)
            calls += 1
        phi = np.hstack([np.tile(x[t], (len(grid), 1)), -grid[:, None] * x[t]]) / math.sqrt(2)
        width = np.sqrt(np.maximum(0, np.einsum("gi,ij,gj->g", phi, np.linalg.inv(lam), phi)))
        demand = public.link.mean(phi @ theta) + public.bonus * width
        value = grid * np.clip(demand, 0, public.link.bound)
        prices.append(grid[np.argmax(value)])
    return np.array(prices), times


def course_of(public, data, n, seed=0, keep=True):
    market = market_of(data, public)
    drawn = Drawn(public, market, n, np.random.default_rng(seed), keep=keep)
    return play(public, market, drawn, n), drawn


@pytest.mark.parametrize(
    "demand", [{}, {"demand": "linear", "bound": 0.6, "radius": 2.0}], ids=["logistic", "linear"]
)
def test_policy_is_the_published_algorithm(demand):
    """Prices and refresh rounds; float32 prices may differ by a grid step in 1e-3 of rounds."""
    public = constants("working", **{**SMALL, **demand})
    data = sample_market(public.rounds)
    course, drawn = course_of(public, data, 25)
    assert course.calls.mean() > 2
    differ = 0
    for i in range(25):
        one = {name: getattr(drawn, name)[i] for name in ("sums", "explored", "thetas")}
        prices, times = literal_policy(public, data, one)
        assert times == [t for t in drawn.times[i] if t]
        differ += np.sum(np.abs(prices - course.prices[i]) > 1e-9)
    assert differ <= 1e-3 * 25 * public.rounds + 1


def test_estimates_are_minimisers_of_the_records_so_far():
    public = constants("working", **{**SMALL, "nu": 0.0, "radius": 50.0})
    data = sample_market(public.rounds)
    course, drawn = course_of(public, data, 3)
    for i in range(3):
        t = int(drawn.times[i, 0]) - 1
        x, p, y = data["contexts"][:t], course.prices[i, :t], course.outcomes[i, :t]
        phi = np.hstack([x, -p[:, None] * x]) / math.sqrt(2)

        def loss(theta, phi=phi, y=y):
            eta = phi @ theta
            return np.sum(np.logaddexp(0, eta) - y * eta) + public.ridge_mle / 2 * theta @ theta

        best = optimize.minimize(loss, np.zeros(4), tol=1e-10).x
        np.testing.assert_allclose(drawn.thetas[i, 0], best, atol=1e-4)


def test_released_sums_without_noise_are_the_gram_matrices():
    public = constants("working", **{**SMALL, "sigma": 0.0})
    data = sample_market(public.rounds)
    course, drawn = course_of(public, data, 4)
    phi = np.hstack([data["contexts"], -course.prices[2][:, None] * data["contexts"]])
    gram = (phi[:20].T @ phi[:20] / 2)[np.triu_indices(4)]
    np.testing.assert_allclose(drawn.sums[2, 19], gram, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_pivots_are_determinants(shape):
    public = Constants(wide=2, shape=shape, ridge_cov=1.0)
    d, rng = 4, np.random.default_rng(0)
    where = SHAPES[shape].entries(d)
    entries = rng.normal(size=(len(where[0]), 300))
    found = log_determinants(public, entries, where)
    whole = covariance_of(public, entries.T)
    np.testing.assert_allclose(whole, whole.swapaxes(1, 2))
    positive = np.linalg.eigvalsh(whole)[:, 0] > 0
    assert 0 < positive.sum() < 300
    np.testing.assert_array_equal(np.isfinite(found), positive)
    np.testing.assert_allclose(found[positive], np.linalg.slogdet(whole[positive])[1], atol=1e-8)


def test_determinants_neither_overflow_nor_warn():
    """A pivot far below zero must not be squared at every later step, nor the product run over."""
    public = Constants(wide=20, ridge_cov=1.0)
    where = SHAPES["mirrored"].entries(40)
    entries = 1e9 * np.random.default_rng(0).normal(size=(len(where[0]), 5))
    assert np.all(log_determinants(public, entries, where) == -np.inf)
    large = np.where(where[0] == where[1], 1e9, 0.0)[:, None]
    assert log_determinants(public, large, where)[0] == pytest.approx(40 * math.log(1e9))


def test_float32_prices_differ_rarely_from_float64():
    public = constants("working")
    optimiser = Optimiser(public, 3000)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3000, 4, 4))
    covariance = 50 * np.eye(4) + 20 * root @ root.swapaxes(1, 2)
    theta = rng.normal(size=(3000, 4)) * [2, 2, 2, 2] + truth(2)
    optimiser.update(np.arange(3000), theta, covariance)
    x = np.array([0.6, 0.8])
    phi = np.hstack([np.tile(x, (101, 1)), -public.grid[:, None] * x]) / math.sqrt(2)
    width = np.einsum("gi,nij,gj->ng", phi, np.linalg.inv(covariance), phi, optimize=True)
    demand = 1 / (1 + np.exp(-theta @ phi.T)) + public.bonus * np.sqrt(width)
    exact = public.grid[np.argmax(public.grid * np.clip(demand, 0, 1), axis=1)]
    assert np.mean(exact != optimiser.prices(x)) <= 1e-3


def test_cap_is_enforced_and_blocks_do_not_matter_in_shape():
    mechanism = PrivatePricing(changes={**SMALL, "cap": 2}, allow_vacuous=True, view="transcript")
    data = sample_market(40)
    out = mechanism.run(data, 30, np.random.default_rng(0))
    assert out["thetas"].shape == (30, 2, 4)
    assert (out["times"] > 0).all(axis=1).any()
    assert out["sums"].shape == (30, 39, 10)
    assert out["explored"].shape == (30, 12)


def test_views_hold_prices_only_or_releases_only():
    data = sample_market(40)
    prices = small(view="prices_after").run(data, 5, np.random.default_rng(0))
    assert list(prices) == ["prices"]
    shown = project(collect(prices, 5), "prices_after", (9,))
    assert shown["prices"].shape == (5, 30)
    releases = small(view="transcript").run(data, 5, np.random.default_rng(0))
    assert "prices" not in releases
    assert capability(small(view="transcript"), "log_likelihood_ratio", "transcript")
    assert capability(small(), "log_likelihood_ratio", "prices_after") is None


def test_replay_finds_the_prices_that_were_charged():
    public = constants("working", **SMALL)
    data = sample_market(public.rounds)
    course, drawn = course_of(public, data, 20)
    names = ("sums", "thetas", "times", "explored")
    views = collect({name: getattr(drawn, name) for name in names}, 20)
    again = play(public, market_of(data, public), Replayed(public, views), 20)
    np.testing.assert_array_equal(again.prices, course.prices)
    np.testing.assert_array_equal(again.calls, course.calls)


def test_customers_with_prices_of_their_own_are_not_tilted():
    mechanism = small(view="transcript", customer=25)
    with pytest.warns(UserWarning, match="vacuous"):
        pair = mechanism.pairs()[0]
    emitted, weights = mechanism.tilted_run(pair, 3.0, 4, np.random.default_rng(0))
    plain = mechanism.run(pair.left, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(weights, np.zeros(4))
    np.testing.assert_array_equal(emitted["sums"], plain["sums"])


def test_the_same_customer_twice_shows_nothing():
    mechanism = small(view="transcript")
    data = sample_market(40)
    left = {"contexts": data["contexts"], "outcomes": np.ones(40)}
    right = {name: column.copy() for name, column in left.items()}
    right["contexts"][3], right["outcomes"][3] = -right["contexts"][3], 0.0
    pair = Pair(left, right, relation="replace-one")
    views = collect(mechanism.run(left, 20, np.random.default_rng(0)), 20)
    assert np.abs(mechanism.log_likelihood_ratio(views, pair)).max() < 1e-9


@pytest.mark.parametrize("preset", ["working", "lively", "louder", "brief", "capped"])
def test_working_presets_work(preset):
    _works(PrivatePricing(preset=preset))


def test_linear_demand_works_too():
    """Customers buy as logistic demand says; a line fits it well enough to learn prices from."""
    _works(PrivatePricing(preset="louder", changes={"demand": "linear", "radius": 1.5}))


def _works(mechanism):
    regime = mechanism.regime(sample_market(mechanism.public.rounds))
    assert regime.refreshes >= 5
    assert regime.interior > 0.5
    assert not regime.vacuous


@pytest.mark.parametrize("kind", PROBES)
def test_fake_customers_come_after_the_exploration(kind):
    data = sample_market(40)
    fake = probed(data, kind, 12)
    norms = np.linalg.norm(fake["contexts"], axis=1)
    first = 1 if kind == "null" else 12
    np.testing.assert_array_equal(fake["contexts"][:first], data["contexts"][:first])
    np.testing.assert_array_equal(fake["valuations"], data["valuations"])
    assert norms.max() <= 1 + 1e-12
    late = fake["contexts"][12:]
    assert {
        "none": np.array_equal(late, data["contexts"][12:]),
        "spread": np.allclose(norms[[12, -1]], [0.6, 1.0]),
        "cycle": np.array_equal(late[8:], late[:-8]) and np.ptp(norms[12:20]) > 0.3,
        "tiny": np.allclose(norms[12:], 0.05),
        "constant": np.ptp(late, axis=0).max() == 0,
        "null": not fake["contexts"][1:, 0].any(),
    }[kind]
    with pytest.raises(UsageError, match="one of none, spread"):
        probed(data, "many", 12)


def test_vacuous_policies_are_refused_before_they_run():
    with pytest.raises(UsageError, match=r"vacuous: 1\.7 refreshes"):
        PrivatePricing(preset="frozen").pairs()
    with pytest.raises(UsageError, match=r"vacuous.*Lower the ridges"):
        PrivatePricing(changes={"explore": 0, "ridge_mle": 200.0, "bonus": 0.5}).pairs()
    with pytest.warns(UserWarning, match="vacuous"):
        assert PrivatePricing(preset="frozen", allow_vacuous=True).pairs()


def test_claims_add_or_convolve():
    added, joint = (PrivatePricing(accounting=a) for a in ("sum", "joint"))
    covariance, estimator = added.guarantee.parts
    assert added.guarantee.covariance_mu == pytest.approx(math.sqrt(2 * 10) / 4)
    assert covariance == GaussianDp(mu=added.guarantee.covariance_mu).epsilon_at(5e-7)
    assert added.claim.epsilon == covariance + estimator
    assert max(added.guarantee.parts) < joint.claim.epsilon < added.claim.epsilon
    assert joint.accountant(joint.claim.epsilon) == pytest.approx(1e-6, rel=1e-3)
    alone = loss_bound_epsilon(1e-6, calls=8, offset=0.07, width=0.147)
    assert alone < joint.claim.epsilon
    assert joint.noise_scaled(2.0).claim == joint.claim
    assert joint.noise_scaled(2.0).accountant(1.0) < joint.accountant(1.0)


def test_pairs_are_neighbours_at_the_customer():
    mechanism = small()
    assert isinstance(mechanism, Mechanism)
    with pytest.warns(UserWarning, match="vacuous"):
        pairs = mechanism.pairs()
    assert [pair.differs for pair in pairs] == [(0,)] * 3
    with pytest.warns(UserWarning, match="vacuous"):
        assert small(view="prices_all").pairs()[0].differs == (30,)
    copy = pickle.loads(pickle.dumps(mechanism))
    one = copy.run(pairs[0].left, 2, np.random.default_rng(3))["prices"]
    two = mechanism.run(pairs[0].left, 2, np.random.default_rng(3))["prices"]
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"preset": "best"}, "one of working"),
        ({"changes": {"sigm": 1}}, "no constant 'sigm'"),
        ({"changes": {"rounds": 2}}, "rounds >= 3"),
        ({"changes": {"explore": 1024}}, "explore < rounds"),
        ({"changes": {"shape": "round"}}, "one of mirrored"),
        ({"changes": {"ridge_cov": 0.0}}, "ridge_cov > 0"),
        ({"preset": "open"}, "sigma > 0 and nu > 0"),
        ({"view": "prices"}, "one of transcript"),
        ({"accounting": "paper"}, "sum or joint"),
        ({"customer": 1024}, "a customer"),
        ({"delta": 0.0}, "0 < delta < 1"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(UsageError, match=words):
        PrivatePricing(**parameters)


def test_bad_markets():
    public, data = constants("working", **SMALL), sample_market(40)
    for wrong, words in (
        ({**data, "contexts": data["contexts"][:5]}, "expected contexts of shape"),
        ({**data, "contexts": 2 * data["contexts"]}, "norm at most 1"),
        ({"contexts": data["contexts"]}, "valuations or outcomes of length 40"),
    ):
        with pytest.raises(UsageError, match=words):
            market_of(wrong, public)


def test_valuations_follow_the_demand_model():
    """Share of buyers at a price against the model; 5 standard errors, false alarm 6e-7."""
    x, theta, price = np.array([[0.6, 0.8]]), truth(2), 0.3
    drawn = draw_valuations(x, theta, np.random.default_rng(0).random((200_000, 1)))
    phi = np.hstack([x[0], -price * x[0]]) / math.sqrt(2)
    chance = 1 / (1 + math.exp(-phi @ theta))
    error = math.sqrt(chance * (1 - chance) / 200_000)
    assert abs(np.mean(drawn >= price) - chance) < 5 * error
    indifferent = draw_valuations(0 * x, theta, np.array([[0.2], [0.7]]))
    np.testing.assert_array_equal(indifferent[:, 0], [ALWAYS, NEVER])


def test_doublings_bound_the_refreshes():
    public = constants("louder", cap=40, sigma=0.0)
    course, _ = course_of(public, sample_market(public.rounds), 3, keep=False)
    assert 5 <= course.calls.max() <= PRESETS["louder"].doublings
