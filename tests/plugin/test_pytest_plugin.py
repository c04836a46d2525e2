"""The pytest plugin, in sessions of its own.

Verdicts are deterministic for the fixed seed; over seeds an honest case here fails with
probability at most its alpha, and Laplace noise of half the scale is caught nearly always.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.console import PATIENCE

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
[tool.audit]
trials = 800

[[tool.audit.case]]
target = "mine:honest"
claim = "eps=1"
pairs = [[0.0, 1.0]]

[[tool.audit.case]]
name = "half"
target = "mine:half"
claim = "eps=1"
pairs = [[0.0, 1.0]]

[[tool.audit.case]]
name = "planted"
target = "mine:half"
claim = "eps=1"
role = "control"
pairs = [[0.0, 1.0]]

[[tool.audit.case]]
name = "constant"
target = "mine:constant"
claim = "eps=1"
pairs = [[0.0, 1.0]]

[[tool.audit.case]]
name = "unknown"
target = "mine:nothing"
claim = "eps=1"
"""
MINE = """
def honest(data, n, rng):
    return data + rng.laplace(size=n)


def half(data, n, rng):
    return data + rng.laplace(scale=0.3, size=n)


def constant(data, n, rng):
    return rng.random(n) * 0
"""
TESTS = """
import mine


def test_honest(assert_unrefuted):
    result = assert_unrefuted(mine.honest, claim="eps=1", pairs=[(0.0, 1.0)], batched=True)
    assert sum(result.evidence.total.ravel()) <= 300


def test_half(assert_unrefuted):
    assert_unrefuted(mine.half, claim="eps=1", pairs=[(0.0, 1.0)], batched=True)


def test_constant(assert_unrefuted):
    made = {"claim": "eps=1", "pairs": [(0.0, 1.0)], "batched": True}
    assert_unrefuted(mine.constant, allow_blind=True, **made)


def test_that_audits_nothing():
    pass
"""
FAIL = {"half", "constant", "unknown"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("project")
    (where / "pyproject.toml").write_text(CONFIG, encoding="utf-8")
    (where / "mine.py").write_text(MINE, encoding="utf-8")
    (where / "test_mine.py").write_text(TESTS, encoding="utf-8")
    return where


def session(folder, *words):
    plugins = ["-p", "audit.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--strict-markers", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def cases(path):
    """Name to whether it failed and its properties, from a JUnit report."""
    found = {}
    for case in ET.parse(path).iter("testcase"):
        values = {p.get("name"): p.get("value") for p in case.iter("property")}
        found[case.get("name")] = case.find("failure") is not None, values
    return found


@pytest.fixture(scope="module", params=["in one process", "with xdist"])
def report(request, folder):
    """Output and JUnit report of a whole session."""
    path = folder / f"{request.param[-5:]}.xml"
    words = ["-n", "2"] if "xdist" in request.param else []
    words += ["--audit", "--audit-trials", "400", f"--junitxml={path}"]
    code, text = session(folder, *words)
    assert code == 1, text
    return text, cases(path)


def test_cases_pass_and_fail_as_in_a_run(report):
    text, found = report
    assert {name for name in found if not name.startswith("test_")} == {
        "mine:honest",
        "planted",
        *FAIL,
    }
    for name in ("mine:honest", "planted", "test_honest", "test_constant"):
        assert not found[name][0], text
    for name in (*FAIL, "test_half"):
        assert found[name][0], name
    assert "DP001: epsilon >= " in text
    assert "$ python -m audit run half --trials" in text
    assert "DP004" in text
    assert "cannot import it" in text


def test_results_are_junit_properties(report):
    _, found = report
    honest, half = found["mine:honest"][1], found["half"][1]
    assert honest["verdict"] == "unrefuted"
    assert 0 <= float(honest["epsilon_lower"]) <= 1 < float(honest["could_have_caught"])
    assert (half["verdict"], half["claim"]) == ("refuted", "1-DP of output")
    assert float(half["epsilon_lower"]) > 1
    assert found["test_half"][1]["verdict"] == "refuted"
    assert found["test_that_audits_nothing"][1] == {}


def test_alpha_is_divided_over_the_configured_cases(report):
    _, found = report
    assert float(found["mine:honest"][1]["alpha"]) == pytest.approx(1e-3 / 5)
    assert float(found["test_half"][1]["alpha"]) == pytest.approx(1e-3)


def test_nothing_is_audited_unasked(folder):
    code, text = session(folder, "--collect-only", "-q")
    assert code == 0
    assert "pyproject.toml::" not in text
    assert "4 tests collected" in text


def test_the_ini_setting_asks_too_and_markers_select(folder):
    code, text = session(folder, "-o", "audit=true", "--collect-only", "-q", "-m", "audit")
    assert code == 0
    assert "pyproject.toml::half" in text
    assert "test_mine.py::test_half" in text
    assert "8/9 tests collected" in text
    _, rest = session(folder, "--audit", "--collect-only", "-q", "-m", "not audit")
    assert "1/9 tests collected" in rest


def test_one_case_can_be_named(folder):
    code, text = session(folder, "--audit", "pyproject.toml::planted")
    assert code == 0, text
    assert "1 passed" in text


def test_an_accepted_refutation_passes(folder):
    words = [sys.executable, "-m", "audit"]
    options = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "check": False}
    run = ["run", "half", "--trials", "800", "--jobs", "1", "--alpha", "0.0002"]
    subprocess.run([*words, *run, "-f", "json=r.json"], capture_output=True, **options)
    accept = ["accept", "audit-report/record.json", "--reason", "known", "--baseline", "b.json"]
    subprocess.run([*words, *accept], capture_output=True, **options)
    config = CONFIG.replace("trials = 800", 'trials = 800\nbaseline = "b.json"', 1)
    (folder / "accepted.toml").write_text(config, encoding="utf-8")
    code, text = session(
        folder, "--audit", "--audit-config", "accepted.toml", "-k", "half and not test_"
    )
    assert code == 0, text
    assert "1 passed" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "give --audit-config FILE"), ("[tool.audit]\ntrails = 3", "unknown field `trails`")],
)
def test_a_configuration_that_cannot_be_read_is_told(folder, text, message):
    path = folder / "other.toml"
    path.unlink(missing_ok=True)
    if text:
        path.write_text(text, encoding="utf-8")
    code, said = session(folder, "--audit", "--audit-config", "other.toml", "-k", "nothing")
    assert code in (2, 4)
    assert message in said


def test_importing_the_plugin_and_collecting_load_nothing_numerical(folder):
    script = (
        "import sys, pytest, audit.pytest_plugin as plugin\n"
        "assert 'numpy' not in sys.modules, 'import'\n"
        "code = pytest.main(['-q', '--collect-only', '-p', 'audit.pytest_plugin', '--audit',\n"
        "                    '-p', 'no:cacheprovider', '-p', 'no:hypothesispytest',\n"
        "                    'pyproject.toml'])\n"
        "assert code == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'audit.engine'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pyproject.toml::mine:honest" in done.stdout
