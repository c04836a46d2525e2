"""Playing many mutated inputs, with a watchdog, a memory limit, and a look at what files appear."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest import mock

from tests.fuzz.targets import REFUSALS, Target

CPU_SECONDS, SECONDS = 15.0, 120.0
MEMORY = 6 * 2**30


class HangError(BaseException):
    """An input took too long."""


@dataclass
class Told:
    """How the inputs of a target ended."""

    accepted: int = 0
    refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def found(self) -> int:
        """Undocumented endings."""
        return self.kinds.total()


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """An own empty folder, no child processes, bounded memory, and an alarm for hangs."""

    import resource

    def late(*_: object) -> None:
        raise HangError

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "no processes here")

    old, here = resource.getrlimit(resource.RLIMIT_AS), Path.cwd()
    before = [signal.signal(number, late) for number in (signal.SIGALRM, signal.SIGPROF)]
    with tempfile.TemporaryDirectory() as top, mock.patch.object(subprocess, "Popen", refuse):
        inside = Path(top, "inside")
        inside.mkdir()
        os.chdir(inside)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, old[1]))
        try:
            yield
        finally:
            os.chdir(here)
            resource.setrlimit(resource.RLIMIT_AS, old)
            signal.signal(signal.SIGALRM, before[0])
            signal.signal(signal.SIGPROF, before[1])


def fuzz(name: str, target: Target, count: int, seed: int, keep: Path) -> Told:
    """Play inputs 0 to `count` of a target; the first of each kind of find is kept as a file."""
    told = Told()
    for number in range(count):
        data = target.make(Random(f"{seed}/{name}/{number}"))
        how = ending(target, data)
        told.accepted += how == "accepted"
        told.refused += how == "refused"
        if how not in ("accepted", "refused"):
            kind = [line for line in how.splitlines() if "Error" in line][-1:] or [how[-80:]]
            told.kinds[kind[0]] += 1
            if told.kinds[kind[0]] == 1:
                _keep(keep / name.replace(" ", "_"), data, how)
    return told


def _keep(folder: Path, data: bytes, how: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    mark = hashlib.sha256(data).hexdigest()[:12]
    (folder / mark).write_bytes(data)
    (folder / f"{mark}.txt").write_text(how, encoding="utf-8", errors="replace")


def ending(target: Target, data: bytes) -> str:
    """``accepted``, ``refused``, or the traceback of what was not documented."""
    _empty()
    _watch(SECONDS, CPU_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            target.play(data)
        return "accepted"
    except REFUSALS as error:
        message = str(error)
        return "refused" if message.strip() else "refused without a word"
    except (Exception, HangError):
        return traceback.format_exc()
    finally:
        _watch(0, 0)
        here = Path.cwd()
        assert list(here.parent.iterdir()) == [here], "a file outside of the folder"


def _watch(seconds: float, cpu_seconds: float) -> None:
    """A hang burns time or only lets it pass; a busy machine does the latter too."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def _empty() -> None:
    for entry in os.scandir():
        shutil.rmtree(entry) if entry.is_dir() else Path(entry).unlink()
