"""A real local dask cluster of three workers: lost workers and schedulers cost no block."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from audit.record import read_record
from tests.cli.console import GIVEN, PATIENCE, child, command, environment, target

distributed = pytest.importorskip("distributed")

LONG = ("run", target("slow"), *GIVEN, "--attack", "leaf", "--trials", 6_000, "--no-early-stop")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    made = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path
    )
    yield made
    made.close()


@pytest.fixture
def alone(tmp_path):
    child(*LONG, "--jobs", 1, "--out", "alone", cwd=tmp_path, code=0)
    return digest(tmp_path / "alone")


def digest(folder: Path) -> str:
    return read_record(folder / "record.json").digest()


def on(address: str, folder: str) -> tuple[object, ...]:
    return (*LONG, "--backend", "dask", "--scheduler", address, "--out", folder)


def started(folder: Path, address: str):
    process = subprocess.Popen(
        command(*on(address, "far")),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log, deadline = folder / "far" / "blocks.jsonl", time.monotonic() + PATIENCE
    while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    return process


def test_a_cluster_gives_the_record_of_one_process(cluster, alone, tmp_path):
    child(*on(cluster.scheduler_address, "far"), cwd=tmp_path, code=0)
    assert digest(tmp_path / "far") == alone


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_worker_costs_nothing(cluster, alone, tmp_path):
    process = started(tmp_path, cluster.scheduler_address)
    with distributed.Client(cluster) as client:
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaint
    assert digest(tmp_path / "far") == alone


def test_after_the_scheduler_is_gone_another_cluster_resumes(cluster, alone, tmp_path):
    process = started(tmp_path, cluster.scheduler_address)
    cluster.close()
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, complaint
    assert "--resume" in complaint
    assert "Traceback" not in complaint
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as new:
        words = (*on(new.scheduler_address, "far"), "--resume")
        child(*words, cwd=tmp_path, code=0)
    assert digest(tmp_path / "far") == alone


def test_workers_are_started_here_without_an_address(alone, tmp_path):
    words = (*LONG, "--backend", "dask", "--jobs", 3, "--out", "far")
    child(*words, cwd=tmp_path, code=0)
    assert digest(tmp_path / "far") == alone


def test_an_address_at_which_nobody_answers_is_refused(tmp_path, monkeypatch):
    outcome = child(*on("tcp://127.0.0.1:9", "far"), cwd=tmp_path, code=2)
    assert "tcp://127.0.0.1:9" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "far").exists()


def test_an_address_without_a_cluster_is_refused(tmp_path):
    outcome = child("run", target("slow"), *GIVEN, "--scheduler", "x", cwd=tmp_path, code=2)
    assert "--backend dask" in outcome.complaint
