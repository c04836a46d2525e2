"""Time and trials to a verdict: under too little noise of several kinds, and beside others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import audit
from audit.record import CaseResult
from audit.registry import resolve
from tests.benchmark.rivals import RIVALS, Floats, Rival

ALPHA = 1e-3
RATIOS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
FAMILIES = {
    "Laplace": "calibration/laplace",
    "Gaussian": "calibration/gaussian",
    "tree": "pricing/private-cov-gdp",
    "objective perturbation": "pricing/private-mle-labels",
    "batched bandit": "bandits/batched-exp3n",
}
SAME_RUNS = (1_000, 5_000, 20_000)
SNIPER_SHARE = 0.02
PAIR = audit.Pair(0.0, 1.0)


@dataclass(frozen=True)
class Cell:
    """Audits of one mechanism at one noise ratio, medians over seeds.

    Attributes:
        refuted: How many of them refuted.
        seeds: How many there were.
        runs: Runs of the mechanism until the verdict, scouting included.
        seconds: Process time until the verdict.
    """

    refuted: int
    seeds: int
    runs: float
    seconds: float

    def __str__(self) -> str:
        share = f"{self.refuted}/{self.seeds}"
        return f"{share}, {self.runs:,.0f}, {self.seconds:.2f} s"


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the process time that it took."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def cell(target: str, ratio: float, trials: int, seeds: int) -> Cell:
    """Audit a catalogue entry with all its noise multiplied by `ratio`, the claim unchanged."""
    mechanism = resolve(target).noise_scaled(ratio)  # type: ignore[attr-defined]
    found: list[tuple[CaseResult, float]] = [
        timed(lambda s=seed: audit.examine(mechanism, trials=trials, alpha=ALPHA, seed=s))
        for seed in range(seeds)
    ]
    return Cell(
        sum(result.verdict == "refuted" for result, _ in found),
        seeds,
        float(np.median([result.trials + result.scouting for result, _ in found])),
        float(np.median([seconds for _, seconds in found])),
    )


def grid(trials: int, seeds: int) -> Iterator[tuple[str, list[Cell]]]:
    """Family and its cells over all noise ratios."""
    for family, target in FAMILIES.items():
        yield family, [cell(target, ratio, trials, seeds) for ratio in RATIOS]


def noisy(ratio: float) -> Callable[..., Any]:
    """A number with `ratio` of the Laplace noise that epsilon 1 needs, many trials a call."""

    def block(data: float, n: int, rng: np.random.Generator) -> Floats:
        return data + rng.laplace(scale=ratio, size=n)

    return block


def noisy_once(data: float, rng: np.random.Generator) -> float:
    """A number with half the Laplace noise that epsilon 1 needs, one trial a call."""
    return data + rng.laplace(scale=0.5)


def ours(function: Any, seed: int, trials: int = 20_000) -> CaseResult:
    """The whole audit of a plain function, of which nothing is known."""
    batched = function is not noisy_once
    return audit.examine(
        function,
        claim=audit.PureDp(epsilon=1.0),
        pairs=[PAIR],
        batched=batched,
        trials=trials,
        alpha=ALPHA,
        seed=seed,
    )


def player(ratio: float, rng: np.random.Generator) -> Callable[[bool, int], Floats]:
    """The same for the others, many samples a call."""
    block = noisy(ratio)
    return lambda left, n: block(PAIR.side(left), n, rng)


def player_once(rng: np.random.Generator) -> Callable[[bool, int], Floats]:
    """The same, one sample a call."""

    def play(left: bool, n: int) -> Floats:
        data = PAIR.side(left)
        return np.fromiter((noisy_once(data, rng) for _ in range(n)), float, n)

    return play


@dataclass(frozen=True)
class Contest:
    """What a procedure needs to refute half noise, at its published sizes.

    Attributes:
        name: Whose procedure.
        runs: Runs of the mechanism.
        block: Process time with many trials a call, seconds.
        once: Process time with one trial a call, seconds.
        refuted: Whether it refuted.
        note: What was measured at another size.
    """

    name: str
    runs: float
    block: float
    once: float
    refuted: bool
    note: str = ""


def contests(seeds: int) -> Iterator[Contest]:
    """Our audit first, then the others."""
    ours(noisy(0.5), seeds)  # imports and caches
    blocks = [timed(lambda s=seed: ours(noisy(0.5), s)) for seed in range(seeds)]
    singles = [timed(lambda s=seed: ours(noisy_once, s))[1] for seed in range(seeds)]
    yield Contest(
        "this audit",
        float(np.median([found.trials + found.scouting for found, _ in blocks])),
        float(np.median([seconds for _, seconds in blocks])),
        float(np.median(singles)),
        all(found.verdict == "refuted" for found, _ in blocks),
        f"medians of {seeds} seeds, budget 20,000",
    )
    for rival in RIVALS:
        yield _contest(rival)


def _contest(rival: Rival) -> Contest:
    rng = np.random.Generator(np.random.SFC64(0))
    share = SNIPER_SHARE if rival.samples > 10_000_000 else 1.0
    rival.decide(player(0.5, rng), 1.0, ALPHA, rng, share / 100)  # imports and caches
    found, block = timed(lambda: rival.decide(player(0.5, rng), 1.0, ALPHA, rng, share))
    small = share / 20 if share < 1 else 1.0
    _, once = timed(lambda: rival.decide(player_once(rng), 1.0, ALPHA, rng, small))
    note = (
        "" if share == 1 else f"times measured at {share:g} and {small:g} of its sizes, scaled up"
    )
    return Contest(rival.name, rival.samples, block / share, once / small, found.refuted, note)


def fifth_from(mine: Contest, other: Contest) -> float:
    """Seconds that a run must cost for our audit to take at most a fifth of the other's time.

    Beyond what the Laplace noise in a block costs already.
    """
    return max(0.0, (5 * mine.block - other.block) / (other.runs - 5 * mine.runs))


def same_runs(ratio: float, seeds: int) -> Iterator[tuple[str, list[float]]]:
    """Share of seeds that refute when all are given the same number of runs."""
    mine = [
        np.mean([ours(noisy(ratio), s, runs).verdict == "refuted" for s in range(seeds)])
        for runs in SAME_RUNS
    ]
    yield "this audit", [float(m) for m in mine]
    for rival in RIVALS:
        shares = []
        for runs in SAME_RUNS:
            wins = 0
            for seed in range(seeds):
                rng = np.random.Generator(np.random.SFC64(seed))
                scale = runs / rival.samples
                wins += rival.decide(player(ratio, rng), 1.0, ALPHA, rng, scale).refuted
            shares.append(wins / seeds)
        yield rival.name, shares
