"""Price inversion, the price attack and the utility of the policy."""

import math
from dataclasses import replace

import numpy as np
import pytest

from algorithms.pricing import utility
from algorithms.pricing.constants import constants
from algorithms.pricing.demand import link
from algorithms.pricing.inversion import best_price, recover
from algorithms.pricing.market import draw_contexts, truth
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import play
from attacks.catalogue import CATALOGUE
from attacks.prices import Prices
from audit.attack import Game
from audit.view import Views, collect, project

LEAKY = {
    "rounds": 400,
    "prices": 401,
    "explore": 100,
    "ridge_cov": 4.0,
    "ridge_mle": 1.0,
    "sigma": 0.5,
    "nu": 1.0,
    "cap": 3,
    "bonus": 0.0,
}


def leaky(view="prices_after"):
    return PrivatePricing(changes=LEAKY, view=view, allow_vacuous=True)


def flip(policy):
    with pytest.warns(UserWarning, match="vacuous"):
        return policy.pairs()[2]


@pytest.mark.parametrize("demand", ["logistic", "linear"])
def test_best_price_is_the_best_on_a_fine_grid(demand):
    rng, mean = np.random.default_rng(0), link(demand).mean
    theta, x = truth(2) + rng.normal(size=(3, 4)) / 2, draw_contexts(5, 2, rng)
    grid = np.linspace(0, 4, 40_001)
    for i, t in enumerate(theta):
        for j, c in enumerate(x):
            eta = (c @ t[:2] - grid * (c @ t[2:])) / math.sqrt(2)
            best = grid[np.argmax(grid * mean(eta))]
            assert best_price(theta, x, demand)[i, j] == pytest.approx(best, abs=2e-4)


def test_prices_of_fake_customers_reveal_the_estimate():
    rng = np.random.default_rng(1)
    theta, x = truth(2) + 0.3 * rng.normal(size=(20, 4)), draw_contexts(12, 2, rng)
    prices = best_price(theta, x)
    weights = np.ones_like(prices)
    prices[:, 0], weights[:, 0] = 1.0, 0.0
    np.testing.assert_allclose(recover(x, prices, truth(2), weights), theta, atol=2e-5)


def test_linear_demand_reveals_the_estimate_up_to_its_size():
    """The best price ``a/(2 b)`` is that of any multiple of theta."""
    rng = np.random.default_rng(1)
    theta, x = truth(2) + 0.3 * rng.normal(size=(20, 4)), draw_contexts(12, 2, rng)
    prices = best_price(theta, x, "linear")
    found = recover(x, prices, truth(2), np.ones_like(prices), "linear")
    np.testing.assert_allclose(best_price(found, x, "linear"), prices, atol=1e-6)
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (found, theta)]
    np.testing.assert_allclose(*units, atol=1e-3)


def test_price_attack_beats_guessing():
    """Rank statistic of a flipped outcome at 5 null standard errors: false alarm 3e-7."""
    policy, rng, n = leaky(), np.random.default_rng(2), 400
    pair = flip(policy)
    game = Game(policy, pair, "prices_after")
    views = [game.play(side, n, rng) for side in (True, False)]
    scorer = Prices().fit(game, *views, rng)
    left, right = (scorer(view) for view in views)
    ahead = np.mean(left[:, None] > right) + np.mean(left[:, None] == right) / 2
    assert ahead > 0.5 + 5 * math.sqrt((2 * n + 1) / (12 * n * n))


@pytest.mark.parametrize("view", ["prices_after", "prices_except", "prices_all"])
def test_price_score_reads_every_view_of_the_prices(view):
    policy = leaky(view)
    pair = flip(replace(policy, view="prices_after"))
    emitted = collect(policy.run(pair.left, 4, np.random.default_rng(0)), 4)
    shown = project(emitted, view, (0,))
    assert np.isfinite(policy.price_score(shown, pair)).all()


def test_the_own_price_tells_a_customer_from_nobody():
    """Counted shares of a score above 2, 5 standard errors apart: false alarm 6e-7."""
    policy = replace(leaky("prices_all"), customer=350)
    with pytest.warns(UserWarning, match="vacuous"):
        (pair,) = policy.pairs()
    game, rng = Game(policy, pair, "prices_all"), np.random.default_rng(4)
    views = [game.play(side, 100, rng) for side in (True, False)]
    scorer = Prices().fit(game, *views, rng)
    hits = [np.mean(scorer(view) > 2) for view in views]
    assert hits[0] - hits[1] > 5 * math.sqrt(0.5 / 100)


def test_price_attack_knows_when_it_applies():
    assert CATALOGUE["prices"] == "attacks.prices:Prices"
    policy = leaky()
    pair = flip(policy)
    assert Prices().applies(Game(policy, pair, "prices_after"))
    assert not Prices().applies(Game(policy, pair, "transcript"))
    assert not Prices().applies(Game(object(), pair, "prices_after"))
    views = collect(policy.run(pair.left, 3, np.random.default_rng(0)), 3)
    scorer = Prices().fit(Game(policy, pair, "prices_all"), views, views, np.random.default_rng(0))
    other = Views(views.form, {"prices": views["prices"][:, :5]})
    np.testing.assert_array_equal(scorer(other), np.zeros(3))


