"""Coverage of every bound at the exact boundary of its null, and of the whole audit.

Rows without a tolerance are exact probabilities, so those tests have no false alarms; a row with
one fails with probability 1e-4 when its bound is exactly at its level. The full grids carry the
marker ``coverage``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pytest
from scipy import special, stats

from algorithms.calibration import Gaussian
from audit import bounds
from tests.coverage import laws, table
from tests.coverage.laws import Row
from tests.coverage.pipeline import SUBJECTS, Subject, count, tolerated

NAMES = [subject.name for subject in SUBJECTS]


def check(rows: Iterable[Row], least: float) -> None:
    """Every row keeps its level; some row comes within `least`, so that the check has teeth."""
    measured = list(rows)
    assert [row for row in measured if not row.holds] == []
    assert max(row.measured for row in measured) >= least


def test_binomial_keeps_its_level_against_every_adversary() -> None:
    check(table.binomial_rows((100, 1_000, 100_000)), 0.049)


def test_the_ranked_walk_keeps_its_level_wherever_one_looks() -> None:
    check(table.ranked_rows((100,)), 0.03)


def test_betting_keeps_its_level_under_optional_stopping() -> None:
    check(table.betting_rows((100,), 1_000), 0.03)


def test_the_bound_on_mu_keeps_its_level() -> None:
    check(table.gaussian_rows(), 0.049)


@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_anytime_epsilon_at_its_best_moment_stays_below_the_truth(delta: float) -> None:
    """The most that it certifies after any trial; false alarm 1e-4."""
    epsilon, repetitions, alpha = 1.0, 100, 0.2
    rng = np.random.default_rng(5)
    sure = laws.told(epsilon)
    tables = laws.box_tables(rng, epsilon, delta, 100, repetitions)
    found = [
        bounds.anytime_epsilon(
            running, [1e-4, 1 - sure, sure, 1 - 1e-4], alpha, delta=delta, confronted=0.9 * epsilon
        )
        for running in tables
    ]
    exceeded = np.mean(np.array(found) > epsilon)
    assert exceeded <= alpha + laws.margin(alpha, repetitions)
    assert max(found) > 0.5 * epsilon


def test_careless_bounds_would_be_noticed() -> None:
    """The measurements see what they look for: delta ignored, and the best of all thresholds."""
    sure, trials = float(special.expit(1.0)), 10_000
    critical = laws.binomial_critical(1.0, 0.0, trials, trials, 0.05)
    assert stats.binom.sf(critical - 1, trials, 0.01 + 0.99 * sure) > 0.1
    guesses = 300
    needed = [laws.binomial_critical(1.0, 0.0, trials, r, 0.05) for r in range(2 * guesses + 1)]
    edge = [laws.smallest(partial(_enough, needed, w), guesses) for w in range(guesses + 1)]
    best = laws.first_passage(np.array(edge), sure, guesses, np.array([0]), np.ones(1))
    assert best > 0.15


def _enough(needed: list[int], wrong: int, right: int) -> bool:
    return right >= needed[right + wrong]


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_the_whole_audit_rarely_wrongs_the_innocent(subject: Subject) -> None:
    """At alpha .05; a valid audit wrongs more than the tolerated number with probability 1e-4."""
    stated = isinstance(subject.mechanism, Gaussian)  # its density; the battery would take long
    attacks = ["likelihood"] if stated else None
    audits = 12 if attacks else 25
    assert count(subject, 600, range(100, 100 + audits), attacks) <= tolerated(audits)


@pytest.mark.coverage
def test_binomial_full_grid() -> None:
    check(table.binomial_rows(), 0.049)


@pytest.mark.coverage
def test_ranked_full_grid() -> None:
    check(table.ranked_rows(), 0.035)


@pytest.mark.coverage
def test_betting_full_grid() -> None:
    check(table.betting_rows(), 0.04)


@pytest.mark.coverage
@pytest.mark.parametrize("trials", [600, 2_000])
@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_the_whole_audit_over_many_seeds(subject: Subject, trials: int) -> None:
    """200 audits with the whole battery at alpha .05; false alarm 1e-4."""
    assert count(subject, trials, range(200)) <= tolerated(200)
