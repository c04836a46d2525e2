"""What the formats for machines share: how a finding gates, where it points, what it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from audit.record import Finding, PlannedCase, Record
from audit.render import sentences as say
from audit.render.wording import clean, one_line
from audit.summary import Standing, standing_of

Severity = Literal["error", "warning", "note"]

_SEVERITIES: Mapping[Standing, Severity] = {
    "failed": "error",
    "unclear": "warning",
    "accepted": "note",
    "passed": "note",
}
_PLACE = re.compile(r"(?<![^\s:;,(])(?P<path>[\w.+-][\w./+-]*\.\w+):(?P<line>[1-9]\d*)\b")
_UNFIT = re.compile("[\ufffe\uffff]")


def gating(record: Record) -> list[tuple[Finding, Severity]]:
    """The findings worth telling, with the weight that their case gives them."""
    stands = standing_of(record)
    return [
        (finding, _SEVERITIES[stands.get(finding.case, "passed")])
        for finding in say.notable(record)
    ]


def unexplained(record: Record) -> list[str]:
    """Cases that keep the run from being clean and that no finding speaks of."""
    told = {finding.case for finding in say.notable(record)}
    return [
        name
        for name, how in standing_of(record).items()
        if how in ("failed", "unclear") and name not in told
    ]


def planned_or_none(record: Record, case: str) -> PlannedCase | None:
    """The plan of a case; None for one that only the baseline knows."""
    return next((planned for planned in record.plan.cases if planned.name == case), None)


def place(record: Record, case: str) -> tuple[str, int] | None:
    """File and line of the claim of a case, relative to the audited project, where known."""
    planned = planned_or_none(record, case)
    texts = [planned.claim.source] if planned else []
    for text in (*texts, record.execution.locations.get(case, "")):
        found = _PLACE.search(text)
        if found and ".." not in found["path"].split("/"):
            return found["path"], int(found["line"])
    return None


def message(finding: Finding) -> str:
    """Case, cause and command of a finding, as plain text."""
    command = f"\nReproduce: {one_line(finding.reproduce)}" if finding.reproduce else ""
    return printable(f"{one_line(finding.case, 200)}: {finding.message}{command}")


def printable(text: str) -> str:
    """Text without control characters and the two code points that XML forbids."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", clean(text))
