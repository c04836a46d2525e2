"""How often the gate is red although nothing is broken: no more often than alpha promises.

The evidence of every case has an exactly known law with no slack at all (`suite`). Each assertion
is a binomial test of "the rate is at most the promised one" with false-alarm probability 1e-4.
"""

from __future__ import annotations

import pytest
from scipy import stats

from audit.baseline import compare, state_of
from audit.plan import Settings
from audit.summary import REFUTED
from tests.gate.suite import ci_run, streams

ALPHA = 0.05
SETTINGS = Settings(trials=800, alpha=ALPHA)
FALSE_ALARM = 1e-4


def most(runs: int, rate: float) -> int:
    """The most events that a rate of at most `rate` gives but with probability FALSE_ALARM."""
    return int(stats.binom.isf(FALSE_ALARM, runs, rate))


def red_runs(claimed: float, true: float, seeds: range) -> int:
    suite = streams(claimed, true)
    return sum(ci_run(suite, seed, SETTINGS).summary.exit_code == REFUTED for seed in seeds)


def worse_runs(true: float, seeds: range) -> int:
    """Runs of an unbroken suite that are worse than another run of it, within its claim."""
    suite = streams(2.0, true)
    found = 0
    for seed in seeds:
        before, now = (ci_run(suite, 2 * seed + i, SETTINGS) for i in (0, 1))
        changes = compare(now, state_of(before)).summary.changes or {}
        found += any(change.status == "worse" for change in changes.values())
    return found


def test_few_runs_of_an_unbroken_suite_are_red():
    assert red_runs(1.0, 1.0, range(20)) <= most(20, ALPHA)


def test_runs_of_a_broken_suite_are_red():
    """At a true epsilon of twice the claim a run stays green with probability below 1e-3."""
    assert red_runs(1.0, 2.0, range(5)) == 5


@pytest.mark.slow
def test_a_thousand_runs_of_an_unbroken_suite():
    """About five minutes: python -m pytest -m slow tests/gate"""
    assert red_runs(1.0, 1.0, range(1000, 2000)) <= most(1000, ALPHA)


@pytest.mark.slow
def test_unbroken_suites_are_not_worse_than_themselves():
    """Both alphas together; the limit of the old run and the bound of the new one may fail."""
    assert worse_runs(1.0, range(200)) <= most(200, 2 * ALPHA)
