"""``compare``, and what a baseline says about each case."""

import json
from pathlib import Path

import msgspec
import pytest

from audit import read_record, write_record
from audit.baseline import accept, compare, state_of
from tests.cli.console import GIVEN, audit, run, target

LEAK = (target("plain_word"), *GIVEN)
NOISY = (target("noisy_block"), *GIVEN)


def record(folder):
    return read_record(Path(folder) / "record.json")


def status(outcome, folder="new"):
    """The only change that the text tells."""
    part = outcome.out.partition("Since the baseline\n")[2]
    (line,) = [line.strip() for line in part.splitlines()[:1]]
    return line.partition(":")[0]


def altered(folder, **changes):
    """The record of a folder, with fields of its one result replaced."""
    old = record(folder)
    result = msgspec.structs.replace(old.results[0], **changes)
    write_record(msgspec.structs.replace(old, results=(result,)), Path("altered.json"))
    return "altered.json"


def test_nothing_changed():
    run(*NOISY, "--out", "old")
    outcome = audit("compare", "old/record.json", "old/record.json")
    assert (outcome.code, status(outcome)) == (0, "nothing")


def test_a_new_refutation_fails():
    run(*NOISY, "--out", "old")
    run(*NOISY, "--out", "new")
    path = altered("new", verdict="refuted")
    outcome = audit("compare", "old/record.json", path)
    assert (outcome.code, status(outcome)) == (1, "new")


def test_a_known_refutation_passes_and_its_absence_is_resolved():
    run(*LEAK, "--out", "old")
    known = audit("compare", "old/record.json", "old/record.json")
    assert (known.code, status(known)) == (0, "known")
    run(*LEAK, "--out", "new")
    outcome = audit("compare", "old/record.json", altered("new", verdict="unrefuted"))
    assert (outcome.code, status(outcome)) == (0, "resolved")
    assert "DP008" in outcome.out


@pytest.mark.parametrize(("limit", "code", "expected"), [(0.1, 1, "worse"), (9.0, 0, "nothing")])
def test_more_leakage_within_the_claim_is_worse(limit, code, expected):
    run(*NOISY, "--out", "new", trials=4000)
    now = record("new").results[0]
    assert now.verdict == "unrefuted"
    assert 0.1 < now.epsilon_lower < 1
    outcome = audit("compare", altered("new", estimate_upper=limit), "new/record.json")
    assert (outcome.code, status(outcome)) == (code, expected)
    assert ("DP002" in outcome.out) == (expected == "worse")
    if expected == "worse":
        assert "wrong with probability at most 0.002" in outcome.out
        assert outcome.out.startswith(f"Leaks more than its baseline: {NOISY[0]}.")


@pytest.mark.parametrize("field", [{"delta": 1e-5}, {"attack": "another"}])
def test_only_like_is_compared_with_like(field):
    run(*NOISY, "--out", "new", trials=4000)
    old = state_of(record("new"))
    name = NOISY[0]
    entry = msgspec.structs.replace(old.cases[name], estimate_upper=0.1, **field)
    found = compare(record("new"), msgspec.structs.replace(old, cases={name: entry}))
    changes = found.summary.changes
    assert changes is not None
    assert "worse" not in {change.status for change in changes.values()}


def test_fewer_trials_are_a_weaker_audit():
    run(*NOISY, "--out", "old", trials=4000)
    run(*NOISY, "--out", "new", trials=300)
    outcome = audit("compare", "old/record.json", "new/record.json")
    assert (outcome.code, status(outcome)) == (3, "weaker audit")
    better = audit("compare", "new/record.json", "old/record.json")
    assert (better.code, status(better)) == (0, "nothing")


