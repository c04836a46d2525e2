"""The block log: finished blocks on disk, appended as they finish, so that a crash loses none.

One JSON line per finished block, keyed by the digest of the plan and by the frozen choice; a
torn last line is ignored. Lines of another plan or choice are left alone and never counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from audit.errors import UsageError
from audit.evidence import Counts, Evidence
from audit.files import named
from audit.record import PlannedCase


class _Line(msgspec.Struct):
    plan: str
    case: str
    choice: str
    bins: int
    block: int
    rows: list[list[int]]


class BlockLog:
    """Append-only log of finished blocks.

    Args:
        path: The file; None keeps nothing.
        plan: Digest of the plan.
        resume: Keep and use what the file already holds; otherwise it is started anew.
    """

    def __init__(self, path: Path | None, plan: str, *, resume: bool) -> None:
        self._path, self._plan, self._resume = path, plan, resume
        self._stream: IO[bytes] | None = None
        known = _read(path) if path is not None and resume and path.exists() else []
        self._lines = [line for line in known if line.plan == plan]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream and self._path:
            with named(self._path):
                self._stream.close()

    def blocks(self, planned: PlannedCase, choice: str, bins: int) -> dict[int, Counts]:
        """Blocks of a case that were already finished, whole, under the same choice."""
        sizes, found = dict(enumerate(planned.blocks)), {}
        for line in self._lines:
            if (line.case, line.choice, line.bins) == (planned.name, choice, bins):
                counts = _counts(line)
                if counts is not None and counts.sum() == sizes.get(line.block):
                    found[line.block] = counts
        return found

    def append(self, case: str, choice: str, counts: Mapping[int, Counts]) -> None:
        """Write finished blocks and hand them to the operating system."""
        if self._path is None:
            return
        with named(self._path):
            if self._stream is None:
                self._stream = self._open(self._path)
            for block, table in counts.items():
                evidence = Evidence(table.shape[1], {block: table})
                rows = evidence.to_rows()[str(block)]
                line = _Line(self._plan, case, choice, table.shape[1], block, rows)
                self._stream.write(msgspec.json.encode(line) + b"\n")
            self._stream.flush()

    def _open(self, path: Path) -> IO[bytes]:
        """The file, with its first write still to come: a refused run leaves nothing behind."""
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("ab" if self._resume else "wb")
        if self._resume:
            stream.write(b"\n")  # a torn last line must not swallow the next one
        return stream


def _counts(line: _Line) -> Counts | None:
    """The counts of a line; None when it was tampered with."""
    try:
        return Evidence.from_rows(line.bins, {str(line.block): line.rows}).blocks[line.block]
    except UsageError:
        return None


def _read(path: Path) -> list[_Line]:
    lines = []
    for raw in path.read_bytes().splitlines():
        try:
            lines.append(msgspec.json.decode(raw, type=_Line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return lines
