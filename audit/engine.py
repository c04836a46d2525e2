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
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from joblib import delayed, effective_n_jobs

from audit.blocklog import BlockLog
from audit.errors import MechanismError, UsageError
from audit.evidence import Counts, Evidence
from audit.execution import Environment, Execution
from audit.fingerprint import fingerprint
from audit.freeze import Frozen
from audit.judge import crossing, failed, judge
from audit.outcome import plain
from audit.plan import Case
from audit.record import CaseResult, Plan, Record
from audit.scout import Scouted, scout_case
from audit.streams import Phase, Side, stream
from audit.summary import summarise
from audit.threads import one_thread
from audit.workers import Workers

WAVES = (64, 256, 1024, 4096)
_FEWEST_BLOCKS, _MOST_BLOCKS, _TASK = 4, 64, 0.1
"""Blocks of a task, which should take about a tenth of a second: a scheduler has its own costs."""
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")


@dataclass
class _Trial:
    """A case on trial: its scouted choice, the evidence so far, and the fresh blocks of a wave."""

    case: Case
    scouted: Scouted
    evidence: Evidence
    seconds: float
    decided: bool = False
    key: str = field(default="")
    failure: str = ""
    fresh: dict[int, Counts] = field(default_factory=dict)

    def add(self) -> None:
        """Add a wave's blocks, at once: one by one, each would copy all that came before."""
        self.evidence = self.evidence + Evidence(self.evidence.bins, self.fresh)
        self.fresh = {}

    def missing(self, up_to: int) -> list[int]:
        """Blocks still to be played, of those that start before trial number `up_to`."""
        starts = np.cumsum((0, *self.case.planned.blocks[:-1]))
        wanted = np.flatnonzero(starts < up_to)
        return [int(block) for block in wanted if int(block) not in self.evidence.blocks]

    @property
    def share(self) -> float:
        """Finished share of the blocks."""
        done = len(self.evidence.blocks) + len(self.fresh)
        return done / len(self.case.planned.blocks)

    def due(self, up_to: int) -> float:
        """About how many seconds the missing blocks of a wave take."""
        blocks = self.case.planned.blocks
        trials = sum(blocks[block] for block in self.missing(up_to))
        return trials * self.scouted.seconds / max(1, self.scouted.trials)

    def tasks(self, position: int, up_to: int, seed: int) -> Iterator[Any]:
        """Joblib tasks that play the missing blocks of a wave."""
        planned, blocks = self.case.planned, self.missing(up_to)
        each = max(self.due(up_to), 1e-9) / max(1, len(blocks))
        count = max(_FEWEST_BLOCKS, min(_MOST_BLOCKS, int(_TASK / each)))
        for start in range(0, len(blocks), count):
            some = blocks[start : start + count]
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
    jobs = effective_n_jobs(workers.jobs)  # a cluster may be gone in the end
    session = _Session(plan, cases, workers)
    with one_thread():
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
            jobs=jobs,
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
        found = {}
        for position, outcome in self._scouted():
            planned = self.cases[position].planned
            if isinstance(outcome, str):
                self.results[planned.name] = failed(planned, outcome)
                self.workers.progress(planned.name, 1.0)
                continue
            self.workers.progress(planned.name, 0.0)
            found[position] = self._open(self.cases[position], outcome, log)
        self.trials = [found[position] for position in sorted(found)]

    def _scouted(self) -> Iterator[tuple[int, Scouted | str]]:
        """What scouting found; done again here where testimony would repeat a worker's draws."""
        # The longest first, so that in the end no worker is left alone with one of them.
        ordered = sorted(enumerate(self.cases), key=lambda item: -item[1].planned.scouting)
        tasks = [delayed(_scout_safely)(i, case, self.plan) for i, case in ordered]
        here = self.workers.stays(len(tasks))
        for position, outcome in self.workers.map(tasks):
            if here or isinstance(outcome, str) or not _unseeded(outcome):
                yield position, outcome
            else:
                yield _scout_safely(position, self.cases[position], self.plan)

    def _open(self, case: Case, scouted: Scouted, log: BlockLog) -> _Trial:
        choice = scouted.frozen.choice
        bins = len(choice.posterior)
        code = fingerprint(case.mechanism).encode()
        key = hashlib.sha256(msgspec.json.encode(choice) + code).hexdigest()[:16]
        known = {} if _unseeded(scouted) else log.blocks(case.planned, key, bins)
        return _Trial(case, scouted, Evidence(bins, known), scouted.seconds, key=key)

    def _testify(self, up_to: int, log: BlockLog) -> None:
        """Play the blocks of one wave, then close the cases that it decides."""
        trials = [trial for trial in self.trials if not trial.decided]
        for position, counts, seconds in self._played(trials, up_to):
            trial = trials[position]
            if isinstance(counts, str):
                trial.failure = min(trial.failure or counts, counts)
                continue
            log.append(trial.case.planned.name, trial.key, counts)
            trial.fresh.update(counts)
            trial.seconds += seconds
            self.workers.progress(trial.case.planned.name, 0.99 * trial.share)
        for trial in trials:
            trial.add()
            self._close(trial)

    def _played(self, trials: Sequence[_Trial], up_to: int) -> Iterator[Any]:
        """What the tasks of a wave give, as they are ready.

        Why trials without a seed stay in this process: a generator that a mechanism keeps to itself
        goes to a worker as a copy, so that workers, and the blocks of an earlier run in the log,
        would repeat one another's draws, and a bound would count them as independent.
        """
        away: list[Any] = []
        here: list[Any] = []
        for position, trial in enumerate(trials):
            tasks = here if _unseeded(trial.scouted) else away
            tasks += trial.tasks(position, up_to, self.plan.seed)
        due = sum(trial.due(up_to) for trial in trials if not _unseeded(trial.scouted))
        yield from self.workers.map(away, due)
        yield from self.workers.here(here)

    def _close(self, trial: _Trial) -> None:
        planned, choice = trial.case.planned, trial.scouted.frozen.choice
        stopped = self.plan.early_stop and crossing(planned, choice, trial.evidence)
        if trial.failure or stopped or trial.share == 1.0:
            trial.decided = True
            self.workers.progress(planned.name, 1.0)


def _unseeded(scouted: Scouted) -> bool:
    """Whether a mechanism draws from elsewhere, so that its copies may repeat one another."""
    return any(note.rule == "DP007" for note in scouted.notes)


def _scout_safely(position: int, case: Case, plan: Plan) -> tuple[int, Scouted | str]:
    try:
        return position, scout_case(case, plan)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  (other cases must not be lost with this one)
        return position, _why(error)


def _play_safely(position: int, *task: Any) -> tuple[int, dict[int, Counts] | str, float]:
    """As `play_blocks`; why not, when the mechanism cannot be played."""
    try:
        return play_blocks(position, *task)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  (other cases must not be lost with this one)
        return position, _why(error), 0.0


def _why(error: Exception) -> str:
    """What ended a case, and where, unless it says so itself: a capability may raise anything."""
    if isinstance(error, MechanismError):
        return plain(str(error))
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    return plain(f"{type(error).__name__} in {where}: {error}")


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
        with np.errstate(over="ignore", invalid="ignore"):
            counts[block] = frozen.tabulate(views[True], views[False], order)
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


@cache
def environment() -> Environment:
    """Versions that a record depends on."""
    return Environment(
        dpaudit=metadata.version("dpaudit"),
        python=platform.python_version(),
        packages={name: metadata.version(name) for name in _PACKAGES},
    )
