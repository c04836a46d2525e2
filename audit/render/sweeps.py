"""Sweeps: does the certified bound follow the claim?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from audit.record import CaseResult, PlannedCase, Record
from audit.render.sentences import LABELS, badge, caught, claimed_epsilon, scale
from audit.render.wording import NOTHING, ceiling, count, floor, number, percent
from audit.sweep import suffix

HEAD = ("value", "claimed", "certified", "share", "could have caught", "verdict")


@dataclass(frozen=True)
class SweptCases:
    """The cases of one sweep, by rising claim.

    Attributes:
        title: What was swept over what.
        rows: Cells under `HEAD`.
        sentence: Whether the certified bound follows the claim.
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    sentence: str


def sweeps(record: Record) -> list[SweptCases]:
    """The sweeps of a record, in its order."""
    played = {result.name: result for result in record.results}
    groups: dict[tuple[str, str], list[tuple[float, CaseResult]]] = {}
    for case in record.plan.cases:
        if case.parameters and case.name in played:
            (name, value), *_ = case.parameters.items()
            groups.setdefault((_swept(case), name), []).append((value, played[case.name]))
    return [
        SweptCases(f"{target} over {name}", _rows(found), _sentence([r for _, r in found]))
        for (target, name), found in groups.items()
    ]


def _swept(case: PlannedCase) -> str:
    return case.name.replace(suffix(case.parameters), "")


def _rows(found: Sequence[tuple[float, CaseResult]]) -> tuple[tuple[str, ...], ...]:
    rows = []
    for value, result in found:
        symbol, lower, claimed = scale(result)
        rows.append(
            (
                number(value),
                NOTHING if claimed is None else f"{symbol or 'epsilon'} {number(claimed)}",
                floor(lower),
                percent(lower / claimed) if claimed else NOTHING,
                caught(result),
                LABELS[badge(result)],
            )
        )
    return tuple(rows)


def _rises(one: tuple[str, float, float | None], other: tuple[str, float, float | None]) -> bool:
    return one[0] == other[0] and one[1] <= other[1]


def _sentence(results: Sequence[CaseResult]) -> str:
    """Steps at which a larger claim is measured to leak less than a smaller one is certified to."""
    known = [(claimed_epsilon(r) or 0.0, r) for r in results if r.choice is not None]
    ordered = [r for _, r in sorted(known, key=lambda pair: pair[0])]
    back = [
        (small, large)
        for i, small in enumerate(ordered)
        for large in ordered[i + 1 :]
        if large.delta == small.delta
        and large.estimate_upper is not None
        and large.estimate_upper < small.epsilon_lower
    ]
    if len(ordered) < 2:
        return "One value says nothing about how the bound follows the claim."
    if not back:
        rising = all(_rises(scale(a), scale(b)) for a, b in pairwise(ordered))
        manner = "rises with the claim at every step" if rising else "follows it up to noise"
        return f"The certified bound {manner}."
    small, large = back[0]
    return (
        f"The certified bound does not follow the claim at {count(len(back), 'pair', 'pairs')} of"
        f" values: {floor(small.epsilon_lower)} is certified where"
        f" {number(claimed_epsilon(small) or 0.0)} is claimed, but at most"
        f" {ceiling(large.estimate_upper)} was measured where"
        f" {number(claimed_epsilon(large) or 0.0)} is claimed. Look for a parameter that is not"
        " used, or an attack that fails there."
    )
