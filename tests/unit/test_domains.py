"""Domains as users state them: refused when they make no sense, explained when nothing plays."""

import pytest

import audit
from audit.domain import Domain, parse_domain
from audit.record import encode


@pytest.mark.parametrize(
    "given",
    [
        "{",
        '{"bounds": [1, 0]}',
        '{"bounds": [0, 1], "categories": ["a"]}',
        "{}",
        '{"bounds": [0, 1], "size": 3}',
        '{"streams": {"outcomes": {"bounds": [0, 1]}}}',
        '{"bounds": [0, 1], "sizes": [4, 2]}',
        '{"bounds": [0, 1], "strategy": 3}',
        '{"bounds": [0, 1], "relation": "swap"}',
        '{"bounds": [0, 1], "dimension": 0}',
        '{"bounds": [0, 1], "distance": -1}',
        '{"bounds": [0, 1], "dimension": 1000001}',
        '{"bounds": [0, 1], "sizes": [9223372036854775808, 1000000000000000000000000000000]}',
        '{"streams": {"outcomes": {"bounds": [0, 1], "dimension": 600}}, "sizes": [2000, 2000]}',
    ],
)
def test_domains_that_make_no_sense_are_refused(given):
    with pytest.raises(audit.UsageError, match="domain: "):
        parse_domain(given)


def test_a_domain_on_the_command_line(tmp_path):
    from tests.cli.console import run, target

    out = tmp_path / "out"
    words = ("--claim", "eps=1", "--domain", '{"bounds": [0, 5], "distance": 1}')
    outcome = run(target("half_noise"), *words, "--out", out, trials=600)
    assert outcome.code == 1
    record = audit.read_record(out / "record.json")
    assert "--domain" in record.plan.cases[0].reproduce
    (result,) = record.results
    assert result.searched
    shown = (out / "report.html").read_text()
    assert f"{len(result.searched)} pairs tried, " in shown
    assert b'"searched"' in encode(record)
    assert float(result.choice.played.right) - float(result.choice.played.left) == 1
    assert run(target("half_noise"), "--claim", "eps=1", "--domain", "[1]").code == 2


def test_a_domain_in_a_configuration(tmp_path, monkeypatch):
    from tests.cli.console import audit as command
    from tests.cli.console import target

    monkeypatch.chdir(tmp_path)
    case = f'[[tool.audit.case]]\ntarget = "{target("half_noise")}"\nclaim = "eps=1"\n'
    (tmp_path / "mine.toml").write_text(f"{case}domain = {{bounds = [0, 5], distance = 1}}\n")
    assert command("run", "--config", "mine.toml", "--trials", 600, "--jobs", 1).code == 1


def test_when_no_input_can_be_played_the_message_says_what_the_code_said():
    def of_a_list(data, rng):
        return sum(data) + rng.normal()

    result = audit.examine(of_a_list, claim="eps=1", domain=Domain(bounds=(0, 1)), trials=600)
    (finding,) = (f for f in result.findings if f.rule == "DP006")
    assert result.verdict == "error"
    assert "'float' object is not iterable" in finding.message
    assert 'state "sizes"' in finding.message


def test_a_trial_that_says_nothing_leaves_the_input_to_go_by():
    def silent(data, rng):
        raise ValueError

    result = audit.examine(silent, claim="eps=1", domain=Domain(categories=("a", "b")), trials=600)
    (finding,) = (f for f in result.findings if f.rule == "DP006")
    assert 'the last input was "' in finding.message
