"""Every kind of fault that public implementations had is found, and correct twins are left alone.

A fault is refuted at alpha 1e-3; how often that happens is a matter of power, on one fixed seed. A
correct twin is refuted with probability at most 1e-3, whatever the seed: with the 21 twins here
the suite cries wolf in at most 2 of 100 changes of the random streams.
"""

import pytest
from scipy import stats

import audit
from tests.faults.correct import CORRECT
from tests.faults.leaks import LEAKS
from tests.faults.noise import NOISE
from tests.faults.scale import SCALE

FAULTS = (*SCALE, *LEAKS, *NOISE)


def lines(table):
    return [
        pytest.param(line, id=line.name, marks=[pytest.mark.slow] if line.slow else [])
        for line in table
    ]


@pytest.mark.parametrize("line", lines(FAULTS))
def test_a_fault_is_refuted(line):
    result = line.examine()
    assert result.verdict == "refuted", [f.message for f in result.findings]


@pytest.mark.parametrize("line", lines(CORRECT))
def test_a_correct_twin_is_not_refuted(line):
    result = line.examine()
    assert result.verdict in ("unrefuted", "blind"), [f.message for f in result.findings]


@pytest.mark.slow
@pytest.mark.parametrize("line", CORRECT, ids=lambda line: line.name)
def test_a_correct_twin_is_not_refuted_by_many_trials(line):
    """False alarm 1e-3 each."""
    result = line.examine(trials=20_000)
    assert result.verdict in ("unrefuted", "blind"), [f.message for f in result.findings]


@pytest.mark.slow
@pytest.mark.parametrize("line", CORRECT, ids=lambda line: line.name)
def test_a_correct_twin_is_refuted_no_more_often_than_stated(line):
    """About twenty minutes in all: python -m pytest -m slow tests/faults -k no_more_often

    At the stated rate of .05 a twin exceeds the limit with probability below 1e-6.
    """
    found = [line.examine(seed=1 + s, alpha=0.05).verdict for s in range(200)]
    assert set(found) <= {"refuted", "unrefuted", "blind"}
    assert found.count("refuted") <= stats.binom.isf(1e-6, 200, 0.05)


def test_the_tables_are_large_enough_and_have_unique_names():
    assert len(FAULTS) >= 35
    assert len(CORRECT) >= 15
    names = [line.name for line in (*FAULTS, *CORRECT)]
    assert len(set(names)) == len(names)


def test_an_answer_kept_between_runs_ends_without_a_verdict():
    kept = {}

    def remembered(data, rng):
        return kept.setdefault(data, data + rng.laplace())

    result = audit.examine(
        remembered, claim=audit.PureDp(epsilon=1.0), pairs=[audit.Pair(0.0, 1.0)], trials=400
    )
    assert result.verdict == "error"
