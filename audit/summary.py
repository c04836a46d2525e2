"""The run in one place: exit code, one sentence, all findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from audit.record import CaseResult, Finding, Plan, Summary

CLEAN, REFUTED, USAGE, NO_VERDICT, INTERRUPTED = 0, 1, 2, 3, 130


def summarise(
    plan: Plan,
    results: Sequence[CaseResult],
    accepted: frozenset[str] = frozenset(),
    extra: Sequence[Finding] = (),
) -> Summary:
    """Summary of a run.

    Args:
        plan: The plan; cases without a result count as having no verdict.
        results: Finished cases.
        accepted: Cases whose refutation the baseline accepts.
        extra: Findings from the comparison with a baseline.
    """
    findings = tuple(f for result in results for f in result.findings) + tuple(extra)
    code = exit_code(plan, results, accepted, extra)
    return Summary(
        exit_code=code,
        sentence=_sentence(results, accepted, code),
        verdicts=dict(Counter(result.verdict for result in results)),
        findings=findings,
    )


def exit_code(
    plan: Plan,
    results: Sequence[CaseResult],
    accepted: frozenset[str] = frozenset(),
    extra: Sequence[Finding] = (),
) -> int:
    """1 refuted or worse than the baseline, 3 no verdict, 0 clean; 1 goes before 3."""
    subjects = [result for result in results if result.role == "subject"]
    controls = [result for result in results if result.role == "control"]
    refuted = [r for r in subjects if r.verdict == "refuted" and r.name not in accepted]
    if refuted or any(finding.rule == "DP002" for finding in extra):
        return REFUTED
    unclear = any(result.verdict in ("blind", "error") for result in subjects)
    missed = not all(result.found_out for result in controls)
    unfinished = len(results) < len(plan.cases)
    weaker = any(finding.rule == "DP010" for finding in extra)
    return NO_VERDICT if unclear or missed or unfinished or weaker else CLEAN


def _sentence(results: Sequence[CaseResult], accepted: frozenset[str], code: int) -> str:
    subjects = [result for result in results if result.role == "subject"]
    refuted = [r.name for r in subjects if r.verdict == "refuted" and r.name not in accepted]
    if refuted:
        names = ", ".join(refuted[:3]) + (" and others" if len(refuted) > 3 else "")
        return f"{len(refuted)} of {_count(len(subjects), 'audited claim')} refuted: {names}."
    if code == REFUTED:
        return "An accepted refutation has become worse than its baseline."
    if code == NO_VERDICT:
        return "No verdict: a case is blind or failed, a control was not caught, or it is weaker."
    controls_caught = sum(result.role == "control" for result in results)
    controls = (
        f"; {_count(controls_caught, 'known-broken control')} caught" if controls_caught else ""
    )
    return f"None of {_count(len(subjects), 'audited claim')} refuted{controls}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
