"""Memory of a whole audit: constant in the number of trials."""

import tracemalloc
from dataclasses import replace

import msgspec
import pytest

from algorithms.pricing.private_cov import PrivateCov
from audit.engine import run
from audit.plan import Request, Settings, make_plan
from audit.registry import battery
from audit.workers import Workers
from tests.benchmark.costs import memory

pytestmark = pytest.mark.benchmark


def test_ten_million_cheap_trials_fit_into_a_gibibyte():
    mib, _ = memory(10**7)
    print(f"\n{mib:.0f} MiB", end="")
    assert mib <= 1024


def peak_of_an_audit(mechanism, attack, trials):
    """Most memory that was taken, with equal scouting and blocks of 250 whatever the budget."""
    request = Request("case", "case", mechanism, mechanism.claim, battery([attack]))
    plan, (case,) = make_plan([request], Settings(trials=trials, early_stop=False))
    planned = msgspec.structs.replace(case.planned, scouting=500, blocks=(250,) * (trials // 250))
    plan = msgspec.structs.replace(plan, cases=(planned,))
    tracemalloc.start()
    record = run(plan, [replace(case, planned=planned)], Workers(jobs=1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert record.results[0].trials == trials
    return peak


def test_memory_does_not_depend_on_the_number_of_trials():
    """Blocks leave their counts behind, some tens of kilobytes, and none of their views.

    From 20,000 trials on a certificate takes its largest number of runs, 1,000.
    """
    tree = PrivateCov(dimension=4, records=255)
    few, many = (peak_of_an_audit(tree, "likelihood", trials) for trials in (20_000, 60_000))
    print(f"memory: {few / 1e6:.0f} MB for 20,000 trials, {many / 1e6:.0f} MB for 60,000")
    assert many <= 1.2 * few
