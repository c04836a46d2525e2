"""A limit of memory decides how many workers there are, and nothing else."""

import math
import os
import subprocess
import sys

import pytest
from joblib import delayed

import audit
from audit import footprint
from audit.budget import scouting_trials
from audit.errors import UsageError
from audit.footprint import Footprint, peak
from audit.workers import Workers
from tests.cli.console import environment

MIB = 2**20
LARGEST_CALL = 10_000
MEASURED = pytest.mark.skipif(not peak(), reason="nothing tells what a process takes")


def process(_number):
    return os.getpid()


def processes(limit, tasks=12):
    workers = Workers(jobs=2, footprint=Footprint(limit))
    return list(workers.map([delayed(process)(i) for i in range(tasks)]))


@pytest.mark.parametrize(
    ("limit", "worker", "wanted", "fit"),
    [
        (1000, 0, 8, 8),  # 100 here, and 900 for workers that are put at 100
        (1000, 300, 8, 3),
        (1000, 300, 2, 2),
        (1000, 500, 8, 1),
        (150, 0, 8, 1),
        (math.inf, 500, 8, 8),
    ],
)
def test_as_many_workers_as_fit_beside_this_process(monkeypatch, limit, worker, wanted, fit):
    monkeypatch.setattr(footprint, "peak", lambda: 100 * MIB)
    found = Footprint(limit * MIB)
    found.saw(worker * MIB)
    assert found.workers(wanted) == fit


@MEASURED
def test_the_peak_of_a_process_is_what_it_took():
    """In a fresh one: here the peak may lie far above what is in use."""
    script = (
        "from audit.footprint import peak; before = peak(); "
        f"taken = bytearray({200 * MIB}); print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment())
    assert 190 * MIB <= int(done.stdout) <= 250 * MIB


@MEASURED
def test_where_memory_is_plenty_workers_play_all_but_the_first():
    first, *others = processes(1000 * peak())
    assert first == os.getpid()
    assert os.getpid() not in others
    assert len(others) == 11


@MEASURED
def test_where_memory_is_little_this_process_plays_all():
    assert processes(1.5 * peak()) == [os.getpid()] * 12


@MEASURED
def test_one_process_that_does_not_fit_is_refused():
    with pytest.raises(UsageError, match=r"already took \d+M"):
        processes(MIB)


@MEASURED
def test_a_limit_binds_the_call_too():
    def noisy(data, n, rng):
        return data + rng.laplace(size=n)

    given = {"claim": audit.PureDp(epsilon=1.0), "pairs": [audit.Pair(0.0, 1.0)], "batched": True}
    found = audit.examine(noisy, **given, trials=400, memory="64G")
    assert found == audit.examine(noisy, **given, trials=400)
    with pytest.raises(UsageError, match="--memory 1M"):
        audit.examine(noisy, **given, trials=400, memory="1M")
    with pytest.raises(UsageError, match="such as 512M"):
        audit.examine(noisy, **given, trials=400, memory="much")


def test_scouting_has_an_end():
    assert scouting_trials(1_000_000) < 200_000
    assert {scouting_trials(10**power) for power in (7, 8, 10)} == {200_000}


def test_no_call_grows_with_the_budget():
    calls = []

    def noisy(data, n, rng):
        calls.append(n)
        return data + rng.laplace(size=n)

    given = {"claim": audit.PureDp(epsilon=1.0), "pairs": [audit.Pair(0.0, 1.0)]}
    audit.examine(noisy, **given, batched=True, trials=500_000, attacks=["leaf"])
    assert max(calls) == LARGEST_CALL
