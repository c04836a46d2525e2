"""Whatever a command does: a clear error in time, and no process of it is left."""

import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from audit import child
from audit.errors import ProcessError, UsageError
from audit.limits import Limits
from audit.mechanism import play
from audit.remote import remote
from tests.wire.hostile import AT_HELLO, AT_RUN
from tests.wire.processes import HAS_PROC, alive, none_left

HERE = Path(__file__).parent
SECONDS, AMPLE = 3.0, 60.0  # what is ample is not used up: the machine may be busy
LATE = "did not answer within the time limit"
NONSENSE = "Expected one JSON object per line on stdout"

EXPECTED = {
    "kills itself": "ended (SIGKILL) without an answer; its stderr ends: started",
    "segfault": "ended (SIGSEGV) without an answer",
    "exits": "ended (exit code 3) without an answer",
    "sleeps": LATE,
    "stops itself": LATE,
    "ignores signals": LATE,
    "closes stdout": "closed its stdout",
    "drips": LATE,
    "endless line": "wrote a line of more than 134,217,728 bytes",
    "floods": "expected 'outputs'",
    "invalid UTF-8": "can't decode byte 0xff",
    "no JSON": NONSENSE,
    "empty line": NONSENSE,
    "a list": NONSENSE,
    "lower-case nan": NONSENSE,
    "deep nesting": "nested too deeply",
    "same key twice": "same key twice",
    "unknown field": "unknown field `output`",
    "unknown type": "Invalid value 'views'",
    "outputs no list": "Expected `array`, got `int`",
    "other reply": "expected 'outputs'",
    "other id": "expected id 3, got 4",
    "answers twice": "expected id 4, got 3",
    "too few": "gave 7 outputs for 8 trials",
    "too many": "gave 9 outputs for 8 trials",
    "raised nobody": "trial 999 of 8",
    "torn answer": "ended (exit code 0) without an answer",
    "says error": "says: out of licences",
    "floods stderr": "ended (exit code 7) without an answer; its stderr ends",
    "grandchild holds stdout": "ended (exit code 4) without an answer",
    "grandchild and sleeps": LATE,
    "daemon holds stdout": "ended (exit code 4) without an answer",
    "daemon and sleeps": LATE,
    "reads no data": LATE,
    "hello exits": "ended (exit code 3) without an answer",
    "hello sleeps": LATE,
    "hello garbage": NONSENSE,
    "hello version": "speaks version 2",
    "hello claim": "epsilon > 0",
    "hello relation": "replace-one, add-remove, declared",
    "hello kind": "Invalid enum value 'stream'",
    "hello pairs": "Expected `array` of length 2",
}
REFUSED = {"hello version", "hello claim", "hello relation"}


def test_every_hostile_command_is_expected():
    assert set(EXPECTED) == {*AT_RUN, *AT_HELLO, "reads no data"}
    assert len(EXPECTED) >= 20


def processes(file):
    return [int(pid) for pid in file.read_text().split()]


def target(name, file):
    return "exec:" + shlex.join([sys.executable, "-S", str(HERE / "hostile.py"), name, str(file)])


def provoke(name, file):
    """Hello, and two blocks of trials, on more data than fits into a pipe."""
    late = Limits(seconds=SECONDS if EXPECTED[name] == LATE else AMPLE)
    hello = late if name in AT_HELLO else Limits(seconds=AMPLE)
    mechanism = replace(remote(target(name, file), None, (), limits=hello), limits=late)
    for _ in range(2):
        play(mechanism, [0.5] * 50_000, 8, np.random.default_rng(0))


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc to see what is left")
@pytest.mark.parametrize("name", EXPECTED)
def test_hostile(name, tmp_path):
    file = tmp_path / "pids"
    started = time.monotonic()
    with pytest.raises(UsageError if name in REFUSED else ProcessError) as caught:
        provoke(name, file)
    assert time.monotonic() - started < 2 * AMPLE  # they would go on for a thousand seconds
    assert EXPECTED[name] in str(caught.value)
    assert len(str(caught.value)) < 1500
    child.close_all()  # what answered well so far is kept for later
    pids = processes(file)
    assert len(pids) >= (2 if "holds" in name or "and sleeps" in name else 1)
    assert none_left(lambda: [pid for pid in pids if alive(pid)])


CANNOT_START = {
    "no command": ("exec:", "expected exec:COMMAND"),
    "blank command": ("exec:   ", "expected exec:COMMAND"),
    "open quote": ("exec:node 'noisy.js", "cannot be split"),
    "no program": ("exec:no-such-program-anywhere x", "No such file"),
    "a folder": (f"exec:{HERE}", "ermission denied"),
    "not executable": (f"exec:{HERE / 'hostile.py'}", "ermission denied"),
}


@pytest.mark.skipif(os.name != "posix", reason="messages of the operating system")
@pytest.mark.parametrize("name", CANNOT_START)
def test_what_cannot_be_started_is_refused(name):
    text, expected = CANNOT_START[name]
    with pytest.raises(UsageError, match=expected):
        remote(text, None, ())
