"""The run in one place: how each case stands, exit code, one sentence, all findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from audit.record import CaseResult, Change, Finding, Plan, Record, Summary

CLEAN, REFUTED, USAGE, NO_VERDICT, INTERRUPTED = 0, 1, 2, 3, 130

Standing = Literal["failed", "unclear", "accepted", "passed"]
_UNCOMPARABLE = ("weaker audit", "other claim", "absent")


def annotated(record: Record, notes: Sequence[Finding]) -> Record:
    """The record with what was found before it ran, each finding at its case."""
    results = []
    for result in record.results:
        command = record.planned(result.name).reproduce
        own = [note for note in notes if note.case == result.name]
        found = tuple(msgspec.structs.replace(note, reproduce=command) for note in own)
        results.append(msgspec.structs.replace(result, findings=(*found, *result.findings)))
    summary = summarise(record.plan, results)
    return msgspec.structs.replace(record, results=tuple(results), summary=summary)


def summarise(
    plan: Plan,
    results: Sequence[CaseResult],
    changes: Mapping[str, Change] | None = None,
    extra: Sequence[Finding] = (),
) -> Summary:
    """Summary of a run.

    Args:
        plan: The plan; cases that were due and have no result count as having no verdict.
        results: Finished cases.
        changes: What changed since the baseline; None without one.
        extra: Findings from the comparison with it.
    """
    stands = standings(plan, results, changes)
    code = exit_code(stands)
    return Summary(
        exit_code=code,
        sentence=_sentence(results, stands, code),
        verdicts=dict(Counter(result.verdict for result in results)),
        findings=tuple(f for result in results for f in result.findings) + tuple(extra),
        changes=None if changes is None else dict(changes),
    )


def standing_of(record: Record) -> dict[str, Standing]:
    """How every case of a record stands, cases of its baseline that it lacks included."""
    return standings(record.plan, record.results, record.summary.changes)


def standings(
    plan: Plan, results: Sequence[CaseResult], changes: Mapping[str, Change] | None = None
) -> dict[str, Standing]:
    """How every case stands: ``failed`` (exit code 1), ``unclear`` (3), ``accepted``, ``passed``.

    Args:
        plan: The plan.
        results: Finished cases.
        changes: What changed since the baseline.
    """
    changes = changes or {}
    stands: dict[str, Standing] = {case.name: "unclear" for case in plan.due}
    stands |= {name: "unclear" for name, change in changes.items() if change.status == "absent"}
    return stands | {r.name: _standing(r, changes.get(r.name)) for r in results}


def _standing(result: CaseResult, change: Change | None) -> Standing:
    status, accepted = (change.status, change.accepted) if change else ("", False)
    gates, refuted = result.role == "subject", result.verdict == "refuted"
    if gates and (status == "worse" or (refuted and not accepted)):
        return "failed"
    if status in _UNCOMPARABLE or not _conclusive(result):
        return "unclear"
    return "accepted" if gates and refuted else "passed"


def _conclusive(result: CaseResult) -> bool:
    if result.role == "control":
        return result.found_out
    if result.role == "null":
        return result.silent
    return result.role == "informational" or result.verdict in ("refuted", "unrefuted")


def exit_code(stands: Mapping[str, Standing]) -> int:
    """1 refuted or worse than the baseline, 3 no verdict, 0 clean; 1 goes before 3."""
    if "failed" in stands.values():
        return REFUTED
    return NO_VERDICT if "unclear" in stands.values() else CLEAN


def _sentence(results: Sequence[CaseResult], stands: Mapping[str, Standing], code: int) -> str:
    subjects = [result for result in results if result.role == "subject"]
    failed = [result for result in subjects if stands[result.name] == "failed"]
    refuted = [result.name for result in failed if result.verdict == "refuted"]
    if refuted:
        return (
            f"{len(refuted)} of {_count(len(subjects), 'audited claim')} refuted: {_few(refuted)}."
        )
    if failed:
        return f"Leaks more than its baseline: {_few([result.name for result in failed])}."
    if code == NO_VERDICT:
        return f"No verdict: {_few([name for name, how in stands.items() if how == 'unclear'])}."
    caught = sum(result.role == "control" for result in results)
    controls = f"; {_count(caught, 'known-broken control')} caught" if caught else ""
    return f"None of {_count(len(subjects), 'audited claim')} refuted{controls}."


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
