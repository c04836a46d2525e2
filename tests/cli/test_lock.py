"""One run per directory; the lock of a dead process is no obstacle."""

import subprocess
import sys
from pathlib import Path

import pytest

from audit.errors import UsageError
from audit.lock import HOLDER, sole_user
from tests.cli.console import GIVEN, environment, run, target

HOLD = """
import sys, time
from pathlib import Path
from audit.lock import sole_user
with sole_user(Path("out")):
    print("held", flush=True)
    time.sleep(300)
"""
NOISY = (target("noisy_block"), *GIVEN)


@pytest.fixture
def busy():
    """Another process that writes into ``out``."""
    words = [sys.executable, "-c", HOLD]
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_run_is_refused_and_names_the_first(busy):
    outcome = run(*NOISY)
    assert outcome.code == 2
    assert f"out: process {busy.pid} on " in outcome.complaint
    assert "give another directory with --out" in outcome.complaint
    assert not Path("out/record.json").exists()
    assert run(*NOISY, "--out", "elsewhere").code == 0
    again = run(*NOISY)  # having asked does not take the lock away
    assert f"process {busy.pid}" in again.complaint


def test_the_lock_of_a_killed_run_is_taken_over(busy):
    busy.kill()
    busy.wait()
    assert Path("out", HOLDER).exists()
    assert run(*NOISY).code == 0
    assert not Path("out", HOLDER).exists()


def test_the_lock_ends_with_its_run_whatever_happens():
    assert run(*NOISY).code == 0
    assert run(target("leaves"), *GIVEN).code == 3
    with pytest.raises(ZeroDivisionError), sole_user(Path("out")):
        raise ZeroDivisionError
    assert run(*NOISY).code == 0


def test_a_refused_run_leaves_no_directory(empty_folder):
    for made, before in (("new", False), ("old", True)):
        folder = empty_folder / made
        if before:
            folder.mkdir()
        with pytest.raises(UsageError), sole_user(folder):
            raise UsageError("refused")
        assert folder.exists() == before


def test_a_holder_that_has_not_written_its_name_yet(empty_folder):
    with sole_user(empty_folder):
        (empty_folder / HOLDER).unlink()
        with (
            pytest.raises(UsageError, match="another run is writing here"),
            sole_user(empty_folder),
        ):
            pytest.fail("two users of one directory")
