"""The baseline: what was accepted, with a reason, so that only changes turn a gate red."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import msgspec

from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.files import write_atomically
from audit.judge import reach
from audit.power import smallest
from audit.record import (
    SCHEMA_VERSION,
    CaseResult,
    Finding,
    PlannedCase,
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
        could_have_caught: Smallest true epsilon that an ideal attack would have caught then.
        delta: Delta of the certified epsilon.
        attack: Attack that testified.
        reason: Why a refutation is accepted; empty for other verdicts.
        expires: ISO date after which the acceptance lapses; empty for never.
    """

    claim: AnyClaim
    view: str
    verdict: Verdict
    epsilon_lower: float
    estimate_upper: float | None
    could_have_caught: float | None
    delta: float = 0.0
    attack: str = ""
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
        planned = record.planned(result.name)
        cases[result.name] = _accepted(result, planned, reason, expires if needs else "")
    return Baseline(cases=cases)


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write a baseline atomically."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n")


def compare(record: Record, baseline: Baseline) -> Record:
    """The record with its findings and exit code relative to a baseline."""
    accepted: set[str] = set()
    extra: list[Finding] = []
    extra += [_missing(name) for name in baseline.cases if name not in _names(record)]
    for result in record.results:
        old = baseline.cases.get(result.name)
        if old is None:
            continue
        planned = record.planned(result.name)
        if not old.claim.same_promise(result.claim) or old.view != result.view:
            extra.append(_other_claim(planned, old))
            continue
        extra += _compare_case(result, old, planned)
        if old.verdict == "refuted" and old.reason and not _expired(old):
            accepted.add(result.name)
    summary = summarise(record.plan, record.results, frozenset(accepted), extra)
    return msgspec.structs.replace(record, summary=summary)


def _names(record: Record) -> set[str]:
    return {case.name for case in record.plan.cases}


def _missing(name: str) -> Finding:
    message = "in the baseline, but not in this run: restore the case or accept a new baseline"
    return Finding(rule="DP010", case=name, message=message)


def _other_claim(planned: PlannedCase, old: Accepted) -> Finding:
    message = (
        f"the baseline knows {old.claim} of {old.view}, this run audits {planned.claim} of "
        f"{planned.view}: accept a new baseline if the promise changed on purpose"
    )
    return Finding.about(planned, "DP010", message)


def _accepted(result: CaseResult, planned: PlannedCase, reason: str, expires: str) -> Accepted:
    return Accepted(
        claim=result.claim,
        view=result.view,
        verdict=result.verdict,
        epsilon_lower=result.epsilon_lower,
        estimate_upper=result.estimate_upper,
        could_have_caught=_reach(planned),
        delta=result.delta,
        attack=result.choice.attack if result.choice else "",
        reason=reason,
        expires=expires,
    )


def _compare_case(result: CaseResult, old: Accepted, planned: PlannedCase) -> list[Finding]:
    found: list[tuple[str, str]] = []
    if result.role == "subject" and old.verdict == "refuted":
        if result.verdict != "refuted":
            found.append(("DP008", f"accepted as refuted ({old.reason}); now {result.verdict}"))
        elif _is_worse(result, old):
            found.append(
                (
                    "DP002",
                    f"certified {result.epsilon_lower:.4g} lies above the accepted state's upper "
                    f"estimate {old.estimate_upper:.4g}",
                )
            )
    now, then = _reach(planned), old.could_have_caught
    if then is not None and (now is None or now > _WEAKER * then):
        grown = "nothing" if now is None else f"{now:.3g}"
        found.append(
            (
                "DP010",
                f"the smallest epsilon that could have been caught grew from {then:.3g} to {grown}",
            )
        )
    return [Finding.about(planned, rule, message) for rule, message in found]


def _is_worse(result: CaseResult, old: Accepted) -> bool:
    """Bounds are compared like with like: the same attack at the same delta."""
    attack = result.choice.attack if result.choice else ""
    if old.estimate_upper is None or (attack, result.delta) != (old.attack, old.delta):
        return False
    return result.epsilon_lower > old.estimate_upper


def _reach(planned: PlannedCase) -> float | None:
    """What an ideal attack could catch: a function of the plan, not of what scouting chose."""
    families = reach(planned, *planned.claim.points()[0])
    return smallest(families)


def _expired(old: Accepted) -> bool:
    return bool(old.expires) and _date(old.expires) < dt.datetime.now(dt.UTC).date()


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"expires: expected a date such as 2027-01-31, got {text!r}") from None
