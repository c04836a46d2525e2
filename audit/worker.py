"""Forked workers: they may crash, and whoever asked them is told how.

A worker answers requests one after the other, until one of them ends it. While it works it counts
the trials that begin in shared memory, so that a crash can be charged to a trial. Its memory and
processor time are bounded where the system can do that (not the address space on macOS).
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import mmap
import os
import resource
import select
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from audit.child import HEADER, framed
from audit.limits import Limits

_CHUNK = 2**16
_COUNTER = 8
_POLL = 0.1

Serve = Callable[[bytes, Iterator[None]], bytes]


@dataclass(frozen=True)
class Death:
    """How a worker ended, and how many trials of its request it had begun."""

    code: int
    started: int


class Worker:
    """A forked process that answers requests.

    Args:
        serve: What it does with a request; asks the iterator whenever another trial begins.
        limits: Memory, and time per request.
    """

    def __init__(self, serve: Serve, limits: Limits) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._begun = memoryview(mmap.mmap(-1, _COUNTER)).cast("Q")
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._requests)
            os.close(self._answers)
            _work(serve, limits, (requests, answers), self._begun)
        os.close(requests)
        os.close(answers)

    def ask(self, payload: bytes) -> bytes | Death:
        """The packed answer, or how the worker ended instead."""
        self._begun[0] = 0
        with contextlib.suppress(BrokenPipeError):
            write(self._requests, framed(payload))
        buffer = bytearray()
        for chunk in self._chunks():
            buffer += chunk
            size = int.from_bytes(buffer[:HEADER], "big")
            if len(buffer) == HEADER + size > HEADER:
                return bytes(buffer[HEADER:])
        os.close(self._requests)
        os.close(self._answers)
        return Death(self._code, self._begun[0])

    def _chunks(self) -> Iterator[bytes]:
        """What the worker writes until it ends; its children may hold the pipe open."""
        ended = False
        while True:
            ready, _, _ = select.select([self._answers], [], [], 0 if ended else _POLL)
            if ready and (chunk := os.read(self._answers, _CHUNK)):
                yield chunk
                continue
            if ended or ready:
                break
            ended = self._reap(os.WNOHANG)
        self._reap(0)

    def _reap(self, options: int) -> bool:
        """Whether the worker has ended; keeps how."""
        if self._pid:
            pid, status = os.waitpid(self._pid, options)
            if pid:
                self._pid, self._code = 0, os.waitstatus_to_exitcode(status)
        return not self._pid


def _work(serve: Serve, limits: Limits, pipes: tuple[int, int], begun: memoryview[int]) -> NoReturn:
    """The worker's life; it ends with the last request, or with a trial."""
    requests, answers = pipes
    try:
        faulthandler.enable()
        np.random.seed()  # noqa: NPY002  (a fork must not repeat what another drew from it)
        _limit_memory(limits)
        worker = os.getpid()
        while payload := frame(requests):
            _limit_time(limits)
            answer = serve(payload, _ticks(begun))
            if os.getpid() != worker:  # a target forked and its copy came back here
                break
            write(answers, framed(answer))
    except BaseException:  # noqa: BLE001  (nothing may return into the supervisor's code)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _ticks(begun: memoryview[int]) -> Iterator[None]:
    """Counts another trial each time it is asked."""
    while True:
        begun[0] += 1
        yield None


def _limit_memory(limits: Limits) -> None:
    """Bound the address space; systems that cannot do that leave it unbounded."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        taken = pages * resource.getpagesize()
    except OSError:
        taken = 0
    _lower(resource.RLIMIT_AS, taken + limits.bytes)


def _limit_time(limits: Limits) -> None:
    """Bound the processor time of one request; the audit itself watches the clock."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent = usage.ru_utime + usage.ru_stime
    _lower(resource.RLIMIT_CPU, math.ceil(spent + limits.seconds * (os.cpu_count() or 1)) + 1)


def _lower(kind: int, limit: int) -> None:
    """Set a soft limit, within the hard one."""
    _, hard = resource.getrlimit(kind)
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (soft, hard))


def frame(source: int) -> bytes:
    """The next frame; empty at the end of the stream."""
    size = int.from_bytes(_exactly(source, HEADER), "big")
    return _exactly(source, size)


def _exactly(source: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(source, min(size - len(data), _CHUNK))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def write(sink: int, data: bytes) -> None:
    """Write all of the bytes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(sink, rest) :]
