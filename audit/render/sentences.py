"""The words that all formats share: verdicts, figures and what a run can and cannot say.

No sentence says that anything is private: an audit refutes a claim, or it fails to.
"""

from __future__ import annotations

from collections.abc import Mapping

from audit.record import CaseResult, Finding, Record
from audit.render.wording import (
    NOTHING,
    ceiling,
    count,
    floor,
    number,
    one_line,
    percent,
    seconds,
    side_by_side,
    tidy,
    whole,
)
from audit.rules import RULES

LABELS: Mapping[str, str] = {
    "refuted": "Refuted",
    "unrefuted": "Not refuted",
    "blind": "Blind",
    "error": "Error",
    "caught": "Caught, as it must be",
    "missed": "NOT caught",
    "silent": "Nothing certified, as it must be",
    "heard": "Certified from NOTHING",
}
ONE_RUN = ("one-run", "trade-off", "e-value")
TESTS: Mapping[str, str] = {
    "one-run": "guesses of one run (Steinke, Nasr and Jagielski 2023)",
    "trade-off": "guesses of one run by trade-off curve (Mahloujifar, Melis and Chaudhuri 2024)",
    "e-value": "e-value of the posteriors of one run",
}
ROLES: Mapping[str, str] = {
    "subject": "subject",
    "control": "control, known to be broken",
    "informational": "informational, does not gate",
    "null": "null test, the same input twice",
}


def badge(result: CaseResult) -> str:
    """Key of `LABELS`: the verdict as a reader must take it, given the role of the case."""
    if result.role == "control":
        return "caught" if result.found_out else "missed"
    if result.role == "null" and result.verdict != "error":
        return "silent" if result.silent else "heard"
    return result.verdict


def label(result: CaseResult) -> str:
    """The verdict in a word or two, with a mark for cases that only report."""
    informational = " (informational)" if result.role == "informational" else ""
    return LABELS[badge(result)] + informational


def needs_attention(result: CaseResult) -> bool:
    """Whether the case is anything but an unrefuted claim or a control that was caught."""
    return badge(result) not in ("unrefuted", "caught", "silent")


def claimed_epsilon(result: CaseResult) -> float | None:
    """The epsilon at which the claim was confronted; None when nothing testified."""
    return result.choice.epsilon if result.choice else None


def verdict_sentence(result: CaseResult) -> str:
    """The verdict of a case in one sentence."""
    opening = LABELS[badge(result)]
    if opening in (LABELS["silent"], LABELS["heard"]):
        return f"{opening}: {played(result)} on the same input twice certified {_anything(result)}."
    tails = {
        "refuted": _refuted,
        "unrefuted": _unrefuted,
        "blind": _blind,
        "error": _error,
    }
    tail = tails[result.verdict](result)
    extra = " This case only reports; it does not gate." if result.role == "informational" else ""
    return f"{opening}: {tail}.{extra}"


def _anything(result: CaseResult) -> str:
    what, bound = result.certified
    return f"{what} {floor(bound)}" if bound > 0 else floor(0.0)


def _refuted(result: CaseResult) -> str:
    sure, claimed = percent(1 - result.alpha), claimed_epsilon(result)
    if claimed is not None and result.epsilon_lower > claimed:
        bound, limit = side_by_side(result.epsilon_lower, claimed)
        return (
            f"with confidence {sure} the true epsilon of the {view_of(result)} is at least"
            f" {bound} at delta {number(result.delta)}; the claim allows at most {limit}"
        )
    if result.parameter_lower is not None and _exceeded(result):
        needed = f"{result.claim.symbol} of at least {floor(result.parameter_lower)}"
        return (
            f"with confidence {sure} the {view_of(result)} needs a {needed}, which"
            f" {tidy(result.claim)} does not allow; this speaks of that kind of claim only"
        )
    return f"with confidence {sure} the {view_of(result)} does not keep {tidy(result.claim)}"


def _unrefuted(result: CaseResult) -> str:
    at = "" if result.parameter_lower is not None else f" at delta {number(result.delta)}"
    return (
        f"{played(result)} of the {view_of(result)} certified"
        f" {certified(result)}{at}; {_power(result)}"
    )


