"""Known cases again, with nothing but the function, the claim and the domain: no pair is named.

Seeds are fixed; whether a broken case is found is a matter of power, and at alpha 1e-3 a right one
is refuted with probability 1e-3 each.
"""

import pytest

import audit
from algorithms.broken.cases import CASES
from audit.domain import Domain
from audit.mechanism import FunctionMechanism

NUMBER = Domain(bounds=(0, 10), distance=1)
SCORES = Domain(bounds=(-1, 4), dimension=5, distance=1)
UNIT, SIGNED = (0, 1), (-1, 1)
CUSTOMERS = {"covariates": Domain(bounds=UNIT), "demands": Domain(bounds=UNIT)}
KEPT = {name: Domain(bounds=UNIT, beyond=False) for name in CUSTOMERS}

# Case to its domain and the trials in all.
BROKEN = {
    "C2": (NUMBER, 2_000),
    "half-noise": (NUMBER, 2_000),
    "C4": (Domain(bounds=SIGNED, sizes=(1, 20)), 120_000),
    "C6": (Domain(bounds=SIGNED, dimension=100, sizes=(0, 1)), 2_000),
    "C7": (Domain(bounds=UNIT, sizes=(10, 10)), 2_000),
    "C10": (SCORES, 50_000),
    "C12": (Domain(bounds=UNIT, dimension=2, distance=1), 2_000),
    "sparse-vector": (Domain(bounds=UNIT, dimension=10, distance=1), 20_000),
    "C15": (Domain(bounds=UNIT, sizes=(64, 64)), 2_000),
    "C21-all": (Domain(streams=CUSTOMERS, sizes=(16, 16)), 2_000),
    "C22": (Domain(bounds=UNIT, sizes=(0, 2_000)), 2_000),
    "C24": (NUMBER, 6_000),
    "C25": (Domain(categories=(0, 1)), 2_000),
}
RIGHT = {
    "C1": (NUMBER, 4_000),
    "C3": (NUMBER, 4_000),
    "C9": (SCORES, 4_000),
    # These trust their callers to keep to the bounds.
    "C14": (Domain(bounds=UNIT, sizes=(16, 16), beyond=False), 4_000),
    "C21-after": (Domain(streams=KEPT, sizes=(16, 16)), 4_000),
}


def examined(name, domain, trials):
    """An audit of the bare function."""
    mechanism = CASES[name].mechanism
    function = getattr(mechanism, "function", mechanism.run)
    bare = FunctionMechanism(function, mechanism.claim, batched=getattr(mechanism, "batched", True))
    return audit.examine(bare, domain=domain, trials=trials, seed=1)


def test_every_case_is_tried():
    flagged = {name for name, case in CASES.items() if case.must == "flag"}
    assert set(BROKEN) == flagged


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_case_is_found_in_its_domain(name):
    result = examined(name, *BROKEN[name])
    assert result.verdict == "refuted"
    assert result.choice.played is not None
    assert result.searched


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_case_is_not_refuted_in_its_domain(name):
    assert examined(name, *RIGHT[name]).verdict in ("unrefuted", "blind")
