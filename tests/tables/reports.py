"""Write the reference reports of both families: ``python -m tests.tables.reports``.

Every bandit and pricing algorithm that promises something is audited once; record and page go to
``reports/<family>/``, and the table in ``reports/README.md`` is made of the records.
``python -m tests.tables.reports --table`` only writes the table again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from algorithms.catalogue import CATALOGUE
from audit.cases import Asked, requests_for
from audit.config import CaseConfig
from audit.engine import run
from audit.files import write_atomically
from audit.mechanism import capability
from audit.plan import Settings, make_plan
from audit.record import CaseResult, Record, read_record, write_record
from audit.render import render
from audit.render.figures import rungs
from audit.render.sentences import caught, certified, label
from audit.render.wording import NOTHING, number, tidy, whole
from audit.workers import Workers

FOLDER = Path("reports")
FAMILIES = ("bandits", "pricing")
SETTINGS = Settings(trials=20_000, alpha=1e-3, seed=0)
FEWER = {"pricing/policy-patients": 1_000, "pricing/policy-*": 4_000}
BEGIN, END = "<!-- reference reports: begin -->", "<!-- reference reports: end -->"
HEADS = (
    "case",
    "claim",
    "view",
    "theorem",
    "accountant",
    "certificate",
    "certified of claimed",
    "could have caught",
    "verdict",
    "trials",
)
NONE_YET = "No reference audits are here yet."


@cache
def names(family: str) -> tuple[str, ...]:
    """Catalogue names of a family that promise something."""
    found = [name for name in CATALOGUE if name.startswith(f"{family}/")]
    return tuple(name for name in found if CATALOGUE[name].build().claim is not None)


def trials_of(name: str) -> int:
    """Own budget of a slow case; 0 for the usual one."""
    return next((few for pattern, few in FEWER.items() if fnmatch(name, pattern)), 0)


def audited(chosen: Sequence[str], settings: Settings = SETTINGS, jobs: int = -1) -> Record:
    """One record of all the named mechanisms, by the likelihood where it is known."""
    requests = [request for name in chosen for request in requests_for(Asked(case(name)))[0]]
    plan, cases = make_plan(requests, settings)
    return run(plan, cases, Workers(jobs=jobs))


def case(name: str) -> CaseConfig:
    """How one mechanism is audited: nothing beats the likelihood."""
    mechanism = CATALOGUE[name].build()
    known = capability(mechanism, "log_likelihood_ratio", mechanism.claim.view)
    return CaseConfig(target=name, trials=trials_of(name), attacks=["likelihood"] if known else [])


def write(family: str, record: Record, name: str = "record", folder: Path = FOLDER) -> None:
    """A record of a family, and its page."""
    page = folder / family / f"{name.replace('record', 'report')}.html"
    write_record(record, folder / family / f"{name}.json")
    write_atomically(page, render(record, "html").encode())


def table(folder: Path = FOLDER) -> str:
    """The summary of all records that are there, as markdown."""
    lines = list(_lines(folder))
    return "\n".join(lines or [NONE_YET])


def _lines(folder: Path) -> Iterator[str]:
    for family in FAMILIES:
        path = folder / family / "record.json"
        if not path.exists():
            continue
        record = read_record(path)
        yield from ("", f"### [{family}]({family}/report.html)", "")
        yield f"{record.summary.sentence} Alpha {number(record.plan.alpha)} for all of them."
        yield ""
        yield line(HEADS)
        yield line(["---"] * len(HEADS))
        yield from (line(row(result)) for result in record.results)


def row(result: CaseResult) -> tuple[str, ...]:
    """Cells under `HEADS`."""
    known = dict(rungs(result))
    steps = (known.get(name) for name in ("theorem", "accountant", "certificate"))
    return (
        result.name.partition("/")[2],
        tidy(result.claim),
        result.view,
        *(NOTHING if step is None else number(step) for step in steps),
        certified(result, " of "),
        caught(result),
        label(result),
        whole(result.trials),
    )


def line(cells: Sequence[str]) -> str:
    """One line of a markdown table."""
    return "|" + "|".join(cells) + "|"


def between_markers(text: str) -> str:
    """What the README holds between its markers."""
    return text.partition(BEGIN)[2].partition(END)[0].strip()


def with_table(text: str, found: str) -> str:
    """The README with another table between its markers."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{found.strip()}\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Audit the families, then write the table."""
    parser = argparse.ArgumentParser(description="Reference reports of both families.")
    parser.add_argument("--table", action="store_true", help="Only write the table again.")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    for family in () if options.table else FAMILIES:
        write(family, audited(names(family), jobs=options.jobs))
    readme = FOLDER / "README.md"
    text = with_table(readme.read_text(encoding="utf-8"), table())
    write_atomically(readme, text.encode())


if __name__ == "__main__":
    main()
