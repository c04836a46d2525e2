"""The committed counts of validity at scale say what they must, and the table says them."""

import pytest
from scipy import stats

from tests.coverage import validity
from tests.coverage.pipeline import ALPHA, tolerated


@pytest.fixture(scope="module")
def counts():
    return validity.read()


def test_the_committed_table_is_that_of_the_counts(counts):
    assert validity.TARGET.read_text(encoding="utf-8") == validity.document(counts)


def test_tight_mechanisms_are_wronged_no_more_often_than_stated(counts):
    """A valid audit fails this with probability 1e-4 per mechanism."""
    assert set(counts["tight"]) == set(validity.TIGHT)
    for found in counts["tight"].values():
        assert found["audits"] >= 1_000
        assert found["wronged"] <= tolerated(found["audits"])
    audits, wronged = (
        sum(found[key] for found in counts["tight"].values()) for key in ("audits", "wronged")
    )
    assert audits >= 10_000
    assert wronged <= tolerated(audits)


def test_every_control_was_played_and_found_out(counts):
    assert set(counts["broken"]) == set(validity.broken())
    for name, found in counts["broken"].items():
        assert found["seeds"] >= 100
        assert found["found"] >= 0.8 * found["seeds"], name
        assert 0 < found["trials"] <= validity.budget_of(name)


def test_what_can_be_detected_exceeds_what_is_tolerated():
    rate = validity.detectable(10_000)
    assert ALPHA < tolerated(10_000) / 10_000 < rate < 0.07
    assert stats.binom.sf(tolerated(10_000), 10_000, rate) >= 0.95 - 1e-6


def test_counting_again_gives_the_same_and_a_twin_is_found_out():
    assert validity.wronged("bandits/threshold-canary", 4) == {"audits": 4, "wronged": 0}
    found = validity.caught("broken/laplace-half-noise", 2)
    assert found["found"] == 2
    assert found["trials"] < 2_000