@pytest.mark.slow
def test_regret_of_yardsticks():
    """Random prices cost 270 in 4096 rounds; the policy and GLM-UCB less, in this order."""
    policy = PrivatePricing(preset="long")
    private = utility.private_point(policy, 12)
    open_, fixed, random = utility.yardsticks(policy.public, 12)
    assert random.regret == pytest.approx(270, rel=0.03)
    assert 0 < fixed.regret < 10
    assert 40 < open_.regret < 110
    assert open_.regret < private.regret < random.regret
    assert private.refreshes >= 5
    assert private.epsilon == policy.claim.epsilon


WORLD = {  # of the test market: preset, changes, least and most refreshes, range of regret
    "open": ("open", {}, (14, 17), (62, 69)),
    "sigma 2": ("long", {"sigma": 2.0, "ridge_cov": 50.0}, (6, 8), (150, 250)),
    "sigma 10": ("long", {}, (5, 6.5), (117, 264)),
    "long": ("long", {"rounds": 16384, "explore": 800}, (7, 9), (228, 388)),
    "ceiling": ("ceiling", {}, (5, 7), (510, 525)),
    "frozen": ("frozen", {}, (0.5, 2), (510, 525)),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", WORLD)
def test_the_test_market_is_as_documented(row):
    """Means of 30 runs; regret with a fifth to either side, five standard errors of most rows."""
    preset, changes, (fewest, most), (least, worst) = WORLD[row]
    public, rng = constants(preset, **changes), np.random.default_rng(0)
    market = utility._market(public, 30, rng)
    course = play(public, market, Drawn(public, market, 30, rng, keep=False), 30)
    lost = utility.regret(public, market.contexts, course.prices)
    print(
        f"{row}: {course.calls.mean():.1f} refreshes, regret {lost.mean():.0f} +- {lost.std():.0f}"
    )
    assert fewest <= course.calls.mean() <= most
    assert 0.8 * least <= lost.mean() <= 1.2 * worst
    late = course.prices[:, public.explore :]
    assert (late == 1).all() == (preset in ("ceiling", "frozen"))


def test_best_price_of_each_customer_has_no_regret():
    public = PrivatePricing().public
    x = draw_contexts(7, 2, np.random.default_rng(0))
    every = utility.expected_revenue(x, np.repeat(public.grid[:, None], 7, axis=1))
    best = public.grid[every.argmax(axis=0)][None]
    assert utility.regret(public, x, best) == pytest.approx(0, abs=1e-12)
    assert utility.regret(public, x, np.zeros((1, 7))) == pytest.approx(every.max(axis=0).sum())


def test_one_private_price_for_everybody_learns():
    """Ten prices, 40 customers each: with next to no noise the best but one at worst, mostly."""
    public = PrivatePricing(changes={"rounds": 1000, "explore": 400}).public
    clear, blurred = (utility.uniform_point(public, e, 30) for e in (1e6, 1e-3))
    x = draw_contexts(1000, 2, np.random.default_rng(0))
    prices = np.linspace(0.1, 1.0, 10)
    lost = utility.regret(public, x, np.repeat(prices[:, None], 1000, axis=1))
    explored, rest = 0.4 * lost.mean(), 0.6 * np.sort(lost)
    assert explored + rest[0] - 2 < clear.regret < explored + rest[2] + 2
    assert clear.regret + 5 * clear.error < blurred.regret
    # Pure noise grows with the price, so the dearest win more often than not.
    assert abs(blurred.regret - explored - rest.mean()) < rest.std()


def test_curves_have_a_point_for_each_request():
    small = PrivatePricing(changes={"rounds": 150, "explore": 50}, allow_vacuous=True)
    found = small.utility_curves(horizons=(200, 150), epsilons=(30.0, 9.0), runs=3)
    by_rounds, by_epsilon = found["rounds"], found["epsilon"]
    yardsticks = ["glm-ucb", "fixed", "random"]
    assert [p.policy for p in by_rounds] == ["private", "uniform", *yardsticks] * 2
    assert [p.rounds for p in by_rounds] == [150] * 5 + [200] * 5
    assert [p.policy for p in by_epsilon] == ["private", "uniform"] * 2 + yardsticks
    assert [p.epsilon for p in by_epsilon[:4]] == pytest.approx([9, 9, 30, 30], rel=1e-3)
    assert all(p.epsilon <= e for p, e in zip(by_epsilon[::2], (9.0, 30.0), strict=False))
    assert all(math.isfinite(p.regret) and p.error >= 0 for p in by_rounds + by_epsilon)
