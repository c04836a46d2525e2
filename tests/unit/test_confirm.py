"""Confirmation: both runs must refute, each with half of alpha, on fresh streams."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from algorithms.calibration import Laplace
from audit.claim import ZeroConcentratedDp
from audit.confirm import both, confirm, fresh_seed, in_two
from audit.engine import run
from audit.plan import Request, Settings, make_plan
from audit.record import CaseResult, Record, read_record, write_record
from audit.registry import battery
from audit.render import render
from audit.workers import Workers
from tests.records import one

SETTINGS = Settings(trials=2_000, alpha=0.02, seed=3)


def request(name: str, scale: float, role: str = "subject") -> Request:
    mechanism = Laplace(epsilon=1.0, scale=scale)
    return Request(name, name, mechanism, mechanism.claim, battery(["likelihood"]), role=role)


REQUESTS = [request("broken", 0.3), request("fine", 1.0), request("known", 0.3, "control")]


@pytest.fixture(scope="module")
def confirmed() -> Record:
    first = run(*make_plan(REQUESTS, in_two(SETTINGS)))
    return confirm(first, REQUESTS, SETTINGS, Workers())


def result_of(record: Record, name: str) -> CaseResult:
    return next(result for result in record.results if result.name == name)


def test_refuted_subjects_are_played_again(confirmed: Record) -> None:
    broken = result_of(confirmed, "broken")
    second = broken.confirmation
    assert second is not None
    assert broken.verdict == second.verdict == "refuted"
    assert second.counts != broken.counts
    assert broken.epsilon_lower <= second.epsilon_lower
    assert result_of(confirmed, "fine").confirmation is None
    assert result_of(confirmed, "known").confirmation is None
    assert confirmed.summary.exit_code == 1


def test_the_error_budget_is_halved_and_stated(confirmed: Record) -> None:
    assert confirmed.plan.alpha == SETTINGS.alpha
    assert confirmed.plan.confirm_seed == fresh_seed(3) != fresh_seed(4)
    alphas = [case.alpha for case in confirmed.plan.cases]
    assert sum(alphas) == pytest.approx(SETTINGS.alpha / 2)
    second = result_of(confirmed, "broken").confirmation
    assert second is not None
    assert second.alpha == pytest.approx(SETTINGS.alpha / 6)
    assert "refuted again on fresh streams" in render(confirmed, "markdown")


def test_the_record_holds_both_runs(confirmed: Record, tmp_path: Path) -> None:
    write_record(confirmed, tmp_path / "record.json")
    read = read_record(tmp_path / "record.json")
    assert read == confirmed
    assert read.digest() == confirmed.digest()


def test_nothing_refuted_is_nothing_played_again() -> None:
    first = run(*make_plan([REQUESTS[1]], in_two(SETTINGS)))
    record = confirm(first, [REQUESTS[1]], SETTINGS, Workers())
    assert record.results == first.results
    assert record.plan.alpha == SETTINGS.alpha


def test_a_refutation_that_is_not_confirmed_falls(confirmed: Record) -> None:
    one = result_of(confirmed, "broken")
    other = msgspec.structs.replace(one, verdict="unrefuted", epsilon_lower=0.7, findings=())
    joined = both(one, other)
    assert (joined.verdict, joined.epsilon_lower) == ("unrefuted", 0.7)
    rules = [finding.rule for finding in joined.findings]
    assert rules[-1] == "DP015"
    assert "DP001" not in rules
    assert joined.findings[-1].reproduce == one.findings[0].reproduce


def test_a_refutation_by_rho_that_is_not_confirmed_falls_by_rho() -> None:
    claim = ZeroConcentratedDp(rho=0.5)
    first = one("case", claim, "subject", "refuted")
    first = msgspec.structs.replace(first, epsilon_lower=0.1, parameter_lower=0.53)
    second = msgspec.structs.replace(first, verdict="unrefuted", parameter_lower=0.31, findings=())
    joined = both(first, second)
    assert joined.parameter_lower == 0.31
    assert "certified rho >= 0.53, the second only 0.31, so" in joined.findings[-1].message


def test_a_bound_at_another_delta_does_not_count(confirmed: Record) -> None:
    one = result_of(confirmed, "broken")
    other = msgspec.structs.replace(one, delta=0.5, profile=((0.5, 9.0),))
    assert both(one, other).epsilon_lower == 0.0
