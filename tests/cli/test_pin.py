"""Pins: a counterexample found once is a small file that runs in seconds and holds no code."""

import json
import shlex
from pathlib import Path

import pytest

from audit import read_record
from tests.cli.console import GIVEN, audit, run, target

BROKEN = (target("half_noise"), *GIVEN, "--attack", "leaf")


def pinned(*words, trials=4000):
    assert run(*words, trials=trials).code == 1
    outcome = audit("pin", "out/record.json", "--out", "pins")
    assert outcome.code == 0, outcome.err
    (path,) = Path("pins").iterdir()
    assert str(path) in outcome.out
    return path


def test_a_pin_is_data_and_is_refuted_again():
    path = pinned(*BROKEN)
    content = json.loads(path.read_text())
    assert content["target"] == BROKEN[0]
    assert content["pair"]["left"] == 0.0
    assert content["pair"]["right"] == 1.0
    assert content["expected"] == "refuted"
    assert content["event"]["leaf"] == "value"
    outcome = run(path)
    assert outcome.code == 1
    result = read_record(Path("out/record.json")).results[0]
    assert result.choice.attack == "pinned"
    assert result.choice.event == content["event"]["description"]
    command = shlex.split(read_record(Path("out/record.json")).plan.cases[0].reproduce)
    assert audit(*command[3:], "--jobs", 1).code == 1


def test_a_mended_mechanism_says_that_its_pin_no_longer_reproduces():
    path = pinned(*BROKEN)
    content = json.loads(path.read_text())
    content["target"] = target("noisy_block")
    path.write_text(json.dumps(content))
    outcome = run(path, trials=2000)
    assert outcome.code == 0
    (finding,) = read_record(Path("out/record.json")).summary.findings
    assert finding.rule == "DP008"
    assert "pinned as refuted, now unrefuted" in finding.message


def test_the_form_of_an_output_can_be_pinned():
    path = pinned(target("key_on_one_side"), *GIVEN)
    assert json.loads(path.read_text())["event"]["kind"] == "form"
    assert run(path).code == 1


def test_a_mechanisms_own_pair_is_pinned_by_its_name():
    path = pinned(target("Slip"))
    content = json.loads(path.read_text())
    assert content["pair"]["own"]
    assert run(path).code == 1


def test_several_pins_and_targets_run_together():
    path = pinned(*BROKEN)
    again = Path("other.pin.json")
    again.write_text(path.read_text().replace('"name": "', '"name": "other '))
    assert run(path, again, "calibration/laplace").code == 1
    assert len(read_record(Path("out/record.json")).results) == 3


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema_version": 9}, "schema version 1"),
        ({"code": "print()"}, "unknown field"),
        ({"target": "nowhere:nothing"}, "cannot import"),
        ({"pair": {"label": "gone", "own": True}}, "not iterable|no pair 'gone'"),
    ],
)
def test_bad_pins_are_refused(change, complaint):
    path = pinned(*BROKEN)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    outcome = run(path)
    assert outcome.code == 2
    assert any(part in outcome.complaint for part in complaint.split("|"))


def test_there_must_be_something_to_pin():
    assert run(target("noisy_block"), *GIVEN, trials=1000).code in (0, 3)
    assert "no refuted case" in audit("pin", "out/record.json").complaint
    assert "expected one of" in audit("pin", "out/record.json", "nobody").complaint
    assert not list(Path().glob("*.pin.json"))


def test_an_input_too_large_to_paste_cannot_be_pinned():
    many = json.dumps([0.5] * 9000)
    Path("left.json").write_text(many)
    Path("right.json").write_text(many.replace("0.5", "1.5", 1))
    pair = ("--pair", "@left.json", "@right.json")
    assert run(target("leaky_sum"), "--claim", "eps=1", *pair, trials=600).code == 1
    assert "too large" in audit("pin", "out/record.json").complaint
