"""Counting and derived numbers, against brute force and statsmodels."""

import itertools
from collections import Counter

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from attacks.counting import (
    DEVIATIONS,
    Tally,
    best_tail,
    codes_of,
    lower_log_odds,
    mixed,
    repeated,
)
from attacks.leaves import Layout, quantiles, rounded, step_of
from attacks.linear import logistic, ridge
from attacks.scalars import Scalar, derived_scalars, promising


@pytest.mark.parametrize(("right", "wrong"), [(20, 0), (30, 5), (600, 400), (10_000, 9_000)])
def test_lower_log_odds_is_wilsons_limit(right, wrong):
    from scipy.stats import norm

    alpha = 2 * norm.sf(DEVIATIONS)
    low, _ = proportion_confint(right, right + wrong, alpha, method="wilson")
    expected = max(0.0, np.log(low / (1 - low)))
    assert float(lower_log_odds(right, wrong)) == pytest.approx(expected, abs=1e-9)


def test_lower_log_odds_of_no_or_of_wrong_guesses_is_nothing():
    assert lower_log_odds([0, 0, 5], [0, 50, 5]) == pytest.approx([0, 0, 0], abs=1e-12)


def test_codes_identify_numbers():
    values = np.array([0.0, -0.0, np.nan, -np.nan, 1.0, np.inf, -np.inf, 5e-324])
    codes = codes_of(values)
    assert codes[0] == codes[1]
    assert codes[2] == codes[3]
    assert len(set(codes.tolist())) == 6


def test_sums_of_mixed_codes_identify_rows():
    rows = np.array(list(itertools.product([0.0, 1.0, 2.0, np.nan], repeat=6)))
    total = sum(mixed(codes_of(rows[:, j]), j) for j in range(6))
    assert len(np.unique(total)) == len(rows)


def test_tally_counts_like_a_counter():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 40, 120), rng.integers(20, 60, 100)
    codes = codes_of(np.concatenate([left, right]).astype(float))
    table = Tally.of(codes, len(left)).table()
    first, second = Counter(left.tolist()), Counter(right.tolist())
    total = first + second
    once = [v for v, count in total.items() if count == 1]
    for value, count in total.items():
        got = table(codes_of(np.array([float(value)])))[0]
        among = once if count == 1 else [value]
        one, two = sum(first[v] for v in among), sum(second[v] for v in among)
        assert got == pytest.approx(np.log((one + 0.5) / (two + 0.5)))
    assert table.keys.tolist() == repeated(codes).tolist()


def test_best_tail_finds_the_same_sign_and_gain_when_the_sides_are_swapped():
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=3000) + 1, rng.normal(size=3000)
    one, two = best_tail(left, right), best_tail(right, left)
    assert (one.sign, two.sign) == (1, -1)
    assert one.gain == pytest.approx(two.gain)


def test_best_tail_gives_nothing_for_a_constant():
    tail = best_tail(np.ones(500), np.ones(500))
    assert tail.gain == 0
    assert tail.contrast <= 0


def test_quantiles_ignore_unknown_entries():
    rows = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [3.0, np.inf]])
    known = np.isfinite(rows)
    found = quantiles(np.where(known, rows, np.inf), (0.0, 0.5, 1.0), known)
    assert found.tolist() == [[1, 0], [2, 0], [3, 0]]


def test_derived_numbers_by_hand():
    rows = np.array([[3.0, -1.0, 3.0, np.nan], [0.0, 0.0, 0.0, 4.0]])
    expected = {
        "sum": [5, 4],
        "largest": [3, 4],
        "smallest": [-1, 0],
        "range": [4, 4],
        "position": [0, 3],
        "missing": [1, 0],
        "distinct": [2, 2],
        "norm": [np.sqrt(19), 4],
        "switches": [3, 1],
    }
    for kind, values in expected.items():
        assert Scalar(kind, (), 2.0**-20)(rows) == pytest.approx(values), kind
    assert Scalar("difference", (0, 1))(rows).tolist() == [4, 0]
    assert Scalar("symbol", (), 0.0)(rows).tolist() == [0, 3]
    assert Scalar("rank", (), 1.0)(rows).tolist() == [3, 0]
    assert Scalar("away", (1,), 1.0)(rows).tolist() == [2, 1]
    assert Scalar("difference", (0, 1)).describe(["a", "b", "c", "d"]) == "a - b"


def test_noiseless_differences_are_one_atom_after_rounding():
    rng = np.random.default_rng(2)
    noise = 100 * rng.laplace(size=5000)
    grid = step_of(np.array(100.0)) / 16
    rows = rounded(np.stack([noise + 0.1, noise], axis=1), grid)
    layout = Layout.of(rows, ("a", "b"))
    found = [s for s in derived_scalars(rows, 2500, layout) if s.kind == "difference"]
    assert len(np.unique(rows[:, 1] - rows[:, 0])) > 1
    assert len(np.unique(found[0](rows))) == 1


def test_promising_keeps_shifts_scales_and_gaps():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4000, 300))
    rows[:2000, 7] += 1
    rows[:2000, 90] *= 3
    rows[:2000, 250][rng.random(2000) < 0.3] = np.nan
    assert {7, 90, 250} <= set(promising(rows, 2000, 5).tolist())


def test_logistic_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(4)
    features = rng.normal(size=(4000, 4)) * [1, 10, 0.1, 1] + 3
    chance = 1 / (1 + np.exp(-((features - 3) @ [1, 0.05, -5, 0])))
    labels = (rng.random(4000) < chance).astype(float)
    theirs = LogisticRegression(C=np.inf, max_iter=2000, tol=1e-10).fit(
        features / [1, 10, 0.1, 1], labels
    )
    scores = theirs.decision_function(features / [1, 10, 0.1, 1])
    assert logistic(features, labels)(features) == pytest.approx(scores, abs=0.05)


def test_ridge_is_the_normal_equations():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(3000, 30)) @ (np.eye(30) + 0.2 * rng.normal(size=(30, 30)))
    labels = (np.arange(3000) < 1500).astype(float)
    features[:1500] += 0.5 * features.std(axis=0)
    units = (features - features.mean(axis=0)) / features.std(axis=0)
    fits = []
    for shrinkage in (1e-4, 1e-2, 1.0):
        system = units.T @ units / 3000 + shrinkage * np.eye(30)
        fits.append(np.linalg.solve(system, units.T @ (labels - 0.5) / 3000))
    weights = ridge(features, labels).weights
    cosines = [weights @ w / np.linalg.norm(w) / np.linalg.norm(weights) for w in fits]
    assert max(cosines) > 0.999
