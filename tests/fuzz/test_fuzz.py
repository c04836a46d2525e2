"""A little fuzzing in every test run, all inputs that ever went wrong, and the seeds themselves.

``python -m tests.fuzz 1000000`` is the long run; `reports/trust.md` tells what it found.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from unittest import mock

import pytest
from msgspec.structs import replace

from audit.baseline import state_of
from audit.claim import GaussianDp
from tests.fuzz import targets
from tests.fuzz.harness import ending, guarded
from tests.fuzz.targets import TARGETS
from tests.records import CLAIMS, one, record_of

pytestmark = pytest.mark.skipif("sys.platform == 'win32'", reason="needs alarms and limits")
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*/*"))
FEW = {name: min(60, max(3, target.weight)) for name, target in TARGETS.items()}


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_ends_as_documented(name: str) -> None:
    with guarded():
        for number in range(FEW[name]):
            data = TARGETS[name].make(Random(f"test/{name}/{number}"))
            assert ending(TARGETS[name], data) in ("accepted", "refused"), data


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_went_wrong_ends_as_documented(path: Path) -> None:
    name = path.parent.name.replace("_", " ")
    with guarded():
        told = ending(TARGETS[name], path.read_bytes())
    assert told == ("accepted" if name == "log" else "refused")  # lines of a log are left out


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_good_inputs(name: str) -> None:
    """Otherwise mutations would all end at the same first check."""
    with (
        mock.patch.object(targets, "mutated_document", lambda value, _: value),
        mock.patch.object(targets, "mutated_bytes", lambda data, _: data),
        mock.patch.object(targets.conversation, "mutated_document", lambda value, _: value),
        mock.patch.object(targets.conversation, "mutated_bytes", lambda data, _: data),
        guarded(),
    ):
        told = (ending(TARGETS[name], TARGETS[name].make(Random(i))) for i in range(6))
        assert "accepted" in told


def test_a_record_that_claims_what_no_plan_would_take_is_compared() -> None:
    """Its claim has no point to confront, so nothing is known of what could have been caught."""
    record, claim = (
        record_of([one("case", CLAIMS[2], "subject", "unrefuted")]),
        GaussianDp(mu=268.0),
    )
    (planned,), (result,) = record.plan.cases, record.results
    plan = replace(record.plan, cases=(replace(planned, claim=claim),))
    record = replace(record, plan=plan, results=(replace(result, claim=claim),))
    assert state_of(record).cases["case"].could_have_caught is None
