"""Running ``python -m audit``: inside this process where that is the same, else as a child."""

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from audit.cli import main

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 500.0  # seconds after which a child hangs, and the machine is not only busy
GIVEN = ("--claim", "eps=1", "--pair", "0.0", "1.0")


@dataclass(frozen=True)
class Outcome:
    """Exit code and what was written."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The only line on stderr."""
        (line,) = self.err.splitlines()
        assert line.startswith("error: ")
        return line


def audit(*words: object) -> Outcome:
    """The command in this process, in the current directory."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words], prog_name="python -m audit")
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def run(*words: object, trials: int = 400) -> Outcome:
    """``run`` in this process, quickly."""
    return audit("run", "--trials", trials, "--jobs", 1, "--out", "out", *words)


def target(name: str) -> str:
    """A target of `tests.data.targets`."""
    return f"tests.data.targets:{name}"


def environment() -> dict[str, str]:
    """Environment of a child: one thread, and the targets of the tests can be imported."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def command(*words: object) -> list[str]:
    """The command line of a child."""
    return [sys.executable, "-m", "audit", *map(str, words)]


def child(*words: object, cwd: Path, code: int | None = None) -> Outcome:
    """The command as a child process."""
    done = subprocess.run(
        command(*words),
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert code is None or done.returncode == code, done.stderr
    return Outcome(done.returncode, done.stdout, done.stderr)


def started(*words: object) -> subprocess.Popen[str]:
    """A command under way, in a process group of its own."""
    return subprocess.Popen(
        command(*words),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
