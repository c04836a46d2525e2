"""Commands that work on finished records: render, merge, accept, schema."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import msgspec

from audit import baseline as baselines
from audit import render
from audit.config import Config
from audit.errors import UsageError
from audit.files import write_atomically
from audit.job_summary import job_summary
from audit.pins import Pin
from audit.record import Record, read_record
from audit.shard import merge_shards
from audit.summary import summarise
from audit.wire import Protocol

Output = tuple[str, Path | None]

_READER_GONE = (errno.EPIPE, errno.EINVAL)
"""What writing to a closed pipe says; the second on Windows."""


def parse_format(text: str) -> Output:
    """A ``NAME[=PATH]`` of the command line.

    Raises:
        UsageError: For an unknown format.
    """
    name, _, path = text.partition("=")
    return render.known(name), Path(path) if path else None


def render_all(record: Record, outputs: Sequence[Output]) -> None:
    """Render to files, and to stdout where there is no path; all of it, or nothing is written."""
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    texts = [render.render(record, name, color=color and path is None) for name, path in outputs]
    for (name, path), text in zip(outputs, texts, strict=True):
        if path is None:
            _print(text)
        else:
            write_atomically(path, text.encode())
        if name == "github":
            job_summary(record)


def _print(text: str) -> None:
    """To stdout; a reader that goes away (``| head``) must not change the exit code."""
    try:
        click.echo(text, nl=not text.endswith("\n"))
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in _READER_GONE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(paths: Sequence[Path], formats: Sequence[str], baseline: Path | None) -> int:
    """Render records again; returns the exit code of the (merged) record."""
    outputs = [parse_format(text) for text in formats] or [("text", None)]
    record = merge([read_record(path) for path in paths])
    if baseline:
        record = baselines.compare(record, baselines.read_baseline(baseline))
    render_all(record, outputs)
    return record.summary.exit_code


def index(paths: Sequence[Path], target: Path) -> None:
    """Write one page over many records, with a link to each and the trend of every case."""
    from audit.render.index import Entry, render_index

    entries = [Entry(read_record(path), _link(path, target)) for path in paths]
    write_atomically(target, render_index(entries).encode())
    click.echo(f"index: {target}", err=True)


def _link(path: Path, target: Path) -> str:
    """Address of a record's report, or of the record where no report lies beside it."""
    beside = path.with_name("report.html")
    shown = beside if beside.exists() else path
    return quote(Path(os.path.relpath(shown, target.parent)).as_posix())


def merge(records: Sequence[Record]) -> Record:
    """One record of several runs' cases, or of all shards of one run.

    Raises:
        UsageError: When two records hold a case of the same name, or shards do not fit together.
    """
    first = records[0]
    if len(records) == 1:
        return first
    if any(record.plan.shard for record in records):
        return merge_shards(records)
    scopes = {(tuple(sorted(r.plan.threats.items())), r.plan.rounding_bits) for r in records}
    if len(scopes) > 1:
        raise UsageError(
            "records of different scope cannot be merged: threats or rounding differ (--threat); "
            "report them one by one"
        )
    cases = tuple(case for record in records for case in record.plan.cases)
    results = tuple(result for record in records for result in record.results)
    names = [case.name for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"records cannot be merged: both hold the case {twice[0]!r}")
    alpha = min(1.0, sum(record.plan.alpha for record in records))
    plan = msgspec.structs.replace(first.plan, cases=cases, alpha=alpha)
    complete = all(record.execution.complete for record in records)
    seconds = sum(record.execution.seconds for record in records)
    execution = msgspec.structs.replace(first.execution, complete=complete, seconds=seconds)
    return msgspec.structs.replace(
        first, plan=plan, results=results, summary=summarise(plan, results), execution=execution
    )


def compare(old: Path, new: Path, formats: Sequence[str]) -> int:
    """Render a record with what changed since another; returns its exit code relative to that."""
    outputs = [parse_format(text) for text in formats] or [("text", None)]
    then, now = read_record(old), read_record(new)
    record = baselines.compare(now, baselines.state_of(then))
    render_all(record, outputs)
    return record.summary.exit_code


def accept(path: Path, reasons: Sequence[str], expires: str, target: Path) -> None:
    """Write a baseline."""
    record = read_record(path)
    names = {result.name for result in record.results}
    given = {}
    for text in reasons:
        case, separator, why = text.partition("=")
        known = bool(separator) and case in names
        given[case if known else "*"] = why if known else text
    baselines.write_baseline(baselines.accept(record, given, expires), target)
    click.echo(f"baseline: {target}", err=True)


def schema(name: str) -> None:
    """Print a JSON Schema."""
    kinds: dict[str, Any] = {
        "record": Record,
        "baseline": baselines.Baseline,
        "config": Config,
        "wire": Protocol,
        "pin": Pin,
    }
    document = msgspec.json.schema(kinds[name])
    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
