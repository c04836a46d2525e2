"""SIGTERM is Ctrl-C; SIGKILL of a run or of one of its workers loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from audit import read_record
from tests.cli.console import GIVEN, PATIENCE, audit, environment, started
from tests.crash.runs import LONG, finish

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def wait_for_blocks(count: int, process: subprocess.Popen[str]) -> None:
    """Until that many lines are in the log."""
    log, deadline = Path("out/blocks.jsonl"), time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and log.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.005)
    raise AssertionError(process.communicate())


@pytest.mark.parametrize(
    ("jobs", "whole_group"),
    [pytest.param(1, False, marks=pytest.mark.slow), (2, True)],
)
def test_sigterm_leaves_a_partial_record_that_resumes(jobs, whole_group, uninterrupted) -> None:
    """As supervisors send it: to the process, or to all of its group."""
    process = started(*LONG, "--jobs", jobs)
    wait_for_blocks(5, process)
    send = os.killpg if whole_group else os.kill
    send(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted; finish it with the same command and --resume" in err.splitlines()
    assert not read_record(Path("out/record.json")).execution.complete
    assert finish(jobs) == uninterrupted


def test_sigterm_before_anything_was_played_leaves_nothing() -> None:
    Path("sleepy.py").write_text("import time\nopen('begun', 'w').close()\ntime.sleep(100)\n")
    process = started("run", "sleepy:f", *GIVEN, "--out", "out")
    deadline = time.monotonic() + PATIENCE
    while not Path("begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "error: interrupted\n")
    assert not Path("out").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_in_the_middle_of_an_import_ends_with_the_documented_code(name) -> None:
    """Python itself would end by SIGINT, since the code that was interrupted is a text."""
    code = f"import os, signal; os.kill(os.getpid(), signal.{name})\nwhile True: pass"
    Path("interrupted.py").write_text(f"exec({code!r})\n")
    process = started("run", "interrupted:f", *GIVEN, "--out", "out")
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "error: interrupted\n")


def test_a_worker_that_is_killed_costs_its_blocks_only(uninterrupted) -> None:
    process = started(*LONG, "--jobs", 2)
    wait_for_blocks(5, process)
    os.kill(worker_of(process.pid), signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, err
    assert "a worker process failed" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert finish(2) == uninterrupted


def worker_of(pid: int) -> int:
    """A worker process of a run."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(place.read_text().rpartition(")")[2].split()[1])
            words = (place.parent / "cmdline").read_bytes()
            if parent == pid and b"popen_loky" in words and b"resource_tracker" not in words:
                return int(place.parent.name)
    pytest.skip("no worker found under /proc")


def test_a_fork_of_a_run_dies_of_sigterm_itself() -> None:
    """The handler belongs to the process that installed it."""
    script = (
        "import os, signal, time\n"
        "from audit.interruption import terminable\n"
        "with terminable():\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        time.sleep(60)\n"
        "        os._exit(0)\n"
        "    time.sleep(0.2)\n"
        "    os.kill(pid, signal.SIGTERM)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout.split() == [str(-signal.SIGTERM), "interrupted"], done.stderr


def test_two_runs_in_one_folder_count_nothing_twice(uninterrupted) -> None:
    processes = [started(*LONG, "--jobs", 1) for _ in range(2)]
    ended = [(p.communicate(timeout=PATIENCE), p.returncode) for p in processes]
    codes = sorted(code for _, code in ended)
    assert codes in ([0, 2], [0, 0]), ended  # [0, 0]: one began when the other had ended
    for (_, err), code in ended:
        assert code == 0 or "is writing here; wait for it" in err
    lines = Path("out/blocks.jsonl").read_bytes().splitlines()
    assert len(lines) == len(set(lines))
    assert finish() == uninterrupted
    assert audit("report", "out/record.json").code == 0
