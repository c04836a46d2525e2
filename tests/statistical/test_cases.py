"""Empirical laws of the calibration weights and known cases.

Every assertion has a false-alarm probability of at most 1e-6 (stated where it differs); the
seeds are fixed.
"""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import special, stats

from algorithms.broken.cases import CASES
from algorithms.calibration import (
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    RandomisedResponse,
)
from audit.attack import Game
from audit.mechanism import capability, play
from audit.quantise import grid_of
from tests.unit.sparse_vector import law_of

LEVEL = 1e-6
N = 100_000
M = 25_000  # for long views


def views_of(case, left, n, seed):
    """Views rounded as an audit rounds them: from scouting on other trials."""
    game = Game(case.mechanism, case.pair, case.view)
    grid = grid_of(game.play(True, 2000, np.random.default_rng(seed + 10_000)))
    rounded = Game(case.mechanism, case.pair, case.view, grid)
    return rounded.play(left, n, np.random.default_rng(seed))


def plausible(count, n, probability):
    return stats.binomtest(int(count), n, probability).pvalue > LEVEL


# --- calibration weights: the sampler has the law it states ---------------------------------


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Laplace(0.5, sensitivity=2.0), stats.laplace(3.0, 4.0)),
        (Gaussian(1.0), stats.norm(3.0, 3.730632)),
    ],
)
def test_continuous_noise(mechanism, law):
    values = mechanism.run(3.0, N, np.random.default_rng(11))["value"]
    assert stats.kstest(values, law.cdf).pvalue > LEVEL


def test_discrete_laplace_noise():
    values = DiscreteLaplace(1.0, sensitivity=2).run(5, N, np.random.default_rng(12))["value"]
    inside = np.arange(-8, 19)
    expected = stats.dlaplace.pmf(inside - 5, 0.5)
    observed = np.array([(values == k).sum() for k in inside])
    rest = 1 - expected.sum()
    table = np.append(observed, N - observed.sum()), np.append(expected, rest) * N
    assert stats.chisquare(*table).pvalue > LEVEL


@pytest.mark.parametrize("mechanism", [Exponential(1.0), NoisyMax(1.0), NoisyMax(1.0, scale=0.5)])
def test_choices_follow_the_exact_law(mechanism):
    scores = (0.0, 1.0, 1.5, -2.0)
    choice = mechanism.run(scores, N, np.random.default_rng(13))["choice"]
    observed = np.bincount(choice, minlength=4)
    assert stats.chisquare(observed, mechanism.law(scores) * N).pvalue > LEVEL


def test_randomised_response_law():
    mechanism = RandomisedResponse(1.0, categories=4)
    choice = mechanism.run(2, N, np.random.default_rng(14))["choice"]
    weights = np.array([1, 1, math.e, 1]) / (3 + math.e)
    assert stats.chisquare(np.bincount(choice, minlength=4), weights * N).pvalue > LEVEL


# --- likelihood ratios -----------------------------------------------------------------------

SCORED = [k for k, c in CASES.items() if capability(c.mechanism, "log_likelihood_ratio", c.view)]


@pytest.mark.parametrize("name", sorted(set(SCORED) - {"C6", "C15"}))
def test_likelihood_ratio_has_mean_one(name):
    # C6 and C15 are left to the profile below: exp(L) has far too heavy a tail there.
    case = CASES[name]
    ratio = np.exp(case.mechanism.log_likelihood_ratio(views_of(case, False, M, 21), case.pair))
    z = (ratio.mean() - 1) / (ratio.std() / math.sqrt(M))
    assert abs(z) < special.ndtri(1 - LEVEL / 2)  # normal approximation, light tails


def composed(scale, count):
    return pld.from_laplace_mechanism(scale).self_compose(count).get_delta_for_epsilon


def gaussian(distance):
    return pld.from_gaussian_mechanism(3.730632, sensitivity=distance).get_delta_for_epsilon


PROFILES = {
    "C1": (composed(1.0, 1), 0.5),
    "C2": (composed(0.5, 1), 1.0),
    "half-noise": (composed(0.5, 1), 1.0),
    "C14": (composed(5.0, 5), 0.3),
    "C15": (composed(6.0, 64), 1.0),
    "C21-after": (composed(4.0, 4), 0.3),
    "C24": (composed(1.0, 2), 1.0),
    "C3": (gaussian(1.0), 0.2),
    "C4": (gaussian(2.0), 0.5),
    "C6": (gaussian(10.0), 4.0),
    "C28": (gaussian(1.0), 0.2),
}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("left", [True, False])
def test_profile_from_played_likelihood_ratios(name, left):
    case = CASES[name]
    oracle, epsilon = PROFILES[name]
    loss = case.mechanism.log_likelihood_ratio(views_of(case, left, M, 31), case.pair)
    loss = loss if left else -loss
    gain = np.maximum(0.0, -np.expm1(epsilon - loss)).mean()
    hoeffding = math.sqrt(math.log(2 / LEVEL) / (2 * M))
    assert abs(gain - oracle(epsilon)) < hoeffding + 1e-4  # the accountant's own grid


