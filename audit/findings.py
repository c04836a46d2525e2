"""Findings about one result: what a reader must know, with cause, effect and remedy."""

from __future__ import annotations

import msgspec
from scipy import special

from audit.claim import PureDp
from audit.errors import UsageError
from audit.evidence import Counts
from audit.power import smallest
from audit.record import CaseResult, Choice, Finding, PlannedCase
from audit.result import right_and_wrong

_HARDLY_EVER = 1e-4


def with_findings(
    result: CaseResult, planned: PlannedCase, notes: tuple[Finding, ...]
) -> CaseResult:
    """The result with everything that a reader must know about it."""
    found = [*notes]

    def add(rule: str, message: str) -> None:
        found.append(Finding.about(planned, rule, message))

    if result.role == "null" and result.verdict != "error" and not result.silent:
        add("DP040", _heard(result))
    elif result.verdict == "refuted":
        add("DP001", refutation(result, planned))
    if result.verdict == "blind" and result.role not in ("control", "null"):
        add("DP004", _blindness(result, planned))
    for rule, message in _ladder_findings(result):
        add(rule, message)
    known = msgspec.structs.replace(result, findings=tuple(found))
    if result.role == "control" and not known.found_out:
        add(
            "DP005",
            f"known to be broken, but {result.verdict}: the audit is too weak as configured",
        )
    if max(result.exceptions) > 0:
        left, right = result.exceptions
        add("DP006", f"raised in {left:.1%} of left and {right:.1%} of right scouting trials")
    return msgspec.structs.replace(result, findings=tuple(found))


def _ladder_findings(result: CaseResult) -> list[tuple[str, str]]:
    ladder, found = result.ladder, []
    if ladder is None:
        return []
    if ladder.certificate > ladder.theorem * (1 + 1e-6):
        found.append(
            (
                "DP012",
                f"the algorithm's own density certifies epsilon >= {ladder.certificate:.4g} at "
                f"delta {ladder.delta:g}, but the claim allows {ladder.theorem:.4g}",
            )
        )
    if not ladder.calibrated:
        found.append(
            (
                "DP014",
                f"after {ladder.runs} trials the labels refuse the stated density (log-wealth "
                f"{ladder.calibration_log_wealth:.1f}): noise is not what the code says",
            )
        )
    exact = ladder.accountant
    if exact is not None and result.delta == ladder.delta and result.epsilon_lower > exact:
        found.append(
            (
                "DP013",
                f"counting certifies {result.epsilon_lower:.4g}, above the exact "
                f"{exact:.4g} of this pair: the code does not do what its density says",
            )
        )
    return found


def refutation(result: CaseResult, planned: PlannedCase) -> str:
    """Why the claim cannot hold, in one sentence."""
    choice = result.choice
    if choice is None:
        raise UsageError(f"case {result.name!r} was not refuted")
    pair = choice.pair_of(planned)
    bound = f"epsilon >= {_above(result.epsilon_lower, choice.epsilon)} at delta {result.delta:g}"
    own = result.claim.parameter
    if result.epsilon_lower <= choice.epsilon and own and result.parameter_lower is not None:
        bound = f"{result.claim.symbol} >= {_above(result.parameter_lower, own)}"
    allowed = f"{choice.epsilon:.4g}" if isinstance(result.claim, PureDp) else str(result.claim)
    return (
        f"{bound}, but the claim allows {allowed}. Pair: {pair.label}. "
        f"Attack: {choice.attack} ({choice.event})."
    )


def _heard(result: CaseResult) -> str:
    what, bound = result.certified
    return (
        f"certified {what} {bound:.4g} although both sides had the same input: trials are not what "
        "the bounds take them for, so no verdict of this run about this target counts"
    )


def _above(lower: float, claimed: float) -> str:
    """The bound in words: with more digits where fewer make it read as equal to the claim."""
    shown = f"{lower:.4g}"
    return f"{lower:.10g}" if shown == f"{claimed:.4g}" else shown


def _blindness(result: CaseResult, planned: PlannedCase) -> str:
    if result.choice is not None and not any(result.choice.guess):
        return "no attack told the inputs apart; raise --trials, or offer a richer view or pair"
    total = result.evidence.total
    if result.choice and promise_broken(result.choice, result.epsilon_lower, total):
        return (
            f"scouting expected to certify {result.choice.forecast:.3g}, testimony certified "
            f"{result.epsilon_lower:.3g}: trials changed in between. Keep counters, clocks and "
            "state out of the output"
        )
    best = smallest(result.could_have_caught)
    reach = "no epsilon up to 60" if best is None else f"epsilon {best:.3g} at the least"
    if result.parameter_caught is not None:
        reach = f"{result.claim.symbol} {result.parameter_caught:.3g} at the least"
    return (
        f"with {sum(planned.blocks)} testifying trials {reach} would have been caught with "
        f"probability 0.8; the claim is {result.claim}. Raise --trials"
    )


def promise_broken(choice: Choice, lower: float, total: Counts) -> bool:
    """Whether testimony certified next to nothing of what scouting cautiously expected.

    And whether so few guesses were right that, had each been right as often as was expected at the
    least, it would happen once in ten thousand times. Trials of one law hardly ever do that. It
    happens when the output holds a counter or a clock, or when state changes in between.
    """
    if choice.forecast <= 0.5 * choice.epsilon or lower >= 0.2 * choice.forecast:
        return False
    right, wrong = (int(side.sum()) for side in right_and_wrong(choice, total))
    expected = float(special.expit(choice.forecast))
    return bool(special.bdtr(right, right + wrong, expected) < _HARDLY_EVER)


def disagreement(planned: PlannedCase) -> Finding:
    """Blocks that cannot come from independent trials."""
    return Finding.about(
        planned,
        "DP009",
        "blocks of trials differ more than independent trials could, so nothing is certified; "
        "trials must not share draws or state",
    )
