"""The baseline: what was accepted, with a reason, so that only changes turn a gate red.

Two runs are compared by limits, never by estimates. A case is *worse* when the lower confidence
limit of what its frozen rule measures, and its certified bound as well, lie above the upper limit
of what the rule of the same attack measured at the same delta then. Why this is valid: all lower
limits of the new run hold together with probability at least 1 - alpha(new), and all upper limits
of the old one with at least 1 - alpha(old), since each run divides its alpha over its cases. So if
no rule measures more than it did, any case is called worse with probability at most alpha(new) +
alpha(old). A better rule can be the cause as well as a worse implementation, which is why attack
and delta must agree.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.files import write_atomically
from audit.judge import parameter_reach, reach
from audit.measured import log_odds_lower
from audit.power import smallest
from audit.record import (
    SCHEMA_VERSION,
    CaseResult,
    Change,
    Finding,
    PlannedCase,
    Record,
    Verdict,
    decode,
)
from audit.result import right_and_wrong
from audit.summary import summarise

_WEAKER = 1.25
_NO_BASELINE = ("quick",)


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What a baseline says about a case.

    Attributes:
        claim: The claim; another claim is another case.
        view: The audited projection.
        verdict: The verdict then.
        epsilon_lower: Certified then.
        estimate_upper: Upper confidence limit of what the attack measured; None without any.
        could_have_caught: Smallest true epsilon that an ideal attack would have caught then.
        parameter_caught: Smallest parameter of a claim about Renyi divergences that it would have.
        delta: Delta of the certified epsilon.
        attack: Attack that testified.
        pair: Label of the pair on which it testified.
        reason: Why a refutation is accepted; empty for other verdicts.
        expires: ISO date after which the acceptance lapses; empty for never.
    """

    claim: AnyClaim
    view: str
    verdict: Verdict
    epsilon_lower: float
    estimate_upper: float | None
    could_have_caught: float | None
    parameter_caught: float | None = None
    delta: float = 0.0
    attack: str = ""
    pair: str = ""
    reason: str = ""
    expires: str = ""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """Accepted state per case name.

    Attributes:
        cases: Case name to what was accepted.
        alpha: Probability that any of its upper limits is too low.
    """

    schema_version: int = SCHEMA_VERSION
    cases: dict[str, Accepted]
    alpha: float = 1e-3


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
        UsageError: For a record that cannot be one, a refuted subject without a reason, or a bad
            date.
    """
    _require_whole(record)
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
    return Baseline(cases=cases, alpha=record.plan.alpha)


def _require_whole(record: Record) -> None:
    """A baseline must say what a whole audit of full size found."""
    if not record.execution.complete:
        raise UsageError("this record is partial; finish the run with --resume, then accept it")
    if record.plan.shard is not None:
        raise UsageError(
            "this record is one shard of a run: merge all shards with 'python -m audit report "
            "SHARD... -f json=record.json', then accept that"
        )
    if record.plan.profile in _NO_BASELINE:
        raise UsageError(
            f"this record was made with --profile {record.plan.profile}, which sees too little to "
            "be a baseline; run with --profile ci, then accept that"
        )


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write a baseline atomically."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n")


def state_of(record: Record) -> Baseline:
    """What a record found, as if all of it were accepted: the old side of a comparison."""
    return Baseline(
        cases={
            result.name: _accepted(result, record.planned(result.name), "refuted before", "")
            for result in record.results
        },
        alpha=record.plan.alpha,
    )


def compare(record: Record, baseline: Baseline) -> Record:
    """The record with its findings, changes and exit code relative to a baseline."""
    changes: dict[str, Change] = {}
    extra: list[Finding] = []
    planned = {case.name: case for case in record.plan.cases}
    for name in baseline.cases.keys() - planned.keys():
        changes[name] = Change(status="absent", note="in the baseline, but not in this run")
    extra += [_missing(name) for name in baseline.cases if name not in planned]
    wrong = min(1.0, record.plan.alpha + baseline.alpha)
    for result in record.results:
        case = _Case(result, planned[result.name], baseline.cases.get(result.name), wrong)
        change, found = case.compare()
        changes |= {result.name: change} if change else {}
        extra += [Finding.about(case.planned, rule, message) for rule, message in found]
    ordered = {name: changes[name] for name in sorted(changes)}
    summary = summarise(record.plan, record.results, ordered, extra)
    return msgspec.structs.replace(record, summary=summary)


def _missing(name: str) -> Finding:
    message = "in the baseline, but not in this run: restore the case or accept a new baseline"
    return Finding(rule="DP010", case=name, message=message)


def _accepted(result: CaseResult, planned: PlannedCase, reason: str, expires: str) -> Accepted:
    choice = result.choice
    return Accepted(
        claim=result.claim,
        view=result.view,
        verdict=result.verdict,
        epsilon_lower=result.epsilon_lower,
        estimate_upper=result.estimate_upper,
        could_have_caught=_reach(planned),
        parameter_caught=parameter_reach(planned),
        delta=result.delta,
        attack=choice.attack if choice else "",
        pair=planned.pairs[choice.pair].label if choice else "",
        reason=reason if result.verdict == "refuted" else "",
        expires=expires,
    )


_Found = tuple[str, str]


@dataclass(frozen=True)
class _Case:
    """One case, now and then.

    Attributes:
        now: Its result.
        planned: Its plan.
        then: What the baseline says; None when it does not know the case.
        wrong: Probability that any comparison of bounds is wrong.
    """

    now: CaseResult
    planned: PlannedCase
    then: Accepted | None
    wrong: float

    def compare(self) -> tuple[Change | None, list[_Found]]:
        """What changed, and the rules and messages to tell."""
        old = self.then
        if old is None:
            new = Change(status="new", note="refuted; the baseline does not know this case")
            return (new if self._refuted else None), []
        if not old.claim.same_promise(self.now.claim) or old.view != self.now.view:
            return Change(status="other claim", note=f"was {old.claim}"), [self._other_claim(old)]
        known = self._refuted and old.verdict == "refuted" and bool(old.reason)
        accepted = known and not _lapsed(old)
        worse, weaker = self._worse(old), self._weaker(old)
        told = [("DP002", worse)] if worse and (accepted or not self._refuted) else []
        told += self._acceptance(old)
        told += [("DP010", weaker)] if weaker else []
        return self._change(old, told, accepted=accepted), told

    @property
    def _refuted(self) -> bool:
        return self.now.verdict == "refuted" and self.now.role == "subject"

    def _acceptance(self, old: Accepted) -> list[_Found]:
        """What to tell about a refutation that had been accepted."""
        if old.verdict != "refuted" or self.now.role != "subject":
            return []
        if not self._refuted:
            return [("DP008", f"accepted as refuted ({old.reason}); now {self.now.verdict}")]
        message = f"accepted until {old.expires} ({old.reason}); mend it, or accept it anew"
        return [("DP041", message)] if _lapsed(old) else []

    def _change(self, old: Accepted, told: list[_Found], *, accepted: bool) -> Change | None:
        """The one status that matters most: what makes the run red goes first."""
        said = dict(told)
        if "DP002" in said:
            return Change(status="worse", note=said["DP002"], accepted=accepted)
        if self._refuted and not accepted:
            return Change(status="new", note=f"refuted; was {old.verdict}")
        if "DP010" in said:
            return Change(status="weaker audit", note=said["DP010"], accepted=accepted)
        if accepted:
            until = f" (until {old.expires})" if old.expires else ""
            return Change(status="known", note=f"{old.reason}{until}", accepted=True)
        if "DP008" in said and self.now.verdict == "unrefuted":
            return Change(status="resolved", note=f"no longer refuted; was: {old.reason}")
        return None

    def _other_claim(self, old: Accepted) -> _Found:
        return (
            "DP010",
            f"the baseline knows {old.claim} of {old.view}, this run audits {self.planned.claim} "
            f"of {self.planned.view}: accept a new baseline if the promise changed on purpose",
        )

    def _worse(self, old: Accepted) -> str:
        """Why more leaks than was measured then; empty unless bounds of the same attack say so."""
        attack = self.now.choice.attack if self.now.choice else ""
        limit, lower = old.estimate_upper, min(self.now.epsilon_lower, _measured(self.now))
        alike = (attack, self.now.delta) == (old.attack, old.delta)
        if self.now.role != "subject" or limit is None or not alike or lower <= limit:
            return ""
        return (
            f"at least {lower:.4g} lies above {limit:.4g}, the most that {attack} can have "
            f"measured in the baseline; wrong with probability at most {self.wrong:.3g}"
        )

    def _weaker(self, old: Accepted) -> str:
        """Why less could have been caught than then; empty when it could."""
        own = (parameter_reach(self.planned), old.parameter_caught, self.now.claim.symbol)
        for now, then, what in ((_reach(self.planned), old.could_have_caught, "epsilon"), own):
            if then is not None and (now is None or now > _WEAKER * then):
                grown = "nothing" if now is None else f"{now:.3g}"
                return (
                    f"the smallest {what} that could have been caught grew from {then:.3g} to "
                    f"{grown}"
                )
        if old.attack and old.attack not in self.planned.attacks:
            return f"attack {old.attack}, which testified in the baseline, is not offered"
        if old.pair and old.pair not in {pair.label for pair in self.planned.pairs}:
            return f"pair {old.pair!r}, which testified in the baseline, is not offered"
        return ""


def _reach(planned: PlannedCase) -> float | None:
    """What an ideal attack could catch: a function of the plan, not of what scouting chose."""
    points = planned.claim.points()  # none where a record states what no plan would take
    return smallest(reach(planned, *points[0])) if points else None


def _measured(result: CaseResult) -> float:
    """Lower limit of what the frozen rule of a result measures."""
    if result.choice is None:
        return 0.0
    right, wrong = right_and_wrong(result.choice, result.evidence.total)
    return log_odds_lower(int(right.sum()), int(wrong.sum()), result.alpha, stopped=result.stopped)


def _lapsed(old: Accepted) -> bool:
    return bool(old.expires) and _date(old.expires) < dt.datetime.now(dt.UTC).date()


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"expires: expected a date such as 2027-01-31, got {text!r}") from None
