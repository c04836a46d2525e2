"""Child processes that answer requests: bounded in time and size, and never left behind.

One thread feeds stdin, one empties stdout and one stderr, so that no pipe can fill up and block;
whoever asks waits for the answer until a deadline. A child leads a process group, and the whole
group is killed with it. If the audit itself is killed, a guard (a shell that waits for the end of
a pipe that only the audit holds) kills the group.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from audit.errors import ProcessError, UsageError

LONGEST_LINE = 2**27
HEADER = 8
_CHUNK = 2**16
_KEPT_STDERR = 4096
_SHOWN_LINES, _SHOWN_CHARACTERS = 5, 300
_GRACE = 1.0
_POLL = 0.1
_PASSES = 50
_MARK = "DPAUDIT_CHILD"
_GUARD = 'read -r _; kill -s KILL -- "-$1"'


class Child:
    """A running child process.

    Args:
        command: Program and arguments.
        name: What errors call it.
        farewell: What asks it to end by itself.

    Attributes:
        known: What was already told to the child or by it; for whoever talks to it.

    Raises:
        UsageError: When the program cannot be started.
    """

    def __init__(self, command: Sequence[str], name: str, farewell: bytes = b"") -> None:
        self.name = name
        self.farewell = farewell
        self.known: dict[str, Any] = {}
        self._mark = uuid.uuid4().hex
        self._process = self._start(command)
        self._guard = _watch(self._process.pid)
        self._buffer = bytearray()
        self._stderr = bytearray()
        self._closed = False
        self._outgoing: queue.Queue[bytes | None] = queue.Queue()
        self._incoming: queue.Queue[bytes] = queue.Queue(maxsize=64)
        for work in (self._feed, self._read, self._drain):
            threading.Thread(target=work, daemon=True).start()
        _ALIVE.add(self)

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603  (running what the user names is the task)
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, _MARK: self._mark},
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"{self.name}: cannot start {command[0]!r}: {why}. Expected a program on PATH or "
                "the path of an executable file"
            ) from None

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its group."""
        return self._process.pid

    def send(self, data: bytes) -> None:
        """Send bytes; returns at once."""
        self._outgoing.put(data)

    def line(self, deadline: float, longest: int = LONGEST_LINE) -> bytes:
        """The next line, without its end.

        Args:
            deadline: Value of ``time.monotonic()`` until which to wait.
            longest: Largest length in bytes.

        Raises:
            ProcessError: When none comes, or one that is too long.
        """
        seen = 0
        while (end := self._buffer.find(b"\n", seen)) < 0:
            seen = len(self._buffer)
            if seen > longest:
                raise self.failed(f"wrote a line of more than {longest:,} bytes")
            self._buffer += self._more(deadline)
        return self._take(end + 1)[:-1]

    def exactly(self, size: int, deadline: float) -> bytes:
        """The next `size` bytes.

        Raises:
            ProcessError: When they do not come in time.
        """
        while len(self._buffer) < size:
            self._buffer += self._more(deadline)
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _more(self, deadline: float) -> bytes:
        """The next chunk of stdout; a child that ended or is late is an error."""
        ended = None
        while True:
            now = time.monotonic()
            if now > deadline:
                raise self.failed("did not answer within the time limit (--time-limit)")
            with contextlib.suppress(queue.Empty):
                chunk = self._incoming.get(timeout=_POLL)
                if chunk:
                    return chunk
                raise self.failed(self._farewell())
            if self._process.poll() is not None:  # a grandchild may hold the pipe open
                ended = ended or now
                if now - ended > _GRACE / 2:
                    raise self.failed(self._farewell())

    def _farewell(self) -> str:
        """How a child ended that said no more."""
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return "closed its stdout"
        return f"ended ({ending(code)}) without an answer"

    def failed(self, what: str) -> ProcessError:
        """The error that the child did something wrong, with the end of its stderr."""
        if self._process.poll() is not None:
            time.sleep(_POLL)  # what it said last may still be on its way
        text = self._stderr.decode("utf-8", "replace")
        lines = [x for x in text.splitlines() if x.strip()][-_SHOWN_LINES:]
        shown = " | ".join("".join(c if c.isprintable() else " " for c in x) for x in lines)
        tail = shown[-_SHOWN_CHARACTERS:]
        return ProcessError(f"{self.name} {what}" + (f"; its stderr ends: {tail}" if tail else ""))

    def close(self) -> None:
        """Kill the child and all that it started."""
        if self._closed:
            return
        self._closed = True
        _ALIVE.discard(self)
        self._outgoing.put(None)
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        _kill_group(self._process)
        _kill_marked(self._mark)
        self._process.wait()

    def wait(self, deadline: float) -> None:
        """Let the child end by itself until a deadline."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))

    def _feed(self) -> None:
        stream = _open(self._process.stdin)
        with contextlib.suppress(OSError), stream:
            while (data := self._outgoing.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[stream.write(rest) :]

    def _read(self) -> None:
        stream = _open(self._process.stdout)
        with contextlib.suppress(OSError), stream:
            while chunk := stream.read(_CHUNK):
                self._deliver(chunk)
        self._deliver(b"")

    def _deliver(self, chunk: bytes) -> None:
        while not self._closed:
            with contextlib.suppress(queue.Full):
                self._incoming.put(chunk, timeout=_POLL)
                return

    def _drain(self) -> None:
        stream = _open(self._process.stderr)
        with contextlib.suppress(OSError), stream:
            while chunk := stream.read(_CHUNK):
                self._stderr = (self._stderr + chunk)[-_KEPT_STDERR:]


_ALIVE: set[Child] = set()
_IDLE: dict[tuple[int, str, object], list[Child]] = {}


@contextmanager
def borrowed(key: object, start: Callable[[], Child]) -> Iterator[Child]:
    """An idle child of this process and folder, or a fresh one; kept for later if all goes well.

    Args:
        key: What kind of child it is; hashable.
        start: Makes one.
    """
    idle = _IDLE.setdefault((os.getpid(), str(Path.cwd()), key), [])
    try:
        child = idle.pop()
    except IndexError:
        child = start()
    try:
        yield child
    except BaseException:  # it may be in the middle of an answer
        child.close()
        raise
    idle.append(child)


def close_all() -> None:
    """End all children of this process: those that can be asked to have a second for it."""
    children, deadline = list(_ALIVE), time.monotonic() + _GRACE
    asked = [child for child in children if child.farewell]
    for child in asked:
        child.send(child.farewell)
    for child in asked:
        child.wait(deadline)
    for child in children:
        child.close()
    _IDLE.clear()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):  # a fork must not end its parent's children
    os.register_at_fork(after_in_child=_ALIVE.clear)


def framed(data: bytes) -> bytes:
    """Bytes behind their length."""
    return len(data).to_bytes(HEADER, "big") + data


def ending(code: int) -> str:
    """How a process ended, in words: ``exit code 3`` or ``SIGSEGV``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("expected a pipe")
    return stream


def _watch(group: int) -> subprocess.Popen[bytes] | None:
    """A guard that kills the group when this process ends without having done so.

    None where there are no groups, or no shell or no room for another process: the audit itself
    still kills the group, unless it is killed.
    """
    if os.name != "posix":
        return None
    with contextlib.suppress(OSError):
        return subprocess.Popen(  # noqa: S603  (no word of it comes from outside)
            ["/bin/sh", "-c", _GUARD, "sh", str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if os.name != "posix":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """Kill what left the group, where /proc tells: descendants inherit the child's environment.

    What forks while it is being killed is met in the next pass.
    """
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(_PASSES):
        found = list(_carrying(wanted))
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _carrying(wanted: bytes) -> Iterator[int]:
    """Processes with that word in their environment; one that has ended has none."""
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in place.read_bytes().split(b"\0"):
                yield int(place.parent.name)
