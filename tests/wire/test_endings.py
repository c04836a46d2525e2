"""However the audit ends, no process of a target is left."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.console import PATIENCE, command, environment
from tests.wire.processes import HAS_PROC, carrying, none_left

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not HAS_PROC, reason="needs /proc to see what is left")


def asleep(kind, folder):
    """A running audit whose target sleeps for ever, and a way to find the target's processes."""
    words = [sys.executable, str(HERE / "hostile.py"), "ignores signals", str(folder / "pids")]
    named = "exec:" + shlex.join(words)
    sleeping = ("tests.wire.targets:sleeps", "--isolate", "--claim", "eps=1", "--pair", "0", "1")
    target = (named,) if kind == "command" else sleeping
    mark = f"OF_THIS_TEST={folder}"
    process = subprocess.Popen(
        command("run", *target, "--out", folder / "out", "--jobs", 1),
        cwd=folder,
        env={**environment(), "OF_THIS_TEST": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def left():
        return [pid for pid in carrying(mark.encode()) if pid != process.pid]

    return process, left


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("kind", ["command", "isolated"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_nothing_is_left_when_the_audit_is_ended(kind, name, tmp_path):
    number = getattr(signal, name)
    process, left = asleep(kind, tmp_path)
    wait_for(lambda: len(left()) >= 2)  # the target and the guard
    time.sleep(0.5)
    os.kill(process.pid, number)
    code = process.wait(PATIENCE)
    assert code == (-number if name == "SIGKILL" else 130)
    assert none_left(left), left()


def test_nothing_is_left_when_python_ends(tmp_path):
    script = (
        "import numpy as np, sys\n"
        "from audit.mechanism import play\n"
        "from audit.remote import remote\n"
        "play(remote(sys.argv[1], None, ()), {'output': 1.0}, 2, np.random.default_rng(0))\n"
    )
    target = "exec:" + shlex.join([sys.executable, str(HERE / "echo.py")])
    mark = f"OF_THIS_TEST={tmp_path}"
    subprocess.run(
        [sys.executable, "-c", script, target],
        env={**environment(), "OF_THIS_TEST": str(tmp_path)},
        check=True,
        timeout=PATIENCE,
    )
    assert none_left(lambda: carrying(mark.encode()))
