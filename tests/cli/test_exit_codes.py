"""The documented exit codes, from real processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.console import GIVEN, ROOT, child, command, environment, target

QUICK = ("--trials", 400, "--jobs", 1)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", target("noisy_block"), *GIVEN, *QUICK), 0),
        (("run", target("plain_word"), *GIVEN, *QUICK), 1),
        (("run", target("noisy_block"), *QUICK), 2),
        (("run", target("leaves"), *GIVEN, *QUICK), 3),
        (("run", target("nothing"), *GIVEN, "--claim", "eps=0.05", *QUICK), 3),
    ],
)
def test_run(words, code, tmp_path):
    outcome = child(*words, cwd=tmp_path, code=code)
    assert "Traceback" not in outcome.err
    if code == 2:
        assert outcome.complaint
        assert list(tmp_path.iterdir()) == []


def test_a_broken_twin_named_by_module_is_refuted_with_rule_evidence_and_command(tmp_path):
    words = ("run", "algorithms.broken:laplace_half_noise", "--jobs", 1)
    out = child(*words, cwd=tmp_path, code=1).out
    assert "DP001 claim refuted: algorithms.broken:laplace_half_noise" in out
    text = " ".join(out.split())
    assert re.search(r"epsilon >= 1[.\d]* at delta 0, but the claim allows 1\.", text)
    assert "$ python -m audit run algorithms.broken:laplace_half_noise --trials 20000" in out


def test_the_package_of_broken_twins_lists_them():
    from algorithms import broken

    assert "laplace_half_noise" in dir(broken)
    assert broken.laplace_half_noise.claim == broken.laplace_half_noise.claim
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = broken.missing


def test_a_worker_that_dies_is_no_verdict(tmp_path):
    case = '[[tool.audit.case]]\ntarget = "{}"\nclaim = "eps=1"\npairs = [[0.0, 1.0]]\n'
    text = case.format(target("dies")) + case.format(target("noisy"))
    (tmp_path / "pyproject.toml").write_text(text)
    outcome = child("run", "--trials", 400, "--jobs", 2, cwd=tmp_path, code=3)
    assert "a worker process failed" in outcome.complaint


def test_a_reader_that_goes_away_does_not_change_the_exit_code(tmp_path):
    words = command("run", target("plain_word"), *GIVEN, *QUICK)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 1, done.stderr
    assert b"Traceback" not in done.stderr


def test_help_imports_no_numpy():
    script = (
        "import sys, runpy; sys.argv = ['audit', '--help']\n"
        "try: runpy.run_module('audit', run_name='__main__')\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "assert 'numpy' not in sys.modules and 'scipy' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Exit codes: 0 nothing refuted, 1 a claim refuted" in done.stdout


def test_a_crash_of_our_own_is_no_verdict_and_never_looks_refuted(monkeypatch):
    from audit import tool_commands
    from tests.cli.console import audit

    def crash(_pattern):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(tool_commands, "list_catalogue", crash)
    outcome = audit("list")
    assert outcome.code == 3
    assert "ZeroDivisionError: ours" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("error: dpaudit itself failed")


def test_help_of_every_command(tmp_path):
    from audit.cli import main
    from tests.cli.console import audit

    for name in main.commands:
        outcome = audit(name, "--help")
        assert outcome.code == 0
        assert outcome.out.startswith("Usage: python -m audit " + name)
    assert Path(tmp_path).exists()
