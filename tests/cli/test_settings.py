"""Settings: flag over environment over file over default; what is written where."""

import json
from pathlib import Path

import pytest

from audit import read_record
from tests.cli.console import GIVEN, audit, run, target

NOISY = (target("noisy_block"), *GIVEN)


def shown(*words):
    outcome = audit("run", "--show-settings", *words)
    assert outcome.code == 0
    return dict(line.split(" = ", 1) for line in outcome.out.splitlines())


def test_precedence_flag_environment_file_default(monkeypatch):
    assert shown()["trials"] == "20000 (default)"
    Path("pyproject.toml").write_text(
        "[tool.audit]\ntrials = 300\nearly-stop = false\nthreats = ['bits']\n"
    )
    assert shown()["trials"] == "300 (file)"
    assert shown()["early_stop"] == "False (file)"
    assert shown()["threats"] == "('bits',) (file)"
    monkeypatch.setenv("AUDIT_RUN_TRIALS", "400")
    assert shown()["trials"] == "400 (environment)"
    assert shown("--trials", "500")["trials"] == "500 (commandline)"


def test_a_configuration_may_be_a_file_of_its_own():
    Path("own.toml").write_text("seed = 7\n")
    assert shown("--config", "own.toml")["seed"] == "7 (file)"


def test_show_settings_writes_nothing():
    shown(*NOISY)
    assert list(Path().iterdir()) == []


def test_bad_environment_is_refused(monkeypatch):
    monkeypatch.setenv("AUDIT_RUN_SEED", "lucky")
    outcome = run(*NOISY)
    assert outcome.code == 2
    assert "'lucky' is not a valid integer" in outcome.complaint


@pytest.mark.parametrize(("words", "trials"), [((), 450), (("--trials", "600"), 600)])
def test_a_flag_wins_over_the_budget_of_a_case(words, trials):
    case = f'[[tool.audit.case]]\ntarget = "{NOISY[0]}"\nclaim = "eps=1"\npairs = [[0.0, 1.0]]\n'
    Path("mine.toml").write_text(f"[tool.audit]\ntrials = 300\n{case}trials = 450\n")
    outcome = audit("run", "--config", "mine.toml", "--dry-run", *words)
    assert f"cost: {trials} mechanism runs" in outcome.out


def test_configured_cases_are_selected_by_name_or_target():
    case = f'[[tool.audit.case]]\ntarget = "{NOISY[0]}"\nclaim = "eps={{}}"\npairs = [[0.0, 1.0]]\n'
    Path("pyproject.toml").write_text(case.format(1) + case.format(2) + 'name = "twice"\n')
    every = audit("run", "--dry-run").out
    assert every.startswith("2 cases")
    assert audit("run", "--dry-run", "twice").out.startswith("1 cases")
    assert f"{NOISY[0]}: 1-DP" in audit("run", "--dry-run", NOISY[0]).out


def test_a_dry_run_prints_plan_cost_and_reach_and_writes_nothing():
    outcome = run(*NOISY, "--dry-run", trials=5000)
    assert outcome.code == 0
    assert "could catch epsilon at delta 0" in outcome.out
    assert "cost: 5000 mechanism runs" in outcome.out
    assert list(Path().iterdir()) == []


def test_stdout_carries_the_report_and_stderr_the_progress():
    outcome = run(*NOISY)
    assert outcome.code == 0
    assert outcome.out.startswith("None of 1 audited claim refuted")
    assert "done:" not in outcome.out
    assert outcome.err.splitlines() == [
        f"done: {NOISY[0]}",
        "record: out/record.json",
        "report: out/report.html",
    ]


def test_formats_go_to_files_or_stdout():
    outcome = run(*NOISY, "-f", "json", "-f", "markdown=below/summary.md", "-f", "text=report.txt")
    document = json.loads(outcome.out)
    assert document["summary"]["exit_code"] == 0
    assert "Infinity" not in outcome.out
    assert "NaN" not in outcome.out
    assert Path("below/summary.md").read_text().startswith("#")
    assert Path("report.txt").read_text().startswith("None of 1")
    assert Path("out/report.html").read_text().lstrip().startswith("<!")


def test_the_seed_decides_everything():
    counts = []
    for seed in (1, 1, 2):
        run(*NOISY, "--seed", seed)
        counts.append(read_record(Path("out/record.json")).results[0].counts)
    assert counts[0] == counts[1] != counts[2]
