"""Workflow annotations of GitHub Actions: one command per finding, at the line of the claim."""

from __future__ import annotations

from audit.record import Finding, Record
from audit.render import sentences as say
from audit.render.gating import Severity, gating, message, place, printable, unexplained

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
_ORDER = list(_COMMANDS)


def render_github(record: Record, *, width: int, color: bool) -> str:  # noqa: ARG001
    """The record as ``::error file=...::`` lines, the gravest first, then the outcome.

    GitHub shows ten annotations of a kind per step; the rest stays in the log.
    """
    found = sorted(gating(record), key=lambda pair: _ORDER.index(pair[1]))
    lines = [_annotation(record, finding, severity) for finding, severity in found]
    lines += [
        _command("warning", {"title": "no verdict"}, f"{name}: planned, but without a result")
        for name in unexplained(record)
    ]
    outcome = f"{record.summary.sentence} {say.false_alarm_sentence(record)}"
    lines.append(_command("notice", {"title": "privacy audit"}, outcome))
    return "\n".join(lines) + "\n"


def _annotation(record: Record, finding: Finding, severity: Severity) -> str:
    where = place(record, finding.case)
    properties = {"file": where[0], "line": str(where[1])} if where else {}
    properties["title"] = say.title(finding)
    return _command(_COMMANDS[severity], properties, message(finding))


def _command(name: str, properties: dict[str, str], text: str) -> str:
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(printable(text))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
