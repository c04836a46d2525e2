"""Confirmation: refuted cases are played again on fresh streams, and both runs must refute.

It is the only retry there is, and it is planned: either run has half of the run's alpha, so that
all certified statements of both are wrong with probability at most alpha together, and a confirmed
refutation of a true claim, which needs two independent mishaps, with far less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from audit.engine import run
from audit.plan import Request, Settings, make_plan
from audit.record import CaseResult, Finding, Plan, Record
from audit.summary import summarise
from audit.workers import Workers

_CONFIRM = 0x636F6E66


def in_two(settings: Settings) -> Settings:
    """The settings of either run: half of alpha."""
    return replace(settings, alpha=settings.alpha / 2)


def fresh_seed(seed: int) -> int:
    """Root of the second run's streams, derived from that of the first."""
    return int(np.random.SeedSequence(seed, spawn_key=(_CONFIRM,)).generate_state(1)[0])


def confirm(
    first: Record, requests: Sequence[Request], settings: Settings, workers: Workers
) -> Record:
    """Play the refuted cases of a record again.

    Controls are left alone: that they are broken is known.

    Args:
        first: Record of a complete run with the settings `in_two`.
        requests: What was asked for in that run.
        settings: The settings that the user gave.
        workers: Where to play; the block log gets a name of its own.

    Returns:
        A record of both runs. A case stays refuted when both runs refute it; else it gets the
        verdict of the second.
    """
    seed = fresh_seed(settings.seed)
    plan, cases = make_plan(requests, replace(in_two(settings), seed=seed))
    again = {r.name for r in first.results if r.verdict == "refuted" and r.role != "control"}
    chosen = [case for case in cases if case.planned.name in again]
    plan = msgspec.structs.replace(plan, cases=tuple(case.planned for case in chosen))
    whole = msgspec.structs.replace(first.plan, alpha=settings.alpha, confirm_seed=seed)
    if not chosen:
        return _joined(first, whole, {}, 0.0, complete=True)
    log = workers.log.with_name(f"confirm-{workers.log.name}") if workers.log else None
    second = run(plan, chosen, replace(workers, log=log))
    played = {result.name: result for result in second.results}
    return _joined(
        first, whole, played, second.execution.seconds, complete=second.execution.complete
    )


def _joined(
    first: Record, plan: Plan, played: dict[str, CaseResult], seconds: float, *, complete: bool
) -> Record:
    results = tuple(
        both(one, played[one.name]) if one.name in played else one for one in first.results
    )
    execution = msgspec.structs.replace(
        first.execution, seconds=round(first.execution.seconds + seconds, 3), complete=complete
    )
    return msgspec.structs.replace(
        first, plan=plan, results=results, summary=summarise(plan, results), execution=execution
    )


def both(one: CaseResult, other: CaseResult) -> CaseResult:
    """The result of a case from its refuting run and the run that had to confirm it.

    Why the smaller bounds hold: each is valid with its run's share of alpha.
    """
    stays = other.verdict == "refuted"
    kept = tuple(f for f in one.findings if f.rule != "DP001" or stays)
    note = () if stays else (_unconfirmed(one, other),)
    again = dict(other.profile)
    parameters = [p for p in (one.parameter_lower, other.parameter_lower) if p is not None]
    return msgspec.structs.replace(
        one,
        verdict=other.verdict,
        epsilon_lower=_smaller(one, other, again),
        parameter_lower=min(parameters) if len(parameters) == 2 else None,
        profile=tuple((d, min(e, again[d])) for d, e in one.profile if d in again),
        findings=(*kept, *note),
        confirmation=other,
    )


def _smaller(one: CaseResult, other: CaseResult, again: dict[float, float]) -> float:
    """The smaller bound at the first run's delta; 0 when the second says nothing there."""
    second = other.epsilon_lower if other.delta == one.delta else again.get(one.delta, 0.0)
    return min(one.epsilon_lower, second)


def _unconfirmed(one: CaseResult, other: CaseResult) -> Finding:
    command = next((f.reproduce for f in one.findings if f.rule == "DP001"), "")
    at = one.choice.epsilon if one.choice else 0.0
    first, second = f"epsilon >= {one.epsilon_lower:.4g}", f"{other.epsilon_lower:.4g}"
    second += f" at delta {other.delta:g}"
    if one.epsilon_lower <= at and one.parameter_lower is not None:
        first = f"{one.claim.symbol} >= {one.parameter_lower:.4g}"
        second = f"{other.parameter_lower or 0.0:.4g}"
    return Finding(
        rule="DP015",
        case=one.name,
        message=(
            f"the first run certified {first}, the second only {second}, so the claim stands "
            "for now"
        ),
        reproduce=command,
    )
