"""Every process that plays computes on one thread, so that sums add up alike everywhere."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from joblib import delayed
from threadpoolctl import threadpool_info, threadpool_limits

import audit
from audit.threads import loaded, one_thread
from audit.workers import Workers


def most_threads() -> int:
    np.ones((8, 8)) @ np.ones((8, 8))
    return max(library["num_threads"] for library in threadpool_info())


def on_one_thread(data: float, n: int, rng: np.random.Generator) -> np.ndarray:
    if most_threads() > 1:
        raise ValueError("several threads")
    return data + rng.laplace(size=n)


@pytest.fixture(autouse=True)
def _three_threads():  # type: ignore[no-untyped-def]
    with threadpool_limits(limits=3):
        yield


def test_within_it_and_no_longer() -> None:
    assert most_threads() == 3
    with one_thread():
        assert most_threads() == 1
    with one_thread(loaded()):
        assert most_threads() == 1
    assert most_threads() == 3


def test_a_run_plays_on_one_thread() -> None:
    result = audit.examine(
        on_one_thread,
        claim=audit.PureDp(epsilon=1.0),
        pairs=[audit.Pair(0.0, 1.0)],
        batched=True,
        trials=500,
    )
    assert result.exceptions == (0.0, 0.0)
    assert most_threads() == 3


def test_worker_processes_have_one_thread() -> None:
    assert list(Workers(jobs=2).map([delayed(most_threads)() for _ in range(4)])) == [1] * 4


def test_the_command_line_has_one_thread() -> None:
    """Asked for before a library that would start threads is loaded."""
    probe = (
        "import runpy, sys; sys.argv = ['audit', 'list']\n"
        "try: runpy.run_module('audit', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "import numpy, scipy.linalg; from threadpoolctl import threadpool_info\n"
        "assert {library['num_threads'] for library in threadpool_info()} == {1}"
    )
    asked = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "3")
    done = subprocess.run(
        [sys.executable, "-c", probe],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
