"""How fast it is: ``python -m tests.benchmark.speed`` writes reports/benchmarks.md.

Process times of one core, so that other users of the machine disturb little; wall time only where
two cores are the subject. ``--only TITLE`` measures one section again and keeps the others.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from tests.benchmark import costs, speeds, verdicts

TARGET = Path("reports/benchmarks.md")
TRIALS, SEEDS, SAME_SEEDS = 50_000, 3, 20
Lines = Iterator[str]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """A table in Markdown."""
    yield "|" + "|".join(head) + "|"
    yield "|" + "---|" * len(head)
    yield from ("|" + "|".join(row) + "|" for row in rows)
    yield ""


def algorithms() -> Lines:
    """Trials per second of every algorithm."""
    yield "Trials per second in a block, against one trial at a time (*loop*) and against drawing"
    yield "the same random numbers without the algorithm (*draws*). *Least* is what a test demands."
    yield "The first rows have a working size and, for exp3n, PrivateCov and the policy, a loop"
    yield "written out by hand; the others are the catalogue's own small sizes."
    yield ""
    rows = []
    for speed in chain(speeds.guarded(), speeds.catalogued()):
        found = speeds.measure(speed, rounds=3)
        drawn = f"{found.over_draws:.1f}x" if found.draws else "none"
        least = f"{speed.gain:.0f}x" if speed.gain else ""
        rows.append((speed.name, f"{1 / found.block:,.0f}", f"{found.gain:.0f}x", least, drawn))
    yield from table(("algorithm", "trials/s", "gain on loop", "least", "of draws"), rows)


def linear() -> Lines:
    """Cost against trials and rounds."""
    yield "Four times the trials or rounds, over once; linear is 4."
    yield ""
    rows = []
    for learner in ("exp3n", "htinf", "ftpl"):
        tasks = [_block(learner, 1, 1), _block(learner, 4, 1), _block(learner, 1, 4)]
        once, trials, rounds = speeds.best(*tasks)
        rows.append((f"batched {learner}", f"{trials / once:.2f}", f"{rounds / once:.2f}"))
    yield from table(("algorithm", "four times the trials", "four times T"), rows)


def _block(learner: str, trials: int, rounds: int) -> Callable[[], object]:
    mechanism = speeds.converted(learner, rounds * speeds.ROUNDS)
    data, rng = mechanism.pairs()[-1].left, speeds.generator()
    return lambda: mechanism.run(data, trials * speeds.N, rng)


def memory() -> Lines:
    """Peak memory against the number of trials."""
    yield "A plain function with Laplace noise, no early stop, in a process of its own."
    yield ""
    rows = []
    for trials in (10**5, 10**6, 10**7):
        mib, spent = costs.memory(trials)
        rows.append((f"{trials:,}", f"{mib:.0f} MiB", f"{spent:.1f} s"))
    head = ("trials", "peak resident memory", "CPU, start to exit")
    yield from table(head, rows)
    yield "The whole pricing policy (T = 1,024, the working row), all that it releases, scored by"
    yield f"its exact likelihood; {costs.SCOUTING} trials scout, and the others come in blocks of"
    yield f"{costs.EVEN_BLOCK}, however many there are."
    yield ""
    rows = []
    for trials in (1_000, 2_000, 4_000):
        mib, spent = costs.policy_memory(trials)
        rows.append((f"{trials:,}", f"{mib:.0f} MiB", f"{spent:.0f} s"))
    yield from table(head, rows)


def start() -> Lines:
    """CPU from start to exit."""
    yield f"The best of five, at a load of {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores."
    yield "Where others fill the caches, importing takes more CPU."
    yield ""
    rows = [(f"`{name}`", f"{s:.2f} s", f"at most {most:g} s") for name, s, most in costs.starts()]
    yield from table(("command", "CPU, start to exit", "target"), rows)


def overhead() -> Lines:
    """Where the default run spends its time."""
    found = costs.parts()
    total = sum(found.values())
    rows = [
        (part, f"{seconds:.2f} s", f"{seconds / total:.1%}")
        for part, seconds in sorted(found.items(), key=lambda item: -item[1])
    ]
    kept = sum(found[part] for part in costs.BOOKKEEPING) / total
    yield "`python -m audit run` in one process, imports and the report left out. The bookkeeping,"
    yield f"that is {', '.join(costs.BOOKKEEPING)}, takes {kept:.1%}."
    yield ""
    yield from table(("part", "process time", "share"), rows)


def cores() -> Lines:
    """Two cores against one."""
    rows = []
    for name, campaign in costs.CAMPAIGNS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = costs.two_cores(campaign, Path(folder))
        (cpu, wall), (cpu_two, wall_two) = found.one, found.two
        most = 2 * wall / found.apart
        times = (f"{cpu:.1f} s, {wall:.1f} s", f"{cpu_two:.1f} s, {wall_two:.1f} s")
        rows.append((name, *times, f"{wall / wall_two:.2f}x", f"{most:.2f}x"))
    yield "Start and report included; CPU and wall time. *At most* is what two runs at a time gain"
    yield "that know nothing of each other. The trials of the first campaign cost two microseconds:"
    yield "there, starting workers and scouting, which is one task a case, are a large part."
    yield f"The load of the machine was {os.getloadavg()[0]:.1f}, this included."
    yield ""
    yield from table(("campaign", "one process", "two workers", "speed-up", "at most"), rows)


def noise() -> Lines:
    """Trials and time to verdict for a grid of noise ratios."""
    yield f"All noise of a mechanism times the ratio, its claim unchanged; budget {TRIALS:,} runs,"
    yield f"alpha {verdicts.ALPHA:g}, with early stopping. Refuted of {SEEDS} seeds, and medians of"
    yield "the runs (scouting included) and the process time until the verdict."
    yield ""
    rows = [(family, *map(str, cells)) for family, cells in verdicts.grid(TRIALS, SEEDS)]
    yield from table(("noise ratio", *(f"{r:g}" for r in verdicts.RATIOS)), rows)


def others() -> Lines:
    """Half-noise Laplace beside other auditors' procedures."""
    found = list(verdicts.contests(11))
    mine, rivals = found[0], found[1:]
    sniper = next(one for one in rivals if one.name == "DP-Sniper")
    yield "Laplace with half the noise that epsilon 1 needs, one pair, alpha .001. The others are"
    yield "our own re-implementations of their published procedures at their published sizes"
    yield "(`tests/benchmark/rivals.py`), not their code. *A block* gives all of them a mechanism"
    yield "that plays many trials a call, *a trial* one that plays one."
    yield ""
    rows = [
        (
            one.name,
            "yes" if one.refuted else "no",
            f"{one.runs:,.0f}",
            f"{one.block:.3g} s",
            f"{one.once:.3g} s",
            one.note,
        )
        for one in found
    ]
    yield from table(("procedure", "refuted", "runs", "time, a block", "time, a trial", ""), rows)
    yield f"DP-Sniper uses {sniper.runs / mine.runs:,.0f} times the runs of this audit. Its time is"
    yield f"{sniper.block / mine.block:.0f} times ours with a block a call. StatDP and the hockey"
    yield "stick do so little else that they are as fast, or faster, where a run costs next to"
    yield "nothing; what they spend is runs. This audit takes at most a fifth of the time of each"
    yield "once a run costs so many microseconds (a run of the pricing policy: about 1,000):"
    needed = [f"{one.name} {1e6 * verdicts.fifth_from(mine, one):.1f}" for one in rivals]
    yield ", ".join(needed) + "."
    yield ""
    for ratio in (0.5, 0.8):
        yield f"Share of {SAME_SEEDS} seeds that refute at noise ratio {ratio:g} when all get the"
        yield "same number of runs, the others in their own proportions:"
        yield ""
        shares = verdicts.same_runs(ratio, SAME_SEEDS)
        rows = [(name, *(f"{share:.0%}" for share in found)) for name, found in shares]
        yield from table(("procedure", *(f"{n:,} runs" for n in verdicts.SAME_RUNS)), rows)


