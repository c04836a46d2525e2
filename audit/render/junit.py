"""The JUnit report: a test case per audited case, for the test tabs of CI systems.

A failure is a refuted claim or more leakage than the baseline (exit code 1), an error is a case
without a verdict (exit code 3), a skipped test is an accepted refutation with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audit.record import CaseResult, Finding, Record
from audit.render import sentences as say
from audit.render.gating import message, place, printable
from audit.render.wording import one_line
from audit.summary import standing_of

if TYPE_CHECKING:
    from junitparser import TestCase

_LONGEST = 300


def render_junit(record: Record, *, width: int, color: bool) -> str:  # noqa: ARG001
    """The record as JUnit XML: failures and errors agree with the exit code of the run."""
    from xml.etree import ElementTree as ET

    from junitparser import JUnitXml, TestSuite

    suite = TestSuite("privacy audit")
    for name, value in say.settings(record):
        suite.add_property(name, printable(value))
    suite.add_property("False alarms", printable(say.false_alarm_sentence(record)))
    for case in _cases(record):
        suite.add_testcase(case)
    suite.timestamp = printable(record.execution.started)
    report: Any = JUnitXml()
    report.add_testsuite(suite)
    report.update_statistics()
    tree = ET.fromstring(report.tostring())  # noqa: S314  (written just now)
    ET.indent(tree)
    return ET.tostring(tree, encoding="unicode", xml_declaration=True) + "\n"


def _cases(record: Record) -> list[TestCase]:
    results = {result.name: result for result in record.results}
    findings: dict[str, list[Finding]] = {}
    for finding in record.summary.findings:
        findings.setdefault(finding.case, []).append(finding)
    return [
        _case(record, name, how, results.get(name), findings.get(name, []))
        for name, how in standing_of(record).items()
    ]


def _case(
    record: Record, name: str, how: str, result: CaseResult | None, findings: list[Finding]
) -> TestCase:
    from junitparser import Attr, TestCase

    class Located(TestCase):
        """A test case with the place of its claim."""

        file = Attr()
        line = Attr()

    family = name.rpartition("/")[0] or name.partition(":")[0]
    case = Located(printable(one_line(name, _LONGEST)), f"audit.{printable(one_line(family, 100))}")
    case.time = record.execution.case_seconds.get(name, 0.0)
    where = place(record, name)
    if where:
        case.file, case.line = where[0], str(where[1])
    case.system_out = printable(say.verdict_sentence(result)) if result else "no result"
    _settle(case, record, name, how, findings)
    return case


def _settle(case: TestCase, record: Record, name: str, how: str, findings: list[Finding]) -> None:
    from junitparser import Error, Failure, Skipped

    if how == "accepted":
        change = (record.summary.changes or {})[name]
        case.result = [Skipped(printable(one_line(f"accepted: {change.note}", _LONGEST)))]
    elif how in ("failed", "unclear"):
        kind = Failure if how == "failed" else Error
        first = findings[0].message if findings else "planned, but without a result"
        said = kind(printable(one_line(first, _LONGEST)), findings[0].rule if findings else "")
        said.text = "\n\n".join(message(finding) for finding in findings)
        case.result = [said]
