"""SIGTERM ends a command as Ctrl-C does: what is finished is kept, and ``--resume`` goes on."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM into KeyboardInterrupt while it lasts; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()

    def interrupt(number: int, _frame: object) -> None:
        if os.getpid() == owner:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)  # a forked worker is not the one to tell the tale
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def keep_exit_code() -> None:
    """Let the exit code of this process stand when it was interrupted; where it can be done.

    Python ends by SIGINT in place of any exit code if KeyboardInterrupt once left code that is
    spelled as text, as imports of dataclasses and scipy execute it, though all caught it later.
    What is blocked cannot end it.
    """
    if hasattr(signal, "pthread_sigmask"):
        atexit.register(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})
