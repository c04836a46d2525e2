"""``--group``, ``--sweep``, ``--confirm`` and ``--one-run`` as a user types them."""

import pytest

from audit.record import read_record
from tests.cli.console import GIVEN, audit, run, target


def record_of(folder):
    return read_record(folder / "out" / "record.json")


def test_a_group_audit_confronts_the_claim_of_the_group(empty_folder):
    """A count that moves by 2 for two records; wrong with probability 1e-3."""
    pair = ("--claim", "eps=1", "--pair", "0.0", "2.0")
    assert run(target("noisy_block"), *pair, "--group", 2, trials=2_000).code == 0
    (result,) = record_of(empty_folder).results
    assert result.claim.epsilon == 2.0
    assert result.epsilon_lower > 0.5
    assert run(target("half_noise"), *pair, "--group", 2, trials=2_000).code == 1


def test_the_command_in_a_group_finding_names_the_group(empty_folder):
    pair = ("--claim", "eps=1", "--pair", "0.0", "2.0")
    run(target("half_noise"), *pair, "--group", 2, trials=2_000)
    (planned,) = record_of(empty_folder).plan.cases
    assert "--group 2" in planned.reproduce


@pytest.mark.parametrize("value", ["0", "-1", "two"])
def test_a_group_of_no_records_is_refused(value):
    outcome = run(target("noisy_block"), *GIVEN, "--group", value)
    assert outcome.code == 2
    assert "--group" in outcome.err


def test_a_sweep_makes_a_case_per_value_and_the_bound_follows(empty_folder):
    """Laplace at epsilon 1 and 4; the bounds are some ten standard errors apart."""
    assert (
        run("calibration/laplace", "--sweep", "epsilon=1:4:2", "--no-early-stop", trials=2_000).code
        == 0
    )
    low, high = record_of(empty_folder).results
    assert (low.claim.epsilon, high.claim.epsilon) == (1.0, 4.0)
    assert low.epsilon_lower < 1.0 < high.epsilon_lower
    assert {low.name, high.name} == {f"calibration/laplace epsilon={e}" for e in (1, 4)}


@pytest.mark.parametrize("text", ["epsilon", "epsilon=4:1", "epsilon=0:1", "epsilon=1:2:0", "=1:2"])
def test_a_malformed_sweep_is_refused(text):
    outcome = run("calibration/laplace", "--sweep", text)
    assert outcome.code == 2
    assert "--sweep" in outcome.complaint
    assert "epsilon=0.1:4" in outcome.complaint


def test_an_unknown_parameter_of_a_sweep_is_refused():
    outcome = run("calibration/laplace", "--sweep", "temperature=1:2")
    assert outcome.code == 2
    assert "temperature" in outcome.complaint


def test_a_sweep_of_an_unknown_target_suggests_names():
    outcome = run("laplace", "--sweep", "epsilon=1:2")
    assert outcome.code == 2
    assert "calibration/laplace" in outcome.complaint


def test_a_confirmed_refutation_is_refuted_twice(empty_folder):
    """Half noise: missed by either run with probability below 1e-6."""
    assert run(target("half_noise"), *GIVEN, "--confirm", trials=4_000).code == 1
    record = record_of(empty_folder)
    (result,) = record.results
    assert result.confirmation is not None
    assert result.confirmation.verdict == "refuted"
    assert record.plan.confirm_seed not in (None, record.plan.seed)
    assert "DP001" in {finding.rule for finding in result.findings}


def test_an_unrefuted_case_is_not_played_again(empty_folder):
    assert run(target("noisy_block"), *GIVEN, "--confirm", trials=4_000).code == 0
    (result,) = record_of(empty_folder).results
    assert result.confirmation is None


def test_one_run_reports_and_refuses_what_has_no_meaning(empty_folder):
    assert run("calibration/laplace-per-record", "--one-run", "--canaries", 200).code in (0, 3)
    assert record_of(empty_folder).results
    refused = run("calibration/laplace", "--one-run")
    assert refused.code == 2
    assert "--canaries" in refused.complaint
    refused = run("calibration/laplace", "--one-run", "--canaries", 100, "--confirm")
    assert refused.code == 2
    assert "--confirm" in refused.complaint


def test_scores_of_a_production_run_are_bounded(empty_folder):
    rows = ["in,score"] + [f"{i % 2},{i % 2}" for i in range(400)]
    (empty_folder / "scores.csv").write_text("\n".join(rows))
    outcome = audit("score", "scores.csv", "--claim", "eps=1")
    assert outcome.code == 1
    (empty_folder / "scores.csv").write_text("in,score\n2,0.5\n")
    refused = audit("score", "scores.csv", "--claim", "eps=1")
    assert refused.code == 2
    assert "scores.csv" in refused.complaint
