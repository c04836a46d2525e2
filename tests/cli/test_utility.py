"""``utility``: tables, the page, and what is refused."""

import math
import re
from types import SimpleNamespace

import pytest

from algorithms.catalogue import CATALOGUE
from audit import read_record
from audit.mechanism import capability
from audit.render.regret import picture
from audit.utility_command import AUDIT_HEADS, HEADS, audits, measure
from tests.cli.console import audit

NAME = "bandits/threshold-canary"
SIZES = ("--horizons", "20,40", "--epsilons", ".5,1", "--runs", "8")


class Costly:
    """A mechanism that only says what it costs."""

    def run(self, data, n, rng):
        return {"value": rng.random(n)}

    def pairs(self):
        return ()

    def utility_curves(self, horizons, epsilons, runs, seed):
        point = {"policy": "own", "rounds": 10, "epsilon": 1.0, "regret": 3.0, "error": 0.1}
        return {"rounds": [SimpleNamespace(**point)], "epsilon": []}


def tables(text):
    """Rows of all tables, heads and rulers apart."""
    rows = [line[1:-1].split("|") for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] not in (HEADS[0], AUDIT_HEADS[0], "---", "---:")]


def test_the_table_goes_to_stdout_and_repeats():
    done = audit("utility", NAME, *SIZES)
    assert (done.code, done.err) == (0, "")
    rows = tables(done.out)
    assert [row[:3] for row in rows if row[0] == "private"] == [
        ["private", "20", "1"],
        ["private", "40", "1"],
        ["private", "40", "0.5"],
        ["private", "40", "1"],
    ]
    assert sum(row[0] == "uniform play" for row in rows) == 4
    assert audit("utility", NAME, *SIZES) == done
    assert audit("utility", NAME, *SIZES, "--seed", "1").out != done.out


def test_files_by_their_ending(tmp_path):
    plain, page = tmp_path / "cost.md", tmp_path / "cost.html"
    for path in (plain, page):
        done = audit("utility", "bandits/batched-htinf", *SIZES, "--out", path)
        assert (done.code, done.out) == (0, "")
        assert str(path) in done.err
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 2
    assert "<script" not in text
    for row in tables(plain.read_text(encoding="utf-8")):
        cells = "".join(f"<td[^>]*>{re.escape(cell)}</td>" for cell in row)
        assert re.search(cells, text)


def test_the_picture_has_a_line_per_policy_and_one_for_the_promise():
    curves = measure("bandits/batched-htinf", [20, 40], [0.5, 1.0], 8, 0)
    for against, points in curves.items():
        drawn = picture(points, against)
        for name in ("private", "uniform play", "guarantee"):
            assert f">{name}</text>" in drawn
        assert picture(points, against) == drawn


def test_a_mechanism_of_ones_own_needs_only_the_capability():
    curves = measure("tests.cli.test_utility:Costly", None, None, 2, 0)
    assert list(curves) == ["rounds"]
    assert "guarantee" not in picture(curves["rounds"], "rounds")


def test_a_record_of_audits_puts_certified_beside_claimed(tmp_path):
    out = tmp_path / "swept"
    audit("run", NAME, "--sweep", "epsilon=.5:1:2", "--trials", "400", "--jobs", 1, "--out", out)
    record = read_record(out / "record.json")
    page = tmp_path / "cost.html"
    done = audit("utility", NAME, *SIZES, "--record", out / "record.json", "--out", page)
    assert done.code == 0
    found = audits(NAME, out / "record.json")
    assert [a.claimed for a in found] == [0.5, 1.0]
    assert [a.certified for a in found] == [result.epsilon_lower for result in record.results]
    curves = measure(NAME, [20, 40], [0.5, 1.0], 8, 0)
    bars = [picture(curves["epsilon"], "epsilon", some).count("<path") for some in ([], found)]
    assert bars[1] == bars[0] + 2 * len(found)
    assert picture(curves["epsilon"], "epsilon", found) in page.read_text(encoding="utf-8")
    told = audit("utility", NAME, *SIZES, "--record", out / "record.json").out
    assert "## Claimed and certified" in told
    other = audit("utility", "bandits/batched-htinf", "--record", out / "record.json")
    assert other.code == 2
    assert "expected audits of 'bandits/batched-htinf'" in other.complaint


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("calibration/laplace",), "does not say what it costs"),
        (("bandits/zzz",), "catalogue name, module:attr"),
        ((NAME, "--horizons", "ten"), "--horizons: expected numbers"),
        ((NAME, "--horizons", "10.5"), "whole numbers, got 10.5"),
        ((NAME, "--horizons", "0"), "numbers above 0"),
        ((NAME, "--epsilons", "-1"), "numbers above 0"),
        ((NAME, "--epsilons", "nan"), "numbers above 0"),
        ((NAME, "--horizons", "4", "--epsilons", ".01"), "expected epsilon >= 1/horizon"),
        ((NAME, "--runs", "1"), "--runs: expected at least 2"),
        ((NAME, "--out", "cost.pdf"), "ending in .html or .md"),
    ],
)
def test_refusals(words, complaint):
    done = audit("utility", *words)
    assert done.code == 2
    assert complaint in done.complaint


def offering():
    named = (name for name in CATALOGUE if name.startswith(("bandits/", "pricing/")))
    return [name for name in named if capability(CATALOGUE[name].build(), "utility_curves")]


def test_every_algorithm_that_offers_curves_can_be_measured():
    for name in offering():
        curves = measure(name, [512], [4.0], runs=2, seed=0)
        points = [point for against in curves.values() for point in against]
        assert len(points) >= 2
        assert all(math.isfinite(point.regret) for point in points)
