"""One run per directory: two at once would mix their block logs and overwrite their records."""

from __future__ import annotations

import datetime as dt
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from audit.errors import UsageError
from audit.files import write_atomically

LOCK, HOLDER = ".lock", ".holder"


@contextmanager
def sole_user(folder: Path) -> Iterator[None]:
    """Hold a directory for this process.

    The lock is the operating system's: it ends with the process that holds it, however that ends,
    so the lock of a dead process is taken over at once. Who holds it stands in a file beside it.

    Args:
        folder: The directory; made when missing.

    Raises:
        UsageError: When another process holds it.
    """
    from filelock import FileLock, Timeout

    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(
            f"{folder}: {_holder(folder)} is writing here; wait for it, or give another directory "
            "with --out"
        ) from None
    try:
        write_atomically(folder / HOLDER, _myself().encode())
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that somebody is just reading
            (folder / HOLDER).unlink(missing_ok=True)
        if made:
            _remove_if_unused(folder)
        lock.release()


def _remove_if_unused(folder: Path) -> None:
    """A run that was refused leaves nothing behind; the lock file goes while it is still held."""
    if [path.name for path in folder.iterdir()] == [LOCK]:
        with suppress(OSError):
            (folder / LOCK).unlink()
            folder.rmdir()


def _myself() -> str:
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()}, since {now},"


def _holder(folder: Path) -> str:
    try:
        return (folder / HOLDER).read_text(encoding="utf-8")
    except OSError:
        return "another run"
