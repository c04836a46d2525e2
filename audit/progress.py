"""Progress on stderr: a bar on a terminal, a line per finished case elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sized
from contextlib import contextmanager, redirect_stdout
from typing import IO

import click

from audit.workers import Progress


@contextmanager
def progress_of(cases: Sized) -> Iterator[Progress]:
    """Something that the engine tells a case and its finished share."""
    if not sys.stderr.isatty():
        yield _line_per_case
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("auditing", total=len(cases))
        shares: dict[str, float] = {}

        def update(case: str, share: float) -> None:
            shares[case] = share
            bars.update(task, completed=sum(shares.values()), description=case[-40:])

        yield update


def _line_per_case(case: str, share: float) -> None:
    if share >= 1.0:
        click.echo(f"done: {case}", err=True)


@contextmanager
def report_alone() -> Iterator[None]:
    """What audited code prints, in workers too, goes to stderr: stdout carries the report alone."""
    sys.stdout.flush()
    with _redirected(sys.stdout, sys.stderr), redirect_stdout(sys.stderr):
        yield


@contextmanager
def _redirected(stream: IO[str], target: IO[str]) -> Iterator[None]:
    """The same for code that knows files by their numbers, where the streams are files."""
    try:
        number, to = stream.fileno(), target.fileno()
        kept = os.dup(number)
    except OSError:
        yield
        return
    try:
        os.dup2(to, number)
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
