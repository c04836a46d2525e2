"""The SARIF 2.1.0 report: findings at the line of the claim, for code scanning.

Only the parts of the format that an audit fills, as structs of our own. Fingerprints depend on
rule, case and promise, not on seeds or numbers, so that a platform recognises a finding again.
"""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

import msgspec

from audit.record import Change, Finding, Record
from audit.render import sentences as say
from audit.render.gating import Severity, gating, message, place, planned_or_none, printable
from audit.render.wording import one_line
from audit.rule import Rule
from audit.rules import RULES

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_STATES = {"new": "new", "known": "unchanged", "worse": "updated", "resolved": "absent"}
_ROOT = "%SRCROOT%"


class _Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A SARIF object; what has its default is left out."""


class Text(_Struct, frozen=True, kw_only=True):
    """A message."""

    text: str


class ArtifactLocation(_Struct, frozen=True, kw_only=True):
    """A file, relative to the root of the sources."""

    uri: str
    uri_base_id: str


class Region(_Struct, frozen=True, kw_only=True):
    """A line."""

    start_line: int


class PhysicalLocation(_Struct, frozen=True, kw_only=True):
    """A line of a file."""

    artifact_location: ArtifactLocation
    region: Region


class LogicalLocation(_Struct, frozen=True, kw_only=True):
    """A case by its name."""

    fully_qualified_name: str
    kind: str = ""


class Location(_Struct, frozen=True, kw_only=True):
    """Where a result is."""

    physical_location: PhysicalLocation | None = None
    logical_locations: tuple[LogicalLocation, ...] = ()


class Suppression(_Struct, frozen=True, kw_only=True):
    """An accepted result."""

    kind: str
    justification: str = ""


class Result(_Struct, frozen=True, kw_only=True):
    """A finding."""

    rule_id: str
    rule_index: int
    level: Severity
    message: Text
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str]
    baseline_state: str = ""
    suppressions: tuple[Suppression, ...] = ()


class ReportingDescriptor(_Struct, frozen=True, kw_only=True):
    """A rule."""

    id: str
    name: str
    short_description: Text
    full_description: Text
    help: Text


class Driver(_Struct, frozen=True, kw_only=True):
    """The tool."""

    name: str
    semantic_version: str
    rules: tuple[ReportingDescriptor, ...]


class Tool(_Struct, frozen=True, kw_only=True):
    """The tool that ran."""

    driver: Driver


class Invocation(_Struct, frozen=True, kw_only=True):
    """How it went."""

    execution_successful: bool
    exit_code: int


class AutomationDetails(_Struct, frozen=True, kw_only=True):
    """Which of a project's runs it was."""

    id: str


class Run(_Struct, frozen=True, kw_only=True):
    """One run."""

    tool: Tool
    invocations: tuple[Invocation, ...]
    automation_details: AutomationDetails
    column_kind: str
    results: tuple[Result, ...] | None = None
    properties: dict[str, Any] = {}


class Log(_Struct, frozen=True, kw_only=True):
    """A SARIF document."""

    schema: str = msgspec.field(name="$schema", default="")
    version: str
    runs: tuple[Run, ...]


def render_sarif(record: Record, *, width: int, color: bool) -> str:  # noqa: ARG001
    """The record as SARIF: one result per finding that a reader must know."""
    run = Run(
        tool=Tool(driver=_driver(record)),
        invocations=(_invocation(record),),
        automation_details=AutomationDetails(id=f"dpaudit/{record.plan.profile or 'run'}/"),
        column_kind="unicodeCodePoints",
        results=tuple(_result(record, finding, level) for finding, level in gating(record)),
        properties={
            "sentence": printable(record.summary.sentence),
            "falseAlarms": say.false_alarm_sentence(record),
            "record": record.digest(),
        },
    )
    log = Log(schema=SCHEMA, version="2.1.0", runs=(run,))
    return msgspec.json.format(msgspec.json.encode(log), indent=1).decode() + "\n"


def _driver(record: Record) -> Driver:
    rules = tuple(_descriptor(rule) for rule in RULES.values())
    return Driver(
        name="dpaudit", semantic_version=printable(record.environment.dpaudit), rules=rules
    )


def _descriptor(rule: type[Rule]) -> ReportingDescriptor:
    page = inspect.cleandoc(rule.__doc__ or "")
    name = "".join(word.capitalize() for word in rule.title.replace(",", "").split())
    return ReportingDescriptor(
        id=rule.code,
        name=name,
        short_description=Text(text=rule.title),
        full_description=Text(text=page.partition("\n\n")[0].replace("\n", " ")),
        help=Text(text=page),
    )


def _invocation(record: Record) -> Invocation:
    return Invocation(
        execution_successful=record.execution.complete, exit_code=record.summary.exit_code
    )


def _result(record: Record, finding: Finding, level: Severity) -> Result:
    changes = record.summary.changes
    change = (changes or {}).get(finding.case)
    accepted = change is not None and change.status == "known" and finding.rule == "DP001"
    reason = printable(change.note) if change else ""
    codes = list(RULES)
    return Result(
        rule_id=finding.rule,
        rule_index=codes.index(finding.rule) if finding.rule in codes else -1,
        level=level,
        message=Text(text=_escaped(message(finding))),
        locations=(_location(record, finding),),
        partial_fingerprints={"auditCase/v1": _fingerprint(record, finding)},
        baseline_state="" if changes is None else _state(change, level),
        suppressions=(Suppression(kind="external", justification=reason),) if accepted else (),
    )


def _state(change: Change | None, level: Severity) -> str:
    """The state that SARIF knows; all results have one or none has."""
    unlisted = "unchanged" if level == "note" else "new"
    return _STATES.get(change.status, "new") if change else unlisted


def _location(record: Record, finding: Finding) -> Location:
    where = place(record, finding.case)
    named = LogicalLocation(fully_qualified_name=printable(one_line(finding.case)), kind="member")
    if where is None:
        return Location(logical_locations=(named,))
    file = ArtifactLocation(uri=where[0], uri_base_id=_ROOT)
    physical = PhysicalLocation(artifact_location=file, region=Region(start_line=where[1]))
    return Location(physical_location=physical, logical_locations=(named,))


def _fingerprint(record: Record, finding: Finding) -> str:
    planned = planned_or_none(record, finding.case)
    promise = f"{planned.claim} of {planned.view}" if planned else ""
    parts = msgspec.json.encode([finding.rule, finding.case, promise])
    return hashlib.sha256(parts).hexdigest()


def _escaped(text: str) -> str:
    """Braces stand for placeholders in SARIF messages, and brackets may be links."""
    doubled = text.replace("{", "{{").replace("}", "}}")
    return doubled.replace("](", "] (")
