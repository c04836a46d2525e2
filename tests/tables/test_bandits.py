"""The committed table of broken bandits is what its record says."""

from __future__ import annotations

import pytest

from algorithms.catalogue import CATALOGUE
from audit.plan import Settings
from audit.record import read_record
from audit.render import render
from tests.tables import bandits, reports


@pytest.fixture(scope="module")
def record():
    return read_record(reports.FOLDER / "bandits" / f"{bandits.NAME}.json")


def test_the_committed_table_and_page_are_what_the_record_says(record):
    assert bandits.TARGET.read_text(encoding="utf-8") == bandits.document(record)
    page = reports.FOLDER / "bandits" / f"{bandits.NAME}.html"
    assert page.read_text(encoding="utf-8") == render(record, "html")


def test_every_twin_is_in_the_record_and_refuted_by_counting(record):
    assert [result.name for result in record.results] == bandits.twins()
    for result in record.results:
        assert result.verdict == "refuted", result.name
        assert "DP001" in {finding.rule for finding in result.findings}
        assert result.trials + result.scouting <= bandits.SETTINGS.trials


def test_every_published_bug_has_a_twin_and_every_twin_a_number():
    named = {name for name in CATALOGUE if name.startswith("broken/bandit")}
    assert set(bandits.twins()) == named
    assert {f"B{i}" for i in range(1, 20)} <= set(bandits.NUMBERS.values())


def test_a_line_agrees_with_a_new_audit():
    name = "broken/bandit-half-noise"
    (result,) = reports.audited([name], Settings(trials=4_000), jobs=1).results
    found = dict(zip(bandits.HEADS, bandits.row(result), strict=True))
    assert found["really"] == "2"
    assert found["caught by"] == "likelihood, refuted"
