"""Write everything in ``reports/`` that is measured: ``python -m tests.tables [PART...]``.

Without a part all are written, one after the other; ``--list`` names them with their usual minutes
on two cores. Each line of commands can be run by itself as well.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

RECORD = "reports/reference/record.json"
# Usual minutes, and arguments of ``python``, command by command.
PARTS = {
    "reference": (
        2,
        "-m audit run --out reports/reference",
        f"-m audit accept {RECORD} --baseline reports/baseline.json",
    ),
    "families": (10, "-m tests.tables.reports"),
    "bandits": (2, "-m tests.tables.bandits"),
    "pricing": (10, "-m tests.tables.pricing"),
    "utility": (4, "-m tests.tables.utility"),
    "benchmarks": (8, "-m tests.benchmark.speed"),
    "scale": (4, "-m tests.benchmark.scale"),
    "power": (12, "-m tests.benchmark.power"),
    "coverage": (60, "-m tests.coverage.table"),
    "validity": (120, "-m tests.coverage.validity"),
    "peers": (5, "-m tests.peers.table"),
}


def commands(part: str) -> list[str]:
    """Commands of a part, as they can be typed."""
    _, *arguments = PARTS[part]
    return [f"python {words}" for words in arguments]


def write(part: str) -> None:
    """Run the commands of a part.

    Raises:
        subprocess.CalledProcessError: When one fails.
    """
    for command in commands(part):
        print(f"{part}: {command}", flush=True)
        subprocess.run([sys.executable, *command.split()[1:]], check=True)


def known(part: str) -> str:
    """A part by its name.

    Raises:
        argparse.ArgumentTypeError: For another name.
    """
    if part not in PARTS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(PARTS)}, got {part!r}")
    return part


def main() -> None:
    """Write the chosen parts, or list them."""
    parser = argparse.ArgumentParser(description="Write what is measured in reports/.")
    parser.add_argument("part", nargs="*", type=known, help="What to write; everything if omitted.")
    parser.add_argument("--list", action="store_true", help="Only say what would be run.")
    options = parser.parse_args()
    for part in options.part or PARTS:
        if options.list:
            print(f"{part} (about {PARTS[part][0]} min): {'; '.join(commands(part))}")
        else:
            write(part)


if __name__ == "__main__":
    main()
