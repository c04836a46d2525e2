"""The committed table of reference reports is what its records say, and small enough to keep."""

from __future__ import annotations

import math

import pytest

from algorithms.catalogue import CATALOGUE
from audit.record import read_record
from audit.render import render
from audit.render.figures import rungs
from tests.records import CLAIMS, one, record_of
from tests.tables import reports

README = reports.FOLDER / "README.md"
LARGEST = 15_000_000


def test_the_committed_table_is_what_the_records_say() -> None:
    assert reports.between_markers(README.read_text(encoding="utf-8")) == reports.table().strip()


@pytest.mark.parametrize("family", reports.FAMILIES)
def test_committed_pages_show_their_records_and_every_algorithm(family) -> None:
    folder = reports.FOLDER / family
    if not (folder / "record.json").exists():
        assert not (folder / "report.html").exists()
        pytest.skip(f"reports/{family} is not written yet: python -m tests.tables.reports")
    record = read_record(folder / "record.json")
    assert tuple(result.name for result in record.results) == reports.names(family)
    assert record.execution.complete
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page == render(record, "html")
    for result in record.results:
        assert result.verdict in ("unrefuted", "blind"), result.name
        known = dict(rungs(result))
        above = known.get("accountant", math.inf) * (1 + 1e-9)
        assert max(known.get("certificate", 0.0), known.get("evidence", 0.0)) <= above


def test_committed_reports_stay_small() -> None:
    kept = [path for path in reports.FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) < LARGEST


def test_both_families_are_there_in_full() -> None:
    for family in reports.FAMILIES:
        listed = {name for name in CATALOGUE if name.startswith(f"{family}/")}
        silent = listed - set(reports.names(family))
        assert all(CATALOGUE[name].build().claim is None for name in silent)
        assert len(reports.names(family)) > 10


def test_the_table_is_made_of_the_records(tmp_path) -> None:
    record = record_of(
        [one(f"pricing/case-{i}", c, "subject", "unrefuted", i) for i, c in enumerate(CLAIMS)]
    )
    assert reports.table(tmp_path) == reports.NONE_YET
    reports.write("pricing", record, folder=tmp_path)
    found = reports.table(tmp_path)
    rows = [r[1:-1].split("|") for r in found.splitlines() if r.startswith("|")]
    assert rows[0] == list(reports.HEADS)
    assert [r[0] for r in rows[2:]] == [f"case-{i}" for i in range(len(CLAIMS))]
    assert all(len(r) == len(reports.HEADS) for r in rows)
    assert "(pricing/report.html)" in found
    text = reports.with_table(f"head\n{reports.BEGIN}\nold\n{reports.END}\ntail\n", found)
    assert reports.between_markers(text) == found.strip()
    assert text.startswith("head\n")
    assert text.endswith("\ntail\n")
    assert reports.with_table(text, found) == text


def test_an_audit_of_the_set_takes_part_in_it() -> None:
    record = reports.audited(["bandits/threshold-canary"], jobs=1)
    (result,) = record.results
    assert result.verdict != "error"
    assert result.trials + result.scouting <= reports.SETTINGS.trials
    assert reports.row(result)[0] == "threshold-canary"
