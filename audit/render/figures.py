"""The key figures of a case, as names and values that all formats share."""

from __future__ import annotations

from audit.crosscheck import two_sided_epsilon
from audit.record import CaseResult, PlannedCase
from audit.render.sentences import (
    ROLES,
    TESTS,
    certified,
    could_have_caught,
    of_one_run,
    played,
    unit_of,
    view_of,
)
from audit.render.wording import (
    NOTHING,
    ceiling,
    floor,
    number,
    one_line,
    percent,
    tidy,
    whole,
)


def figures(planned: PlannedCase, result: CaseResult) -> list[tuple[str, str]]:
    """The key figures of a case, as names and values."""
    rows = [
        ("Claim", f"{tidy(result.claim)} of the {view_of(result)}"),
        ("Neighbours", _neighbours(planned, result)),
        ("Claim from", one_line(result.claim.source, 300) or NOTHING),
        ("Role", ROLES[result.role]),
        ("Target", one_line(planned.target, 300)),
        ("Certified", certified(result)),
        ("Confidence", f"{percent(1 - result.alpha)} (alpha {number(result.alpha)})"),
        ("Estimate", _estimate(result)),
        *_cross_check(result),
        *_confirmation(result),
        ("Could have caught", could_have_caught(result)),
        ("Trials", _trials(planned, result)),
    ]
    rows += _ladder(result)
    if max(result.exceptions) > 0:
        left, right = result.exceptions
        rows.append(("Exceptions", f"left {percent(left)}, right {percent(right)}"))
    return rows + _chosen(planned, result)


def _neighbours(planned: PlannedCase, result: CaseResult) -> str:
    group = f", groups of {planned.group} records" if planned.group > 1 else ""
    return f"{one_line(result.claim.relation, 60)}, unit: {unit_of(result)}{group}"


def _confirmation(result: CaseResult) -> list[tuple[str, str]]:
    second = result.confirmation
    if second is None:
        return []
    outcome = "refuted again" if second.verdict == "refuted" else "not confirmed"
    return [
        (
            "Second run",
            f"{outcome} on fresh streams: certified {certified(second)} with"
            f" {whole(second.trials)} trials; each run at alpha {number(second.alpha)}",
        )
    ]


def _cross_check(result: CaseResult) -> list[tuple[str, str]]:
    choice = result.choice
    if choice is None or result.stopped or of_one_run(result) or not result.trials:
        return []
    alpha, delta = result.alpha, result.delta
    bound = two_sided_epsilon(result.evidence.total, choice.guess, alpha, delta)
    return [
        (
            "Cross-check (two Clopper-Pearson)",
            f"epsilon {floor(bound)} at delta {number(delta)}; not certified",
        )
    ]


def rungs(result: CaseResult) -> list[tuple[str, float]]:
    """The ladder from promise to proof, as names and epsilons at the ladder's delta."""
    ladder = result.ladder
    if ladder is None:
        return []
    steps = [("theorem", ladder.theorem)]
    if ladder.accountant is not None:
        steps.append(("accountant", ladder.accountant))
    steps.append(("certificate", ladder.certificate))
    counted = dict(result.profile).get(ladder.delta)
    return steps if counted is None else [*steps, ("evidence", counted)]


def _ladder(result: CaseResult) -> list[tuple[str, str]]:
    ladder = result.ladder
    if ladder is None:
        return []
    how = f"{whole(ladder.runs)} {'tilted ' if ladder.tilted else ''}runs"
    drawn = "not refuted" if ladder.calibrated else "REFUTED: noise is not what the code says"
    steps = ", ".join(f"{name} {number(value)}" for name, value in rungs(result))
    return [
        (f"Ladder at delta {number(ladder.delta)}", f"{steps} (certificate from {how})"),
        ("Draws from its density", f"{drawn} (log-wealth {number(ladder.calibration_log_wealth)})"),
    ]


def _chosen(planned: PlannedCase, result: CaseResult) -> list[tuple[str, str]]:
    choice = result.choice
    if choice is None:
        return []
    event = one_line(choice.event, 600) or NOTHING
    rows = [("Attack", one_line(choice.attack, 300)), ("Event", event), ("Test", _test(result))]
    if 0 <= choice.pair < len(planned.pairs):
        pair = choice.pair_of(planned)
        rows += [
            (
                "Pair",
                f"{one_line(pair.label, 300)} ({one_line(pair.relation, 60)}, differs at"
                f" {whole(pair.position)})",
            ),
            ("Left input", one_line(pair.left, 600)),
            ("Right input", one_line(pair.right, 600)),
        ]
    if result.searched:
        spent = whole(sum(tried.trials for tried in result.searched))
        rows.append(("Pair search", f"{len(result.searched)} pairs tried, {spent} trials"))
    return rows


def _estimate(result: CaseResult) -> str:
    if result.choice is None:
        return NOTHING
    upper = result.estimate_upper
    limit = "" if upper is None else f", at most {ceiling(upper)} by this attack"
    return f"{number(result.estimate)}{limit} (no guarantee)"


def _trials(planned: PlannedCase, result: CaseResult) -> str:
    if of_one_run(result):
        return f"{played(result)}, {whole(_guessed(result))} guessed"
    early = ", ended early" if result.stopped else ""
    return (
        f"{whole(result.trials)} testified, {whole(result.scouting)} scouted,"
        f" {whole(planned.trials)} budgeted{early}"
    )


def _test(result: CaseResult) -> str:
    name = result.choice.test if result.choice else NOTHING
    if name in TESTS:
        return TESTS[name]
    return "betting (anytime-valid, ended early)" if result.stopped else f"{name} and betting"


def _guessed(result: CaseResult) -> int:
    guess = result.choice.guess if result.choice else ()
    rows = (row for block in result.counts.values() for row in block)
    return sum(row[1] + row[2] for row in rows if guess[row[0]])
