"""Audit other libraries and write down what is found: ``python -m tests.peers.table``.

Needs the extra ``peers``. Writes ``reports/peers.md`` and one record per library under
``reports/peers/``. Takes some minutes on one core. OpenDP draws from the operating system, so
its numbers differ a little from run to run; those of the others are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from algorithms.catalogue.peers import PEERS
from audit.cases import Asked, requests_for
from audit.config import CaseConfig
from audit.engine import run
from audit.plan import Settings, make_plan
from audit.power import smallest
from audit.record import CaseResult, Record, read_record, write_record

TARGET = Path("reports/peers.md")
RECORDS = Path("reports/peers")
TRIALS = {"opendp": 10_000, "diffprivlib": 10_000, "mabwiser": 2_000}
ALSO = ("dp-accounting", "numpy", "scikit-learn", "scipy")
ALPHA, SEED = 1e-3, 1
HEADS = (
    "subject",
    "what",
    "claim",
    "stated by",
    "pair",
    "verdict",
    "epsilon_lower",
    "could_have_caught",
    "trials",
)
NOTES = {
    "peers/diffprivlib-linear-from-0": (
        "`LinearRegression` scales the noise on each feature's sum of squares by the square of the "
        "feature's *lower* bound (`bounds_X[0]` stands in both places of the maximum). With "
        "features in [0, 1] and no intercept that is zero, and the sum of squares is used as it is."
    ),
    "peers/diffprivlib-logistic-norm-100": (
        "`LogisticRegression` bounds the curvature that one record adds by data norm / 4; it is "
        "data norm squared / 4 (Chaudhuri, Monteleoni and Sarwate 2011 assume norm 1, where both "
        "agree). The claim here is small beside what a large norm and strong regularisation add."
    ),
}
INTRO = """# Other libraries: what they state and what was found

Releases of other libraries as subjects, with the versions that were installed. Each library is one
run with alpha {alpha:g}: all its certified bounds hold together except with that probability.
*Unrefuted* says that this audit did not refute the claim on these pairs, not that the claim holds;
*could_have_caught* is the smallest true epsilon that an ideal attack would have been caught with.
Early stopping is on, so the bound of a refuted case is only a little above its claim.
Written by `python -m tests.peers.table`; the records are in `peers/`.
"""


def libraries() -> list[str]:
    """Libraries in the order of the catalogue."""
    return list(dict.fromkeys(library_of(name) for name in PEERS))


def library_of(name: str) -> str:
    """Distribution that a catalogue name is about."""
    return name.removeprefix("peers/").partition("-")[0]


def audited(names: Sequence[str], trials: int) -> Record:
    """The record of some subjects."""
    requests = [
        request
        for name in names
        for request in requests_for(Asked(CaseConfig(target=name, trials=trials)))[0]
    ]
    return run(*make_plan(requests, Settings(alpha=ALPHA, seed=SEED)))


def row(result: CaseResult, record: Record) -> list[str]:
    """Cells of one subject."""
    planned = record.planned(result.name)
    pair = planned.pairs[result.choice.pair].label if result.choice else ""
    caught = smallest(result.could_have_caught)
    return [
        result.name.removeprefix("peers/"),
        PEERS[result.name].summary,
        f"{result.claim}, {result.view}",
        result.claim.source,
        pair,
        "refuted, as it must be"
        if result.role == "control" and result.found_out
        else result.verdict,
        f"{result.epsilon_lower:.4g}",
        "nothing" if caught is None else f"{caught:.3g}",
        str(result.trials + result.scouting),
    ]


def lines(records: dict[str, Record]) -> list[str]:
    """The document, from the records alone."""
    found = [INTRO.format(alpha=ALPHA)]
    for library, record in records.items():
        found += [f"## {library} {version_in(record, library)}", ""]
        found += [line(HEADS), "|---" * len(HEADS) + "|"]
        found += [line(row(result, record)) for result in record.results] + [""]
    for library in (name for name in libraries() if name not in records):
        found += [
            f"No record of {library} is committed: `python -m tests.peers.table {library}`.",
            "",
        ]
    refuted = [
        result.name
        for record in records.values()
        for result in record.results
        if result.verdict == "refuted" and result.role == "subject"
    ]
    found += ["## Refuted claims", ""]
    found += [f"* **{name}**: {NOTES.get(name, 'not explained yet.')}" for name in refuted] or [
        "None."
    ]
    return [*found, "", "Beside " + ", ".join(versions(records)) + "."]


def version_in(record: Record, library: str) -> str:
    """Version that the record was made with."""
    return record.environment.packages[library]


def versions(records: dict[str, Record]) -> list[str]:
    """What else was installed."""
    first = next(iter(records.values()))
    return [f"{name} {first.environment.packages[name]}" for name in ALSO]


def line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"|{'|'.join(cells)}|"


def with_versions(record: Record, library: str) -> Record:
    """The record with the versions of the library and of what it rests on."""
    import msgspec

    packages = {name: metadata.version(name) for name in (library, *ALSO)}
    known = {**record.environment.packages, **packages}
    environment = msgspec.structs.replace(record.environment, packages=known)
    return msgspec.structs.replace(record, environment=environment)


def write(chosen: Sequence[str]) -> None:
    """Audit some libraries, or all, and write the document from all records."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    for library in chosen or libraries():
        names = [name for name in PEERS if library_of(name) == library]
        record = with_versions(audited(names, TRIALS[library]), library)
        write_record(record, RECORDS / f"{library}.json")
        print(f"{library}: {record.summary.sentence}", file=sys.stderr)
    TARGET.write_text("\n".join(lines(committed())) + "\n", encoding="utf-8")


def committed() -> dict[str, Record]:
    """Library to its committed record, for those that have one."""
    paths = {library: RECORDS / f"{library}.json" for library in libraries()}
    return {library: read_record(path) for library, path in paths.items() if path.exists()}


if __name__ == "__main__":
    write(sys.argv[1:])
