"""Configuration: ``[tool.audit]`` of a pyproject.toml, or a file of its own.

[tool.audit]
trials = 20000

[[tool.audit.case]]
target = "mypackage.pricing:noisy_count"
claim = "eps=1"
pairs = [[0.0, 1.0]]
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from audit.errors import UsageError


class CaseConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One ``[[tool.audit.case]]`` table.

    Attributes:
        target: Catalogue name, ``module:attr`` or ``exec:COMMAND``.
        name: Unique name; the target when omitted.
        claim: Such as ``eps=1,delta=1e-6``; the mechanism's own when omitted.
        view: Audited projection.
        pairs: List of ``[left, right]``.
        relation: Neighbour relation of these pairs.
        role: ``subject``, ``control`` or ``informational``.
        trials: Own budget.
        attacks: Names of attacks.
        column: Name of a policy's recorded actions: ``actions`` or ``prices``.
        group: How many records differ; the claim is what the stated one implies for so many.
        domain: Where to look for pairs: `audit.Domain` as a table.
    """

    target: str
    name: str = ""
    claim: str = ""
    view: str = ""
    pairs: list[tuple[Any, Any]] = []
    relation: str = ""
    role: str = ""
    trials: int = 0
    attacks: list[str] = []
    column: str = ""
    group: int = 1
    domain: dict[str, Any] | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The ``[tool.audit]`` table; every setting can also be given as a flag or in the environment.

    Attributes:
        trials: As ``--trials``.
        alpha: As ``--alpha``.
        seed: As ``--seed``.
        jobs: As ``--jobs``.
        memory: As ``--memory``.
        out: As ``--out``.
        baseline: As ``--baseline``.
        early_stop: As ``--early-stop / --no-early-stop``.
        threats: As ``--threat``.
        isolate: As ``--isolate``.
        memory_limit: As ``--memory-limit``.
        time_limit: As ``--time-limit``.
        profile: As ``--profile``.
        case: The cases.
    """

    trials: int | None = None
    alpha: float | None = None
    seed: int | None = None
    jobs: int | None = None
    memory: str | None = None
    out: str | None = None
    baseline: str | None = None
    early_stop: bool | None = None
    threats: list[str] | None = None
    isolate: bool | None = None
    memory_limit: str | None = None
    time_limit: float | None = None
    profile: str | None = None
    case: list[CaseConfig] = []

    def __post_init__(self) -> None:
        if "\0" in f"{self.out}{self.baseline}":
            raise ValueError("expected paths without NUL in out and baseline")

    def defaults(self) -> dict[str, Any]:
        """Settings that the file gives, by option name."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name != "case"}
        return {name: value for name, value in given.items() if value is not None}


def read_config(path: Path | None) -> Config:
    """Read a configuration.

    Args:
        path: A TOML file with ``[tool.audit]`` or with the same keys at its top; None looks for
            ``pyproject.toml`` in the current directory and accepts its absence.

    Raises:
        UsageError: For a missing or malformed file, an unknown key, or a value of a wrong type.
    """
    chosen = path or Path("pyproject.toml")
    if path is None and not chosen.exists():
        return Config()
    try:
        table = tomllib.loads(chosen.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{chosen}: cannot read the configuration: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{chosen}: expected TOML: {error}") from None
    tool = table.get("tool", {})
    if not isinstance(tool, dict):
        raise UsageError(f"{chosen}: expected a table [tool.audit], got tool = {tool!r}")
    inside = tool.get("audit")
    if inside is None and ("tool" in table or chosen.name == "pyproject.toml"):
        if path is not None:
            found = ", ".join(f"[tool.{name}]" for name in tool) or "none below [tool]"
            raise UsageError(f"{path}: expected a table [tool.audit], got {found}")
        inside = {}
    elif inside is None:
        inside = table
    try:
        return msgspec.convert(inside, Config)
    except msgspec.ValidationError as error:
        where = str(error).replace("`$", "`tool.audit")
        raise UsageError(f"{chosen}: {where}. See 'python -m audit schema config'") from None
