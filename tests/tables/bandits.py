"""Write the table of the broken bandits: ``python -m tests.tables.bandits``.

How every twin was caught, made of the record of one audit of all of them, which is kept with its
page in ``reports/bandits``. About two minutes; ``--table`` only writes the table again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from algorithms.catalogue import CATALOGUE
from audit.certificate import accountant_epsilon
from audit.plan import Settings
from audit.record import CaseResult, Record, read_record
from tests.tables import reports

TARGET = Path("reports/bandits.md")
NAME = "broken"
SETTINGS = Settings(trials=20_000, alpha=0.022, seed=1)
HUGE = 59.9
HEADS = ("no.", "twin", "bug", "view", "claimed", "really", "caught by", "rule", "trials")
NUMBERS = {
    "half-noise": "",
    "sum-noise": "B1",
    "floor-batch": "B2",
    "swapped-scale": "B3",
    "no-clamp": "B4",
    "overlapping-batches": "B5",
    "raw-skip": "B6",
    "shared-noise": "B7",
    "reseeded-noise": "B7",
    "raw-loss": "B8",
    "one-sided": "B9",
    "weighted-release": "B10",
    "unscaled-noise": "B11",
    "narrow-sensitivity": "B12",
    "inside-updates": "B13",
    "no-fake-switch": "B14",
    "no-budget": "B15",
    "counted-moves": "B15",
    "short-tree": "B16",
    "full-information": "B17",
    "peek": "B18",
    "known-seed": "B19",
}
# What no exact curve says of the pairs offered; the docstring of each twin gives the reason.
REALLY = {
    "shared-noise": "infinite",
    "reseeded-noise": "infinite",
    "raw-loss": "infinite",
    "raw-skip": "infinite",
    "peek": "about 6",
    "known-seed": "infinite",
    "unscaled-noise": "up to 4",
    "narrow-sensitivity": "up to 10 times the original",
    "inside-updates": "unbounded",
    "counted-moves": "up to 44",
}


def twins() -> list[str]:
    """Names of all broken bandits, in the order of `NUMBERS`."""
    return [f"broken/bandit-{name}" for name in NUMBERS]


def row(result: CaseResult) -> tuple[str, ...]:
    """Cells under `HEADS`."""
    short, choice = result.name.removeprefix("broken/bandit-"), result.choice
    rules = sorted({finding.rule for finding in result.findings})
    return (
        NUMBERS[short],
        short,
        CATALOGUE[result.name].summary.partition(": ")[0],
        result.view,
        str(result.claim),
        exact(result) or REALLY[short],
        f"{choice.attack}, {result.verdict}" if choice else result.verdict,
        " ".join(rules),
        str(result.trials + result.scouting),
    )


def exact(result: CaseResult) -> str:
    """Epsilon of the worst pair at the claim's delta, four digits; nothing without a curve."""
    twin = CATALOGUE[result.name].build()
    found = accountant_epsilon(twin, twin.pairs(), getattr(twin.claim, "delta", 0.0))
    if found is None:
        return ""
    return "infinite" if found > HUGE else f"{found:.4g}"


def document(record: Record) -> str:
    """The table with its explanations."""
    lines = [
        "# Broken bandits, and how they are caught",
        "",
        f"One audit of all twins together ([report](bandits/{NAME}.html)), with at most",
        f"{SETTINGS.trials:,} trials each and alpha {record.plan.alpha:g} for all of them.",
        "*Really* is the exact epsilon of the worst pair offered, or else what the twin's",
        "docstring derives. *Caught by* names the attack whose counts refuted the claim; *trials*",
        "include scouting. All are caught by counting what the code emits; none needs a",
        "certificate. DP012 says that the density which the twin states refutes its claim too.",
        "What the algorithms promise, and what audits measured, is in [README.md](README.md) and",
        "[utility.md](utility.md). `python -m tests.tables.bandits` writes this table.",
        "",
        *map(reports.line, (HEADS, ["---"] * len(HEADS), *map(row, record.results))),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Audit the twins, then write the table."""
    parser = argparse.ArgumentParser(description="The broken bandits.")
    parser.add_argument("--table", action="store_true", help="Only write the table again.")
    if not parser.parse_args().table:
        reports.write("bandits", reports.audited(twins(), SETTINGS), NAME)
    record = read_record(reports.FOLDER / "bandits" / f"{NAME}.json")
    TARGET.write_text(document(record), encoding="utf-8")


if __name__ == "__main__":
    main()
