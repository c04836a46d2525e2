"""From one machine to many: ``python -m tests.benchmark.scale`` writes reports/scale.md.

Costs of a block and throughput against the number of workers are measured here; the plan for a
thousand workers is arithmetic on these numbers.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cloudpickle
from joblib import delayed

from audit.cases import Asked, CaseConfig, requests_for
from audit.cluster import joined
from audit.engine import play_blocks
from audit.evidence import Evidence
from audit.plan import Settings, make_plan
from audit.scout import scout_case
from audit.workers import Workers
from tests.benchmark.costs import child
from tests.benchmark.speed import table

TARGET = Path("reports/scale.md")
CASES = (
    "calibration/laplace",
    "bandits/batched-exp3n",
    "bandits/ftrl-tree",
    "pricing/private-cov-gdp",
    "pricing/private-mle-labels",
    "pricing/policy-releases",
)
CAMPAIGN = ("bandits/batched-exp3n", "bandits/ftrl-tree", "pricing/private-cov-gdp")
TRIALS, BLOCK, AT_ONCE = 3_000_000, 2_000, 4
WORKERS, GOAL, SPARE_TASKS = 1_000, 10**10, 80
MOST_BLOCKS, TASK = 64, 0.1


@dataclass(frozen=True)
class BlockCost:
    """What a block of 2,000 trials costs.

    Attributes:
        name: The case.
        seconds: Process time to play, score and count it.
        task: Bytes that carry a task to a worker.
        result: Bytes that carry a block's counts back.
        kept: Bytes of a block in the memory of the process that collects.
        log: Bytes of a block in the log.
    """

    name: str
    seconds: float
    task: int
    result: int
    kept: int
    log: int

    @property
    def blocks_a_task(self) -> int:
        """How many blocks a task has."""
        return max(AT_ONCE, min(MOST_BLOCKS, int(TASK / self.seconds)))


def block_cost(name: str) -> BlockCost:
    """Scout a case and play some of its blocks."""
    requests, _ = requests_for(Asked(CaseConfig(target=name)))
    slow = "policy" in name
    plan, (case,) = make_plan(requests, Settings(trials=400 if slow else 20_000))
    frozen = scout_case(case, plan).frozen
    size, count = (200, 1) if slow else (BLOCK, AT_ONCE)
    best = math.inf
    for _ in range(1 if slow else 3):
        start = time.process_time()
        blocks, sizes = list(range(count)), [size] * count
        _, counts, _ = play_blocks(0, frozen, case.planned.name, 0, blocks, sizes)
        best = min(best, time.process_time() - start)
    table_of_one = counts[0]
    rows = Evidence(table_of_one.shape[1], {0: table_of_one}).to_rows()
    return BlockCost(
        name,
        best / (count * size) * BLOCK,
        len(cloudpickle.dumps((frozen, case.planned.name, blocks, sizes))),
        len(pickle.dumps(table_of_one)),
        table_of_one.nbytes + 200,
        len(str(rows["0"])) + 150,
    )


def _idle(seconds: float) -> None:
    time.sleep(seconds)


def tasks_per_second(backend: str) -> float:
    """How many tasks a process can hand out and collect in a second of its own CPU time."""
    with joined(backend if backend == "dask" else "loky", "", 2):
        workers = Workers(jobs=2, backend=backend)
        list(workers.map([delayed(_idle)(TASK) for _ in range(4)]))
        start = time.process_time()
        list(workers.map([delayed(_idle)(TASK) for _ in range(SPARE_TASKS)]))
        return SPARE_TASKS / (time.process_time() - start)


def throughput(backend: str, jobs: int, folder: Path) -> tuple[float, float, float]:
    """Testified trials per second of wall time, CPU seconds and wall seconds of the campaign."""
    words = ("-m", "audit", "run", *CAMPAIGN, "--no-early-stop", "--trials", str(TRIALS))
    where = ("--backend", backend, "--jobs", str(jobs), "--out", str(folder / f"{backend}{jobs}"))
    _, spent, wall = child(*words, *where)
    return len(CAMPAIGN) * TRIALS / wall, spent, wall


def costs_section(costs: list[BlockCost]) -> Iterator[str]:
    """What blocks cost."""
    yield "## A block of 2,000 trials"
    yield ""
    yield "Process time to play, score and count it; what travels, and what stays. For the policy,"
    yield "which takes milliseconds a trial, from a block of 200."
    yield ""
    rows = [
        (
            cost.name,
            f"{1e3 * cost.seconds:.1f} ms",
            f"{cost.blocks_a_task}",
            f"{cost.task / 1024:.1f} KiB",
            f"{cost.result:,} B",
            f"{cost.log:,} B",
        )
        for cost in costs
    ]
    head = ("case", "time", "blocks a task", "task", "result", "line of the log")
    yield from table(head, rows)


def throughput_section() -> Iterator[str]:
    """Throughput against workers."""
    yield "## Throughput against workers"
    yield ""
    yield from (
        f"{', '.join(CAMPAIGN)}:",
        f"{TRIALS:,} trials each, start and report included. There are {os.cpu_count()} cores, and",
        f"the load before the measurement was {os.getloadavg()[0]:.0f}: where that is above 0,",
        "others took part of the wall time. The CPU time says more: what it grows by is what more",
        "workers cost.",
        "",
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for backend, most in (("loky", 4), ("dask", 3)):
            for jobs in range(1, most + 1):
                rate, spent, wall = throughput(backend, jobs, Path(folder))
                rows.append((backend, str(jobs), f"{rate:,.0f}", f"{wall:.1f} s", f"{spent:.1f} s"))
    yield from table(("backend", "workers", "trials/s", "wall", "CPU"), rows)


def bullet(*parts: str) -> list[str]:
    """An item of a list, wrapped."""
    return textwrap.wrap(
        " ".join(parts), 100, initial_indent="* ", subsequent_indent="  ", break_on_hyphens=False
    )


def plan_section(costs: list[BlockCost], rate: float) -> Iterator[str]:
    """The plan on paper."""
    cheap = [cost for cost in costs if "policy" not in cost.name]
    mean = sum(cost.seconds for cost in cheap) / len(cheap)
    blocks = GOAL // BLOCK
    tasks = sum(1 / cost.blocks_a_task for cost in cheap) / len(cheap) * blocks
    busy = blocks * mean
    shards = math.ceil(WORKERS / (0.5 * rate * busy / tasks))
    kept = max(cost.kept for cost in cheap)
    policy = next(cost for cost in costs if "policy" in cost.name)
    yield "## On paper: 1,000 workers, 10^10 trials"
    yield ""
    yield "A campaign of 1,000 cases of 10^7 trials, in equal parts of the cases above but the"
    yield "policy. Everything here follows from the numbers above."
    yield ""
    hours, policy_hours = busy / 3600, blocks * policy.seconds / 3600
    served = 0.5 * rate * busy / tasks
    log = sum(cost.log for cost in cheap) / len(cheap)
    yield from bullet(
        f"**Work**: {blocks:,} blocks of {1e3 * mean:.1f} ms on average are {hours:.1f} CPU hours,",
        f"{60 * hours / WORKERS:.2f} minutes on {WORKERS:,} workers. 10^10 trials of the whole",
        f"policy would be {policy_hours:,.0f} CPU hours,",
        f"{policy_hours / WORKERS:.0f} hours on as many.",
    )
    yield from bullet(
        f"**Schedulers**: {tasks:,.0f} tasks at {rate:,.0f} tasks a second (dask, as above)",
        f"would keep one scheduler for {tasks / rate / 60:.0f} minutes:",
        f"at half of its rate it serves {served:,.0f} workers. So the campaign is cut into",
        f"{shards} shards (`--shard I/{shards}`), each with a scheduler and",
        f"{math.ceil(WORKERS / shards)} workers of its own; they need not know of each other. The",
        f"policy needs no cut: its blocks of {policy.seconds:.0f} s leave a scheduler idle.",
    )
    yield from bullet(
        f"**Memory**: a shard keeps at most {kept:,} B a block, whatever the views are like,",
        f"so {blocks / shards * kept / 2**30:.2f} GiB for its {blocks // shards:,} blocks;",
        "a worker holds the trials of one block at a time. Twice as many shards halve it.",
    )
    yield from bullet(
        f"**Disk**: the logs of all shards take {blocks * log / 2**30:.1f} GiB together, their",
        "records about as much. One record of all shards has to fit into memory; for verdicts",
        "the reports of the shards will do.",
    )
    yield from bullet(
        "**Losses**: a lost worker costs the task it had, about a tenth of a second of work. A",
        "lost scheduler or process costs nothing that is in its log: the same command with",
        "`--resume`, on any cluster, goes on from there, to the bit-identical record.",
    )
    yield from bullet(
        "**Error rate**: every shard makes the whole plan, so each case spends a thousandth of",
        "alpha, and all shards together are wrong with probability at most alpha.",
    )
    yield ""
    yield "```"
    yield f"python -m audit run --config campaign.toml --trials 10000000 --shard 1/{shards} \\"
    yield "  --backend dask --scheduler tcp://HOST:8786 --out shard-1 --resume"
    yield "```"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Costs of blocks, throughput, and a plan.")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    found = [block_cost(name) for name in CASES]
    rates = {backend: tasks_per_second(backend) for backend in ("loky", "dask")}
    lines = [
        "# Scale: from one machine to many",
        "",
        "`python -m tests.benchmark.scale` measures and writes this page. Blocks are addressed",
        "by their streams: where they are played cannot change a record, only how long it takes.",
        "",
        *costs_section(found),
        *throughput_section(),
        "Tasks of a tenth of a second that one process can hand out and collect, by its CPU time: "
        + ", ".join(f"{backend} {rate:,.0f} a second" for backend, rate in rates.items()) + ".",
        "",
        *plan_section(found, rates["dask"]),
    ]  # fmt: skip
    print("\n".join(lines))
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
