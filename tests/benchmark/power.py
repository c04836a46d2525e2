"""How much the audit certifies: ``python -m tests.benchmark.power [--seeds 50]``.

One table of medians over seeds at alpha .05, with what each should reach, and beside it what
re-implementations of other auditors' rules make of the same number of runs when they are given
the exact score. Trials count all mechanism runs, scouting included. Written to reports/power.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from audit.claim import ZeroConcentratedDp
from tests.benchmark import power_games as games
from tests.benchmark.peers import PEERS

ALPHA = 0.05
TARGET = Path("reports/power.md")
PEER_SEEDS = 11


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        what: What is measured.
        unit: ``epsilon``, ``runs`` or ``power``.
        runs: Mechanism runs in all.
        truth: The true epsilon, or the information limit; None where there is none.
        target: What the median should reach (at least for epsilon and power, at most for runs).
        measure: Seed to one measurement.
        scores: Seed to the exact scores of both sides, for the other rules; None for no peers.
        delta: Delta at which the other rules bound epsilon.
    """

    what: str
    unit: str
    runs: int
    truth: float | None
    target: float
    measure: Callable[[int], float]
    scores: Callable[[int], tuple[games.Floats, games.Floats]] | None = None
    delta: float = 0.0

    def reached(self, median: float) -> bool:
        """Whether the median meets the target."""
        return median <= self.target if self.unit == "runs" else median >= self.target


def fixed_lines() -> Iterator[Line]:
    """The fixed-size bound alone, the exact score and its best threshold given."""
    for epsilon, wanted in (
        (1.0, {2_000: 0.895, 20_000: 0.965, 200_000: 0.989}),
        (4.0, {2_000: 3.6, 20_000: 3.86}),
    ):
        game = games.laplace(epsilon)
        for runs, target in wanted.items():
            yield Line(
                f"Laplace {epsilon:g}, fixed size, score given",
                "epsilon",
                runs,
                epsilon,
                target,
                lambda seed, g=game, n=runs: g.fixed(n, seed, ALPHA),
                lambda seed, g=game, n=runs: g.scores(n, seed),
            )


def pipeline_lines() -> Iterator[Line]:
    """The whole audit of a plain function: nothing is known of its law."""
    for game, what, runs, target, delta in (
        (games.laplace(1.0), "Laplace 1, whole audit", 20_000, 0.93, 0.0),
        (games.laplace(1.0), "Laplace 1, whole audit", 200_000, 0.98, 0.0),
        (games.half_noise(), "half noise, claim 1, whole audit", 20_000, 1.9, 0.0),
        (games.randomised_response(), "randomised response 1, whole audit", 20_000, 0.96, 0.0),
        (games.gaussian(), "Gaussian (1, 1e-5) as GDP, whole audit", 20_000, 0.82, 1e-5),
        (games.gaussian(), "Gaussian (1, 1e-5) as GDP, whole audit", 200_000, 0.93, 1e-5),
        (games.sparse_vector(), "sparse vector, whole audit", 200_000, 2.4, 0.0),
        (games.sparse_vector(), "sparse vector, whole audit", 2_000_000, 2.85, 0.0),
    ):
        yield Line(
            what,
            "epsilon",
            runs,
            game.epsilon,
            target,
            lambda seed, g=game, n=runs: g.audit(n, seed, ALPHA),
            lambda seed, g=game, n=runs: g.scores(n, seed),
            delta,
        )


def certificate_lines() -> Iterator[Line]:
    """The white-box certificate from tilted runs."""
    for runs, target in ((100, 0.95), (1_000, 0.99)):
        yield Line(
            "Gaussian (1, 1e-5), tilted certificate",
            "epsilon",
            runs,
            1.0,
            target,
            lambda seed, n=runs: games.certificate(n, seed, ALPHA),
        )


def power_lines() -> Iterator[Line]:
    """Power of the test of mu, and how early audits stop."""
    limit = games.gaussian_limit(1.25, ALPHA, 0.8)
    runs = round(1.2 * limit)
    yield Line(
        f"GDP claim .268, truth 1.25 of it: power at 1.2 times the {limit:,} runs of the best "
        "possible test",
        "power",
        runs,
        None,
        0.8,
        lambda seed: games.refutes_mu(1.25, runs, seed, ALPHA),
    )
    for what, ratio, claim, budget, target, scouting in (
        ("true 2, claim 1: testifying runs until refuted", 2.0, 1.0, 2_000, 110, False),
        ("true 2, claim 1: all runs until refuted", 2.0, 1.0, 2_000, 500, True),
        ("true 1, claim .8: testifying runs until refuted", 1.0, 0.8, 20_000, 1_700, False),
    ):
        yield Line(
            what,
            "runs",
            budget,
            None,
            target,
            lambda seed, a=ratio, b=claim, n=budget, s=scouting: games.stopping(a, b, n, seed, s),
        )


