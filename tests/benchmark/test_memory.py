"""Memory of a whole audit: constant in the number of trials."""

import tracemalloc

import pytest

from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.private_cov import PrivateCov
from tests.benchmark.costs import evenly, memory

pytestmark = pytest.mark.benchmark


def test_ten_million_cheap_trials_fit_into_a_gibibyte():
    mib, _ = memory(10**7)
    print(f"\n{mib:.0f} MiB", end="")
    assert mib <= 1024


def peak_of_an_audit(mechanism, attack, trials):
    """Most memory that was taken by Python and numpy, which is the same in every run."""
    tracemalloc.start()
    result = evenly(mechanism, attack, trials)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.trials == trials
    return peak


def test_memory_does_not_depend_on_the_number_of_trials():
    """Blocks leave their counts behind, some tens of kilobytes, and none of their views."""
    tree = PrivateCov(dimension=4, records=255)
    few, many = (peak_of_an_audit(tree, "likelihood", trials) for trials in (20_000, 60_000))
    print(f"memory: {few / 1e6:.0f} MB for 20,000 trials, {many / 1e6:.0f} MB for 60,000")
    assert many <= 1.2 * few


@pytest.mark.filterwarnings("ignore:PrivatePricing. this policy is vacuous")
def test_memory_of_a_whole_policy_does_not_depend_on_the_number_of_trials():
    """The prices of 256 rounds take 2 kilobytes: were they kept, 1,000 trials would take 2 MB."""
    policy = PrivatePricing(changes={"rounds": 256, "explore": 64}, allow_vacuous=True)
    peak_of_an_audit(policy, "leaf", 250)  # what is imported stays
    few, many = (peak_of_an_audit(policy, "leaf", trials) for trials in (500, 1_500))
    print(f"memory: {few / 1e6:.1f} MB for 500 trials, {many / 1e6:.1f} MB for 1,500")
    assert many <= 1.1 * few