def test_less_to_see_of_a_renyi_divergence_is_a_weaker_audit():
    """No epsilon could be caught with either; a baseline that knows no divergence says nothing."""
    claim = ("--claim", "order=1.1,eps=0.1")
    run(*NOISY, *claim, "--out", "old", trials=4000)
    run(*NOISY, *claim, "--out", "new", trials=300)
    outcome = audit("compare", "old/record.json", "new/record.json")
    assert (outcome.code, status(outcome)) == (3, "weaker audit")
    assert "smallest Renyi epsilon that could have been caught grew from" in " ".join(
        outcome.out.split()
    )
    baseline = state_of(record("old"))
    (name, entry), *_ = baseline.cases.items()
    assert entry.could_have_caught is None
    unaware = msgspec.structs.replace(entry, parameter_caught=None)
    found = compare(record("new"), msgspec.structs.replace(baseline, cases={name: unaware}))
    assert not found.summary.changes


def test_a_new_refutation_goes_before_a_weaker_audit():
    run(*NOISY, "--out", "old", trials=4000)
    run(*NOISY, "--out", "new", trials=300)
    outcome = audit("compare", "old/record.json", altered("new", verdict="refuted"))
    assert (outcome.code, status(outcome)) == (1, "new")
    assert "DP010" in outcome.out


def test_what_testified_must_still_be_offered():
    run(*NOISY, "--attack", "leaf", "--out", "old")
    old = state_of(record("old"))
    name, (attack, pair) = NOISY[0], ("leaf", "given 1")
    assert (old.cases[name].attack, old.cases[name].pair) == (attack, pair)
    entry = msgspec.structs.replace(old.cases[name], pair="the worst one")
    lost = compare(record("old"), msgspec.structs.replace(old, cases={name: entry}))
    assert lost.summary.exit_code == 3
    entry = msgspec.structs.replace(old.cases[name], attack="retired")
    lost = compare(record("old"), msgspec.structs.replace(old, cases={name: entry}))
    assert [f.rule for f in lost.summary.findings] == ["DP010"]


def test_a_case_that_is_gone_is_no_verdict():
    run(*LEAK, "--out", "old")
    run(*NOISY, "--out", "new")
    outcome = audit("compare", "old/record.json", "new/record.json")
    assert (outcome.code, status(outcome)) == (3, "absent")


def test_another_claim_is_no_verdict():
    run(*NOISY, "--out", "old")
    run(*NOISY, "--claim", "eps=1.1", "--out", "new")
    outcome = audit("compare", "old/record.json", "new/record.json")
    assert (outcome.code, status(outcome)) == (3, "other claim")


def test_a_lapsed_acceptance_is_told_and_fails():
    run(*LEAK, "--out", "old")
    baseline = accept(record("old"), {"*": "until we mend it"}, "2020-01-31")
    found = compare(record("old"), baseline)
    assert found.summary.exit_code == 1
    assert "DP041" in {finding.rule for finding in found.summary.findings}
    assert found.summary.changes is not None
    assert found.summary.changes[LEAK[0]].status == "new"


def test_worse_goes_before_known_and_before_weaker():
    run(*LEAK, "--out", "old", trials=4000)
    baseline = accept(record("old"), {"*": "known"})
    entry = msgspec.structs.replace(
        baseline.cases[LEAK[0]], estimate_upper=0.5, could_have_caught=0.01
    )
    found = compare(record("old"), msgspec.structs.replace(baseline, cases={LEAK[0]: entry}))
    assert found.summary.exit_code == 1
    rules = {finding.rule for finding in found.summary.findings}
    assert {"DP001", "DP002", "DP010"} <= rules


def test_every_format_renders_a_comparison():
    run(*LEAK, "--out", "old")
    formats = ("json", "markdown", "html", "junit", "sarif", "github")
    words = [word for name in formats for word in ("-f", f"{name}={name}.out")]
    assert audit("compare", "old/record.json", "old/record.json", *words).code == 0
    for name in formats:
        assert Path(f"{name}.out").stat().st_size > 100
    assert "Since the baseline" in Path("markdown.out").read_text()
    assert json.loads(Path("sarif.out").read_text())["runs"][0]["results"][0]["suppressions"]
    assert json.loads(Path("json.out").read_text())["summary"]["changes"]


@pytest.mark.parametrize("words", [(), ("old.json",), ("missing.json", "missing.json")])
def test_bad_input_is_refused(words):
    assert audit("compare", *words).code == 2
