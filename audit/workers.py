"""Where a run is played: here, in worker processes, or on a cluster; no record depends on it."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from pickle import PicklingError
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from audit.cluster import ENGINES, lost
from audit.errors import MechanismError, UsageError
from audit.footprint import Footprint, peak
from audit.threads import one_thread_from_now

_WORTH_A_POOL = 2.0
"""Seconds of work below which starting worker processes costs more than it saves: on two cores they
halve the rest, after most of a second in which they import."""
_TASKS_AT_ONCE = 8

Progress = Callable[[str, float], None]


def _silent(_case: str, _share: float) -> None:
    return None


@dataclass(frozen=True)
class Workers:
    """Where the run happens; none of it can change a result.

    Attributes:
        jobs: Worker processes; -1 for one per core.
        backend: A joblib backend.
        log: File of finished blocks; None keeps them in memory only.
        resume: Use the blocks that the log already holds.
        progress: Called with a case and its finished share.
        footprint: What all processes may take; fewer of them work where it is little.

    Raises:
        UsageError: For a number of jobs or a backend that joblib does not know, or a limit of
            memory for processes that are not of this machine.
    """

    jobs: int = 1
    backend: str = "loky"
    log: Path | None = None
    resume: bool = False
    progress: Progress = _silent
    footprint: Footprint = field(default_factory=Footprint)

    def __post_init__(self) -> None:
        try:
            self._pool(self.jobs)
            effective_n_jobs(self.jobs)
        except (TypeError, ValueError, ImportError) as error:
            raise UsageError(f"jobs {self.jobs}, backend {self.backend!r}: {error}") from None
        if self.footprint.limited and self.backend in ENGINES:
            raise UsageError(
                f"--memory bounds the processes of this machine, and --backend {self.backend} has "
                "workers elsewhere. Drop it, and give those a limit of their own, as in "
                "'dask worker --memory-limit 1GiB'"
            )

    def map(self, tasks: Sequence[Any], seconds: float = math.inf) -> Iterator[Any]:
        """Results of joblib tasks, as they are ready.

        Args:
            tasks: What to do.
            seconds: About how long that takes one process.

        Raises:
            UsageError: When not even one task at a time keeps within the limit of memory.
        """
        if self.stays(len(tasks), seconds):
            return self.here(tasks)
        if self.footprint.limited:
            return self._within(tasks)
        return _guarded(self._pool(self.jobs), tasks)

    def stays(self, tasks: int, seconds: float = math.inf) -> bool:
        """Whether `map` plays so many tasks in this process, one after the other."""
        small = seconds < _WORTH_A_POOL and self.backend not in ENGINES
        return self.jobs == 1 or tasks <= 1 or small

    def here(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """Results of joblib tasks that are played in this process, one after the other.

        Raises:
            UsageError: When this process takes more than the limit of memory.
        """
        self.footprint.check()
        for function, args, kwargs in tasks:
            yield function(*args, **kwargs)
            self.footprint.check()

    def _within(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """The first task here, to see what it takes; the others on as many workers as fit."""
        yield from self.here(tasks[:1])
        left = tasks[1:]
        while left:
            fitting = self.footprint.workers(effective_n_jobs(self.jobs))
            if fitting == 1:
                yield from self.here(left)
                return
            some, left = left[: _TASKS_AT_ONCE * fitting], left[_TASKS_AT_ONCE * fitting :]
            for result, taken in _guarded(self._pool(fitting), list(map(_measured, some))):
                self.footprint.saw(taken)
                yield result

    def _pool(self, jobs: int) -> Any:
        quiet = {"initializer": _settle} if self.backend == "loky" else {}
        how = "list" if self.backend == "ray" else "generator_unordered"  # ray cannot stream
        backend = None if self.backend in ENGINES else self.backend  # those were joined before
        return Parallel(jobs, backend=backend, return_as=how, batch_size=1, **quiet)


def _measured(task: Any) -> Any:
    return delayed(_and_peak)(*task)


def _and_peak(function: Any, args: Any, kwargs: Any) -> tuple[Any, int]:
    """What a task gives, and what its process took."""
    return function(*args, **kwargs), peak()


def _settle() -> None:
    """A terminal sends Ctrl-C to the workers too; the parent alone ends the run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    one_thread_from_now()


def _guarded(pool: Any, tasks: Sequence[Any]) -> Iterator[Any]:
    """Results of a pool; a worker that dies is no verdict, with a remedy."""
    try:
        yield from pool(tasks)
    except Exception as error:
        if not isinstance(error, BrokenProcessPool | PicklingError) and not lost(error):
            raise
        raise MechanismError(
            f"a worker process failed ({type(error).__name__}): the mechanism ended its process, "
            "ran out of memory, cannot be pickled, or the cluster went away. Try --isolate or "
            "--jobs 1; finished blocks are kept for --resume"
        ) from error
