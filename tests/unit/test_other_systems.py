"""What Windows and macOS lack is used where it is guarded, and nothing else needs it."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from audit import child, footprint, interruption
from audit.errors import UsageError
from audit.footprint import Footprint
from audit.interruption import terminable
from audit.lock import HOLDER, LOCK, sole_user
from tests.cli.console import environment
from tests.unit.test_portability import POSIX_ONLY, ROOT, SOURCES

NOT_ON_WINDOWS = {
    "os": (
        *("fork", "forkpty", "killpg", "getpgid", "getpgrp", "setpgid", "setsid", "getsid", "nice"),
        *("getuid", "geteuid", "getgid", "getegid", "setuid", "setgid", "chown", "lchown", "uname"),
        *("register_at_fork", "wait", "wait3", "wait4", "WNOHANG", "WIFEXITED", "WIFSIGNALED"),
        *("sysconf", "getloadavg", "sched_getaffinity", "sched_yield", "mkfifo", "mknod", "chroot"),
        *("pipe2", "openpty", "posix_spawn", "statvfs", "sync", "O_NONBLOCK", "O_CLOEXEC"),
    ),
    "signal": (
        *("SIGKILL", "SIGALRM", "SIGHUP", "SIGQUIT", "SIGSTOP", "SIGCONT", "SIGCHLD", "SIGPIPE"),
        *("SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGPROF", "setitimer", "alarm", "pthread_sigmask"),
    ),
    "time": ("tzset", "clock_gettime"),
}
GUARDED = {
    "audit/child.py": {"killpg", "SIGKILL", "register_at_fork"},  # os.name, /proc, hasattr
    "audit/footprint.py": {"resource"},  # sys.platform
    "audit/interruption.py": {"pthread_sigmask"},  # hasattr
    "audit/inside.py": {"SIGXCPU"},  # both are loaded by the isolated process alone, which
    "audit/worker.py": {"fork", "WNOHANG", "resource", "select"},  # is refused on Windows
}
"""Every use of what Windows lacks, and the guard that stands before it."""

TESTS = sorted((ROOT / "tests").rglob("*.py"))


def posix_only(tree: ast.AST) -> Iterator[str]:
    """Modules, attributes and imported names that Windows does not have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & POSIX_ONLY
        elif isinstance(node, ast.ImportFrom):
            lacking = NOT_ON_WINDOWS.get(node.module or "", ())
            yield from {alias.name for alias in node.names} & set(lacking)
            yield from {node.module or ""} & POSIX_ONLY
        elif isinstance(node, ast.Attribute):
            owner = getattr(node.value, "id", "")
            yield from {node.attr} & set(NOT_ON_WINDOWS.get(owner, ()))


class AtImport(ast.NodeTransformer):
    """Leaves of a module what runs when it is imported: decorators and defaults, but no bodies."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [ast.Pass()]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return ast.Constant(None)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_use_of_what_windows_lacks_is_a_known_one() -> None:
    found = {path.relative_to(ROOT).as_posix(): set(posix_only(parsed(path))) for path in SOURCES}
    assert {path: names for path, names in found.items() if names} == GUARDED


def test_every_test_can_be_collected_on_windows() -> None:
    found = {path.name: list(posix_only(AtImport().visit(parsed(path)))) for path in TESTS}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_scans_see_what_they_look_for() -> None:
    lines = [
        "import resource",
        "from signal import SIGXCPU, SIGTERM",
        "from select import select",
        "@mark(signal.SIGKILL)\ndef f(x=os.WNOHANG):\n    os.fork()",
        "g = lambda: os.killpg",
        "os.getpid()",
    ]
    tree = ast.parse("\n".join(lines))
    everywhere = ["SIGKILL", "SIGXCPU", "WNOHANG", "fork", "killpg", "resource", "select"]
    assert sorted(posix_only(tree)) == everywhere
    assert sorted(posix_only(AtImport().visit(tree))) == [
        *("SIGKILL", "SIGXCPU", "WNOHANG", "resource", "select"),
    ]


AS_WINDOWS = f"""
import sys
from unittest import mock
import audit.api, audit.cli, filelock, matplotlib.backends.backend_svg  # which ask for the system
import threadpoolctl

