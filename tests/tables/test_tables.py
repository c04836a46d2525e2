"""Everything measured in ``reports/`` has a part that writes it, and every command exists."""

import importlib.util
import subprocess
import sys

from tests.tables.__main__ import PARTS, commands, known
from tests.tables.reports import FOLDER


def test_every_command_names_a_module():
    for part in PARTS:
        for command in commands(part):
            python, flag, module, *_ = command.split()
            assert (python, flag) == ("python", "-m")
            assert importlib.util.find_spec(module) is not None


def test_only_known_parts_are_written():
    assert known("power") == "power"
    done = subprocess.run(
        [sys.executable, "-m", "tests.tables", "nope"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "expected one of reference, families" in done.stderr


def test_every_measured_table_is_written_by_a_part():
    """Files in ``reports/`` that people write by hand are the exceptions."""
    listed = " ".join(command for part in PARTS for command in commands(part))
    elsewhere = {"benchmarks": "tests.benchmark.speed"}
    for path in FOLDER.glob("*.md"):
        if path.stem not in ("README", "soundness", "trust"):
            names = (f".{path.stem}", f"{path.stem}.table", elsewhere.get(path.stem, "none"))
            assert any(name in listed for name in names), path
