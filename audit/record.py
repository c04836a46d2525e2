"""The record: the one product of a run, of which every report, gate and exit code is a function.

A record is data, never code. It is one JSON document, written atomically, with finite numbers
only. Everything outside `Execution` is the same bit for bit for the same seed and plan, whatever
the number of jobs, the order of the blocks or a resume; `Record.digest` covers just that part.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from audit.change import Change as Change
from audit.errors import UsageError
from audit.execution import Environment, Execution
from audit.files import write_atomically
from audit.planned import PairSummary as PairSummary
from audit.planned import Plan as Plan
from audit.planned import PlannedCase as PlannedCase
from audit.planned import Role as Role
from audit.planned import Shares as Shares
from audit.result import CONVICTING as CONVICTING
from audit.result import CaseResult as CaseResult
from audit.result import Choice as Choice
from audit.result import Finding as Finding
from audit.result import Ladder as Ladder
from audit.result import Test as Test
from audit.result import Tried as Tried
from audit.result import Verdict as Verdict
from audit.result import shown_in_notebook

SCHEMA_VERSION = 1


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The run in one place.

    Attributes:
        exit_code: 0 clean, 1 refuted or worse than the baseline, 3 no verdict.
        sentence: The outcome in one sentence; it never says that anything *is private*.
        verdicts: Number of cases per verdict.
        findings: All findings, cases in order.
        changes: Per case what changed since the baseline; None without a baseline.
    """

    exit_code: Annotated[int, msgspec.Meta(ge=0, le=3)]
    sentence: str
    verdicts: dict[str, int]
    findings: tuple[Finding, ...] = ()
    changes: dict[str, Change] | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        schema_version: Version of this document's layout.
        plan: What was decided beforehand.
        environment: What it depends on.
        results: One per finished case, in plan order.
        summary: The run in one place.
        execution: How it went.

    Raises:
        ValueError: When the results do not fit the plan.
    """

    schema_version: int = SCHEMA_VERSION
    plan: Plan
    environment: Environment
    results: tuple[CaseResult, ...]
    summary: Summary
    execution: Execution

    def __post_init__(self) -> None:
        planned = {case.name: case for case in self.plan.cases}
        names = [result.name for result in self.results]
        if strays := sorted(set(names) - planned.keys()):
            raise ValueError(f"expected every result to be planned, got {strays[0][:100]!r}")
        if len(set(names)) < len(names):
            raise ValueError("expected one result per case")
        for result in self.results:
            result.require_fit(planned[result.name])

    def digest(self) -> str:
        """SHA-256 of everything but `execution`."""
        body = msgspec.to_builtins(self)
        del body["execution"]
        return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()

    def _repr_html_(self) -> str:
        return shown_in_notebook("record_html", self)

    def planned(self, name: str) -> PlannedCase:
        """The plan of a case.

        Raises:
            UsageError: When the plan has no such case.
        """
        for case in self.plan.cases:
            if case.name == name:
                return case
        raise UsageError(f"case {name!r} is not in the plan of this record")


def write_record(record: Record, path: str | Path) -> None:
    """Write a record; a reader sees the old file or the new one, never half of it."""
    write_atomically(Path(path), encode(record))


def encode(record: Record) -> bytes:
    """The record as JSON, one line per case so that two records can be compared line by line."""
    lines = [msgspec.json.encode(result) for result in record.results]
    rest = msgspec.to_builtins(msgspec.structs.replace(record, results=()))
    del rest["results"]
    head = msgspec.json.encode(rest)[:-1]
    return head + b',\n"results":[\n' + b",\n".join(lines) + b"\n]}\n"


def read_record(path: str | Path) -> Record:
    """Read a record.

    Raises:
        UsageError: When the file is missing, is no record, or is of another schema version.
    """
    record: Record = decode(Path(path), Record, "record")
    return record


def decode(path: Path, kind: Any, what: str) -> Any:
    """Read a versioned JSON document of type `kind`.

    Raises:
        UsageError: When the file is missing, not of that form, or of another schema version.
    """
    try:
        raw = msgspec.json.decode(path.read_bytes())
        version = raw.get("schema_version") if isinstance(raw, dict) else None
    except OSError as error:
        raise UsageError(f"{path}: cannot read the {what}: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: expected a {what} in JSON: {error}") from None
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        remedy = "update dpaudit" if newer else "write it again with this version of dpaudit"
        raise UsageError(
            f"{path}: expected a {what} of schema version {SCHEMA_VERSION}, got {version!r}; "
            f"{remedy}"
        )
    try:
        return msgspec.convert(raw, kind)
    except (msgspec.ValidationError, UsageError) as error:
        raise UsageError(f"{path}: not a valid {what}: {error}") from None


def finite(value: float) -> float | None:
    """The number, or None when it is infinite or NaN: records hold finite numbers only."""
    return float(value) if np.isfinite(value) else None
