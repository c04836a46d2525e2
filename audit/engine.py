"""The engine: play the plan, block by block, on any number of workers.

Cases scout in parallel; then blocks testify in waves that grow, over all cases that are still
open. Blocks are judged in block order on the shortest prefix that decides, so neither the number
of workers nor the order in which they answer can change a record. Every finished block is in the
log before it counts: an interrupted run loses none.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import platform
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from pickle import PicklingError
from typing import Any

import msgspec
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from audit.blocklog import BlockLog
from audit.cluster import ENGINES, lost
from audit.errors import MechanismError, UsageError
from audit.evidence import Counts, Evidence
from audit.execution import Environment, Execution
from audit.fingerprint import fingerprint
from audit.freeze import Frozen
from audit.judge import crossing, failed, judge
from audit.plan import Case
from audit.record import CaseResult, Plan, Record
from audit.scout import Scouted, scout_case
from audit.streams import Phase, Side, stream
from audit.summary import summarise

WAVES = (64, 256, 1024, 4096)
_BLOCKS_PER_TASK = 4
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")

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

    Raises:
        UsageError: For a number of jobs or a backend that joblib does not know.
    """

    jobs: int = 1
    backend: str = "loky"
    log: Path | None = None
    resume: bool = False
    progress: Progress = _silent

    def __post_init__(self) -> None:
        try:
            self._pool()
            effective_n_jobs(self.jobs)
        except (TypeError, ValueError, ImportError) as error:
            raise UsageError(f"jobs {self.jobs}, backend {self.backend!r}: {error}") from None

    def map(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """Results of joblib tasks, as they are ready."""
        if self.jobs == 1 or len(tasks) <= 1:
            return (function(*args, **kwargs) for function, args, kwargs in tasks)
        return _guarded(self._pool(), tasks)

    def _pool(self) -> Any:
        quiet = {"initializer": _ignore_ctrl_c} if self.backend == "loky" else {}
        how = "list" if self.backend == "ray" else "generator_unordered"  # ray cannot stream
        backend = None if self.backend in ENGINES else self.backend  # those were joined before
        return Parallel(self.jobs, backend=backend, return_as=how, **quiet)


def _ignore_ctrl_c() -> None:
    """A terminal sends Ctrl-C to the workers too; the parent alone ends the run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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


@dataclass
class _Trial:
    """A case on trial: its scouted choice and the evidence so far."""

    case: Case
    scouted: Scouted
    evidence: Evidence
    seconds: float
    decided: bool = False
    key: str = field(default="")
    failure: str = ""

    def missing(self, up_to: int) -> list[int]:
        """Blocks still to be played, of those that start before trial number `up_to`."""
        starts = np.cumsum((0, *self.case.planned.blocks[:-1]))
        wanted = np.flatnonzero(starts < up_to)
        return [int(block) for block in wanted if int(block) not in self.evidence.blocks]

    @property
    def share(self) -> float:
        """Finished share of the blocks."""
        return len(self.evidence.blocks) / len(self.case.planned.blocks)

    def tasks(self, position: int, up_to: int, seed: int) -> Iterator[Any]:
        """Joblib tasks that play the missing blocks of a wave."""
        planned, blocks = self.case.planned, self.missing(up_to)
        for start in range(0, len(blocks), _BLOCKS_PER_TASK):
            some = blocks[start : start + _BLOCKS_PER_TASK]
            sizes = [planned.blocks[block] for block in some]
            yield delayed(_play_safely)(
                position, self.scouted.frozen, planned.name, seed, some, sizes
            )


def run(plan: Plan, cases: Sequence[Case], workers: Workers | None = None) -> Record:
    """Play a plan.

    Args:
        plan: The plan.
        cases: Its cases, with the objects that play them.
        workers: Where to play it.

    Returns:
        The record. After Ctrl-C it is partial: it holds the decided cases, says that it is not
        complete, and the finished blocks of the others are in the log.
    """
    workers = workers or Workers()
    if plan.threats.get("duration"):  # run times of several processes disturb each other
        workers = replace(workers, jobs=1)
    started, clock = dt.datetime.now(dt.UTC), time.perf_counter()
    session = _Session(plan, cases, workers)
    complete = session.play()
    for trial in session.trials:
        planned = trial.case.planned
        if trial.failure:
            session.results[planned.name] = failed(planned, trial.failure)
        elif trial.decided:
            session.results[planned.name] = _judge(plan, trial)
    ordered = tuple(
        session.results[c.planned.name] for c in cases if c.planned.name in session.results
    )
    return Record(
        plan=plan,
        environment=environment(),
        results=ordered,
        summary=summarise(plan, ordered),
        execution=Execution(
            started=started.isoformat(timespec="seconds"),
            seconds=round(max(0.0, time.perf_counter() - clock), 3),
            jobs=effective_n_jobs(workers.jobs),
            case_seconds={
                t.case.planned.name: round(max(0.0, t.seconds), 3) for t in session.trials
            },
            complete=complete,
        ),
    )


@dataclass
class _Session:
    """One run under way."""

    plan: Plan
    cases: Sequence[Case]
    workers: Workers
    trials: list[_Trial] = field(default_factory=list)
    results: dict[str, CaseResult] = field(default_factory=dict)

    def play(self) -> bool:
        """Scout, then testify in growing waves; False when interrupted."""
        most = max(sum(case.planned.blocks) for case in self.cases)
        try:
            with BlockLog(self.workers.log, self.plan.digest(), resume=self.workers.resume) as log:
                self._scout(log)
                for wave in (*WAVES, most):
                    self._testify(wave, log)
        except KeyboardInterrupt:
            return False
        return True

    def _scout(self, log: BlockLog) -> None:
        tasks = [delayed(_scout_safely)(i, case, self.plan) for i, case in enumerate(self.cases)]
        found = {}
        for position, outcome in self.workers.map(tasks):
            planned = self.cases[position].planned
            if isinstance(outcome, str):
                self.results[planned.name] = failed(planned, outcome)
                self.workers.progress(planned.name, 1.0)
                continue
            self.workers.progress(planned.name, 0.0)
            found[position] = self._open(self.cases[position], outcome, log)
        self.trials = [found[position] for position in sorted(found)]

    def _open(self, case: Case, scouted: Scouted, log: BlockLog) -> _Trial:
        choice = scouted.frozen.choice
        bins = len(choice.posterior)
        code = fingerprint(case.mechanism).encode()
        key = hashlib.sha256(msgspec.json.encode(choice) + code).hexdigest()[:16]
        evidence = Evidence(bins, log.blocks(case.planned, key, bins))
        return _Trial(case, scouted, evidence, scouted.seconds, key=key)

    def _testify(self, up_to: int, log: BlockLog) -> None:
        """Play the blocks of one wave, then close the cases that it decides."""
        trials = [trial for trial in self.trials if not trial.decided]
        tasks = [
            task
            for position, trial in enumerate(trials)
            for task in trial.tasks(position, up_to, self.plan.seed)
        ]
        for position, counts, seconds in self.workers.map(tasks):
            trial = trials[position]
            if isinstance(counts, str):
                trial.failure = min(trial.failure or counts, counts)
                continue
            log.append(trial.case.planned.name, trial.key, counts)
            trial.evidence = trial.evidence + Evidence(trial.evidence.bins, counts)
            trial.seconds += seconds
            self.workers.progress(trial.case.planned.name, 0.99 * trial.share)
        for trial in trials:
            self._close(trial)

    def _close(self, trial: _Trial) -> None:
        planned, choice = trial.case.planned, trial.scouted.frozen.choice
        stopped = self.plan.early_stop and crossing(planned, choice, trial.evidence)
        if trial.failure or stopped or trial.share == 1.0:
            trial.decided = True
            self.workers.progress(planned.name, 1.0)


def _scout_safely(position: int, case: Case, plan: Plan) -> tuple[int, Scouted | str]:
    try:
        return position, scout_case(case, plan)
    except MechanismError as error:
        return position, str(error)


def _play_safely(position: int, *task: Any) -> tuple[int, dict[int, Counts] | str, float]:
    """As `play_blocks`; why not, when the mechanism cannot be played."""
    try:
        return play_blocks(position, *task)
    except MechanismError as error:
        return position, str(error), 0.0


def play_blocks(
    position: int, frozen: Frozen, name: str, seed: int, blocks: Iterable[int], sizes: Iterable[int]
) -> tuple[int, dict[int, Counts], float]:
    """Testify: play some blocks and count.

    Why trials are exchangeable with fair coins: each trial's side is a fair coin, so the number
    of left trials in a block is Binomial(size, 1/2), drawn from a stream of its own; given that
    number the trials of each side are independent plays from that side's stream.
    """
    clock = time.perf_counter()
    counts = {}
    for block, size in zip(blocks, sizes, strict=True):
        coin = stream(seed, name, Phase.TESTIFY, Side.LABELS, block)
        heads = int(coin.binomial(size, 0.5))
        sides = [(True, heads, Side.LEFT), (False, size - heads, Side.RIGHT)]
        if coin.integers(2):  # state that drifts with time must not follow the label
            sides.reverse()
        numbers = {left: number for left, number, _ in sides}
        streams = {left: stream(seed, name, Phase.TESTIFY, side, block) for left, _, side in sides}
        order = stream(seed, name, Phase.ORDER, Side.LABELS, block)
        views = frozen.game.play_sides(numbers, streams, order)
        counts[block] = frozen.tabulate(views[True], views[False])
    return position, counts, time.perf_counter() - clock


def _judge(plan: Plan, trial: _Trial) -> CaseResult:
    scouted = trial.scouted
    result = judge(
        plan,
        trial.case.planned,
        scouted.frozen.choice,
        trial.evidence,
        exceptions=scouted.exceptions,
        scouting=scouted.trials,
        ladder=scouted.ladder,
        twin=scouted.twin,
        notes=scouted.notes,
    )
    return msgspec.structs.replace(result, searched=scouted.tried, rounds=scouted.rounds)


def environment() -> Environment:
    """Versions that a record depends on."""
    return Environment(
        dpaudit=metadata.version("dpaudit"),
        python=platform.python_version(),
        packages={name: metadata.version(name) for name in _PACKAGES},
    )
