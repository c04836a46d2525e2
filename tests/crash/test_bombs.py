"""Fork bombs in children: the audit ends as documented, and nothing of them is left."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import pytest

from audit.child import Child
from tests.cli.console import GIVEN, child
from tests.wire.processes import HAS_PROC, alive, none_left

pytestmark = pytest.mark.skipif(not HAS_PROC, reason="looks into /proc")
BOMB = Path(__file__).with_name("bomb.py")
MOST = 60


def survivors() -> list[str]:
    """Processes of the bomb that still run."""
    return [pid for pid in Path("pids").read_text().split() if alive(pid)]


@pytest.mark.parametrize("when", ["run", pytest.param("hello", marks=pytest.mark.slow)])
def test_nothing_is_left_of_a_bomb_in_a_command(when, tmp_path) -> None:
    words = [sys.executable, "-S", str(BOMB), "pids", str(MOST), when]
    target = "exec:" + shlex.join(words)
    outcome = child("run", target, *GIVEN, "--trials", 400, "--jobs", 1, cwd=tmp_path)
    assert outcome.code in (0, 3), outcome.err  # it answers well, but sees nothing
    assert "Traceback" not in outcome.err
    assert len(Path("pids").read_text().split()) >= MOST // 4
    assert none_left(survivors), survivors()


def test_nothing_is_left_of_a_bomb_in_an_isolated_target(tmp_path) -> None:
    target = "tests.crash.bomb:forks_much"
    words = ("--trials", 400, "--jobs", 1, "--isolate")
    outcome = child("run", target, *GIVEN, *words, cwd=tmp_path)
    assert outcome.code in (0, 3), outcome.err
    assert "Traceback" not in outcome.err
    assert len(Path("pids").read_text().split()) >= MOST // 4
    assert none_left(survivors), survivors()


def test_a_bomb_that_is_still_growing_is_put_out(tmp_path) -> None:
    """Closed in the middle: what forks while others are killed is met in the next pass."""
    script = (
        f"import sys; sys.path.append({str(BOMB.parent)!r}); "
        f"from bomb import Path, explode; explode(Path('pids'), {3 * MOST})"
    )
    bomb = Child([sys.executable, "-S", "-c", script], "bomb")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if Path("pids").exists() and len(Path("pids").read_text().split()) > 8:
            break
        time.sleep(0.001)
    bomb.close()
    assert none_left(survivors), survivors()
    begun = len(Path("pids").read_text().split())
    time.sleep(0.2)
    assert len(Path("pids").read_text().split()) == begun
