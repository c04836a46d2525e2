"""Bounds against exact binomials, enumeration of tiny experiments, and known medians."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special, stats

from audit import bounds

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)
DELTAS = (1e-6, 1e-4, 1e-2)


@pytest.mark.parametrize(("right", "guesses"), [(1, 1), (7, 10), (90, 100), (60_000, 100_000)])
def test_clopper_pearson_against_scipy(right: int, guesses: int) -> None:
    exact = stats.binomtest(right, guesses, alternative="greater")
    low = exact.proportion_ci(0.95, method="exact").low
    assert bounds.clopper_pearson_lower(right, guesses, 0.05) == pytest.approx(low, rel=1e-9)
    other = stats.binomtest(right, guesses, alternative="less")
    high = other.proportion_ci(0.95, method="exact").high
    assert bounds.clopper_pearson_upper(right, guesses, 0.05) == pytest.approx(high, rel=1e-9)


def test_clopper_pearson_without_information() -> None:
    assert bounds.clopper_pearson_lower(0, 10, 0.05) == 0.0
    assert bounds.clopper_pearson_lower(0, 0, 0.05) == 0.0
    assert bounds.clopper_pearson_upper(10, 10, 0.05) == 1.0
    assert bounds.clopper_pearson_upper(0, 0, 0.05) == 1.0


@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize("trials", [1, 10, 1000, 100_000])
@pytest.mark.parametrize("delta", [1e-7, 1e-5, 1e-2, 0.3])
def test_revealed_allowance_is_the_smallest(trials: int, delta: float, alpha: float) -> None:
    k, beta = bounds.revealed_allowance(trials, delta, alpha)
    assert beta == pytest.approx(alpha / 20)
    assert stats.binom.sf(k, trials, delta) <= beta
    assert k == 0 or stats.binom.sf(k - 1, trials, delta) > beta


def test_nothing_is_revealed_at_delta_zero() -> None:
    assert bounds.revealed_allowance(1000, 0.0, 0.05) == (0, 0.0)


@pytest.mark.parametrize(("right", "wrong"), [(20, 3), (80, 20), (7000, 3000)])
def test_binomial_epsilon_inverts_the_exact_tail(right: int, wrong: int) -> None:
    certified = bounds.binomial_epsilon(right, wrong, 0.05)
    tail = stats.binom.sf(right - 1, right + wrong, special.expit(certified))
    assert tail == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("delta", DELTAS)
def test_binomial_epsilon_spends_alpha_on_both_ways_to_fail(delta: float) -> None:
    right, wrong, trials, alpha = 900, 100, 2000, 0.05
    certified = bounds.binomial_epsilon(right, wrong, alpha, delta=delta, trials=trials)
    k, beta = bounds.revealed_allowance(trials, delta, alpha)
    tail = stats.binom.sf(right - k - 1, right + wrong - k, special.expit(certified))
    assert beta + tail == pytest.approx(alpha, rel=1e-6)


def test_binomial_epsilon_without_evidence_is_zero() -> None:
    assert bounds.binomial_epsilon(0, 0, 0.05) == 0.0
    assert bounds.binomial_epsilon(50, 50, 0.05) == 0.0
    assert bounds.binomial_epsilon(3, 0, 0.05, delta=0.01, trials=1000) == 0.0


def test_an_atom_on_one_side_certifies_what_the_closed_form_says() -> None:
    for times in (5, 20, 300):
        expected = special.logit(0.05 ** (1 / times))
        assert bounds.binomial_epsilon(times, 0, 0.05) == pytest.approx(max(0.0, expected))


def _wealth(right: float, wrong: float, epsilon: float) -> float:
    return bounds.ranked_log_wealth(np.array([right]), np.array([wrong]), epsilon)


@pytest.mark.parametrize(("right", "wrong"), [(3, 0), (12, 2), (200, 60)])
def test_ranked_wealth_is_the_mixture_it_claims_to_be(right: int, wrong: int) -> None:
    from scipy.integrate import quad

    s = float(special.expit(0.5))
    prior = stats.beta(0.5, 0.5)
    at_null = stats.binom.pmf(right, right + wrong, s)
    mixture, _ = quad(
        lambda u: stats.binom.pmf(right, right + wrong, np.sin(u) ** 2) * 2 / np.pi,
        np.arcsin(np.sqrt(s)),
        np.pi / 2,
        epsabs=1e-14,
    )
    expected = np.log(mixture / prior.sf(s) / at_null)
    assert _wealth(right, wrong, 0.5) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.4, 0.05, 1e-3])
def test_rejected_epsilons_of_the_walk_start_at_zero_without_gaps(alpha: float) -> None:
    """By enumeration of small and large tables: the bisection of ranked_epsilon needs it."""
    grid = np.linspace(0, 8, 81)
    small = list(itertools.product(range(0, 40, 4), range(0, 20, 3)))
    large = [(v, w) for v in (100, 1000, 30_000) for w in (0, 1, v // 20, v // 3)]
    for v, w in small + large:
        rejected = np.array([_wealth(v, w, e) >= -np.log(alpha) for e in grid])
        assert np.all(np.diff(rejected.astype(int)) <= 0), (v, w)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_ranked_wealth_grows_with_a_right_guess(epsilon: float) -> None:
    """Writing off k right guesses is conservative only because of this."""
    for v, w in itertools.product(range(1, 60, 4), range(0, 20, 3)):
        assert max(0.0, _wealth(v + 1, w, epsilon)) >= _wealth(v, w, epsilon) - 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_ville_by_enumeration_of_all_label_sequences(epsilon: float) -> None:
    """All 2^12 outcomes of 12 guesses: P(max E >= 1/alpha) <= alpha at the boundary."""
    s = special.expit(epsilon)
    outcomes = np.array(list(itertools.product([0, 1], repeat=12)))
    weight = (s**outcomes * (1 - s) ** (1 - outcomes)).prod(axis=1)
    best = np.array(
        [
            bounds.ranked_log_wealth(np.cumsum(o), np.cumsum(1 - o).astype(float), epsilon)
            for o in outcomes.astype(float)
        ]
    )
    for alpha in (0.5, 0.2, 0.1):
        probability = float(weight[best >= -np.log(alpha)].sum())
        assert 0 < probability <= alpha


def test_ranked_epsilon_is_where_the_wealth_meets_its_target() -> None:
    rights, wrongs = [50, 60, 300], [2, 12, 200]
    certified = bounds.ranked_epsilon(rights, wrongs, 0.05, delta=0.0, trials=624)
    v, w = np.cumsum(rights).astype(float), np.cumsum(wrongs).astype(float)
    assert bounds.ranked_log_wealth(v, w, certified) == pytest.approx(np.log(20), abs=1e-6)
    assert bounds.ranked_epsilon([5, 5], [5, 5], 0.05, delta=0.0, trials=20) == 0.0


def test_gaussian_mu_lower_inverts_the_best_guess_of_a_gaussian() -> None:
    mu = bounds.gaussian_mu_lower(5600, 10_000, 0.05)
    tail = stats.binom.sf(5599, 10_000, stats.norm.cdf(mu / 2))
    assert tail == pytest.approx(0.05, rel=1e-6)
    assert bounds.gaussian_mu_lower(4000, 10_000, 0.05) == 0.0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_pure_bet_is_fair_at_most(epsilon: float) -> None:
    """For every bin and every label law within [s(-e), s(e)] the mean of a bet is at most 1."""
    posterior = np.linspace(0.001, 0.999, 201)
    bets = np.exp(bounds.log_bets(posterior, [epsilon], 0.0))[:, 0]
    for p in np.linspace(special.expit(-epsilon), special.expit(epsilon), 11):
        assert np.all(p * bets[:, 0] + (1 - p) * bets[:, 1] <= 1 + 1e-12)


def test_a_pure_bet_beyond_the_null_grows_on_the_truth() -> None:
    bets = bounds.log_bets([0.9], [1.0], 0.0)[0, 0, :, 0]
    assert 0.9 * bets[0] + 0.1 * bets[1] == pytest.approx(
        stats.entropy([0.9, 0.1], [special.expit(1.0), special.expit(-1.0)])
    )


@pytest.mark.parametrize("delta", [1e-5, 1e-2, 0.3])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_capped_bets_are_fair_at_most_on_every_extreme_box(epsilon: float, delta: float) -> None:
    """Extreme points of the null: revealed mass in any two bins, honest mass in any other two.

    Given a bin, the law of (left, right) is a mixture of these; a bet is linear in the law.
    """
    posterior = np.array([1e-4, 0.02, 0.2, 0.5, 0.6, 0.9, 0.999])
    bets = np.exp(bounds.log_bets(posterior, [epsilon], delta))[:, 0]
    s = special.expit(epsilon)
    told = np.maximum(s * bets[:, 0] + (1 - s) * bets[:, 1], (1 - s) * bets[:, 0] + s * bets[:, 1])
    revealed = (bets[:, 0].max(axis=1) + bets[:, 1].max(axis=1)) / 2
    assert np.all(delta * revealed + (1 - delta) * told.max(axis=1) <= 1 + 1e-12)


def test_no_bet_can_be_ruined() -> None:
    for delta in (0.0, 1e-5, 1e-2, 0.9):
        bets = bounds.log_bets(np.linspace(1e-6, 1 - 1e-6, 99), bounds.epsilon_grid(1.0), delta)
        assert np.all(np.isfinite(bets))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_starting_shares_of_the_strategies_add_up_to_one(delta: float) -> None:
    assert np.exp(bounds.log_weights(delta)).sum() == pytest.approx(1.0)
    assert len(bounds.log_weights(delta)) == len(bounds.log_bets([0.5], [1.0], delta))


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_mean_wealth_after_three_trials_is_at_most_one(delta: float) -> None:
    """By enumeration of all outcomes of three trials of the box over four bins."""
    epsilon, posterior = 1.0, [0.001, 0.1, 0.9, 0.999]
    s = special.expit(epsilon)
    law = {(1, 0): delta / 2, (0, 3): 0.0, (1, 1): (1 - delta) * s / 2}
    law |= {(0, 1): (1 - delta) * (1 - s) / 2, (0, 2): (1 - delta) * s / 2}
    law |= {(1, 2): (1 - delta) * (1 - s) / 2, (0, 3): delta / 2}
    mean = total = 0.0
    for outcome in itertools.product(law, repeat=3):
        table = np.zeros((1, 2, 4), dtype=np.int64)
        for side, where in outcome:
            table[0, side, where] += 1
        weight = float(np.prod([law[o] for o in outcome]))
        wealth = np.exp(bounds.log_wealth(table, posterior, [epsilon], delta)[0, 0])
        mean, total = mean + weight * wealth, total + weight
    assert total == pytest.approx(1.0)
    assert mean <= 1 + 1e-12


def test_log_wealth_adds_what_each_trial_gained() -> None:
    tables = np.array([[[3, 1], [0, 2]], [[5, 1], [1, 2]]])
    wealth = bounds.log_wealth(tables, [0.8, 0.3], [0.0], 0.0)[0]
    gains = bounds.log_bets([0.8, 0.3], [0.0], 0.0)[:, 0]
    by_hand = [
        np.log(sum(w * np.exp((g * t).sum()) for w, g in zip((0.75, 0.25), gains, strict=True)))
        for t in tables
    ]
    assert wealth == pytest.approx(by_hand)


def test_anytime_epsilon_is_the_last_null_before_the_first_survivor() -> None:
    tables = np.cumsum(np.tile([[[2, 18], [18, 2]]], (5, 1, 1)), axis=0)
    found = bounds.anytime_epsilon(tables, [0.1, 0.9], 0.05, delta=0.0, confronted=1.0)
    grid = bounds.epsilon_grid(1.0)
    most = bounds.log_wealth(tables, [0.1, 0.9], grid, 0.0).max(axis=1)
    assert found == grid[np.flatnonzero(most < np.log(20))[0] - 1]
    assert 1.0 < found < np.log(9)


def test_anytime_epsilon_without_evidence_is_zero() -> None:
    nothing = np.zeros((0, 2, 2), dtype=np.int64)
    assert bounds.anytime_epsilon(nothing, [0.1, 0.9], 0.05, delta=0.0, confronted=1.0) == 0.0
    fair = np.array([[[50, 50], [50, 50]]])
    assert bounds.anytime_epsilon(fair, [0.1, 0.9], 0.05, delta=0.0, confronted=1.0) == 0.0


def test_the_grid_has_a_null_just_above_the_claim() -> None:
    grid = bounds.epsilon_grid(0.7)
    above = grid[grid > 0.7][0]
    assert grid[0] == 0.0
    assert above == pytest.approx(0.7, rel=1e-8)
    assert np.all(np.diff(grid) > 0)
