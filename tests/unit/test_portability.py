"""Where systems differ: other systems are mocked, so that their branches run here too."""

from __future__ import annotations

import ast
import errno
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from audit import child, documents, isolate, remote, shell
from audit.claim import PureDp
from audit.errors import UsageError
from audit.files import write_atomically
from audit.limits import Limits
from audit.ownstate import borrowed

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(p for d in ("audit", "algorithms", "attacks") for p in (ROOT / d).rglob("*.py"))
RECORD = ROOT / "reports" / "reference" / "record.json"
POSIX_ONLY = {"resource", "fcntl", "select", "termios", "pwd", "grp"}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.AST]:
    """Every module of ours, by its path."""
    return {
        p.relative_to(ROOT).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in SOURCES
    }


def text_files(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Calls that open a text file, and their modes."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        owner = getattr(getattr(call.func, "value", None), "id", "")
        if name in ("read_text", "write_text"):
            yield call, name[0]
        elif name in ("open", "opener") and owner not in ("os", "self"):
            place = 0 if isinstance(call.func, ast.Attribute) else 1
            parts = [node for given in call.args[place : place + 1] for node in ast.walk(given)]
            modes = [str(node.value) for node in parts if isinstance(node, ast.Constant)] or ["r"]
            if not any("b" in mode for mode in modes):
                yield call, modes[0]


def test_text_files_state_their_encoding_and_newline(trees: dict[str, ast.AST]) -> None:
    """A code page or a carriage return of the system must not get into a file."""
    seen = 0
    for path, tree in trees.items():
        for call, mode in text_files(tree):
            seen += 1
            said = {keyword.arg for keyword in call.keywords}
            assert "encoding" in said, f"{path}:{call.lineno}"
            assert mode[0] == "r" or "newline" in said, f"{path}:{call.lineno}"
    assert seen > 5


def test_the_scan_of_text_files_sees_what_it_looks_for() -> None:
    lines = [
        "open('x')",
        "Path('x').open('w', encoding='utf-8')",
        "open('x', 'rb')",
        "f.read_text()",
        "p.open('ab' if x else 'wb')",
        "os.open(x, 3)",
    ]
    assert [mode for _, mode in text_files(ast.parse("\n".join(lines)))] == ["r", "w", "r"]


def test_modules_of_one_system_are_imported_where_guarded(
    trees: dict[str, ast.AST],
) -> None:
    for path, tree in trees.items():
        names = set()
        for node in ast.walk(tree):
            plain = isinstance(node, ast.Import)
            if plain or (isinstance(node, ast.ImportFrom) and node.module in ("signal", "os")):
                names |= {alias.name for alias in node.names}
        found = names & (POSIX_ONLY | {"SIGXCPU", "SIGKILL", "fork"})
        guarded = ("audit/worker.py", "audit/inside.py", "audit/footprint.py")
        assert not found or path in guarded, (path, found)


def test_the_modules_of_one_system_are_not_loaded_with_the_command_line() -> None:
    code = (
        "import sys, audit.cli, audit.isolate, audit.engine; print('audit.worker' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_isolation_is_refused_where_nothing_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UsageError, match="needs fork and resource limits, which Windows lacks"):
        isolate.isolated(isolate.Spec("module:attr", "", (), Limits()), PureDp(epsilon=1.0), ())


class FakeProcess:
    pid = 12345

    def __init__(self) -> None:
        self.killed = 0

    def kill(self) -> None:
        self.killed += 1


def test_a_child_is_killed_alone_where_there_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "os", SimpleNamespace(name="nt"))
    process: Any = FakeProcess()
    child._kill_group(process)
    assert process.killed == 1
    assert child._watch(12345) is None


@pytest.mark.parametrize("error", [ProcessLookupError, PermissionError])
def test_a_group_that_is_gone_is_no_error(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux finds no such group; macOS allows no signal to one of which only zombies are left."""
    killed = []

    def killpg(group: int, number: int) -> None:
        killed.append(group)
        raise error

    monkeypatch.setattr(child, "os", SimpleNamespace(name="posix", killpg=killpg))
    monkeypatch.setattr(child.signal, "SIGKILL", 9, raising=False)
    process: Any = FakeProcess()
    child._kill_group(process)
    assert (killed, process.killed) == ([12345], 0)


def test_without_proc_nobody_is_searched_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(child, "Path", lambda _: tmp_path / "absent")
    child._kill_marked("mark")


@pytest.mark.skipif("sys.platform == 'win32'", reason="the worker's modules are not there")
def test_limits_that_a_system_does_not_know_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS has no /proc and refuses to bound the address space."""
    from audit import worker

    asked = []

    def setrlimit(kind: int, limits: tuple[int, int]) -> None:
        asked.append(kind)
        if kind == worker.resource.RLIMIT_AS:
            raise ValueError("current limit exceeds maximum limit")

    class Absent:
        def __init__(self, _: str) -> None:
            pass

        def read_text(self, encoding: str) -> str:
            raise FileNotFoundError

    monkeypatch.setattr(worker.resource, "setrlimit", setrlimit)
    monkeypatch.setattr(worker, "Path", Absent)
    worker._limit_memory(Limits())
    worker._limit_time(Limits())
    kinds = ("RLIMIT_CORE", "RLIMIT_AS", "RLIMIT_CPU")
    assert asked == [getattr(worker.resource, kind) for kind in kinds]


def test_ends_are_told_by_name_or_number() -> None:
    assert child.ending(3) == "exit code 3"
    assert child.ending(0xC0000005) == "exit code 3221225477"  # an access violation on Windows
    assert child.ending(-int(signal.SIGTERM)) == "SIGTERM"
    assert child.ending(-250) == "signal 250"


@pytest.mark.parametrize(
    ("platform", "target", "words"),
    [
        ("linux", r"exec:node 'my file.js' a\ b # c", ("node", "my file.js", "a b", "#", "c")),
        ("win32", r"exec:C:\tools\noisy.exe --seed 1", (r"C:\tools\noisy.exe", "--seed", "1")),
        ("win32", r'exec:"C:\my tools\n.exe" x', (r"C:\my tools\n.exe", "x")),
        ("linux", r'exec:"say \"hi\"" x', ('say "hi"', "x")),
    ],
)
def test_commands_are_split_as_the_system_writes_paths(
    platform: str, target: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote.sys, "platform", platform)
    assert remote._split(target) == words


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_a_command_that_cannot_be_split_is_refused(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote.sys, "platform", platform)
    with pytest.raises(UsageError, match="cannot be split into words"):
        remote._split("exec:node 'open")
    with pytest.raises(UsageError, match="expected exec:COMMAND"):
        remote._split("exec:  ")


def stream_of(*, terminal: bool) -> tuple[io.TextIOWrapper, io.BytesIO]:
    """A stream as Windows makes it: a code page, and carriage returns."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252", newline="\r\n")
    if terminal:
        stream.isatty = lambda: True  # type: ignore[method-assign]
    return stream, raw


def test_a_code_page_cannot_end_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    (out, written), (err, shown) = stream_of(terminal=False), stream_of(terminal=True)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    shell.same_text_everywhere()
    for stream in (out, err):
        stream.write("ε ─ ok\n")
        stream.flush()
    assert written.getvalue() == "ε ─ ok\n".encode()
    assert shown.getvalue() == b"? ? ok\r\n"
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    shell.same_text_everywhere()  # what is no stream of bytes is left alone


def test_the_command_line_writes_utf8_whatever_the_code_page() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "audit", "report", str(RECORD)],
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode in (0, 1)
    assert "─" in done.stdout.decode("utf-8")
    assert b"\r" not in done.stdout


@pytest.mark.parametrize(
    ("number", "fatal"), [(errno.EPIPE, False), (errno.EINVAL, False), (errno.ENOSPC, True)]
)
def test_a_reader_that_goes_away_is_told_in_two_ways(
    number: int, fatal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    duplicated = []

    def echo(text: str, nl: bool) -> None:
        raise OSError(number, "gone")

    monkeypatch.setattr(documents.click, "echo", echo)
    monkeypatch.setattr(documents.os, "dup2", lambda *ends: duplicated.append(ends))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(fileno=lambda: 1, flush=lambda: None))
    if fatal:
        with pytest.raises(OSError, match="gone"):
            documents._print("text")
    else:
        documents._print("text")
    assert len(duplicated) == (not fatal)


def test_a_policy_may_print_what_a_console_cannot_show() -> None:
    with borrowed(mute=True):
        print("ε → \ud800")
        assert sys.stdout.encoding == "utf-8"


def test_files_are_the_same_bytes_everywhere(tmp_path: Path) -> None:
    write_atomically(tmp_path / "deep" / "report.html", "ε\n".encode())
    assert (tmp_path / "deep" / "report.html").read_bytes() == b"\xce\xb5\n"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["report.html"]
