"""What a run costs beside mechanism, random numbers and attacks: memory, start, bookkeeping."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from audit import attack, engine, exact, freeze, scout
from audit.cases import Asked, requests_for, select
from audit.mechanism import Mechanism
from audit.plan import Request, Settings, make_plan
from audit.record import CaseResult, Record
from audit.registry import battery
from audit.workers import Workers

_MEMORY = """
import audit
from audit.footprint import peak
def noisy(data, n, rng):
    return data + rng.laplace(size=n)
audit.examine(noisy, claim=audit.PureDp(epsilon=1.0), pairs=[audit.Pair(0.0, 1.0)], batched=True,
              trials={trials}, early_stop=False)
print(peak())
"""
_POLICY = """
from algorithms.pricing.policy import PrivatePricing
from audit.footprint import peak
from tests.benchmark.costs import evenly
evenly(PrivatePricing(view="transcript", accounting="joint"), "likelihood", {trials})
print(peak())
"""
SCOUTING, EVEN_BLOCK, PLANNED = 500, 250, 4_000


def child(*words: str) -> tuple[str, float, float]:
    """Output of this Python as a child, its CPU and its wall time in seconds."""
    import resource

    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - clock
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    return done.stdout, spent, wall


def memory(trials: int) -> tuple[float, float]:
    """Peak resident memory in MiB, and CPU seconds, of an audit of so many cheap trials."""
    out, spent, _ = child("-c", _MEMORY.format(trials=trials))
    return int(out) / 2**20, spent


def policy_memory(trials: int) -> tuple[float, float]:
    """The same of an audit of the whole pricing policy by all its releases (`evenly`)."""
    out, spent, _ = child("-c", _POLICY.format(trials=trials))
    return int(out) / 2**20, spent


def evenly(mechanism: Mechanism, attack: str, trials: int) -> CaseResult:
    """An audit by one attack with so many testifying trials, all else equal.

    A usual plan scouts with a share of its trials, gives the certificate a twentieth of them, up to
    1,000, and its blocks grow.
    """
    request = Request("case", "case", mechanism, mechanism.claim, battery([attack]))
    plan, (case,) = make_plan([request], Settings(trials=PLANNED, early_stop=False))
    blocks = (EVEN_BLOCK,) * (trials // EVEN_BLOCK)
    planned = msgspec.structs.replace(case.planned, scouting=SCOUTING, blocks=blocks)
    plan = msgspec.structs.replace(plan, cases=(planned,))
    (result,) = engine.run(plan, [replace(case, planned=planned)], Workers(jobs=1)).results
    return result


def starts() -> Iterator[tuple[str, float, float]]:
    """Commands with their CPU seconds from start to exit, the best of five, and the target."""
    with tempfile.TemporaryDirectory() as folder:
        small = ("-m", "audit", "run", "calibration/laplace", "--out", folder)
        for words, most in ((("-m", "audit", "--help"), 0.3), (small, 1.5)):
            name = " ".join(w for w in words if w not in ("--out", folder))
            yield f"python {name}", min(child(*words)[1] for _ in range(5)), most


def reference_run(jobs: int = 1) -> Record:
    """The default run, without its report."""
    requests = [r for case in select((), ()) for r in requests_for(Asked(case))[0]]
    plan, cases = make_plan(requests, Settings())
    return engine.run(plan, cases, Workers(jobs=jobs))


class Stopwatch:
    """Process time in named parts of a run; a part that runs inside another counts for itself."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner: list[float] = []

    def watched(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted for a part."""

        @wraps(function)
        def call(*words: Any, **options: Any) -> Any:
            start = time.process_time()
            self._inner.append(0.0)
            try:
                return function(*words, **options)
            finally:
                spent = time.process_time() - start
                own = spent - self._inner.pop()
                self.seconds[part] = self.seconds.get(part, 0.0) + own
                if self._inner:
                    self._inner[-1] += spent

        return call


_PARTS = (
    ("mechanism and random numbers", attack, "play"),
    ("mechanism and random numbers", attack, "play_singly"),
    ("mechanism and random numbers", exact, "_quiet"),
    ("mechanism and random numbers", scout, "stream"),
    ("mechanism and random numbers", engine, "stream"),
    ("scores of attacks, exact likelihoods", freeze, "score_sides"),
    ("certificate and twin: likelihoods on runs of their own", scout, "climb"),
    ("certificate and twin: likelihoods on runs of their own", scout, "twin_epsilon"),
    ("choosing bins, bets and threshold", scout, "freeze"),
    ("contract tests", scout, "_contract"),
    ("judging", engine, "judge"),
    ("everything else", engine, "run"),
)
BOOKKEEPING = ("contract tests", "judging", "everything else")


def parts() -> dict[str, float]:
    """Process seconds of the default run by part."""
    reference_run()  # imports and caches are not of the run
    watch = Stopwatch()
    with ExitStack() as stack:
        for part, owner, name in _PARTS:
            found = getattr(owner, name)
            stack.enter_context(mock.patch.object(owner, name, watch.watched(part, found)))
        for kind in {type(one) for one in battery()}:
            fitted = watch.watched("fitting attacks", kind.fit)
            stack.enter_context(mock.patch.object(kind, "fit", fitted))
        reference_run()
    return watch.seconds


CAMPAIGNS = {
    "bandits and sums in blocks, 3,000,000 trials a case": (
        *("bandits/batched-exp3n", "bandits/ftrl-tree", "pricing/private-cov-gdp"),
        *("--trials", "3000000"),
    ),
    "functions of one trial, 500,000 trials a case": (
        *(f"tests.data.targets:{name}" for name in ("noisy", "slow", "word", "mapping")),
        *("--claim", "eps=1", "--pair", "0.0", "1.0", "--trials", "500000"),
    ),
}


@dataclass(frozen=True)
class Cores:
    """A campaign on one core and on two.

    Attributes:
        one: CPU and wall seconds in one process.
        two: The same in two worker processes.
        apart: Wall seconds of two such runs at a time that know nothing of each other.
    """

    one: tuple[float, float]
    two: tuple[float, float]
    apart: float


def two_cores(campaign: Sequence[str], folder: Path) -> Cores:
    """What two cores are worth to a campaign, and what they could be worth at most."""

    def played(name: str, jobs: str) -> tuple[float, float]:
        words = ("-m", "audit", "run", *campaign, "--no-early-stop", "--jobs", jobs)
        return child(*words, "--out", str(folder / name))[1:]

    with ThreadPoolExecutor(2) as pair:
        one, two = played("one", "1"), played("two", "2")
        apart = list(pair.map(played, ("left", "right"), ("1", "1")))
    return Cores(one, two, max(wall for _, wall in apart))
