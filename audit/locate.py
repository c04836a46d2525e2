"""Where the claim of a case stands, so that a report can point at it: a file and a line.

Known are the lines of the user's own project: of the configuration that states the claim, else of
the code that promises it. Neither is part of a result, so it is kept with `Execution`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from audit.plan import Request
from audit.record import Record

CONFIGURED = "the configuration"


def located(record: Record, requests: Sequence[Request], config: Path | None) -> Record:
    """The record with the places of its claims.

    Args:
        record: The record.
        requests: What was asked for.
        config: The configuration file; None for ``pyproject.toml``, if there is one.
    """
    found = {
        request.name: _place(request, config or Path("pyproject.toml")) for request in requests
    }
    places = {name: place for name, place in found.items() if place}
    execution = msgspec.structs.replace(record.execution, locations=places)
    return msgspec.structs.replace(record, execution=execution)


def _place(request: Request, config: Path) -> str:
    code = _code_of(request.mechanism)
    in_file = _in_file(config, request.target)
    if request.claim.source == CONFIGURED:
        return in_file
    return _in_code(code) or in_file


def _in_file(config: Path, target: str) -> str:
    """The line of a configuration that names the target."""
    try:
        lines = config.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    numbers = [i for i, line in enumerate(lines, start=1) if f'"{target}"' in line]
    return _relative(config, numbers[0]) if numbers else ""


def _code_of(mechanism: Any) -> Any:
    """What the user wrote: the function, the policy, or the class that states the claim."""
    inner = getattr(mechanism, "mechanism", mechanism)
    written = getattr(inner, "function", None) or getattr(inner, "policy", None)
    if written is not None:
        return written
    claim = inspect.getattr_static(type(inner), "claim", None)
    return getattr(claim, "fget", None) or type(inner)


def _in_code(code: Any) -> str:
    try:
        file, (_, line) = inspect.getsourcefile(code), inspect.getsourcelines(code)
    except (TypeError, OSError):
        return ""
    return _relative(Path(file), max(1, line)) if file else ""


def _relative(file: Path, line: int) -> str:
    """``file:line`` seen from the current directory; empty for what is not the user's own."""
    here = Path.cwd().resolve()
    full = file.resolve()
    installed = "site-packages" in full.parts
    if installed or not full.is_relative_to(here):
        return ""
    return f"{full.relative_to(here).as_posix()}:{line}"
