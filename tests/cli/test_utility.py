"""``utility``: tables, the page, and what is refused."""

import re
from types import SimpleNamespace

import pytest

from audit.render.regret import picture
from audit.utility_command import HEADS, measure
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
    return [row for row in rows if row[0] not in (HEADS[0], "---")]


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
