"""The run that everything here happens to, and what must hold afterwards."""

from __future__ import annotations

from pathlib import Path

from audit import read_record
from tests.cli.console import GIVEN, audit, target

LONG = (
    *("run", target("slow"), *GIVEN, "--attack", "leaf", "--trials", 8000),
    *("--no-early-stop", "--out", "out"),
)


def digest(folder: str = "out") -> str:
    """Of the record without how the run went."""
    return read_record(Path(folder) / "record.json").digest()


def finish(jobs: int = 1) -> str:
    """Resume the run; the digest of its record, of which every block was played once."""
    outcome = audit(*LONG, "--jobs", jobs, "--resume")
    assert outcome.code == 0, outcome.err
    result = read_record(Path("out/record.json")).results[0]
    (planned,) = read_record(Path("out/record.json")).plan.cases
    sizes = {block: sum(row[1] + row[2] for row in rows) for block, rows in result.counts.items()}
    assert sizes == {str(i): size for i, size in enumerate(planned.blocks)}
    assert leftovers() == []
    return digest()


def leftovers() -> list[str]:
    """Temporary files that somebody forgot."""
    return [str(path) for path in Path().rglob(".writing.*")]
