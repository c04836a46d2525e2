"""The command at the end of a finding finds the same again: same counts, same certified number."""

import shlex
from pathlib import Path

import msgspec
import pytest

from audit import read_record
from tests.cli.console import audit, run, target

QUICKEST = ("--attack", "likelihood", "--attack", "leaf")
CASE = f"""
[[tool.audit.case]]
target = "{target("half_noise")}"
name = "a count"
claim = "eps=1"
pairs = [[0.0, 1.0]]
trials = 2500
"""


def results(path="out/record.json"):
    record = read_record(Path(path))
    return {result.name: result for result in record.results}, record


def again(command):
    """Play a reproducing command into another folder."""
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "audit"]
    outcome = audit(*words[3:], "--jobs", 1, "--out", "again")
    assert outcome.code in (0, 1)
    return results("again/record.json")[0]


def same(first, second):
    """Equal but for the command itself, which names the budget of the shorter run."""
    return msgspec.structs.replace(first, findings=()) == msgspec.structs.replace(
        second, findings=()
    )


def check_all(record, found):
    assert record.summary.findings
    for command, case in sorted({(f.reproduce, f.case) for f in record.summary.findings}):
        assert same(again(command)[case], found[case])


def test_of_one_target():
    run("algorithms.broken:laplace_half_noise", trials=2000)
    found, record = results()
    check_all(record, found)


def test_of_one_case_of_several_which_share_the_error_rate():
    run("calibration/laplace", "broken/bandit-raw-loss", "broken/laplace-half-noise", trials=2000)
    found, record = results()
    assert {f.case for f in record.summary.findings} >= {"broken/laplace-half-noise"}
    check_all(record, found)


@pytest.mark.parametrize("file", ["pyproject.toml", "own.toml"])
def test_of_a_configured_case_with_a_name_of_its_own(file):
    Path(file).write_text(CASE)
    words = [] if file == "pyproject.toml" else ["--config", file]
    code = audit("run", *words, "--jobs", 1, "--out", "out").code
    found, record = results()
    assert code == 1
    check_all(record, found)


def test_of_claims_that_differ():
    run(target("Slip"), "--claim", "eps=1.2", *QUICKEST, trials=2000)
    found, record = results()
    assert len(found) == 2
    check_all(record, found)


def test_of_pairs_from_the_command_line():
    pairs = ("--pair", "0.0", "1.0", "--pair", "0.0", "0.5")
    run(target("half_noise"), "--claim", "eps=1", *pairs, "--attack", "leaf", trials=2000)
    found, record = results()
    check_all(record, found)


def test_of_own_data():
    rows = "".join(f"{20 + 3 * i},{i % 2}\n" for i in range(12))
    Path("mine.csv").write_text("age,bought\n" + rows)
    columns = ("--context", "age", "--outcome", "bought", "--bounds", "age=0:100,bought=0:1")
    run("broken/cov-half-noise", "--data", "mine.csv", *columns, *QUICKEST, trials=1000)
    found, record = results()
    check_all(record, found)


def test_of_a_function_examined_from_python():
    import audit as api
    from tests.data.targets import half_noise

    result = api.examine(
        half_noise,
        claim=api.PureDp(epsilon=1.0),
        pairs=[api.Pair(0.0, 1.0)],
        batched=True,
        trials=2000,
    )
    expected = "audit.examine(half_noise, ..., trials=2000, alpha=0.001, seed=0)"
    assert result.findings[0].reproduce == expected
