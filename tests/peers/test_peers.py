"""Other libraries as subjects: adapters, contract, and the committed audits.

Adapters are played when the library is installed; the committed document is held to its records
always. Contract checks of an adapter that keeps the contract fail with probability at most 2e-4.
"""

import sys

import numpy as np
import pytest

from algorithms.catalogue.peers import PEERS
from audit import UsageError
from audit.contract import check_mechanism
from audit.registry import resolve
from tests.cli.console import audit
from tests.peers import table

UNSEEDED = {"seeding", "hidden state"}
SLOW = ("logistic", "linear")


def named(*, slow):
    marks = [pytest.mark.slow] if slow else []
    chosen = [name for name in PEERS if any(word in name for word in SLOW) == slow]
    return [pytest.param(name, marks=marks) for name in chosen]


def installed(name):
    """The mechanism of a library, if that can be imported."""
    try:
        mechanism = resolve(name)
        assert mechanism.claim is not None
        mechanism.run(mechanism.pairs()[0].left, 1, np.random.default_rng(0))
    except UsageError as error:
        pytest.skip(f"{table.library_of(name)} is not installed: {error}")
    return mechanism


@pytest.mark.parametrize("name", [*named(slow=False), *named(slow=True)])
def test_adapters_keep_the_contract(name):
    mechanism = installed(name)
    lines = check_mechanism(mechanism, mechanism.pairs(), mechanism.claim)
    failed = {line.name for line in lines if not line.passed}
    assert failed == (UNSEEDED if table.library_of(name) == "opendp" else set())
    assert lines[-1].name == "picklable"
    stated = mechanism.claim.source.lower()
    assert table.library_of(name) in stated or "dp-accounting" in stated


@pytest.mark.parametrize(
    ("name", "refuted"),
    [
        ("peers/opendp-laplace", False),
        ("peers/diffprivlib-laplace", False),
        ("peers/mabwiser-epsilon-greedy", True),
    ],
)
def test_one_of_each_library_again(name, refuted):
    """1,000 trials; over seeds, Laplace noise is refuted with probability at most .001."""
    installed(name)
    (result,) = table.audited([name], 1_000).results
    assert (result.verdict == "refuted") == refuted


@pytest.mark.parametrize("library", table.libraries())
def test_a_missing_library_is_named_with_its_remedy(library, monkeypatch):
    for module in ("opendp.prelude", "diffprivlib", "diffprivlib.mechanisms", "mabwiser.mab"):
        monkeypatch.setitem(sys.modules, module, None)
    name = next(name for name in PEERS if table.library_of(name) == library)
    if library == "opendp":
        from algorithms.peers import opendp

        opendp._additive.cache_clear()
    outcome = audit("run", name, "--trials", "400", "--jobs", "1", "--claim", "eps=1")
    assert outcome.code == 2
    assert "pip install 'dpaudit[peers]'" in outcome.err


@pytest.fixture(scope="module")
def records():
    return table.committed()


def test_the_committed_document_is_that_of_the_records(records):
    text = "\n".join(table.lines(records)) + "\n"
    assert text == table.TARGET.read_text(encoding="utf-8")


def test_every_subject_has_its_line_and_every_control_was_caught(records):
    results = {result.name: result for record in records.values() for result in record.results}
    assert records
    assert list(results) == [name for name in PEERS if table.library_of(name) in records]
    for name, result in results.items():
        assert result.verdict in ("refuted", "unrefuted")
        assert result.role == PEERS[name].role
        assert result.found_out or result.role != "control"


def test_every_refuted_claim_is_explained(records):
    refuted = {
        result.name
        for record in records.values()
        for result in record.results
        if result.verdict == "refuted" and result.role == "subject"
    }
    assert refuted <= set(table.NOTES)


def test_records_are_small(records):
    for library in records:
        assert (table.RECORDS / f"{library}.json").stat().st_size < 600_000
