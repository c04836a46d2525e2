"""The HTML report: one self-contained file without scripts, for screens, paper and the dark."""

from __future__ import annotations

from collections.abc import Iterator

from audit.record import CaseResult, Finding, PlannedCase, Record
from audit.render import curves, timeline
from audit.render.picture import Pictures, drawing
from audit.render.reach import reach
from audit.render.templating import environment, findings_by_case, for_html, markup

Section = tuple[int, PlannedCase, CaseResult, list[Finding], dict[str, object]]


def render_html(record: Record, *, width: int, color: bool) -> str:  # noqa: ARG001
    """The record as a page: the outcome, all cases, a section per case, a glossary."""
    template = environment(for_html).get_template("report.html")
    with drawing():
        return template.render(
            record=record,
            sections=list(_sections(record)),
            strays=_strays(record),
        )


def _sections(record: Record) -> Iterator[Section]:
    pictures, findings = Pictures(), findings_by_case(record)
    planned = {case.name: case for case in record.plan.cases}
    for index, result in enumerate(record.results, start=1):
        drawn = _drawn(pictures, planned[result.name], result)
        yield index, planned[result.name], result, findings.get(result.name, []), drawn


def _drawn(pictures: Pictures, planned: PlannedCase, result: CaseResult) -> dict[str, object]:
    shown: dict[str, object] = {
        "reach": markup(reach(result)),
        "growth": markup(timeline.growth(result, planned)),
        "sequences": [
            (rounds, markup(both), markup(gaps), timeline.told(rounds))
            for rounds in result.rounds
            for both, gaps in [(timeline.sequence(rounds), timeline.leak(rounds))]
        ],
    }
    if result.choice and result.trials:
        shown["trade_off"] = markup(pictures.trade_off(result))
    if result.log_wealth:
        shown["wealth"] = markup(pictures.wealth(result, curves.wealth_target(planned, result)))
    return shown


def _strays(record: Record) -> list[Finding]:
    known = {result.name for result in record.results}
    return [finding for finding in record.summary.findings if finding.case not in known]
