"""Playing many mutated inputs, with a watchdog, a memory limit, and a look at what files appear."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
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
_SHOWN = 3


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
    """Play inputs 0 to `count` of a target; undocumented endings are printed and kept."""
    told, keep = Told(), keep if keep.is_absolute() else Path(os.environ.get("PWD", "."), keep)
    for number in range(count):
        data = target.make(Random(f"{seed}/{name}/{number}"))
        how = ending(target, data)
        if how == "accepted":
            told.accepted += 1
        elif how == "refused":
            told.refused += 1
        else:
            kind = how.strip().splitlines()[-1][:160]
            told.kinds[kind] += 1
            if told.kinds[kind] == 1:
                keep.mkdir(parents=True, exist_ok=True)
                mark = hashlib.sha256(data).hexdigest()[:12]
                (keep / f"{name.replace(' ', '_')}-{mark}").write_bytes(data)
                (keep / f"{name.replace(' ', '_')}-{mark}.txt").write_text(how, errors="replace")
    return told


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
        assert os.listdir("..") == [Path.cwd().name], "a file outside of the folder"


def _watch(seconds: float, cpu_seconds: float) -> None:
    """A hang burns time or only lets it pass; a busy machine does the latter too."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def _empty() -> None:
    for entry in os.scandir():
        shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
