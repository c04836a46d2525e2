"""Where and when a record was made; the digest covers none of the execution."""

from __future__ import annotations

import msgspec


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What the record depends on beside the plan.

    Attributes:
        dpaudit: Version of the toolkit.
        python: Version of Python.
        packages: Versions of the numerical libraries.
    """

    dpaudit: str
    python: str
    packages: dict[str, str]


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """How the run went; no result depends on it.

    Attributes:
        started: UTC time, ISO 8601.
        seconds: Wall time of the run.
        jobs: Worker processes.
        case_seconds: Busy seconds per case.
        complete: False for a partial record of an interrupted run.
        locations: Per case the file and line of its claim, where they are known.
    """

    started: str
    seconds: float
    jobs: int
    case_seconds: dict[str, float] = {}
    complete: bool = True
    locations: dict[str, str] = {}