# --- discrete laws -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "event", "left", "right"),
    [
        ("C9", lambda v: v["choice"] == 0, 0.0455454, 0.0167588),
        ("C10", lambda v: v["choice"] == 0, 0.010165, 0.001376),
        ("C12", lambda v: v["above"] @ [2, 1] == 1, (1 - math.exp(-0.5)) / 2, 0.0),
        ("C19", lambda v: v["dropped"] == 1, 0.55 * math.exp(-0.2), 1 - 0.7 * math.exp(-0.8)),
        ("C25", lambda v: v["answer"] == 1, 0.0625, 0.9375),
    ],
)
def test_event_rates(name, event, left, right):
    case = CASES[name]
    for side, seed in ((True, 41), (False, 42)):
        count = event(views_of(case, side, N, seed)).sum()
        assert plausible(count, N, left if side else right)


@pytest.mark.parametrize("left", [True, False])
def test_sparse_vector_law(left):
    pair = CASES["sparse-vector"].pair
    law = law_of(pair.side(left))
    answers = play(CASES["sparse-vector"].mechanism, pair.side(left), N, np.random.default_rng(43))
    code = 3 ** np.arange(10)
    keys = {int((np.array(k) + 1) @ code): p for k, p in law.items()}
    played, counts = np.unique((answers["answers"] + 1) @ code, return_counts=True)
    seen = dict(zip(played.astype(int).tolist(), counts.tolist(), strict=True))
    assert set(seen) <= set(keys)
    observed = [seen.get(k, 0) for k in keys]
    assert stats.chisquare(observed, np.array(list(keys.values())) * N).pvalue > LEVEL


# --- the right answers, by one known event ------------------------------------------------------


def surely(views, pair, mechanism, view):
    """+1 where the best event says left, -1 where it says right, 0 to abstain."""
    ratio = mechanism.log_likelihood_ratio(views, pair)
    bound = mechanism.claim.epsilon
    return np.where(np.abs(ratio) >= bound - 1e-9, np.sign(ratio), 0)


BEST = {
    "C7": lambda v: np.where(v["counts"][:, 0] - v["counts"][:, 1] < 2.5, 1, -1),
    "C12": lambda v: v["above"][:, 1] - v["above"][:, 0],
    "C21-all": lambda v: np.where(v["prices"][:, 0] < 0.5, 1, -1),
    "C22": lambda v: np.where(v.form == "float", 1, -1),
    "sparse-vector": lambda v: (
        -((v["answers"][:, :5] == 0).all(axis=1) & (v["answers"] == 1).any(axis=1)).astype(int)
    ),
    "C9": lambda v: (v["choice"] == 0).astype(int),
    "C19": lambda v: (v["dropped"] == 0).astype(int),
}


def guesses(case, n, seed):
    rule = BEST.get(case.id)
    both = []
    for left in (True, False):
        views = views_of(case, left, n, seed + left)
        both.append(rule(views) if rule else surely(views, case.pair, case.mechanism, case.view))
    left_guess, right_guess = both[0], both[1]
    right = (left_guess > 0).sum() + (right_guess < 0).sum()
    wrong = (left_guess < 0).sum() + (right_guess > 0).sum()
    return int(right), int(wrong)


def p_value(case, n, seed):
    """Upper bound on the p-value of the claim (Kairouz, Oh and Viswanath 2015)."""
    right, wrong = guesses(case, n, seed)
    revealed = 0
    if getattr(case.claim, "delta", 0.0):
        revealed = int(stats.binom.isf(LEVEL / 2, 2 * n, case.claim.delta)) + 1
    honest = special.expit(case.claim.epsilon)
    guessed = right + wrong - revealed
    if guessed <= 0:
        return 1.0
    return float(LEVEL / 2 * (revealed > 0) + stats.binom.sf(right - revealed - 1, guessed, honest))


@pytest.mark.parametrize("name", [k for k, c in CASES.items() if c.must == "pass"])
def test_cases_that_must_pass(name):
    # False alarm at most 1e-6 each: the p-value is valid at the exact boundary of the claim.
    assert p_value(CASES[name], 40_000, 51) > LEVEL


@pytest.mark.parametrize("name", [k for k, c in CASES.items() if c.must == "flag"])
def test_cases_that_must_be_flagged(name):
    # With four times the runs that reach power .99 at alpha .05 a miss has probability < 1e-6.
    assert p_value(CASES[name], 4 * CASES[name].n, 61) < 0.05
