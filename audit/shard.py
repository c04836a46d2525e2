"""Shards: one plan, played in several places, and one record of it again.

Every shard makes the whole plan, so alpha is divided over all cases whoever plays them, and
streams are addressed by case, so it does not matter where a case is played. Merging puts the
results back in plan order; the merged record is the one that a single run would have written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from audit.errors import UsageError
from audit.execution import Execution
from audit.plan import Case
from audit.record import Plan, Record
from audit.summary import summarise


def parse_shard(text: str) -> tuple[int, int] | None:
    """Read ``i/n``, the i-th of n shards; None for empty text.

    Raises:
        UsageError: For another form.
    """
    if not text:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if found and 1 <= int(found[1]) <= int(found[2]):
        return int(found[1]), int(found[2])
    raise UsageError(f"--shard {text!r}: expected i/n with 1 <= i <= n, such as 2/3")


def shard_of(
    plan: Plan, cases: Sequence[Case], shard: tuple[int, int] | None
) -> tuple[Plan, tuple[Case, ...]]:
    """The plan of a shard, which names all cases, and the cases that it plays.

    Raises:
        UsageError: For more shards than cases.
    """
    if shard is None:
        return plan, tuple(cases)
    if shard[1] > len(cases):
        raise UsageError(
            f"--shard {shard[0]}/{shard[1]}: the plan has only {len(cases)} cases; use at most as "
            "many shards"
        )
    plan = msgspec.structs.replace(plan, shard=shard)
    due = {case.name for case in plan.due}
    return plan, tuple(case for case in cases if case.planned.name in due)


def merge_shards(records: Sequence[Record]) -> Record:
    """The record of the whole run.

    Args:
        records: Records of all shards of one plan, in any order.

    Raises:
        UsageError: When a shard is missing or given twice, or when plans or versions differ.
    """
    whole = _whole_plan(records)
    _require_all([record.plan.shard or (1, 1) for record in records])
    if len({msgspec.json.encode(record.environment, order="sorted") for record in records}) > 1:
        raise UsageError(
            "shards cannot be merged: they were played with different versions of Python, dpaudit "
            "or its libraries; play all shards in one environment"
        )
    found = {result.name: result for record in records for result in record.results}
    results = tuple(found[case.name] for case in whole.cases if case.name in found)
    return Record(
        plan=whole,
        environment=records[0].environment,
        results=results,
        summary=summarise(whole, results),
        execution=_together([record.execution for record in records], whole),
    )


def _whole_plan(records: Sequence[Record]) -> Plan:
    plans = [msgspec.structs.replace(record.plan, shard=None) for record in records]
    for record, plan in zip(records, plans, strict=True):
        if plan.digest() != plans[0].digest():
            shard = "/".join(str(part) for part in record.plan.shard or ())
            raise UsageError(
                f"shard {shard or '(a whole run)'} is of another plan than the first: merge "
                "shards of one command, with the same cases and settings"
            )
    return plans[0]


def _require_all(shards: Sequence[tuple[int, int]]) -> None:
    count = shards[0][1]
    numbers = sorted(number for number, _ in shards)
    if {of for _, of in shards} != {count} or numbers != list(range(1, count + 1)):
        given = ", ".join(f"{number}/{of}" for number, of in sorted(shards))
        raise UsageError(
            f"expected every shard of the run once, 1/{count} to {count}/{count}; got {given}"
        )


def _together(executions: Sequence[Execution], plan: Plan) -> Execution:
    seconds = {k: v for one in executions for k, v in one.case_seconds.items()}
    places = {k: v for one in executions for k, v in one.locations.items()}
    names = [case.name for case in plan.cases]
    return Execution(
        started=min(one.started for one in executions),
        seconds=round(sum(one.seconds for one in executions), 3),
        jobs=max(one.jobs for one in executions),
        case_seconds={name: seconds[name] for name in names if name in seconds},
        complete=all(one.complete for one in executions),
        locations={name: places[name] for name in names if name in places},
    )
