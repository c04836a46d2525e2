"""One plan, one record: for any number of jobs, after a kill, after Ctrl-C, beside other plans."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from audit import read_record
from tests.cli.console import GIVEN as CLAIMED
from tests.cli.console import PATIENCE, audit, child, run, started, target

GIVEN = (*CLAIMED, "--attack", "leaf")
SLOW = (target("slow"), *GIVEN)
SIGNALS = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
LONG = ("run", *SLOW, "--trials", 12000, "--no-early-stop", "--out", "out")


def record(folder="out"):
    return read_record(Path(folder) / "record.json")


def body(folder="out"):
    """The record without its execution."""
    found = msgspec.to_builtins(record(folder))
    del found["execution"]
    return found


def log(folder="out"):
    return Path(folder) / "blocks.jsonl"


def whole_blocks():
    return len(log().read_bytes().splitlines()) if log().exists() else 0


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    here = Path.cwd()
    try:
        os.chdir(folder)
        assert audit(*LONG, "--jobs", 1).code == 0
        return record().digest()
    finally:
        os.chdir(here)


def wait_for(blocks, process):
    """Until that many blocks are on disk; the run must still be under way then."""
    deadline = time.monotonic() + PATIENCE
    while whole_blocks() < blocks and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()


def test_any_number_of_jobs_gives_the_same_record():
    words = ("broken/laplace-half-noise", "calibration/laplace", "calibration/noisy-max")
    run(*words, "--out", "one", trials=3000)
    run(*words, "--out", "two", "--jobs", 2, trials=3000)
    assert body("one") == body("two")
    assert record("one").digest() == record("two").digest()
    assert record("two").execution.jobs == 2


@SIGNALS
@pytest.mark.parametrize("blocks", [1, 17])
def test_a_killed_run_resumes_to_the_same_record(blocks, uninterrupted):
    process = started(*LONG, "--jobs", 1)
    wait_for(blocks, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not Path("out/record.json").exists()
    before = whole_blocks()
    assert audit(*LONG, "--jobs", 1, "--resume").code == 0
    assert record().digest() == uninterrupted
    assert whole_blocks() > before >= blocks


@SIGNALS
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_leaves_a_partial_record_that_resumes_to_the_same(jobs, uninterrupted):
    process = started(*LONG, "--jobs", jobs)
    wait_for(5, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "KeyboardInterrupt" not in err
    assert "interrupted; finish it with the same command and --resume" in err.splitlines()
    partial = record()
    assert not partial.execution.complete
    assert partial.results == ()
    assert audit("report", "out/record.json").code == 3
    assert audit(*LONG, "--jobs", jobs, "--resume").code == 0
    assert record().digest() == uninterrupted
    assert record().execution.complete


def test_a_resumed_run_plays_no_finished_block_again():
    words = (target("noisy_block"), *GIVEN, "--no-early-stop")
    run(*words)
    first, lines = body(), log().read_bytes()
    run(*words, "--resume")
    assert body() == first
    assert log().read_bytes() == lines


def test_torn_and_foreign_lines_are_ignored():
    words = (target("noisy_block"), *GIVEN, "--no-early-stop")
    run(*words)
    whole, lines = body(), log().read_bytes().splitlines(keepends=True)
    changed = msgspec.json.decode(lines[0])
    foreign = [
        {"plan": "of another run"},
        {**changed, "plan": "another"},
        {**changed, "choice": "another"},
        {**changed, "block": 10_000},
        {**changed, "block": -1},
        {**changed, "bins": 3},
        {**changed, "rows": [[0, 1, 0]]},
        {**changed, "rows": [[99, 10, 10]]},
        {**changed, "rows": [[0, -5, 29]]},
        {**changed, "rows": "none"},
    ]
    kept = [b"\x00\xff not JSON\n", *lines[1:3]]
    text = [msgspec.json.encode(line) + b"\n" for line in foreign]
    log().write_bytes(b"".join([*kept, *text, lines[3][: len(lines[3]) // 2]]))
    run(*words, "--resume")
    assert body() == whole


def test_two_plans_in_one_folder_do_not_mix():
    mine = (target("noisy_block"), *GIVEN, "--no-early-stop")
    run(*mine, "--seed", 1, "--out", "first")
    run(*mine, "--seed", 2, "--out", "second")
    run(*mine, "--seed", 1)
    run(*mine, "--seed", 2, "--resume")
    assert body() == body("second")
    run(*mine, "--seed", 1, "--resume")
    assert body() == body("first")
    assert body("first")["results"] != body("second")["results"]


def test_blocks_of_other_code_do_not_count(empty_folder):
    """Even a change that scouting cannot see starts anew."""
    source = "def noisy(data, n, rng):\n    return data + rng.laplace(size=n)\n"
    for comment in ("", "# changed\n"):
        (empty_folder / "mine.py").write_text(source + comment)
        words = ("run", "mine:noisy", *GIVEN, "--trials", 400, "--no-early-stop", "--jobs", 1)
        child(*words, "--out", "out", "--resume", cwd=empty_folder, code=0)
    keys = {msgspec.json.decode(line)["choice"] for line in log().read_bytes().split(b"\n") if line}
    assert len(keys) == 2


MANY = ("run", *SLOW, "--trials", 600_000, "--no-early-stop")


def killed(moment, after_a_block):
    """Kill a resumed run at a moment, counted from its start or from its first new block."""
    process = started(*MANY, "--jobs", 2, "--resume", "--out", "out")
    before, deadline = whole_blocks(), time.monotonic() + PATIENCE
    while after_a_block and whole_blocks() <= before and time.monotonic() < deadline:
        if process.poll() is not None:  # nothing was left to play
            break
        time.sleep(0.002)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=moment)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return whole_blocks()


@SIGNALS
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_kills_at_random_lose_and_double_nothing():
    """Half of the kills at a random moment of the run, half just after a block was written."""
    rng = np.random.default_rng(0)
    left = [killed(moment, False) for moment in rng.uniform(0.5, 4.0, 25)]
    left += [killed(moment, True) for moment in rng.uniform(0.0, 0.3, 25)]
    print("blocks after every kill:", left)
    assert left == sorted(left)  # what was written stays
    assert len({*left}) > 10  # and many kills came while blocks were being written
    assert audit(*MANY, "--jobs", 1, "--resume", "--out", "out").code == 0
    assert audit(*MANY, "--jobs", 1, "--out", "whole").code == 0
    assert record().digest() == record("whole").digest()


def test_without_resume_a_run_starts_anew():
    words = (target("noisy_block"), *GIVEN, "--no-early-stop")
    run(*words)
    first, size = body(), whole_blocks()
    run(*words)
    assert body() == first
    assert whole_blocks() == size
