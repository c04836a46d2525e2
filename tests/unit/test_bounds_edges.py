"""Bounds at their edges: ties, boundaries, and what delta costs, against formulas written anew."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from audit import bounds
from audit.errors import UsageError


@pytest.mark.parametrize("delta", [1e-4, 1e-2])
def test_the_walk_writes_off_revealed_guesses_and_their_alpha(delta: float) -> None:
    """What `ranked_epsilon` certifies solves its equation with V - k and alpha - beta."""
    rights, wrongs, alpha, trials = [80, 60, 300], [2, 12, 200], 0.05, 700
    k, beta = bounds.revealed_allowance(trials, delta, alpha)
    assert k > 0
    certified = bounds.ranked_epsilon(rights, wrongs, alpha, delta=delta, trials=trials)
    s = special.expit(certified)
    best = -np.inf
    for v, w in zip(np.cumsum(rights) - k, np.cumsum(wrongs), strict=True):
        law = stats.beta(v + 0.5, w + 0.5)
        mixture = special.betaln(v + 0.5, w + 0.5) + law.logsf(s)
        prior = special.betaln(0.5, 0.5) + stats.beta(0.5, 0.5).logsf(s)
        best = max(best, mixture - prior - v * np.log(s) - w * np.log1p(-s))
    assert best == pytest.approx(-math.log(alpha - beta), abs=1e-6)
    assert certified < bounds.ranked_epsilon(rights, wrongs, alpha, delta=0.0, trials=trials)


def test_the_walk_certifies_nothing_without_a_guess_at_any_level() -> None:
    assert bounds.ranked_epsilon([0], [0], 0.7, delta=0.0, trials=1) == 0.0
    assert bounds.ranked_epsilon([3], [0], 0.7, delta=0.9, trials=50) == 0.0
    nothing = bounds.ranked_log_wealth(np.array([1.0]), np.array([1.0]), 0.0)
    assert nothing == -1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-2)])
def test_the_walk_keeps_its_level_by_enumeration(epsilon: float, delta: float) -> None:
    """`ranked_epsilon` itself on the revealing box: 8 guesses one by one, revealed ones first.

    All outcomes, their exact probabilities: P(certified > true) <= alpha, and not by far.
    """
    n, alpha, s = 8, 0.45, float(special.expit(epsilon))
    numbers = range(n + 1)
    excess = 0.0
    for known in numbers:
        weight = float(stats.binom.pmf(known, n, delta))
        if weight < 1e-9:
            continue
        for told in itertools.product([0, 1], repeat=n - known):
            outcome = np.array([1] * known + list(told))
            right = int(sum(told))
            chance = weight * s**right * (1 - s) ** (n - known - right)
            certified = bounds.ranked_epsilon(outcome, 1 - outcome, alpha, delta=delta, trials=n)
            excess += chance * (certified > epsilon)
    assert 0.02 < excess <= alpha


def test_the_binomial_needs_all_trials() -> None:
    with pytest.raises(UsageError, match="got 9 for 10 guesses"):
        bounds.binomial_epsilon(6, 4, 0.05, delta=0.01, trials=9)
    assert bounds.binomial_epsilon(6, 4, 0.05, delta=0.01, trials=10) == 0.0
    assert bounds.binomial_epsilon(30, 0, 0.05, trials=0) > 1.0
    assert bounds.binomial_epsilon(5.4, 4.9, 0.05, delta=0.01, trials=10) == 0.0  # forecasts


def test_many_rules_are_judged_as_each_alone() -> None:
    right, wrong = np.array([0, 3, 30, 400, 1000]), np.array([0, 4, 0, 10, 600])
    for delta in (0.0, 0.01):
        many = bounds.binomial_epsilons(right, wrong, 0.05, delta=delta, trials=2000)
        alone = [
            bounds.binomial_epsilon(r, w, 0.05, delta=delta, trials=2000)
            for r, w in zip(right.tolist(), wrong.tolist(), strict=True)
        ]
        assert many.tolist() == alone
        assert many[3] > many[4] > 0.0 == many[1]


def test_no_bound_exceeds_the_largest_epsilon() -> None:
    assert bounds.binomial_epsilon(1e30, 0, 0.05) == bounds.LARGEST_EPSILON == 60.0
    assert bounds.binomial_epsilon(5, 5, 0.05) == 0.0
    assert bounds.gaussian_mu_lower(50, 100, 0.05) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.7, 30.0, 59.0, 800.0])
def test_log_sigmoid_in_both_tails(epsilon: float) -> None:
    assert bounds._log_sigmoid(epsilon) == pytest.approx(
        float(special.log_expit(epsilon)), rel=1e-12
    )
    assert bounds._log_sigmoid(-epsilon) == pytest.approx(
        float(special.log_expit(-epsilon)), rel=1e-12
    )


def test_pure_bets_are_fair_to_both_sides() -> None:
    """Against eps = 1 a bet on right grows as much as the mirrored bet on left."""
    left, right = bounds.log_bets([0.9, 0.1], [1.0], 0.0)[0, 0]
    assert left[0] == pytest.approx(right[1]) == pytest.approx(np.log(0.9 / special.expit(1.0)))
    assert right[0] == pytest.approx(left[1]) == pytest.approx(np.log(0.1 / special.expit(-1.0)))
    assert not bounds.log_bets([0.5, 0.6, 0.4], [1.0], 0.0)[0].any()  # within the null: no bet


def test_capped_bets_are_what_the_formula_says() -> None:
    """c + h (b - e^eps (1 - b)) + g ((1 - b) - e^eps b), every part written out."""
    epsilon, delta = 1.0, 1e-2
    for eta in (0.99, 0.8, 0.5, 0.2, 0.01):
        found = np.exp(bounds.log_bets([eta], [epsilon], delta))[:3, 0, :, 0]
        for bet, cap in zip(found, (0.02, 0.1, 0.3), strict=True):
            most = cap * math.exp(-epsilon)
            c, s = 1 - most * delta, special.expit(epsilon)
            h = min(most, c * max(0.0, eta / s - 1))
            g = min(most, c * max(0.0, (1 - eta) / s - 1))
            assert bet == pytest.approx([c + h - math.e * g, c - math.e * h + g])


def test_strategies_are_two_shrunk_posteriors_by_three_caps() -> None:
    assert np.exp(bounds.log_weights(0.0)) == pytest.approx([0.75, 0.25])
    assert np.exp(bounds.log_weights(1e-3)) == pytest.approx([0.25] * 3 + [1 / 12] * 3)
    whole, half = bounds.log_bets([0.99], [0.0], 0.0)[:, 0, 0, 0]
    shrunk = special.expit(special.logit(0.99) / 2)
    assert (whole, half) == pytest.approx((np.log(0.99 / 0.5), np.log(shrunk / 0.5)))


def test_the_grid_is_what_it_says() -> None:
    grid = bounds.epsilon_grid(0.7)
    assert (grid[0], grid[1], grid[-1]) == pytest.approx((0.0, 0.005, 60.0))
    assert len(grid) == 948
    assert 0.7 * (1 + 1e-9) in grid
    ratios = grid[2:] / grid[1:-1]
    assert ratios.max() < 1.0101


def test_where_everything_is_rejected_the_last_null_is_certified() -> None:
    table = np.array([[[0, 1], [0, 0]]])
    found = bounds.anytime_epsilon(table, [0.5, 0.9], 2.0, delta=0.0, confronted=1.0)
    assert found == bounds.epsilon_grid(1.0)[-1]


@pytest.mark.parametrize("strength", [3, 6, 12, 40])
def test_the_anytime_bound_wherever_its_search_ends(strength: int) -> None:
    """Each chunk of the grid gives the same answer as the whole grid at once."""
    tables = np.cumsum(np.tile([[[1, strength], [strength, 1]]], (40, 1, 1)), axis=0)
    posterior = [1 / (1 + strength), strength / (1 + strength)]
    grid = bounds.epsilon_grid(0.3)
    most = bounds.log_wealth(tables, posterior, grid, 0.0).max(axis=1)
    first = int(np.flatnonzero(most < np.log(20))[0])
    found = bounds.anytime_epsilon(tables, posterior, 0.05, delta=0.0, confronted=0.3)
    assert found == grid[first - 1] > 0


def test_a_wealth_of_exactly_one_over_alpha_rejects() -> None:
    table = np.array([[[0, 7], [0, 0]]])
    reached = float(bounds.log_wealth(table, [0.5, 0.9], [0.0], 0.0)[0, 0])
    at, above = math.exp(-reached), math.exp(-reached) * (1 - 1e-12)
    found = [
        bounds.anytime_epsilon(table, [0.5, 0.9], a, delta=0.0, confronted=1.0) for a in (at, above)
    ]
    assert found == [0.0, 0.0]
    assert bounds.anytime_epsilon(table, [0.5, 0.9], 2 * at, delta=0.0, confronted=1.0) > 0


def test_the_anytime_bound_keeps_its_level_by_enumeration() -> None:
    """All 2^9 outcomes of nine told trials, looked at after each; P(certified > true) <= alpha."""
    epsilon, alpha, sure = 1.0, 0.3, float(special.expit(1.0))
    excess = 0.0
    for told in itertools.product([0, 1], repeat=9):
        right = np.cumsum(told)
        tables = np.zeros((9, 2, 2), dtype=np.int64)
        tables[:, 0, 1], tables[:, 1, 1] = right, np.arange(1, 10) - right
        found = bounds.anytime_epsilon(tables, [0.1, 0.9], alpha, delta=0.0, confronted=epsilon)
        excess += sure ** right[-1] * (1 - sure) ** (9 - right[-1]) * (found > epsilon)
    assert 0.02 < excess <= alpha


def test_the_last_digit_of_an_exact_bound_does_not_cross_the_truth() -> None:
    """At levels that are exact tails the certified number stays at the truth up to 1e-9."""
    for n, epsilon in itertools.product((1, 7, 100, 5_000), (0.1, 1.0, 4.0)):
        sure = float(special.expit(epsilon))
        for v in {n, n - n // 9, round(n * sure) + 1} - {n + 1}:
            alpha = float(stats.binom.sf(v - 1, n, sure))
            if 1e-12 < alpha < 1:
                assert bounds.binomial_epsilon(v, n - v, alpha) <= epsilon * (1 + 1e-9)
                assert bounds.gaussian_mu_lower(v, n, alpha) <= 2 * special.ndtri(sure) * (1 + 1e-9)


def test_a_null_far_up_the_grid_is_found() -> None:
    sure = np.array([[[0, 10**9], [10**9, 0]]])
    posterior = [1e-30, 1 - 1e-16]
    grid = bounds.epsilon_grid(1.0)
    most = bounds.log_wealth(sure, posterior, grid, 0.0).max(axis=1)
    first = int(np.flatnonzero(most < np.log(20))[0])
    assert first > 820
    assert (
        bounds.anytime_epsilon(sure, posterior, 0.05, delta=0.0, confronted=1.0) == grid[first - 1]
    )


def test_equality_rejects_within_the_grid() -> None:
    """Alpha set so that one null's wealth equals the target to the last bit."""
    grid = bounds.epsilon_grid(1.0)
    for number in range(10, 60):
        table = np.array([[[0, number], [0, 1]]])
        wealth = bounds.log_wealth(table, [0.5, 0.9], grid[:128], 0.0)[:, 0]
        alpha = math.exp(-wealth[60])
        if -math.log(alpha) == wealth[60] > wealth[61]:
            break
    found = bounds.anytime_epsilon(table, [0.5, 0.9], alpha, delta=0.0, confronted=1.0)
    assert found == grid[60]
