"""The committed tables have the structure that their generator gives them."""

from __future__ import annotations

import pytest

from algorithms.catalogue import CATALOGUE
from tests.tables import bandits


def cells(line):
    return line[1:-1].split("|")


def committed():
    """Rows of both committed tables."""
    lines = bandits.TARGET.read_text(encoding="utf-8").splitlines()
    rows = [cells(line) for line in lines if line.startswith("|")]
    middle = rows.index(list(bandits.TWIN_HEADS))
    assert rows[0] == list(bandits.ALGORITHM_HEADS)
    return rows[2:middle], rows[middle + 2 :]


def test_every_algorithm_and_every_twin_has_its_line():
    right, broken = committed()
    assert [f"bandits/{row[0]}" for row in right] == bandits.algorithms()
    assert [f"broken/bandit-{row[1]}" for row in broken] == bandits.twins()
    assert all(len(row) == len(bandits.ALGORITHM_HEADS) for row in right)
    assert all(len(row) == len(bandits.TWIN_HEADS) for row in broken)


def test_every_published_bug_has_a_twin_and_every_twin_a_number():
    named = {name for name in CATALOGUE if name.startswith("broken/bandit")}
    assert set(bandits.twins()) == named
    assert {f"B{i}" for i in range(1, 20)} <= set(bandits.NUMBERS.values())


def test_no_algorithm_is_refuted_and_every_twin_is():
    right, broken = committed()
    for row in right:
        found = dict(zip(bandits.ALGORITHM_HEADS, row, strict=True))
        assert found["verdict"] in ("unrefuted", "blind")
        if found["accountant"]:
            above = float(found["accountant"]) * (1 + 1e-3)
            assert float(found["evidence"]) <= above
            assert float(found["certificate"] or 0) <= above
            assert float(found["accountant"]) <= float(found["theorem"]) * (1 + 1e-3)
    for row in broken:
        found = dict(zip(bandits.TWIN_HEADS, row, strict=True))
        assert found["caught by"].endswith("refuted")
        assert "DP001" in found["rule"]
        assert int(found["trials"]) <= bandits.TRIALS


@pytest.mark.parametrize(
    ("name", "row"), [("threshold-canary", bandits.algorithm_row), ("half-noise", bandits.twin_row)]
)
def test_a_line_agrees_with_a_new_audit(name, row):
    twin = row is bandits.twin_row
    found = bandits.audited(f"broken/bandit-{name}" if twin else f"bandits/{name}")
    assert bandits.line(row(found)) in bandits.TARGET.read_text(encoding="utf-8").splitlines()
