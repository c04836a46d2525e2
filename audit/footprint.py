"""How much memory a run takes, and how many workers fit into what it may take.

Nothing is estimated: a process reports the largest resident memory that it ever had, and a worker
is put at what the largest of them took. Only the number of workers follows from it, so a limit
cannot change a record.
"""

from __future__ import annotations

import contextlib
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from audit.errors import UsageError
from audit.limits import parse_size

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")


@dataclass
class Footprint:
    """What the processes of a run may take together, and what they were seen to take.

    Attributes:
        limit: Bytes of resident memory; infinite for no limit.
        worker: The most that any worker process took so far, bytes.
    """

    limit: float = math.inf
    worker: int = 0

    @classmethod
    def within(cls, size: str) -> Footprint:
        """Of a run that may take `size`, such as ``1GiB``; empty for no limit.

        Raises:
            UsageError: For another form, or where a process cannot be measured.
        """
        if not size:
            return cls()
        limit = parse_size(size, "--memory")
        if not peak():
            raise UsageError("--memory: this system does not tell what a process takes; drop it")
        with contextlib.suppress(OSError):  # what came before this run is not of this run
            _FORGET.write_text("5", encoding="utf-8", newline="\n")
        return cls(limit)

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return math.isfinite(self.limit)

    def saw(self, taken: int) -> None:
        """Take note of what a worker took."""
        self.worker = max(self.worker, taken)

    def workers(self, wanted: int) -> int:
        """How many of the workers fit beside this process; 1 is this process itself.

        Until one was seen, a worker is put at what this process took.
        """
        if not self.limited:
            return wanted
        own = peak()
        return max(1, min(wanted, int((self.limit - own) // max(self.worker, own))))

    def check(self) -> None:
        """Refuse to go on when this process alone takes too much.

        Raises:
            UsageError: With what it took.
        """
        own = peak() if self.limited else 0
        if own > self.limit:
            raise UsageError(
                f"--memory {self.limit / 2**20:.0f}M: one process that plays one block at a time "
                f"already took {own / 2**20:.0f}M. Give it more, audit fewer cases at once, or "
                "hand out less a trial; finished blocks are kept for --resume"
            )


def peak() -> int:
    """Largest resident memory of this process so far, bytes; 0 where it is not known."""
    try:
        lines = _STATUS.read_text(encoding="utf-8").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return _peak_elsewhere()


def _peak_elsewhere() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
