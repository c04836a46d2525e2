"""Every line of the contract catches what it is there for, and nothing else.

A mechanism that keeps the contract fails with probability at most 2e-4; seeds are fixed.
"""

import math
import threading

import numpy as np
import pytest
from scipy import stats

import audit
from audit.contract import CHECKS, check_mechanism, same_law
from audit.view import Views, collect
from tests.data import targets


class Good:
    """Keeps the contract; each twin below breaks one line of it."""

    claim = audit.PureDp(epsilon=1.0)

    def pairs(self):
        return (audit.Pair(np.zeros(2), np.array([1.0, 0.0]), "first"),)

    def run(self, data, n, rng):
        return {"value": data.sum() + rng.laplace(size=n)}


class Rises(Good):
    class _Rising(audit.PureDp, frozen=True):
        def delta_at(self, epsilon):
            return min(1.0, epsilon)

    claim = _Rising(epsilon=1.0)


class Same(Good):
    def pairs(self):
        return (audit.Pair(np.zeros(2), np.zeros(2), "same"),)


class Raises(Good):
    def run(self, data, n, rng):
        raise KeyError("price")


class OneTooMany(Good):
    def run(self, data, n, rng):
        return {"value": rng.laplace(size=max(2, n))}


class OtherView(Good):
    claim = audit.PureDp(epsilon=1.0, view="prices_after")


class Infinite(Good):
    def run(self, data, n, rng):
        return {"value": np.where(rng.random(n) < 0.2, np.inf, rng.laplace(size=n))}


class Declared(Infinite):
    not_finite = ("value",)


class Writes(Good):
    def run(self, data, n, rng):
        if data[0] == 1:
            data[1] = 7.0
        return {"value": rng.laplace(size=n)}


class Unseeded(Good):
    def run(self, data, n, rng):
        return {"value": targets.GLOBAL.laplace(size=n)}


class Remembers(Good):
    def __init__(self):
        self.last = 0.0

    def run(self, data, n, rng):
        before, self.last = self.last, data.sum()
        return {"value": before + rng.laplace(size=n)}


class SharesDraws(Good):
    def run(self, data, n, rng):
        return {"value": rng.laplace() + 1e-3 * rng.laplace(size=n)}


class BatchDiffers(Good):
    def run(self, data, n, rng):
        return {"value": rng.laplace(scale=1.0 if n > 1 else 50.0, size=n)}


class CannotBeSent(Good):
    def __init__(self):
        self.held = threading.Lock()


BREAKS = {
    Rises: {"claim"},
    Same: {"pairs"},
    Raises: {"runs"},
    OneTooMany: {"leading axis"},
    Infinite: {"finite"},
    Writes: {"inputs kept"},
    Unseeded: {"seeding", "hidden state"},
    Remembers: {"seeding", "hidden state"},
    BatchDiffers: {"batch"},
    CannotBeSent: {"picklable"},
}


def failed(mechanism):
    lines = check_mechanism(mechanism, mechanism.pairs(), mechanism.claim)
    return {line.name for line in lines if not line.passed}


@pytest.mark.parametrize("twin", BREAKS, ids=lambda twin: twin.__name__)
def test_each_twin_breaks_its_line(twin):
    assert failed(twin()) == BREAKS[twin]


def test_shared_draws_are_found_as_dependence():
    assert "independence" in failed(SharesDraws())


def test_what_keeps_the_contract_passes_every_line():
    lines = check_mechanism(Good(), Good().pairs(), Good.claim)
    assert [line.name for line in lines] == list(CHECKS)
    assert all(line.passed for line in lines)
    assert not failed(Declared())
    elsewhere = {"view", "independence", "memory", "sensitivity"}  # each has a test of its own
    assert {name for names in BREAKS.values() for name in names} | elsewhere == set(CHECKS)


def test_a_view_that_is_not_emitted_is_bad_input():
    with pytest.raises(audit.UsageError, match="prices_after"):
        failed(OtherView())


def test_the_comparison_of_laws_holds_its_level():
    """1,000 comparisons of equal laws at 1e-4 each: more than 3 with probability below 4e-6."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(1_000):
        sample = rng.integers(0, 4, (256, 3)) + rng.random((256, 3)) * (rng.random() < 0.5)
        first = [collect(part, 16) for part in np.split(sample[:128], 8)]
        alarms += not same_law(first, collect(sample[128:], 128))
    assert stats.binom.sf(3, 1_000, 1e-4) < 4e-6
    assert alarms <= 3


def test_the_distance_is_the_one_of_kolmogorov_and_smirnov():
    from audit.contract import _distances

    rng = np.random.default_rng(1)
    rows = np.round(rng.normal(size=(40, 5)), 1)
    expected = [stats.ks_2samp(rows[:20, i], rows[20:, i]).statistic for i in range(5)]
    np.testing.assert_allclose(_distances(rows, 20), expected)


def test_a_difference_in_form_is_a_difference_in_law():
    numbers = {"value": np.zeros(128)}
    one = Views(np.full(128, "float", object), numbers)
    other = Views(np.full(128, "int", object), numbers)
    groups = [one.take(np.arange(i, i + 16)) for i in range(0, 128, 16)]
    assert same_law(groups, one)
    assert not same_law(groups, other)


def test_the_bound_of_wei_and_dudley_is_a_bound():
    """e exp(-n d^2) exceeds the exact tail of the two-sample distance at n = 128."""
    for d in (0.1, 0.2, 0.25, 0.3):
        tail = stats.kstwobign.sf(d * math.sqrt(64))
        assert tail <= math.e * math.exp(-128 * d**2)


def test_contract_checks_are_test_cases():
    mark = audit.parametrize_with_checks([Good(), "calibration/laplace"])
    names, parameters = mark.args
    assert names == ("mechanism", "check")
    assert len(parameters) == 2 * len(CHECKS)
    for parameter in parameters:
        mechanism, check = parameter.values
        check(mechanism)


def test_a_broken_contract_fails_its_test_case():
    mark = audit.parametrize_with_checks([Infinite()])
    for parameter in mark.args[1]:
        mechanism, check = parameter.values
        if check.name == "finite":
            with pytest.raises(AssertionError, match="finite: infinite or NaN in value"):
                check(mechanism)
        else:
            check(mechanism)


def test_a_mechanism_without_claim_has_no_contract():
    with pytest.raises(audit.UsageError, match="states no claim"):
        audit.parametrize_with_checks([targets.noisy])
