"""Sweeps: values, targets, and whether the bound follows the claim."""

from __future__ import annotations

import msgspec
import pytest

from audit.cases import Asked, requests_for
from audit.claim import ZeroConcentratedDp
from audit.config import CaseConfig
from audit.engine import run
from audit.errors import UsageError
from audit.plan import Settings, make_plan
from audit.record import Record
from audit.render import render
from audit.render.sweeps import sweeps
from audit.sweep import parse_sweep, settled, steps_of, suffix, words


def test_values_rise_in_equal_ratios() -> None:
    sweep = parse_sweep("epsilon=0.25:4:5")
    assert (sweep.name, sweep.values) == ("epsilon", (0.25, 0.5, 1.0, 2.0, 4.0))
    assert parse_sweep("epsilon=2:2").values == (2.0,)
    assert len(parse_sweep("mu=0.1:4").values) == 6


@pytest.mark.parametrize(
    "text", ["epsilon", "=1:2", "epsilon=2:1", "epsilon=0:1", "e=1:2:0", "e=1:2:3:4", "e=1:x"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="name=low:high"):
        parse_sweep(text)


def test_one_value_reproduces_one_case() -> None:
    assert steps_of("") == [{}]
    step = steps_of("epsilon=0.1:4:3")[1]
    assert suffix(step) == " epsilon=0.6325"
    assert steps_of(words(step)[1]) == [step]


def test_whole_numbers_stay_whole() -> None:
    assert settled("horizon", 10.0, {"horizon": 40}) == {"horizon": 10}
    assert settled("epsilon", 10.0, {"epsilon": 1.0}) == {"epsilon": 10.0}


@pytest.mark.parametrize("target", ["calibration/laplace", "algorithms.calibration:Laplace"])
def test_targets_are_built_with_the_value(target: str) -> None:
    made, _ = requests_for(Asked(CaseConfig(target=target), parameters={"epsilon": 2.5}))
    assert made[0].claim.epsilon == 2.5
    assert made[0].name == f"{target} epsilon=2.5"
    assert made[0].word == target
    assert made[0].options[-2:] == ("--sweep", "epsilon=2.5:2.5:1")


def test_a_target_without_the_parameter_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be built"):
        requests_for(Asked(CaseConfig(target="calibration/laplace"), parameters={"horizon": 2.0}))


@pytest.fixture(scope="module")
def swept() -> Record:
    requests = [
        requests_for(
            Asked(
                CaseConfig(target="calibration/laplace", attacks=["likelihood"]),
                parameters={"epsilon": value},
            )
        )[0][0]
        for value in (0.5, 4.0)
    ]
    return run(*make_plan(requests, Settings(trials=1_000, alpha=0.05)))


def test_the_bound_follows_the_claim(swept: Record) -> None:
    found = sweeps(swept)
    assert [s.title for s in found] == ["calibration/laplace over epsilon"]
    assert [row[0] for row in found[0].rows] == ["0.5", "4"]
    assert found[0].sentence == "The certified bound rises with the claim at every step."
    for name in ("text", "markdown", "html"):
        assert "calibration/laplace over epsilon" in render(swept, name)
        assert "rises with the claim" in render(swept, name)


def test_a_bound_that_does_not_follow_is_said(swept: Record) -> None:
    small, large = swept.results
    broken = (
        msgspec.structs.replace(small, epsilon_lower=3.0),
        msgspec.structs.replace(large, epsilon_lower=0.2, estimate_upper=0.5),
    )
    sentence = sweeps(msgspec.structs.replace(swept, results=broken))[0].sentence
    assert "does not follow the claim at 1 pair" in sentence


def test_a_sweep_of_rho_is_told_in_rho(swept: Record) -> None:
    """Bounds at other deltas are not compared, and a rho never with an epsilon."""
    small, large = (
        msgspec.structs.replace(
            result, claim=ZeroConcentratedDp(rho=rho), parameter_lower=lower, parameter_caught=3.0
        )
        for result, rho, lower in zip(swept.results, (0.1, 2.0), (0.07, 1.5), strict=True)
    )
    found = sweeps(msgspec.structs.replace(swept, results=(small, large)))[0]
    assert [row[1:5] for row in found.rows] == [
        ("rho 0.1", "0.07", "70 %", "rho 3"),
        ("rho 2", "1.5", "75 %", "rho 3"),
    ]
    assert "rises with the claim" in found.sentence
    mixed = msgspec.structs.replace(large, epsilon_lower=9.0)
    told = sweeps(msgspec.structs.replace(swept, results=(small, mixed)))[0]
    assert told.rows[1][1].startswith("epsilon ")
    assert "rises" not in told.sentence
    elsewhere = msgspec.structs.replace(large, delta=0.1, estimate_upper=0.01)
    known = msgspec.structs.replace(small, epsilon_lower=0.4)
    told = sweeps(msgspec.structs.replace(swept, results=(known, elsewhere)))[0]
    assert "does not follow the claim at" not in told.sentence
