"""Exit codes from how cases stand: 1 before 3 before 0, and what each case contributes."""

import itertools

import msgspec
import pytest

from audit.record import Change
from audit.summary import CLEAN, NO_VERDICT, REFUTED, exit_code, standing_of, standings, summarise
from tests.records import CLAIMS, one, planned, record_of

STANDS = ("failed", "unclear", "accepted", "passed")


@pytest.mark.parametrize("stands", list(itertools.product(STANDS, repeat=2)))
def test_precedence(stands):
    code = exit_code(dict(enumerate(stands)))
    if "failed" in stands:
        assert code == REFUTED
    elif "unclear" in stands:
        assert code == NO_VERDICT
    else:
        assert code == CLEAN


@pytest.mark.parametrize("status", ["known", "resolved", "new"])
@pytest.mark.parametrize("role", ["control", "informational", "null"])
def test_only_subjects_fail(role, status):
    result = one("case", CLAIMS[0], role, "refuted")
    stands = standings(record_of([result]).plan, [result], {"case": Change(status=status, note="")})
    assert stands["case"] != "failed"


def test_a_case_without_a_result_is_unclear_if_it_was_due():
    results = [one(f"case {i}", CLAIMS[0], "subject", "unrefuted") for i in range(3)]
    plan = record_of(results).plan
    assert summarise(plan, results[:2]).exit_code == NO_VERDICT
    shard = msgspec.structs.replace(plan, shard=(1, 2))
    assert [case.name for case in shard.due] == ["case 0", "case 2"]
    assert summarise(shard, [results[0], results[2]]).exit_code == CLEAN
    assert summarise(shard, results[:1]).exit_code == NO_VERDICT


def test_standings_can_be_told_from_the_record_alone():
    result = one("case", CLAIMS[0], "subject", "refuted")
    record = record_of([result])
    known = {"case": Change(status="known", note="why", accepted=True)}
    summary = summarise(record.plan, [result], known)
    assert standing_of(msgspec.structs.replace(record, summary=summary)) == {"case": "accepted"}
    assert summary.exit_code == CLEAN
    assert planned(result).name == "case"
