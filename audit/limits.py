"""Limits of the processes in which implementations are played apart from the audit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from audit.errors import UsageError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
SECONDS = 300.0
MEMORY = "4G"


@dataclass(frozen=True)
class Limits:
    """How an implementation is kept apart; none of it changes what a sound one returns.

    Attributes:
        isolate: Play Python targets in a process of their own.
        memory: What such a process may take beyond its imports, such as ``512M`` or ``4G``.
        seconds: Time for one answer: one block of trials, in seconds.

    Raises:
        UsageError: For a size or a time that makes no sense.
    """

    isolate: bool = False
    memory: str = MEMORY
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.seconds < 1e6:
            raise UsageError(f"time limit: expected seconds in (0, 1e6), got {self.seconds:g}")
        if self.bytes < 2**20:
            raise UsageError(f"memory limit: expected at least 1M, got {self.memory!r}")

    @property
    def bytes(self) -> int:
        """The memory limit in bytes."""
        return parse_size(self.memory, "memory limit")


def parse_size(text: str, what: str) -> int:
    """A size in bytes, such as ``512M``, ``4G`` or ``1GiB``.

    Raises:
        UsageError: For another form; `what` names the setting.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{what}: expected a size such as 512M or 4G, got {text!r}")
    return int(float(found[1]) * 1024 ** _POWERS[found[2].upper()])
