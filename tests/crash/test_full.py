"""A disk that is full, a file that may not grow, a folder that may not be written."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from audit import blocklog
from audit.record import encode
from tests.cli.console import PATIENCE, Outcome, audit, command, environment
from tests.crash.runs import LONG, finish, leftovers
from tests.records import CLAIMS, one, record_of

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
WRITERS = {
    "report": ("report", "r.json", "-f", "html=made"),
    "index": ("report", "r.json", "--index", "made"),
    "accept": ("accept", "r.json", "--reason", "why", "--baseline", "made"),
    "score": ("score", "--counts", 30, 9, 28, 9, "--claim", "eps=1", "-f", "json=made"),
}


@pytest.fixture
def record_file():
    record = record_of([one("a", CLAIMS[0], "subject", "refuted")])
    Path("r.json").write_bytes(encode(record))


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("call", "number", "code"),
    [
        ("os.fsync", errno.ENOSPC, 3),
        ("os.fsync", errno.EIO, 3),
        ("os.fsync", errno.EDQUOT, 3),
        ("tempfile.mkstemp", errno.ENOSPC, 3),
        ("tempfile.mkstemp", errno.EROFS, 2),
        ("tempfile.mkstemp", errno.EACCES, 2),
        ("pathlib.Path.replace", errno.ENOSPC, 3),
    ],
)
def test_no_writer_leaves_half_a_file(name, call, number, code, record_file) -> None:
    Path("made").write_text("as it was")
    error = OSError(number, os.strerror(number))
    with mock.patch(call, side_effect=error):
        outcome = audit(*WRITERS[name])
    assert outcome.code == code
    assert f"made: {os.strerror(number)}" in outcome.complaint
    assert Path("made").read_text() == "as it was"
    assert leftovers() == []


@pytest.mark.parametrize("after", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_a_full_disk_keeps_the_finished_blocks(after, uninterrupted) -> None:
    """The log takes some appends, then none."""
    real, seen = blocklog.BlockLog.append, []

    def append(self, *given):
        seen.append(1)
        if len(seen) > after:
            with mock.patch.object(blocklog.msgspec.json, "encode", side_effect=FULL):
                real(self, *given)
        real(self, *given)

    with mock.patch.object(blocklog.BlockLog, "append", append):
        outcome = audit(*LONG, "--jobs", 1)
    assert outcome.code == 3
    assert "blocks.jsonl: No space left on device; make room" in outcome.complaint
    assert not Path("out/record.json").exists()
    assert finish() == uninterrupted


def limited(most: int) -> Outcome:
    """The run in a process whose files may not grow beyond so many bytes."""

    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    done = subprocess.run(
        command(*LONG, "--jobs", 1, "--resume"),
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(os.name != "posix", reason="needs limits of POSIX")
@pytest.mark.parametrize(
    "most",
    [
        1500,
        pytest.param(40, marks=pytest.mark.slow),
        pytest.param(6_000, marks=pytest.mark.slow),
        pytest.param(20_000, marks=pytest.mark.slow),
    ],
)
def test_files_that_may_not_grow_lose_and_double_nothing(most, uninterrupted) -> None:
    """Twice, since a torn line must not hide what a second attempt appends."""
    for _ in range(2):
        outcome = limited(most)
        assert outcome.code == 3, outcome.err
        assert "Traceback" not in outcome.err
        assert "File too large" in outcome.err.splitlines()[-1]
        assert not Path("out/record.json").exists()
        assert leftovers() == []
    assert finish() == uninterrupted


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_standard_output_is_no_verdict(record_file) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("report", "r.json"),
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: output: No space left on device")


@pytest.mark.parametrize("call", ["pathlib.Path.mkdir", "os.open"])
def test_a_read_only_folder_is_refused_before_anything_is_played(call) -> None:
    error = OSError(errno.EROFS, os.strerror(errno.EROFS), "out")
    with mock.patch(call, side_effect=error):
        outcome = audit(*LONG, "--jobs", 1)
    assert outcome.code == 2
    assert "out: Read-only file system" in outcome.complaint


@pytest.mark.skipif("os.name != 'posix' or os.geteuid() == 0", reason="root may write anywhere")
def test_a_folder_without_permission_is_refused() -> None:
    Path("closed").mkdir(mode=0o500)
    outcome = audit(*LONG, "--out", "closed")
    assert outcome.code == 2
    assert "Permission denied" in outcome.complaint


def test_several_reports_are_made_before_the_first_is_written(record_file) -> None:
    with mock.patch("audit.render.page.render_html", side_effect=MemoryError):
        outcome = audit("report", "r.json", "-f", "json=first", "-f", "html=second")
    assert outcome.code == 3
    assert not Path("first").exists()
