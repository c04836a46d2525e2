"""The one-call API: audit a function, a mechanism or a policy from Python."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from audit.claim import AnyClaim
from audit.claim_text import parse_claim
from audit.domain import Domain
from audit.engine import run
from audit.errors import UsageError
from audit.footprint import Footprint
from audit.mechanism import FunctionMechanism, Mechanism
from audit.numbers import whole
from audit.pair import Pair
from audit.plan import Request, Settings, make_plan
from audit.promise import as_pairs, promise_of
from audit.record import CaseResult
from audit.registry import as_mechanism, battery, proposer
from audit.rounds import column_of
from audit.workers import Workers


def examine(
    mechanism: Any,
    *,
    claim: AnyClaim | str | None = None,
    pairs: Sequence[Pair | tuple[Any, Any]] = (),
    domain: Domain | None = None,
    trials: int = 20_000,
    alpha: float = 1e-3,
    seed: int = 0,
    batched: bool = False,
    view: str = "",
    attacks: Sequence[str] | None = None,
    early_stop: bool = True,
    threats: Sequence[str] = (),
    group: int = 1,
    jobs: int = 1,
    memory: str = "",
) -> CaseResult:
    """Audit one implementation against one claim.

    Args:
        mechanism: A `Mechanism`; a function ``f(data, rng)`` of one trial returning anything, or
            ``f(data, n, rng)`` with `batched`; or a policy, its class or a factory.
        claim: What it promises, or its text such as ``eps=1``; a mechanism's own when omitted.
        pairs: Neighbouring inputs, pairs or ``(left, right)``; a mechanism's own when omitted.
            Scouting picks the worst.
        domain: Where to look for more pairs; a mechanism's own when omitted.
        trials: Mechanism runs in all, scouting included.
        alpha: Probability that the certified bound exceeds the true epsilon.
        seed: Root of all random streams.
        batched: Whether a function plays many trials along a leading axis.
        view: Audited projection of the output; the claim's own when empty.
        attacks: Names of attacks; the whole battery when omitted.
        early_stop: Stop as soon as the claim is refuted.
        threats: Opt-in threats to put in scope: ``bits``, ``duration``, ``seed``.
        group: How many changed records the claim speaks of (see `Claim.group`).
        jobs: Worker processes; no result depends on it.
        memory: What all processes may take together, such as ``1GiB``; empty for no limit.

    Returns:
        The result: ``verdict``, ``epsilon_lower``, ``could_have_caught``, the evidence.

    Raises:
        UsageError: For a missing claim, no pair, a setting out of range, or too little memory.
    """
    stated = parse_claim(claim) if isinstance(claim, str) else claim
    given = as_pairs(pairs, stated.relation if stated else "declared")
    chosen = _chosen(mechanism, stated, given, view, batched=batched)
    promised = stated or chosen.claim
    if promised is None:
        raise UsageError("claim: the mechanism states none; give claim=audit.PureDp(epsilon=1.0)")
    name = getattr(mechanism, "__name__", None) or _name_of(chosen)
    request = Request(
        name=name,
        target=name,
        mechanism=chosen,
        claim=promised,
        attacks=battery(attacks),
        pairs=given,
        domain=domain,
        proposer=proposer(),
        view=view,
        group=whole(group, "group"),
        command=f"audit.examine({name}, ..., trials={trials}, alpha={alpha!r}, seed={seed})",
    )
    settings = Settings(
        trials=trials, alpha=alpha, seed=seed, early_stop=early_stop, threats=tuple(threats)
    )
    plan, cases = make_plan([request], settings)
    record = run(plan, cases, Workers(jobs=jobs, footprint=Footprint.within(memory)))
    if not record.execution.complete:
        raise KeyboardInterrupt
    return record.results[0]


def assert_unrefuted(mechanism: Any, *, allow_blind: bool = False, **settings: Any) -> CaseResult:
    """Fail a test when the claim is refuted, or when the audit could not have refuted it.

    Args:
        mechanism: What to audit.
        allow_blind: Accept an audit that could not have caught a violation.
        **settings: As for `examine`.

    Returns:
        The result.

    Raises:
        AssertionError: With the findings, when there is no clean verdict.
    """
    return require_unrefuted(examine(mechanism, **settings), allow_blind=allow_blind)


def require_unrefuted(result: CaseResult, *, allow_blind: bool = False) -> CaseResult:
    """Fail a test on a result, as `assert_unrefuted` does.

    Args:
        result: What came out of `examine`.
        allow_blind: Accept an audit that could not have caught a violation.

    Returns:
        The result.

    Raises:
        AssertionError: With the findings, when there is no clean verdict.
    """
    accepted = {"unrefuted", "blind"} if allow_blind else {"unrefuted"}
    if result.verdict not in accepted:
        lines = [f"{finding.rule}: {finding.message}" for finding in result.findings]
        raise AssertionError(f"{result.name} is {result.verdict}\n" + "\n".join(lines))
    return result


def _chosen(
    found: Any, claim: AnyClaim | None, pairs: tuple[Pair, ...], view: str, *, batched: bool
) -> Mechanism:
    promise = promise_of(found)
    if batched or (inspect.isroutine(found) and promise is None):
        claim, pairs = (promise.claim, promise.pairs) if promise else (claim, pairs)
        return FunctionMechanism(found, claim, pairs, batched)
    name = str(getattr(found, "__name__", type(found).__name__))
    return as_mechanism(found, name, claim, pairs, column_of(view))


def _name_of(mechanism: Mechanism) -> str:
    function = getattr(mechanism, "function", mechanism)
    return str(getattr(function, "__name__", type(function).__name__))