SECTIONS: dict[str, Callable[[], Lines]] = {
    "To a verdict": noise,
    "Beside other auditors": others,
    "Algorithms": algorithms,
    "Linear cost": linear,
    "Memory": memory,
    "Start": start,
    "Overhead": overhead,
    "Two cores": cores,
}


def head() -> list[str]:
    """What stands above the sections."""
    return [
        "# Benchmarks",
        "",
        "`python -m tests.benchmark.speed` writes this page; times are process times of one core",
        "unless they are called wall times, and absolute ones belong to the machine that wrote",
        f"it ({platform.machine()}, numpy {np.__version__}, one BLAS thread). What a change must",
        "not lose are the ratios, which `python -m pytest -m benchmark` checks.",
        "",
    ]


def sections_of(page: str) -> dict[str, str]:
    """Title to body of the sections of a page."""
    parts = page.split("\n## ")[1:]
    return {title: body for title, _, body in (part.partition("\n") for part in parts)}


def main() -> None:
    """Measure all sections, or one again, and write the page."""
    parser = argparse.ArgumentParser(description="Speed of the algorithms and of whole audits.")
    parser.add_argument("--only", choices=list(SECTIONS))
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    measured = {}
    for title in [options.only] if options.only else SECTIONS:
        measured[title] = "\n" + "\n".join(SECTIONS[title]())
        print(f"## {title}\n{measured[title]}", flush=True)
    kept = sections_of(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    bodies = {**kept, **measured}
    page = [f"## {title}\n{bodies[title].rstrip()}\n" for title in SECTIONS if title in bodies]
    options.out.write_text("\n".join([*head(), *page]), encoding="utf-8")


if __name__ == "__main__":
    main()