def _blind(result: CaseResult) -> str:
    return (
        f"{played(result)} of the {view_of(result)} could not have caught a violation"
        f" of the size that matters; {_power(result)}"
    )


def _error(result: CaseResult) -> str:
    return (
        "the mechanism could not be played to the end, so nothing is known about"
        f" {tidy(result.claim)} of the {view_of(result)}"
    )


def _power(result: CaseResult) -> str:
    family, epsilon = smallest_caught(result)
    own, known = result.parameter_caught, []
    if own is not None:
        known.append((f"{result.claim.symbol} of {ceiling(own)}", "gaussian noise"))
        family += f", at delta {number(result.delta)}"
    if epsilon is not None:
        known.append((f"epsilon of {ceiling(epsilon)}", one_line(family, 60)))
    if not known:
        return "no violation of any size would have been caught with probability 0.8"
    (size, family), *more = known
    told = (
        f"an ideal attack would have caught a true {size} or more with probability 0.8 ({family})"
    )
    return told + "".join(f", or a true {size} or more ({family})" for size, family in more)


def smallest_caught(result: CaseResult) -> tuple[str, float | None]:
    """The family in which the audit could have caught the smallest violation, and its epsilon."""
    known = {f: e for f, e in result.could_have_caught.items() if e is not None}
    if not known:
        return "", None
    family = min(known, key=lambda name: known[name])
    return family, known[family]


def caught(result: CaseResult) -> str:
    """The smallest violation that could have been caught: ``1.2``, or ``rho 0.6``."""
    own = result.parameter_caught
    if own is None:
        return ceiling(smallest_caught(result)[1])
    return f"{result.claim.symbol} {ceiling(own)}"


def could_have_caught(result: CaseResult) -> str:
    """What could have been caught, per family: ``1.2 (box), no size (gaussian)``."""
    parts = [
        f"{'no size' if epsilon is None else ceiling(epsilon)} ({one_line(family, 60)})"
        for family, epsilon in result.could_have_caught.items()
    ]
    if result.parameter_caught is not None:
        parts.append(f"{caught(result)} (gaussian noise)")
    return ", ".join(parts) or NOTHING


def certified(result: CaseResult, link: str = " of the claimed ") -> str:
    """How much is certified: ``1.32 of the claimed 1``."""
    symbol, lower, claimed = scale(result)
    if claimed is None:
        return NOTHING
    return f"{symbol} {link.join(side_by_side(lower, claimed))}".strip()


def scale(result: CaseResult) -> tuple[str, float, float | None]:
    """What is certified and claimed, and of what: the claim's own parameter where it was tested.

    Where only a point of the claim is refuted, its epsilon; the symbol is empty for an epsilon.
    """
    claimed, own = claimed_epsilon(result), result.claim.parameter
    by_point = claimed is not None and result.epsilon_lower > claimed and not _exceeded(result)
    if claimed is None or own is None or result.parameter_lower is None or by_point:
        return "", result.epsilon_lower, claimed
    return result.claim.symbol, result.parameter_lower, own


def _exceeded(result: CaseResult) -> bool:
    """Whether the claim's own parameter is refuted."""
    own = result.claim.parameter
    return own is not None and (result.parameter_lower or 0.0) > own


def false_alarm_sentence(record: Record) -> str:
    """The false-alarm rate of the whole run, in words."""
    alpha = record.plan.alpha
    often = f"{round(1 / alpha):,}" if alpha > 0 else "infinitely many"
    return (
        "Taken together, the certified statements of this run are wrong with probability at most"
        f" {number(alpha)}; expected false alarms: at most 1 in {often} runs."
    )


def threats_sentence(record: Record) -> str:
    """Which opt-in threats were in scope."""
    threats = record.plan.threats
    run = [one_line(name, 40) for name, on in threats.items() if on]
    left = [one_line(name, 40) for name, on in threats.items() if not on]
    words = f"Threats run: {', '.join(run) or 'none'}; not run: {', '.join(left) or 'none'}."
    if threats.get("duration"):
        words += " Run times do not repeat, so neither does this record, bit for bit."
    return words


