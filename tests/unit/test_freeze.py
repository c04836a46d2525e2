"""Freezing: bins and rules chosen on scouting trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from audit.attack import Game
from audit.claim import AnyClaim, GaussianDp, PureDp
from audit.engine import play_blocks
from audit.freeze import Budget, Frozen, choose, freeze
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.posterior import bin_edges, posterior_of
from audit.view import Floats, Views, collect


@dataclass(frozen=True)
class Value:
    """An attack that scores a view by its value."""

    name: str = "value"
    slow: bool = False
    learns: bool = False
    description: str = "the value"

    def __call__(self, views: Views) -> Floats:
        return views["value"]


PAIR = Pair(0.0, 1.0)
GAME = Game(FunctionMechanism(lambda data, rng: data), PAIR, "output")


def frozen(
    left: Floats, right: Floats, claim: AnyClaim | None = None, trials: int = 10_000
) -> Frozen:
    budget = Budget(claim or PureDp(epsilon=1.0), trials, 0.025)
    sides = collect(left, len(left)), collect(right, len(right))
    return freeze(GAME, Value(), Value(), *sides, budget, 3)  # type: ignore[arg-type]


def laplace_scores(epsilon: float, n: int, seed: int = 0) -> tuple[Floats, Floats]:
    y = np.random.default_rng(seed).laplace(0, 1 / epsilon, n)
    score = epsilon * (np.abs(y - 1) - np.abs(y))
    return score, -score[::-1]


def test_the_best_rule_on_a_laplace_pair_abstains_between_the_extremes() -> None:
    found = frozen(*laplace_scores(1.0, 4_000))
    choice = found.choice
    guess, posterior = np.array(choice.guess), np.array(choice.posterior)
    assert guess[np.searchsorted(choice.edges, [-1.0, 0.0, 1.0])].tolist() == [-1, 0, 1]
    assert np.all(guess[guess != 0] == np.sign(posterior[guess != 0] - 0.5))
    assert choice.test == "binomial"
    assert choice.pair == 3
    assert 0.8 < found.forecast < 1.05


def test_a_gross_leak_grows_and_is_forecast() -> None:
    found = frozen(*laplace_scores(4.0, 500))
    assert found.forecast > 2
    assert found.growth > 0.05


def test_noise_is_not_forecast_as_a_leak() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        found = frozen(rng.normal(size=300), rng.normal(size=300))
        assert found.forecast < 0.5
        assert found.growth <= 0


def test_a_large_score_may_mean_right_as_well() -> None:
    left, right = laplace_scores(2.0, 2_000)
    assert frozen(left, right).forecast == pytest.approx(frozen(right, left).forecast, rel=0.1)


def test_a_curve_is_confronted_at_one_of_its_points() -> None:
    rng = np.random.default_rng(2)
    claim = GaussianDp(mu=1.0)
    choice = frozen(rng.normal(1, 1, 2_000), rng.normal(0, 1, 2_000), claim).choice
    assert (choice.epsilon, choice.delta) in claim.points()


def test_few_scouted_guesses_leave_the_threshold_to_the_walk() -> None:
    left = np.concatenate([np.zeros(990), np.ones(10)])
    assert frozen(left, np.zeros(1000)).choice.test == "ranked"


def test_edges_never_separate_values_that_differ_by_rounding() -> None:
    rng = np.random.default_rng(3)
    atoms = np.array([-1.0, 0.5, 1.0])[rng.integers(0, 3, 5_000)]
    dusty = atoms + 2.0**-36 * rng.integers(-2, 3, 5_000)
    edges = bin_edges(dusty, 1.0)
    assert len(edges) == 2
    assert np.min(np.abs(edges[:, None] - np.array([-1.0, 0.5, 1.0]))) > 0.2


def test_edges_of_continuous_scores_are_few_increasing_and_fine_in_the_tails() -> None:
    scores = np.random.default_rng(4).normal(size=20_000)
    edges = bin_edges(scores, 4.0)
    assert np.all(np.diff(edges) > 0)
    assert 64 <= len(edges) <= 300
    assert (scores > edges[-1]).sum() < 40
    assert (scores < edges[0]).sum() < 40


@pytest.mark.parametrize("scores", [np.zeros(10), np.full(10, np.nan), np.full(10, np.inf)])
def test_constant_scores_have_two_bins(scores: Floats) -> None:
    assert bin_edges(scores, 1.0).tolist() == [0.0]


def test_posteriors_are_smoothed_and_balanced() -> None:
    few = posterior_of(np.array([[90, 10, 0], [10, 90, 0]]))
    assert few == pytest.approx([90.5 / 101, 10.5 / 101, 0.5])
    many = posterior_of(np.array([np.arange(20), np.arange(20)[::-1]]) + 1)
    assert np.all(np.diff(many) >= 0)
    assert np.all((many > 0) & (many < 1))


def test_a_posterior_of_unequal_sides_is_that_of_fair_coins() -> None:
    uneven = posterior_of(np.array([[900, 100], [10, 90]]))
    assert uneven[0] == pytest.approx(0.9, abs=0.01)
    assert uneven[1] == pytest.approx(0.1, abs=0.01)


def test_the_best_forecast_is_chosen() -> None:
    candidates = [frozen(*laplace_scores(e, 1_000)) for e in (0.5, 3.0, 1.0)]
    assert choose(candidates) is candidates[1]


def test_testifying_scores_are_binned_as_scouted_ones() -> None:
    left, right = laplace_scores(1.0, 2_000)
    found = frozen(left, right)
    order = np.random.default_rng(0)
    table = found.tabulate(collect(left, 2_000), collect(right, 2_000), order)
    assert table.sum(axis=1).tolist() == [2_000, 2_000]
    assert table.shape == (2, len(found.choice.posterior))
    guess = np.array(found.choice.guess)
    said = table[:, guess > 0].sum(axis=1)
    assert np.log(said[0] / said[1]) == pytest.approx(1.0, abs=0.35)  # 5 standard errors
    empty = found.tabulate(collect(left, 2_000), Views(np.empty(0, dtype=object)), order)
    assert empty[1].sum() == 0


@dataclass(frozen=True)
class Place:
    """Scores trials by their place in the call, and never looks at a view."""

    name: str = "place"
    slow: bool = False
    learns: bool = False
    rowwise: bool = False
    description: str = "noise from one seed"

    def __call__(self, views: Views) -> Floats:
        return np.random.default_rng(7).normal(size=len(views))


def test_a_place_in_the_call_says_nothing_about_the_side() -> None:
    """Equal views on both sides, blocks of one size; false alarm 6e-7 (5 standard errors).

    With one order for all calls of a size this scorer was right 12 standard errors too rarely.
    """
    claim = PureDp(epsilon=1.0)
    game = Game(FunctionMechanism(lambda data, n, rng: np.zeros(n), batched=True), PAIR, "output")
    views = collect(np.zeros(200), 200)
    budget = Budget(claim, 10_000, 0.025)
    found = freeze(game, Place(), Place(), views, views, budget, 0)  # type: ignore[arg-type]
    blocks = range(200)
    _, counts, _ = play_blocks(0, found, "case", 0, blocks, [500] * len(blocks))
    total = np.sum(list(counts.values()), axis=0)
    upper = int(np.argmax(np.array(found.choice.edges) >= 0.0)) + 1
    right, trials = int(total[0, upper:].sum() + total[1, :upper].sum()), int(total.sum())
    assert trials == 100_000
    assert abs(right - trials / 2) < 5 * np.sqrt(trials) / 2
