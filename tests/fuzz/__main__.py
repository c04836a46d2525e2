"""Fuzzing as a command: ``python -m tests.fuzz N [--seed S] [--target NAME] [--keep FOLDER]``.

N inputs are shared out over all targets. Input i of a target depends on seed, target and i alone.
Ends with 1 when anything but a documented ending was seen; the inputs are kept as files then.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.harness import fuzz, guarded
from tests.fuzz.targets import chosen


def main() -> int:
    """Fuzz and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("inputs", type=int, help="Inputs in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", default=[], dest="targets")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    given = parser.parse_args()
    targets = dict(chosen(tuple(given.targets)))
    whole = sum(target.weight for target in targets.values())
    failures, keep = 0, given.keep.absolute()
    print(f"{'target':<26}{'inputs':>9}{'accepted':>9}{'refused':>9}{'found':>6}{'CPU s':>8}")
    with guarded():
        for name, target in targets.items():
            count, clock = round(given.inputs * target.weight / whole), time.process_time()
            told = fuzz(name, target, count, given.seed, keep)
            failures += told.found
            seconds = time.process_time() - clock
            print(
                f"{name:<26}{count:>9}{told.accepted:>9}{told.refused:>9}{told.found:>6}"
                f"{seconds:>8.1f}",
                flush=True,
            )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
