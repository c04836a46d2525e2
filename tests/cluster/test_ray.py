"""Workers of ray, where it is installed (extra ``ray``): the same record, also after a lost one."""

import os
import signal
import subprocess
import time

import pytest

from audit.record import read_record
from tests.cli.console import GIVEN, PATIENCE, child, command, environment, target

pytest.importorskip("ray")

LONG = ("run", target("slow"), *GIVEN, "--attack", "leaf", "--trials", 4_000, "--no-early-stop")
RAY = (*LONG, "--backend", "ray", "--jobs", 2, "--out", "far")


def digest(folder):
    return read_record(folder / "record.json").digest()


@pytest.fixture
def alone(tmp_path):
    child(*LONG, "--jobs", 1, "--out", "alone", cwd=tmp_path, code=0)
    return digest(tmp_path / "alone")


def test_ray_gives_the_record_of_one_process(alone, tmp_path):
    child(*RAY, cwd=tmp_path, code=0)
    assert digest(tmp_path / "far") == alone


def workers_of(marker):
    """Processes of ray that play: they carry the name of their actor."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=1) for line in listed.stdout.splitlines()[1:]]
    return [int(pid) for pid, words in lines if words.startswith(marker)]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_worker_costs_no_block(alone, tmp_path):
    process = subprocess.Popen(
        command(*RAY), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    log, deadline = tmp_path / "far" / "blocks.jsonl", time.monotonic() + PATIENCE
    while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid in workers_of("ray::PoolActor")[:1]:
        os.kill(pid, signal.SIGKILL)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in complaint
    if process.returncode:
        assert process.returncode == 3, complaint
        assert "--resume" in complaint
        child(*RAY, "--resume", cwd=tmp_path, code=0)
    assert digest(tmp_path / "far") == alone


def test_an_address_at_which_nobody_answers_is_refused(tmp_path):
    words = (*LONG, "--backend", "ray", "--scheduler", "127.0.0.1:9", "--out", "far")
    outcome = child(*words, cwd=tmp_path, code=2)
    assert "127.0.0.1:9" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "far").exists()
