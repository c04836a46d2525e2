"""What a mechanism does to its trials is evidence; only one that cannot be played is an error.

Verdicts are deterministic for the fixed seed. *Refuted* rests on views that the two inputs never
share; *not refuted* on mechanisms that keep the claim, so that over seeds each would be refuted
with probability at most alpha = 0.001.
"""

from pathlib import Path

import pytest

from audit import read_record
from tests.cli.console import GIVEN, run, target


def result_of(outcome):
    assert outcome.err, "progress goes to stderr"
    return read_record(Path("out/record.json")).results[0]


def rules(result):
    return {finding.rule for finding in result.findings}


@pytest.mark.parametrize(
    "name",
    [
        "raises_on_one_side",
        "nan_on_one_side",
        "none_on_one_side",
        "key_on_one_side",
        "plain_word",
    ],
)
def test_a_difference_in_form_refutes(name):
    outcome = run(target(name), *GIVEN)
    assert outcome.code == 1
    result = result_of(outcome)
    assert result.verdict == "refuted"
    assert result.epsilon_lower > 1
    assert "DP001" in outcome.out
    assert f"$ python -m audit run {target(name)} --claim eps=1" in outcome.out


def test_failing_on_one_side_is_reported_with_its_shares():
    result = result_of(run(target("raises_on_one_side"), *GIVEN))
    assert result.exceptions == (0.0, 1.0)
    assert rules(result) >= {"DP001", "DP006"}


@pytest.mark.parametrize("name", ["word", "mapping", "noisy", "noisy_block"])
def test_outputs_of_any_type_that_keep_the_claim_are_not_refuted(name):
    outcome = run(target(name), *GIVEN)
    assert outcome.code == 0, outcome.out
    assert result_of(outcome).verdict == "unrefuted"


@pytest.mark.parametrize("name", ["nothing", "not_a_number"])
def test_a_constant_output_is_played_and_never_refuted(name):
    outcome = run(target(name), *GIVEN)
    assert outcome.code in (0, 3)
    result = result_of(outcome)
    assert result.verdict in ("unrefuted", "blind")
    assert result.epsilon_lower == 0


def test_what_no_handler_should_catch_is_no_verdict():
    """Python would end with exit code 1, which means refuted."""
    outcome = run(target("aborts"), *GIVEN)
    assert outcome.code == 3
    assert "no verdict" in outcome.err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises_always", "no trial of either side returned: raised RuntimeError"),
        ("leaves", "no trial of either side returned: raised SystemExit"),
        ("wrong_axis", "expected a leading axis of"),
    ],
)
def test_a_mechanism_that_cannot_be_played_gives_no_verdict(name, reason):
    outcome = run(target(name), *GIVEN)
    assert outcome.code == 3
    result = result_of(outcome)
    assert result.verdict == "error"
    (finding,) = result.findings
    assert finding.rule == "DP006"
    assert reason in finding.message


def test_a_shared_draw_is_found_and_played_singly():
    # without DP009 the atoms of a call would testify as if they were independent
    outcome = run(target("shared_draw"), *GIVEN, trials=4000)
    result = result_of(outcome)
    assert outcome.code == 0
    assert rules(result) == {"DP009"}
    assert result.verdict == "unrefuted"


def test_an_own_generator_is_found():
    # its draws are no function of the seed; two continuous views never agree by chance
    result = result_of(run(target("own_generator"), *GIVEN, trials=2000))
    assert "DP007" in rules(result)


def test_hidden_state_is_found():
    result = result_of(run(target("remembers"), *GIVEN, trials=2000))
    assert "DP007" in rules(result)


def test_a_mechanism_with_claim_and_pairs_of_its_own_needs_nothing_else():
    outcome = run(target("Slip"), trials=4000)
    assert outcome.code == 1
    assert "the claim allows 1" in outcome.out
    assert "one apart" in outcome.out


def test_a_policy_class_is_played():
    pair = ('{"outcomes": [1, 0, 1]}', '{"outcomes": [0, 0, 1]}')
    words = (target("Average"), "--claim", "eps=1", "--pair", *pair)
    after = run(*words, "--view", "prices_after", "--column", "prices")
    assert after.code == 1
    assert "DP001" in after.out


def test_roles_decide_the_exit_code():
    case = f'[[tool.audit.case]]\ntarget = "{target("plain_word")}"\nclaim = "eps=1"\n'
    pair = "pairs = [[0.0, 1.0]]\n"
    codes = {}
    for role in ("subject", "control", "informational"):
        Path("mine.toml").write_text(f'{case}{pair}role = "{role}"\n')
        codes[role] = run("--config", "mine.toml").code
    assert codes == {"subject": 1, "control": 0, "informational": 0}


def test_a_control_that_is_not_caught_is_no_verdict():
    case = f'[[tool.audit.case]]\ntarget = "{target("noisy_block")}"\nclaim = "eps=1"\n'
    Path("mine.toml").write_text(case + 'pairs = [[0.0, 1.0]]\nrole = "control"\n')
    outcome = run("--config", "mine.toml")
    assert outcome.code == 3
    assert "DP005" in outcome.out


def test_claims_that_differ_are_both_audited():
    outcome = run(target("Slip"), "--claim", "eps=4", trials=4000)
    record = read_record(Path("out/record.json"))
    assert [result.verdict for result in record.results] == ["unrefuted", "refuted"]
    assert outcome.code == 1
    (finding,) = [f for f in record.summary.findings if f.rule == "DP003"]
    assert "4-DP" in finding.message
    assert "1-DP (Slip)" in finding.message
    assert finding.reproduce.startswith(f"python -m audit run {target('Slip')} --claim eps=4")


def test_a_claim_that_agrees_is_one_case():
    run(target("Slip"), "--claim", "eps=1")
    (result,) = read_record(Path("out/record.json")).results
    assert "DP003" not in rules(result)


def test_patterns_name_catalogue_entries():
    outcome = run("calibration/la*", "calibration/discrete*", "--dry-run")
    assert outcome.code == 0
    assert "calibration/laplace: 1-DP" in outcome.out
    assert "calibration/discrete-laplace: 1-DP" in outcome.out
