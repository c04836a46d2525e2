"""Audits of a score file or of plain counts, without a mechanism."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from audit import bounds, onerun
from audit.cli import main
from audit.errors import UsageError
from audit.record import read_record
from audit.scores import check_counts, check_fair, placed_relation, read_scores
from tests.coverage.onerun import right_guesses

GOOD = "in,score,id\n1,0.5,a\n0,-1,b\n In ,2e-1,c\nOUT,3,d\ntrue,1,e\nno,0,f\n"


def written(path, inside, scores, header="in,score"):
    rows = [f"{int(b)},{s!r}" for b, s in zip(inside, scores.tolist(), strict=True)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def told(rng, canaries, scale):
    inside = rng.random(canaries) < 0.5
    return inside, inside + scale * rng.laplace(size=canaries)


def scored(*words):
    return CliRunner().invoke(main, ["score", *map(str, words)])


def test_columns_are_read(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(GOOD)
    scores = read_scores(path)
    np.testing.assert_array_equal(scores.inside, [True, False, True, False, True, False])
    np.testing.assert_array_equal(scores.score, [0.5, -1, 0.2, 3, 1, 0])
    assert len(scores) == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "row 1: expected a header"),
        ("in,score\n", "expected canaries below the header, got none. Add one row"),
        (GOOD.replace("score", "loss"), "row 1: no column 'score'; there are in, loss"),
        (GOOD.replace("OUT", "maybe"), "row 5, column 'in': expected 1 or in, 0 or out, got 'mayb"),
        (GOOD.replace("3,d", "x,d"), "row 5, column 'score': expected a finite number, got 'x'"),
        (
            GOOD.replace("3,d", "inf,d"),
            "row 5, column 'score': expected a finite number, got 'inf'",
        ),
        (GOOD.replace("3,d", ",d"), "row 5, column 'score': expected a number, got a blank"),
        (GOOD + "1,2\n", "row 8: expected 3 cells as in the header, got 2"),
        ("in,score\n" + "1,0\n" * 30, "column 'in': 30 of 30 canaries are in.*fair coin"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_with_code_2(tmp_path, text, words):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_scores(path)
    result = scored(path, "--claim", "eps=1")
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_fair_coins_pass():
    check_fair("file", 0, 10)
    check_fair("file", 4_800, 10_000)
    with pytest.raises(UsageError, match="4700 of 10000"):
        check_fair("file", 4_700, 10_000)


def test_relation_must_be_that_of_the_canaries():
    assert placed_relation("in-out", "") == "add-remove"
    assert placed_relation("swapped", "") == "replace-one"
    assert placed_relation("swapped", "declared") == "declared"
    with pytest.raises(UsageError, match=r"'replace-one': canaries placed in-out.*add-remove"):
        placed_relation("in-out", "replace-one")


@pytest.mark.parametrize(("scale", "verdict", "code"), [(1.0, "unrefuted", 0), (0.5, "refuted", 1)])
def test_one_run_of_a_file(tmp_path, scale, verdict, code):
    """Laplace 1 and half its noise, claim 1; false alarm .001, power above .99."""
    inside, scores = told(np.random.default_rng(4), 2_000, scale)
    path = written(tmp_path / "run.csv", inside, scores)
    found = scored(path, "--claim", "eps=1", "-f", "json", "--placed", "swapped")
    assert found.exit_code == code
    case = json.loads(found.stdout)["results"][0]
    assert case["verdict"] == verdict
    assert case["claim"]["relation"] == "replace-one"
    assert case["choice"]["test"] == "one-run"
    assert min(case["could_have_caught"].values()) < 1.3


def test_the_result_is_the_bound_of_its_own_counts(tmp_path):
    inside, scores = told(np.random.default_rng(5), 500, 0.05)
    path = written(tmp_path / "run.csv", inside, scores)
    target = tmp_path / "record.json"
    words = (path, "--claim", "eps=1,delta=1e-5", "--guesses", 101, "-f", f"json={target}")
    assert scored(*words).exit_code == 1
    record = read_record(target)
    case = record.results[0]
    right = right_guesses(scores, inside, 101)
    expected = onerun.one_run_epsilon(right, 101, 500, 1e-3, delta=1e-5, test=case.choice.test)
    assert case.epsilon_lower == expected > 1
    assert case.evidence.trials == 500
    assert "--guesses 101" in record.planned(case.name).reproduce


def test_a_gaussian_claim_is_refuted_by_its_own_parameter(tmp_path):
    rng = np.random.default_rng(6)
    inside = rng.random(5_000) < 0.5
    path = written(tmp_path / "run.csv", inside, 2.0 * inside + rng.standard_normal(5_000))
    words = ("--alpha", 0.05, "-f", "json")
    honest, broken = (scored(path, "--claim", f"mu={mu}", *words) for mu in (2.0, 1.0))
    assert json.loads(honest.stdout)["results"][0]["verdict"] != "refuted"
    assert broken.exit_code == 1
    case = json.loads(broken.stdout)["results"][0]
    assert 1.0 < case["parameter_lower"] < 2.0


def test_independent_rows_are_judged_like_any_audit(tmp_path):
    """Sorted by coin, which shuffling must undo; false alarm .001, power above .99."""
    inside, scores = told(np.random.default_rng(7), 4_000, 0.5)
    order = np.argsort(inside, kind="stable")
    path = written(tmp_path / "many.csv", inside[order], scores[order])
    found = scored(path, "--claim", "eps=1", "--independent", "-f", "json")
    assert found.exit_code == 1
    case = json.loads(found.stdout)["results"][0]
    assert (case["scouting"], case["trials"]) == (1_000, 3_000)
    assert case["epsilon_lower"] > 1.5
    assert case["log_wealth"]
    assert scored(path, "--claim", "eps=2.2", "--independent").exit_code == 0


@pytest.mark.parametrize("out_first", [True, False])
def test_the_order_of_a_file_does_not_testify(tmp_path, out_first):
    """One score for all canaries, listed by coin: ties must not follow the list.

    False alarm .001; where ties went by position this file certified 3.5.
    """
    inside = np.repeat([not out_first, out_first], 200)
    path = written(tmp_path / "sorted.csv", inside, np.zeros(400))
    found = scored(path, "--claim", "eps=0.5", "-f", "json")
    assert json.loads(found.stdout)["results"][0]["epsilon_lower"] == 0.0
    assert found.exit_code in (0, 3)


def test_independent_needs_rows(tmp_path):
    inside, scores = told(np.random.default_rng(8), 150, 0.5)
    path = written(tmp_path / "few.csv", inside, scores)
    found = scored(path, "--claim", "eps=1", "--independent")
    assert found.exit_code == 2
    assert "at least 200 rows, got 150" in found.stderr


def test_posteriors_bet_against_a_pure_claim(tmp_path):
    inside, scores = told(np.random.default_rng(9), 1_500, 0.5)
    posterior = 1 / (1 + np.exp(-2 * (np.abs(scores) - np.abs(scores - 1))))
    path = written(tmp_path / "post.csv", inside, posterior)
    found = scored(path, "--claim", "eps=1", "--posterior", "-f", "json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["results"][0]["choice"]["test"] == "e-value"
    assert scored(path, "--claim", "eps=2", "--posterior").exit_code == 0
    refused = scored(path, "--claim", "eps=1,delta=1e-5", "--posterior")
    assert refused.exit_code == 2
    assert "expected a pure claim" in refused.stderr
    path = written(tmp_path / "raw.csv", inside, scores)
    refused = scored(path, "--claim", "eps=1", "--posterior")
    assert "strictly between 0 and 1" in refused.stderr


def test_counts_of_one_run():
    found = scored("--counts", 90, 10, 88, 12, "--claim", "eps=1", "-f", "json")
    assert found.exit_code == 1
    case = json.loads(found.stdout)["results"][0]
    assert case["epsilon_lower"] == onerun.one_run_epsilon(178, 200, 200, 1e-3)
    claim = "eps=1,delta=0.001"
    more = scored("--counts", 90, 10, 88, 12, "--canaries", 9000, "--claim", claim, "-f", "json")
    case = json.loads(more.stdout)["results"][0]
    test = case["choice"]["test"]
    assert case["epsilon_lower"] == onerun.one_run_epsilon(
        178, 200, 9_000, 1e-3, delta=1e-3, test=test
    )


def test_counts_of_independent_trials():
    words = ("--counts", 90, 10, 88, 12, "--claim", "eps=1,delta=1e-3", "--independent")
    case = json.loads(scored(*words, "-f", "json").stdout)["results"][0]
    expected = bounds.binomial_epsilon(178, 22, 1e-3, delta=1e-3, trials=200)
    assert case["epsilon_lower"] == expected
    mu = scored("--counts", 90, 10, 88, 12, "--claim", "mu=1", "--independent", "-f", "json")
    case = json.loads(mu.stdout)["results"][0]
    assert case["parameter_lower"] == bounds.gaussian_mu_lower(178, 200, 8e-4)


def test_few_counts_are_blind():
    found = scored("--counts", 3, 1, 2, 0, "--claim", "eps=1")
    assert found.exit_code == 3
    assert "limited power" in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    ("table", "canaries", "words"),
    [
        ((1, -1, 1, 1), 0, "four counts from 0 to"),
        ((10**23, 0, 10**23, 0), 0, "four counts from 0 to"),
        ((0, 0, 0, 0), 0, "positive sum"),
        ((5, 5, 5, 5), 19, "fewer than the 20 guesses"),
        ((60, 0, 0, 0), 0, "add --canaries if some were not guessed"),
    ],
)
def test_impossible_counts(table, canaries, words):
    with pytest.raises(UsageError, match=words):
        check_counts(table, canaries)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "a file or --counts"),
        (("FILE", "--counts", 1, 1, 1, 1), "a file or --counts"),
        (("FILE", "--independent", "--posterior"), "exclude each other"),
        (("FILE", "--canaries", 5), "drop --canaries"),
        (("FILE", "--guesses", 7), "more than the 6 canaries"),
        (("FILE", "--guesses", 2, "--independent"), "drop it"),
        (("--counts", 1, 1, 1, 1, "--guesses", 2), "guesses already"),
        (("FILE", "--alpha", 0.7), "expected a probability"),
        (("FILE", "--relation", "replace-one"), "audit claims about add-remove"),
        (("FILE", "-f", "docx"), "format 'docx'"),
    ],
)
def test_flags_that_do_not_fit(tmp_path, words, message):
    path = tmp_path / "scores.csv"
    path.write_text(GOOD)
    found = scored(*[path if word == "FILE" else word for word in words], "--claim", "eps=1")
    assert found.exit_code == 2
    assert message in found.stderr


def test_the_printed_command_gives_the_same_report(tmp_path):
    inside, scores = told(np.random.default_rng(3), 400, 0.3)
    path = written(tmp_path / "a file.csv", inside, scores, header="member,loss")
    words = (path, "--in-column", "member", "--score-column", "loss", "--claim", "eps=1")
    first = json.loads(scored(*words, "--view", "actions", "-f", "json").stdout)
    command = shlex.split(first["plan"]["cases"][0]["reproduce"])
    again = json.loads(scored(*command[4:], "-f", "json").stdout)
    assert again["results"] == first["results"]
    assert again["plan"] == first["plan"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("calibration/laplace-per-record", "--canaries", 400), 0, "400 canaries of one run"),
        (("broken/laplace-per-record-half-noise", "--canaries", 400), 0, "caught"),
        (("calibration/laplace", "--canaries", 400), 2, "canaries(m)"),
        (("calibration/laplace-per-record",), 2, "--one-run needs --canaries"),
        (("calibration/laplace-per-record", "--canaries", 9, "--resume"), 2, "--resume"),
    ],
)
def test_run_with_one_run(tmp_path, words, code, text):
    command = ["run", *map(str, words), "--one-run", "--alpha", "0.05", "--out", str(tmp_path)]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == code, found.output
    assert text in " ".join(found.output.split())
    assert (tmp_path / "record.json").exists() == (code == 0)


def test_dry_run_of_one_run(tmp_path):
    words = ["--one-run", "--canaries", "400", "--dry-run", "--out", str(tmp_path)]
    found = CliRunner().invoke(main, ["run", "calibration/gaussian-per-record", *words])
    assert found.exit_code == 0
    assert "cost: one mechanism run per case" in found.stdout
    assert list(tmp_path.iterdir()) == []
