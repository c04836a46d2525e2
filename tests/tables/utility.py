"""Write what privacy costs: ``python -m tests.tables.utility``.

Regret against the horizon and against epsilon of every algorithm of both families that says what it
costs, beside the guarantee where one is public; and one page per family with the certified epsilon
of an audited sweep beside the claimed one. About four minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from algorithms.catalogue import CATALOGUE
from algorithms.pricing.utility import at_epsilon
from audit.engine import run
from audit.files import write_atomically
from audit.mechanism import Mechanism, capability
from audit.plan import Request, Settings, make_plan
from audit.record import Record, write_record
from audit.registry import battery
from audit.render.regret import AXES
from audit.utility_command import HEADS, audits, measure, page, rows
from audit.workers import Workers
from tests.tables.reports import line

TARGET = Path("reports/utility.md")
FOLDER = Path("reports/utility")
RUNS, SEED = 40, 0
OTHER_VIEWS = ("-anticipating", "-all-but-own")
SWEPT = {
    "bandits": ("bandits/batched-exp3n", (0.25, 0.5, 1.0, 2.0, 4.0), 20_000),
    "pricing": ("pricing/policy-releases", (4.0, 6.0, 8.0, 12.0, 16.0), 2_000),
}
LEAD = f"Mean over {RUNS} runs a point, seed {SEED}. Measured, not certified."


def names() -> list[str]:
    """Reference algorithms of both families that say what they cost, one view of each."""
    named = [n for n in CATALOGUE if n.startswith(("bandits/", "pricing/")) and "passes-" not in n]
    offering = [n for n in named if capability(CATALOGUE[n].build(), "utility_curves")]
    return [name for name in offering if not name.endswith(("-actions", *OTHER_VIEWS))]


def section(name: str, runs: int = RUNS) -> list[str]:
    """All points of an algorithm as one table, with what each is against."""
    curves = measure(name, None, None, runs, SEED)
    cells = [(AXES[axis], *row) for axis, points in curves.items() for row in rows(points)]
    heads = ("against", *HEADS)
    return ["", f"## {name}", "", *map(line, (heads, ["---"] * len(heads), *cells))]


def document(chosen: Sequence[str], runs: int = RUNS) -> str:
    """The tables of all chosen algorithms."""
    lines = ["# What privacy costs: regret", "", f"{LEAD} A guarantee bounds the expected regret,"]
    lines += ["where one is public. `python -m tests.tables.utility` writes these tables and, in"]
    lines += ["`utility/`, a page per family with what audits certified beside the regret."]
    for name in chosen:
        lines += section(name, runs)
    return "\n".join(lines) + "\n"


def at(name: str, epsilon: float) -> Mechanism:
    """A named mechanism that promises `epsilon`, or for a policy a little less."""
    if name.startswith("pricing/"):
        return at_epsilon(CATALOGUE[name].build(), epsilon)
    return CATALOGUE[name].build(epsilon=epsilon)


def swept(name: str, epsilons: Sequence[float], trials: int) -> Record:
    """One audit of a mechanism per promised epsilon."""
    mechanisms = [(f"{name} epsilon={epsilon:g}", at(name, epsilon)) for epsilon in epsilons]
    attacks = battery(["likelihood"])
    requests = [Request(label, name, m, m.claim, attacks) for label, m in mechanisms]
    plan, cases = make_plan(requests, Settings(trials=trials, alpha=1e-3, seed=SEED))
    return run(plan, cases, Workers(jobs=-1))


def write_page(family: str, folder: Path = FOLDER, runs: int = RUNS) -> None:
    """The record of a sweep over epsilon, and the page that shows it beside the regret."""
    name, epsilons, trials = SWEPT[family]
    path = folder / f"{family}.json"
    folder.mkdir(parents=True, exist_ok=True)
    write_record(swept(name, epsilons, trials), path)
    curves = measure(name, None, epsilons, runs, SEED)
    write_atomically(
        folder / f"{family}.html", page(name, LEAD, curves, audits(name, path)).encode()
    )


def main() -> None:
    """Measure everything."""
    write_atomically(TARGET, document(names()).encode())
    for family in SWEPT:
        write_page(family)


if __name__ == "__main__":
    main()