filelock.FileLock = mock.MagicMock()  # and these do at every call
threadpoolctl.ThreadpoolController = mock.MagicMock()
for module, names in {NOT_ON_WINDOWS!r}.items():
    for name in names:
        vars(sys.modules[module]).pop(name, None)
for name in [name for name in sys.modules if name.partition(".")[0] == "audit"]:
    del sys.modules[name]
sys.modules.update(dict.fromkeys({sorted(POSIX_ONLY)!r}))  # None: an import of it fails
sys.platform = "win32"
from audit.cli import main
main(sys.argv[1:], prog_name="python -m audit")
"""
GIVEN = ("--claim", "eps=1", "--pair", "0.0", "1.0", "--trials", "400", "--jobs", "1")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 0, "None of 1 audited claim refuted."),
        (("--isolate",), 2, "which Windows lacks"),
    ],
)
def test_a_run_needs_nothing_that_windows_lacks(words, code, said, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_WINDOWS, "run", "tests.data.targets:noisy_block", *GIVEN, *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert Path(tmp_path, "audit-report", "record.json").exists() == (code == 0)


@pytest.mark.parametrize(
    ("platform", "told", "bytes_taken"),
    [("linux", 3, 3 * 1024), ("darwin", 3, 3), ("win32", 3, 0)],
)
def test_what_a_process_takes_where_there_is_no_proc(
    platform: str, told: int, bytes_taken: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """macOS counts in bytes, others in KiB, and Windows does not tell."""
    usage = SimpleNamespace(ru_maxrss=told)
    fake = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _: usage)
    if platform == "win32":
        fake = None  # an import of it fails
    monkeypatch.setitem(sys.modules, "resource", fake)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(footprint, "_STATUS", tmp_path / "absent")
    monkeypatch.setattr(footprint, "_FORGET", tmp_path / "absent" / "too")
    assert footprint.peak() == bytes_taken
    if bytes_taken:
        assert Footprint.within("1M").limit == 2**20
    else:
        with pytest.raises(UsageError, match="this system does not tell what a process takes"):
            Footprint.within("1M")


def test_without_a_shell_or_room_there_is_no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/bin/sh")

    monkeypatch.setattr(child.os, "name", "posix")
    monkeypatch.setattr(child.subprocess, "Popen", refuse)
    assert child._watch(12345) is None


def test_only_the_main_thread_takes_signals() -> None:
    """Elsewhere Python refuses a handler."""
    ended = []

    def play() -> None:
        with terminable():
            ended.append(True)

    thread = threading.Thread(target=play)
    thread.start()
    thread.join()
    assert ended == [True]


def test_a_copy_of_the_process_takes_its_signal_as_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With every process mocked, as nothing forks on Windows."""
    handlers, killed = {}, []

    def install(number: int, handler: object) -> str:
        handlers[number] = handler
        return "before"

    fake = SimpleNamespace(SIGTERM=15, SIG_DFL="default", signal=install)
    monkeypatch.setattr(interruption, "signal", fake)
    with terminable():
        with pytest.raises(KeyboardInterrupt):
            handlers[15](15, None)
        copy = SimpleNamespace(getpid=lambda: -1, kill=lambda *what: killed.append(what))
        monkeypatch.setattr(interruption, "os", copy)
        handlers[15](15, None)
        assert (handlers, killed) == ({15: "default"}, [(-1, 15)])
    assert handlers == {15: "before"}


def test_exit_codes_are_left_to_the_system_where_no_signal_can_be_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[object] = []
    monkeypatch.setattr(interruption, "atexit", SimpleNamespace(register=lambda *a: kept.append(a)))
    monkeypatch.setattr(interruption, "signal", SimpleNamespace(SIGINT=2))
    interruption.keep_exit_code()
    assert kept == []


@pytest.mark.parametrize("kept", [{LOCK}, {LOCK, HOLDER}])
def test_files_of_a_lock_stay_where_windows_keeps_them(
    kept: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It removes no file that is open, here or by whoever asks for the holder."""
    real = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self.name in kept:
            raise PermissionError(13, "The process cannot access the file", str(self))
        real(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    for _ in range(2):  # nor are they an obstacle
        with pytest.raises(UsageError, match="refused"), sole_user(tmp_path / "out"):
            raise UsageError("refused")
        assert {path.name for path in (tmp_path / "out").iterdir()} == kept
