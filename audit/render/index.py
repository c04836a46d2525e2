"""An index page over many records: what each run found, and how each case went over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audit.record import CaseResult, Record
from audit.render.reach import shares
from audit.render.sentences import badge, certified
from audit.render.strip import Strip
from audit.render.templating import environment, for_html, markup
from audit.render.wording import count, number, one_line, tidy

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Entry:
    """One record and where its report is.

    Attributes:
        record: The record.
        link: Address relative to the index page.
    """

    record: Record
    link: str


@dataclass(frozen=True)
class Trend:
    """One case, with one claim on one view, over the records that hold it.

    Attributes:
        name: Name of the case.
        claim: What it promises, of which view.
        runs: Its results, oldest first, each with the number of its record (from 1).
        picture: Certified share of the claim over all records, as one ``<svg>`` element.
        sentence: What changed between the last two.
    """

    name: str
    claim: str
    runs: tuple[tuple[int, CaseResult], ...]
    picture: object
    sentence: str

    @property
    def last(self) -> CaseResult:
        """The newest result."""
        return self.runs[-1][1]


def render_index(entries: Sequence[Entry]) -> str:
    """A self-contained page without scripts; the same records always give the same characters.

    Args:
        entries: At least one record, in any order; they are shown by their start.
    """
    ordered = sorted(entries, key=lambda e: (e.record.execution.started, e.link))
    alpha = sum(entry.record.plan.alpha for entry in ordered)
    found = trends([entry.record for entry in ordered])
    return (
        environment(for_html)
        .get_template("index.html")
        .render(
            entries=ordered,
            trends=found,
            title=f"{count(len(ordered), 'audit', 'audits')} of"
            f" {count(len(found), 'claim', 'claims')}",
            alpha=number(min(1.0, alpha)),
        )
    )


def trends(records: Sequence[Record]) -> list[Trend]:
    """Every case that any record holds, in the order in which they first came up."""
    runs: dict[Key, list[tuple[int, CaseResult]]] = {}
    for position, record in enumerate(records, start=1):
        for result in record.results:
            key = (result.name, tidy(result.claim), result.view)
            runs.setdefault(key, []).append((position, result))
    return [
        Trend(
            name=name,
            claim=f"{claim} of {one_line(view, 60)}",
            runs=tuple(own),
            picture=_picture(own, len(records)),
            sentence=_sentence([result for _, result in own]),
        )
        for (name, claim, view), own in runs.items()
    ]


def _picture(runs: Sequence[tuple[int, CaseResult]], records: int) -> object:
    strip = Strip("Certified share of the claim, by record", (0.5, records + 0.5), (0.0, 2.0))
    strip.level(1.0, "claim")
    known = [(at, shares(result).get("certified"), badge(result)) for at, result in runs]
    strip.line([float(at) for at, _, _ in known], [share for _, share, _ in known], "measured")
    for at, share, verdict in known:
        ink = "certified" if verdict in ("refuted", "missed") else "measured"
        strip.line([float(at)], [share], ink)
    return markup(strip.svg("record 1", f"record {records}"))


def _sentence(results: Sequence[CaseResult]) -> str:
    if len(results) < 2:
        return "One record; no trend yet."
    before, now = results[-2:]
    changed = (
        "" if badge(before) == badge(now) else f" Verdict: {badge(before)}, then {badge(now)}."
    )
    return f"Certified {certified(before)}, then {certified(now)}.{changed}"