def renyi_lines() -> Iterator[Line]:
    """Claims about Renyi divergences, in their own terms and converted."""
    claim = ZeroConcentratedDp(rho=0.5)
    for own, mu, budget, target in (
        (True, 1.3, 20_000, 1_500),
        (True, 1.1, 50_000, 15_000),
        (False, 1.3, 20_000, 20_000),
    ):
        terms = "" if own else ", by the best point of its profile, for comparison"
        yield Line(
            f"zCDP claim .5, truth {mu**2 / 2:.3g}: testifying runs until refuted{terms}",
            "runs",
            budget,
            None,
            target,
            lambda seed, m=mu, n=budget, o=own: games.renyi_stopping(m, claim, n, seed, own=o),
        )


def peer_medians(line: Line, seeds: int) -> list[str]:
    """What the other rules make of it, in the direction that suits them better."""
    if line.scores is None:
        return []
    scored = [line.scores(10_000 + seed) for seed in range(seeds)]
    swapped = [(-right, -left) for left, right in scored]
    medians = [
        max(
            float(np.median([rule(*sides, ALPHA, line.delta) for sides in direction]))
            for direction in (scored, swapped)
        )
        for rule in PEERS.values()
    ]
    return [f"{median:.3f}" for median in medians]


def measure(line: Line, seeds: int) -> tuple[str, ...]:
    """The cells of a line."""
    repeat = 4 * seeds if line.unit == "power" else seeds
    found = np.array([line.measure(seed) for seed in range(repeat)])
    median = float(np.mean(found) if line.unit == "power" else np.median(found))
    peers = peer_medians(line, min(seeds, PEER_SEEDS)) if line.scores else [""] * len(PEERS)
    digits = ".0f" if line.unit == "runs" else ".3f"
    truth = "" if line.truth is None else f"{line.truth:.4g}"
    sign = "at most " if line.unit == "runs" else ""
    reached = "yes" if line.reached(median) else "**no**"
    return (
        line.what,
        f"{line.runs:,}",
        str(repeat),
        truth,
        f"{median:{digits}}",
        f"{sign}{line.target:g}",
        reached,
        *peers,
    )


def markdown(rows: Sequence[tuple[str, ...]], seconds: float = 0.0) -> str:
    """The table, and how long it took when that is known."""
    head = ("what", "runs", "seeds", "truth", "median", "target", "reached", *PEERS)
    lines = [
        "# Power: how much is certified",
        "",
        "Medians over seeds at alpha .05 (for power, the share of seeds). Runs are all runs of the",
        "mechanism, scouting included; for stopping they are the budget. The whole audit sees a",
        "plain function and searches for an attack itself. The columns on the right are our own",
        "re-implementations of other auditors' published rules, not their code, and they are given",
        "the exact score and the better direction (at most 11 seeds); for the Gaussian they bound",
        "epsilon at 1e-5, whereas the audit bounds mu, which speaks of Gaussian claims only. Joint",
        "beta is a credible interval and no valid confidence bound at its level, and the",
        "Bonferroni rule divides alpha by a number of thresholds that the labels chose, so it may",
        "exceed its level too. `python -m tests.benchmark.power` writes this table"
        + (f"; it took {seconds / 60:.0f} minutes." if seconds else "."),
        "",
        "|" + "|".join(head) + "|",
        "|" + "---|" * len(head),
    ]
    return "\n".join([*lines, *("|" + "|".join(row) + "|" for row in rows)]) + "\n"


def main() -> None:
    """Measure every line and write the table."""
    parser = argparse.ArgumentParser(description="Power of the audit, and of other rules.")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--only", default="", help="Only lines that contain this text.")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    lines = [*fixed_lines(), *certificate_lines(), *power_lines(), *renyi_lines()]
    lines += pipeline_lines()
    clock, rows = time.perf_counter(), []
    for line in lines:
        if options.only in line.what:
            rows.append(measure(line, options.seeds))
            print(" | ".join(rows[-1]), flush=True)
    options.out.write_text(markdown(rows, time.perf_counter() - clock), encoding="utf-8")


if __name__ == "__main__":
    main()