def rounding_sentence(record: Record) -> str:
    """How views were rounded before any attack saw them."""
    bits = record.plan.rounding_bits
    if bits:
        return f"Views and scores were rounded to {bits} bits before any attack saw them."
    return "Views and scores were not rounded: trailing bits counted as evidence."


def progress_sentence(record: Record) -> str:
    """A warning about planned cases without a result; empty when there are none."""
    planned, done = len(record.plan.due), len(record.results)
    if record.execution.complete and planned == done:
        return ""
    return (
        f"This record is partial: the run was interrupted, and {done} of {planned} planned cases"
        " have a result."
    )


_PROFILES = {
    "quick": "Quick profile: few trials, so only gross violations can be seen; this record cannot"
    " become a baseline.",
    "nightly": "Nightly profile: many trials on a fresh seed, with controls, null tests and"
    " planted twins.",
}


def mode_sentence(record: Record) -> str:
    """What sort of run it was, where a reader must know; empty for a whole run of full size."""
    plan = record.plan
    parts = [_PROFILES[plan.profile]] if plan.profile in _PROFILES else []
    if plan.shard:
        shard, shards = plan.shard
        parts.append(
            f"Shard {shard} of {shards}: {len(plan.due)} of {len(plan.cases)} planned cases; the "
            "error rate is that of the whole plan."
        )
    return " ".join(parts)


def change_lines(record: Record) -> list[str]:
    """What changed since the baseline, one line per case; empty without a baseline."""
    changes = record.summary.changes
    if changes is None:
        return []
    told = [
        f"{change.status}: {one_line(name, 200)} ({one_line(change.note)})"
        for name, change in changes.items()
    ]
    return told or ["nothing: every case is as it was"]


def verdict_counts(record: Record) -> list[tuple[str, str, int]]:
    """Key, label and number of cases per verdict; the four verdicts on claims always appear."""
    keys = [badge(result) for result in record.results]
    return [
        (key, label, keys.count(key))
        for key, label in LABELS.items()
        if key in keys or key not in ("caught", "missed", "silent", "heard")
    ]


def notable(record: Record) -> list[Finding]:
    """Findings worth a reader's time: all but those of controls and null tests that went well."""
    caught = {result.name for result in record.results if badge(result) in ("caught", "silent")}
    return [finding for finding in record.summary.findings if finding.case not in caught]


def played(result: CaseResult) -> str:
    """How much was played: ``15,000 trials``."""
    if of_one_run(result):
        return f"{count(result.trials, 'canary', 'canaries')} of one run"
    return f"{whole(result.trials)} trials"


def of_one_run(result: CaseResult) -> bool:
    """Whether the trials are canaries that share a run, and so are not independent."""
    return result.choice is not None and result.choice.test in ONE_RUN


def view_of(result: CaseResult) -> str:
    """The audited projection in words: ``actions view``."""
    return f"{one_line(result.view, 60)} view"


def unit_of(result: CaseResult) -> str:
    """What one record is: ``event`` or ``user``."""
    return one_line(result.claim.unit, 60)


def title(finding: Finding) -> str:
    """Code and title of a finding's rule."""
    rule = RULES.get(finding.rule)
    code = one_line(finding.rule, 20)
    return f"{code} {rule.title}" if rule else code


def settings(record: Record) -> list[tuple[str, str]]:
    """What the whole run was made with, as names and values."""
    plan, environment, run = record.plan, record.environment, record.execution
    packages = [f"{one_line(n, 60)} {one_line(v, 60)}" for n, v in environment.packages.items()]
    return [
        ("Profile", one_line(plan.profile, 60) or NOTHING),
        ("Seed", str(plan.seed)),
        ("Alpha of the run", number(plan.alpha)),
        ("Trials per case", whole(plan.trials)),
        ("Early stopping", "on" if plan.early_stop else "off"),
        ("Blind from", f"{number(plan.blind_factor)} times the claim"),
        ("Plan", plan.digest()),
        ("Record", record.digest()),
        ("dpaudit", one_line(environment.dpaudit, 60)),
        ("Python", one_line(environment.python, 60)),
        ("Packages", ", ".join(packages) or NOTHING),
        ("Started", one_line(run.started, 60)),
        ("Took", f"{seconds(run.seconds)} with {count(run.jobs, 'process', 'processes')}"),
    ]
