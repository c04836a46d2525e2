"""Shards of one plan: together they are the record that one run writes, bit for bit."""

import json
from pathlib import Path

import msgspec
import pytest

from audit import read_record, write_record
from tests.cli.console import audit, run, target

CASES = ("plain_word", "noisy_block", "noisy_block", "nothing")
TABLE = '[[tool.audit.case]]\ntarget = "{}"\nname = "case {}"\nclaim = "eps=1"\n'


@pytest.fixture(autouse=True)
def config(empty_folder):
    parts = [TABLE.format(target(name), i) for i, name in enumerate(CASES)]
    pairs = "pairs = [[0.0, 1.0]]\n"
    (empty_folder / "pyproject.toml").write_text(pairs.join([*parts, ""]))


def shards(count, *words):
    codes = [
        run("--shard", f"{i}/{count}", *words, "--out", f"s{i}").code for i in range(1, count + 1)
    ]
    return codes, [f"s{i}/record.json" for i in range(1, count + 1)]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("words", [(), ("--confirm",)])
def test_merged_shards_are_the_record_of_one_run(count, words):
    whole = run(*words)
    codes, paths = shards(count, *words)
    assert whole.code == 1
    assert max(codes, key=(0, 3, 1).index) == whole.code
    merged = audit("report", *reversed(paths), "-f", "json=merged.json")
    assert merged.code == whole.code
    one, other = read_record(Path("out/record.json")), read_record(Path("merged.json"))
    assert other.results == one.results
    assert other.plan == one.plan
    assert other.summary == one.summary
    assert other.digest() == one.digest()


def test_a_shard_divides_alpha_over_the_whole_plan_and_says_what_it_is():
    outcome = run("--shard", "2/2")
    record = read_record(Path("out/record.json"))
    assert "Shard 2 of 2: 2 of 4 planned cases" in " ".join(outcome.out.split())
    assert [result.name for result in record.results] == ["case 1", "case 3"]
    assert {result.alpha for result in record.results} == {record.plan.alpha / 4}
    assert "partial" not in outcome.out


def test_a_merged_record_is_compared_with_a_baseline():
    run()
    assert audit("accept", "out/record.json", "--reason", "known", "--baseline", "b.json").code == 0
    whole = run("--baseline", "b.json")
    _, paths = shards(2)
    merged = audit("report", *paths, "--baseline", "b.json", "-f", "json=merged.json")
    assert merged.code == whole.code == 3  # one case is blind; the leak is accepted
    assert (
        read_record(Path("merged.json")).digest() == read_record(Path("out/record.json")).digest()
    )


def test_a_shard_cannot_become_a_baseline():
    run("--shard", "1/2")
    outcome = audit("accept", "out/record.json", "--reason", "known")
    assert outcome.code == 2
    assert "merge all shards" in outcome.complaint


@pytest.mark.parametrize("given", [(0, 0), (0, 1), (0, 1, 1)])
def test_every_shard_is_needed_once(given):
    _, paths = shards(3)
    outcome = audit("report", *(paths[i] for i in given))
    assert outcome.code == 2
    assert "expected every shard of the run once, 1/3 to 3/3; got" in outcome.complaint


def test_shards_of_different_plans_are_refused():
    run("--shard", "1/2", "--out", "a")
    run("--shard", "2/2", "--seed", 1, "--out", "b")
    run("--out", "c")
    other = audit("report", "a/record.json", "b/record.json")
    assert (other.code, "2/2 is of another plan" in other.complaint) == (2, True)
    whole = audit("report", "a/record.json", "c/record.json")
    assert (whole.code, "expected every shard" in whole.complaint) == (2, True)


def test_shards_of_different_environments_are_refused():
    _, paths = shards(2)
    record = read_record(Path(paths[1]))
    elsewhere = msgspec.structs.replace(record.environment, python="3.99.0")
    write_record(msgspec.structs.replace(record, environment=elsewhere), Path(paths[1]))
    outcome = audit("report", *paths)
    assert outcome.code == 2
    assert "different versions of Python" in outcome.complaint


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "-1/2"])
def test_another_form_is_refused(text):
    outcome = run("--shard", text)
    assert outcome.code == 2
    assert "--shard" in outcome.complaint
    assert not Path("out").exists()


def test_more_shards_than_cases_are_refused():
    outcome = run("--shard", "1/5")
    assert "only 4 cases" in outcome.complaint
    assert run("--shard", "1/2", "--one-run", "--canaries", 100).code == 2


def test_a_dry_run_of_a_shard_prints_its_own_cases():
    outcome = run("--shard", "1/2", "--dry-run", trials=500)
    assert "cost: 1000 mechanism runs" in outcome.out
    assert "case 1" not in outcome.out


def test_an_interrupted_shard_makes_the_whole_incomplete():
    _, paths = shards(2)
    document = json.loads(Path(paths[0]).read_text())
    document["execution"]["complete"] = False
    document["results"] = document["results"][:1]
    Path(paths[0]).write_text(json.dumps(document))
    merged = audit("report", *paths)
    assert "This record is partial" in merged.out
    assert merged.code == 1
