"""The baseline: what was accepted, with a reason, so that only changes turn a gate red."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import msgspec

from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.files import write_atomically
from audit.record import (
    SCHEMA_VERSION,
    CaseResult,
    Finding,
    Record,
    Verdict,
    decode,
)
from audit.summary import summarise

_WEAKER = 1.25


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What a baseline says about a case.

    Attributes:
        claim: The claim; another claim is another case.
        view: The audited projection.
        verdict: The verdict then.
        epsilon_lower: Certified then.
        estimate_upper: Upper estimate then; None when there was none.
        could_have_caught: Smallest true epsilon that would have been caught then.
        reason: Why a refutation is accepted; empty for other verdicts.
        expires: ISO date after which the acceptance lapses; empty for never.
    """

    claim: AnyClaim
    view: str
    verdict: Verdict
    epsilon_lower: float
    estimate_upper: float | None
    could_have_caught: float | None
    reason: str = ""
    expires: str = ""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """Accepted state per case name."""

    schema_version: int = SCHEMA_VERSION
    cases: dict[str, Accepted]


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        UsageError: When the file is missing or is no baseline.
    """
    baseline: Baseline = decode(path, Baseline, "baseline")
    return baseline


def accept(record: Record, reasons: Mapping[str, str], expires: str = "") -> Baseline:
    """A baseline from a record.

    Args:
        record: A complete record.
        reasons: Case name (or ``*``) to the reason why its refutation is accepted.
        expires: ISO date after which acceptances lapse.

    Raises:
        UsageError: For an incomplete record, a refuted subject without a reason, or a bad date.
    """
    if not record.execution.complete:
        raise UsageError("this record is partial; finish the run with --resume, then accept it")
    if expires:
        _date(expires)
    cases = {}
    for result in record.results:
        needs = result.role == "subject" and result.verdict == "refuted"
        reason = reasons.get(result.name, reasons.get("*", "")) if needs else ""
        if needs and not reason.strip():
            raise UsageError(
                f"case {result.name!r} is refuted: give --reason '{result.name}=WHY' to accept it"
            )
        cases[result.name] = _accepted(result, reason, expires if needs else "")
    return Baseline(cases=cases)


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write a baseline atomically."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n")


def compare(record: Record, baseline: Baseline) -> Record:
    """The record with its findings and exit code relative to a baseline."""
    accepted: set[str] = set()
    extra: list[Finding] = []
    for result in record.results:
        old = baseline.cases.get(result.name)
        if old is None or not old.claim.same_promise(result.claim) or old.view != result.view:
            continue
        finding = _compare_case(result, old, record.planned(result.name).reproduce)
        if finding:
            extra.append(finding)
        if old.verdict == "refuted" and old.reason and not _expired(old):
            accepted.add(result.name)
    summary = summarise(record.plan, record.results, frozenset(accepted), extra)
    return msgspec.structs.replace(record, summary=summary)


def _accepted(result: CaseResult, reason: str, expires: str) -> Accepted:
    return Accepted(
        claim=result.claim,
        view=result.view,
        verdict=result.verdict,
        epsilon_lower=result.epsilon_lower,
        estimate_upper=result.estimate_upper,
        could_have_caught=_reach(result),
        reason=reason,
        expires=expires,
    )


def _compare_case(result: CaseResult, old: Accepted, command: str) -> Finding | None:
    def finding(rule: str, message: str) -> Finding:
        return Finding(rule=rule, case=result.name, message=message, reproduce=command)

    if result.role == "subject" and old.verdict == "refuted":
        if result.verdict != "refuted":
            return finding("DP008", f"accepted as refuted ({old.reason}); now {result.verdict}")
        if old.estimate_upper is not None and result.epsilon_lower > old.estimate_upper:
            return finding(
                "DP002",
                f"certified {result.epsilon_lower:.4g} lies above the accepted state's upper "
                f"estimate {old.estimate_upper:.4g}",
            )
    now, then = _reach(result), old.could_have_caught
    if then is not None and (now is None or now > _WEAKER * then):
        reach = "nothing" if now is None else f"{now:.3g}"
        return finding(
            "DP010",
            f"the smallest epsilon that could have been caught grew from {then:.3g} to {reach}",
        )
    return None


def _reach(result: CaseResult) -> float | None:
    return min((e for e in result.could_have_caught.values() if e is not None), default=None)


def _expired(old: Accepted) -> bool:
    return bool(old.expires) and _date(old.expires) < dt.datetime.now(dt.UTC).date()


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"expires: expected a date such as 2027-01-31, got {text!r}") from None
