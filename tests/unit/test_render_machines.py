"""The formats for machines: read back by their own readers, and they agree with the exit code."""

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest
from junitparser import JUnitXml

from audit.errors import UsageError
from audit.job_summary import VARIABLE, job_summary, shortened
from audit.record import Change
from audit.render import FORMATS, formats, render
from audit.render.gating import place
from audit.rules import RULES
from audit.summary import summarise
from tests.records import CLAIMS, KINDS, NASTY, findings, nasty, one, record_of, sample

SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "sarif-2.1.0-rtm.5.json").read_text())
VALID = jsonschema.Draft4Validator(SCHEMA)


def judged(kinds, changes=None, claim=CLAIMS[0]):
    """A record of these roles and verdicts, summed up as a run does."""
    results = [one(f"family/case-{i}", claim, *kind) for i, kind in enumerate(kinds)]
    results = [msgspec.structs.replace(r, findings=tuple(findings(r))) for r in results]
    record = record_of(results)
    return msgspec.structs.replace(record, summary=summarise(record.plan, results, changes))


def placed(record, **where):
    execution = msgspec.structs.replace(record.execution, locations=where)
    return msgspec.structs.replace(record, execution=execution)


def read_junit(record):
    return list(next(iter(JUnitXml.fromstring(render(record, "junit").encode()))))


def read_sarif(record):
    log = json.loads(render(record, "sarif"), parse_constant=pytest.fail)
    VALID.validate(log)
    return log["runs"][0]


KNOWN = {"family/case-0": Change(status="known", note="by design", accepted=True)}
WORSE = {"family/case-0": Change(status="worse", note="more leaks", accepted=True)}
RESOLVED = {"family/case-0": Change(status="resolved", note="mended")}
ABSENT = {"gone": Change(status="absent", note="in the baseline only")}


@pytest.mark.parametrize(
    ("kinds", "changes", "code", "failures", "errors", "skipped"),
    [
        ([("subject", "unrefuted"), ("control", "refuted")], None, 0, 0, 0, 0),
        ([("subject", "refuted"), ("subject", "blind")], None, 1, 1, 1, 0),
        ([("subject", "blind"), ("subject", "unrefuted")], None, 3, 0, 1, 0),
        ([("subject", "error"), ("control", "unrefuted")], None, 3, 0, 2, 0),
        ([("informational", "refuted"), ("informational", "blind")], None, 0, 0, 0, 0),
        ([("subject", "refuted")], {}, 1, 1, 0, 0),
        ([("subject", "refuted")], KNOWN, 0, 0, 0, 1),
        ([("subject", "refuted")], WORSE, 1, 1, 0, 0),
        ([("subject", "unrefuted")], WORSE, 1, 1, 0, 0),
        ([("subject", "unrefuted")], ABSENT, 3, 0, 1, 0),
        ([("null", "unrefuted"), ("null", "error")], None, 3, 0, 2, 0),
        ([("null", "blind")], None, 0, 0, 0, 0),
    ],
)
def test_junit_agrees_with_the_exit_code(kinds, changes, code, failures, errors, skipped):
    record = judged(kinds, changes)
    assert record.summary.exit_code == code
    cases = read_junit(record)
    assert sum(case.is_failure for case in cases) == failures
    assert sum(case.is_error for case in cases) == errors
    assert sum(case.is_skipped for case in cases) == skipped
    assert len(cases) == len(kinds) + ("gone" in (changes or {}))


@pytest.mark.parametrize("kind", KINDS)
def test_junit_tells_rule_message_and_command(kind):
    record = judged([kind])
    (case,) = read_junit(record)
    assert case.name == "family/case-0"
    for finding in record.summary.findings:
        for entry in case.result:
            assert entry.type == finding.rule
            assert finding.message in entry.text
            assert finding.reproduce in entry.text


def test_junit_carries_time_and_place():
    record = placed(
        judged([("subject", "refuted")], claim=CLAIMS[1]), **{"family/case-0": "a.py:7"}
    )
    execution = msgspec.structs.replace(record.execution, case_seconds={"family/case-0": 1.5})
    text = render(msgspec.structs.replace(record, execution=execution), "junit")
    assert 'file="a.py" line="7"' in text or {'file="a.py"', 'line="7"'} <= set(text.split())
    assert 'time="1.5"' in text


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_strings_stay_valid(text):
    record = nasty(text)
    assert len(read_junit(record)) == 1
    (result,) = read_sarif(record)["results"]
    assert result["message"]["text"]
    for line in render(record, "github").splitlines():
        assert re.fullmatch(r"::(error|warning|notice) [^:]*::.*", line)


@pytest.mark.parametrize("count", [0, 1, 40])
def test_sarif_is_valid_and_weighs_results_as_the_gate_does(count):
    run = read_sarif(sample(count))
    rules = run["tool"]["driver"]["rules"]
    assert {rule["id"] for rule in rules} == set(RULES)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert "baselineState" not in result
    red = [r for r in run["results"] if r["level"] == "error"]
    assert bool(red) == (sample(count).summary.exit_code == 1)


