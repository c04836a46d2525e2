"""Profiles: what each changes, what it marks, and that a night can be replayed."""

from pathlib import Path

import pytest

from audit import read_record
from audit.profiles import PROFILES
from audit.registry import catalogue
from tests.cli.console import GIVEN, audit, run, target

NOISY = (target("noisy_block"), *GIVEN)


def record(folder="out"):
    return read_record(Path(folder) / "record.json")


def shown(*words):
    outcome = audit("run", "--show-settings", *words)
    assert outcome.code == 0
    return dict(line.split(" = ", 1) for line in outcome.out.splitlines())


def test_the_default_is_ci_with_a_pinned_seed():
    assert shown()["profile"] == "'ci' (default)"
    assert (shown()["trials"], shown()["seed"]) == ("20000 (default)", "0 (default)")
    run(*NOISY)
    assert record().plan.profile == "ci"


@pytest.mark.parametrize(("profile", "trials"), [("quick", 2000), ("nightly", 200_000)])
def test_trials_are_scaled_unless_they_are_given(profile, trials):
    assert shown("--profile", profile)["trials"] == f"{trials} (profile)"
    assert shown("--profile", profile, "--trials", 500)["trials"] == "500 (commandline)"
    Path("pyproject.toml").write_text("[tool.audit]\ntrials = 6000\n")
    assert shown("--profile", profile)["trials"] == f"{6000 * trials // 20_000} (profile)"


@pytest.mark.parametrize(("profile", "trials"), [("ci", 5000), ("quick", 500), ("nightly", 50_000)])
def test_budgets_of_cases_are_scaled_too(profile, trials):
    case = f'[[tool.audit.case]]\ntarget = "{NOISY[0]}"\nclaim = "eps=1"\ntrials = 5000\n'
    Path("pyproject.toml").write_text(f"{case}pairs = [[0.0, 1.0]]\n")
    outcome = audit("run", "--profile", profile, "--dry-run")
    line = next(x for x in outcome.out.splitlines() if x.startswith(NOISY[0]))
    assert f"; {trials} trials" in line


def test_a_profile_may_stand_in_the_configuration():
    Path("pyproject.toml").write_text('[tool.audit]\nprofile = "quick"\n')
    assert shown()["profile"] == "'quick' (file)"
    assert shown()["trials"] == "2000 (profile)"


def test_a_quick_record_says_so_and_is_no_baseline():
    outcome = run(*NOISY, "--profile", "quick", "-f", "text", "-f", "markdown", "-f", "html")
    for text in ("Quick profile: few trials", "cannot become a baseline"):
        assert " ".join(outcome.out.split()).count(text) == 3
    refused = audit("accept", "out/record.json", "--baseline", "b.json")
    assert refused.code == 2
    assert "--profile quick" in refused.complaint
    assert not Path("b.json").exists()


def test_a_night_tests_the_audit_itself_and_can_be_replayed(monkeypatch):
    """One of the controls stands for all, since they take minutes together."""
    kept = {
        name: catalogue()[name] for name in ("calibration/laplace", "broken/laplace-half-noise")
    }
    monkeypatch.setattr("audit.profiles.catalogue", lambda: kept)
    words = ("calibration/laplace", "--profile", "nightly", "--attack", "leaf")
    first = run(*words, trials=4000)
    seed = record().plan.seed
    assert f"fresh seed {seed}: --seed {seed} plays the same again" in first.err
    again = run(*words, "--seed", seed, "--out", "again", trials=4000)
    assert record("again").digest() == record().digest()
    assert "fresh seed" not in again.err
    roles = {case.name: case.role for case in record().plan.cases}
    assert roles["calibration/laplace"] == "subject"
    assert roles["null: calibration/laplace"] == "null"
    assert roles["planted: calibration/laplace"] == "control"
    assert roles["broken/laplace-half-noise"] == "control"
    (null,) = [result for result in record().results if result.role == "null"]
    assert null.silent  # by chance not so with probability at most alpha / cases < 1e-3
    assert "DP040" not in first.out
    assert "Nothing seen" in first.out


def test_every_night_has_a_seed_of_its_own():
    seeds = {shown("--profile", "nightly")["seed"] for _ in range(3)}
    assert len(seeds) == 3
    assert all(int(seed.split()[0]) < 2**53 for seed in seeds)


@pytest.mark.parametrize("words", [("--shard", "1/2"), ("--resume",)])
def test_runs_that_belong_together_need_one_seed(words):
    outcome = run(*NOISY, "--profile", "nightly", *words)
    assert outcome.code == 2
    assert "give --seed" in outcome.complaint
    assert not Path("out").exists()


def test_one_run_has_no_profile():
    outcome = run(target("Slip"), "--one-run", "--canaries", 100, "--profile", "quick")
    assert outcome.code == 2
    assert "--profile quick has no meaning here" in outcome.complaint


def test_an_unknown_profile_is_refused():
    assert audit("run", *NOISY, "--profile", "weekly").code == 2
    Path("pyproject.toml").write_text('[tool.audit]\nprofile = "weekly"\n')
    assert audit("run", *NOISY).code == 2


def test_a_null_test_that_certifies_something_is_no_verdict():
    from audit.findings import with_findings
    from audit.summary import summarise
    from tests.records import CLAIMS, one, planned, record_of

    result = one("null: case", CLAIMS[0], "null", "unrefuted")
    told = with_findings(result, planned(result), ())
    (finding,) = told.findings
    assert finding.rule == "DP040"
    assert summarise(record_of([told]).plan, [told]).exit_code == 3


def test_factors():
    assert {name: profile.trials(1000) for name, profile in PROFILES.items()} == {
        "ci": 1000,
        "quick": 200,
        "nightly": 10_000,
    }
    assert PROFILES["quick"].trials(0) == 0