@pytest.mark.parametrize(
    ("changes", "state", "level"),
    [({}, "new", "error"), (KNOWN, "unchanged", "note"), (WORSE, "updated", "error")],
)
def test_sarif_states_follow_the_baseline(changes, state, level):
    (result,) = read_sarif(judged([("subject", "refuted")], changes))["results"]
    assert (result["baselineState"], result["level"]) == (state, level)
    accepted = result.get("suppressions", [])
    assert [s["justification"] for s in accepted] == (["by design"] if changes is KNOWN else [])


def test_sarif_fingerprints_depend_on_the_promise_not_on_the_run():
    first, again = (judged([("subject", "refuted")]) for _ in range(2))
    seeded = msgspec.structs.replace(again, plan=msgspec.structs.replace(again.plan, seed=9))
    other = judged([("subject", "refuted")], claim=CLAIMS[1])
    prints = [read_sarif(r)["results"][0]["partialFingerprints"] for r in (first, seeded, other)]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        ("paper 2021, shop/noise.py:12", "", ("shop/noise.py", 12)),
        ("Laplace.epsilon", "shop.py:3", ("shop.py", 3)),
        ("shop.py:8", "other.py:3", ("shop.py", 8)),
        ("/etc/secret.py:8", "", None),
        ("../up.py:8", "", None),
        ("arXiv:2108.02316", "", None),
        ("", "", None),
    ],
)
def test_the_place_of_a_claim(source, given, expected):
    claim = msgspec.structs.replace(CLAIMS[0], source=source)
    record = placed(judged([("subject", "refuted")], claim=claim), **{"family/case-0": given})
    assert place(record, "family/case-0") == expected
    (location,) = read_sarif(record)["results"][0]["locations"]
    assert ("physicalLocation" in location) == (expected is not None)
    shown = f"file={expected[0]},line={expected[1]}," if expected else "::error title="
    assert shown in render(record, "github").splitlines()[0]


def test_github_escapes_data_and_properties():
    record = nasty("a%b: c, d\nnext")
    first = render(record, "github").splitlines()[0]
    head, _, text = first.removeprefix("::").partition("::")
    assert text.startswith("a%25b: c, d next: a%25b: c, d%0Anext%0AReproduce")
    assert ":" not in head


def test_github_puts_the_gravest_first_and_ends_with_the_error_rate():
    lines = render(judged([("subject", "blind"), ("subject", "refuted")]), "github").splitlines()
    assert [line.split()[0] for line in lines] == ["::error", "::warning", "::notice"]
    assert "at most 1 in 1,000 runs" in lines[-1]


def test_a_case_without_a_result_is_annotated():
    record = judged([("subject", "unrefuted"), ("subject", "unrefuted")])
    results = record.results[:1]
    partial = msgspec.structs.replace(
        record, results=results, summary=summarise(record.plan, results)
    )
    assert "::warning title=no verdict::family/case-1" in render(partial, "github")
    assert [case.is_error for case in read_junit(partial)] == [False, True]


def test_the_job_summary_is_appended_where_github_asks_for_it(tmp_path, monkeypatch):
    record, path = sample(2), tmp_path / "summary.md"
    monkeypatch.delenv(VARIABLE, raising=False)
    job_summary(record)
    path.write_text("before\n")
    monkeypatch.setenv(VARIABLE, str(path))
    job_summary(record)
    assert path.read_text() == "before\n" + render(record, "markdown")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "no" / "folder"))
    with pytest.raises(UsageError, match=VARIABLE):
        job_summary(record)


def test_a_long_job_summary_keeps_whole_sections():
    text = "# head\n\n## one\n\nfew\n\n## two\n\n" + "é" * 100
    short = shortened(text, 60)
    assert short == "# head\n\n## one\n\nfew\n\nThe rest is in the report that the run wrote.\n"
    assert shortened(text, 1000) == text


def test_a_format_of_another_package_is_found_by_name(monkeypatch):
    from importlib import metadata

    offered = metadata.EntryPoint("shout", f"{__name__}:shout", "audit.renderers")
    impostor = metadata.EntryPoint("text", f"{__name__}:shout", "audit.renderers")
    broken = metadata.EntryPoint("broken", f"{__name__}:missing", "audit.renderers")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [offered])
    assert render(sample(1), "shout") == sample(1).summary.sentence.upper()
    assert formats().items() > FORMATS.items()
    monkeypatch.setattr(metadata, "entry_points", lambda group: [offered, impostor])
    with pytest.raises(UsageError, match="'text' is taken"):
        formats()
    monkeypatch.setattr(metadata, "entry_points", lambda group: [broken])
    with pytest.raises(UsageError, match="entry point 'broken'"):
        render(sample(1), "broken")


def shout(record, *, width, color):
    return record.summary.sentence.upper()
