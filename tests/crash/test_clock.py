"""Clocks that jump change no result; deadlines and dates go by the clock and say so."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from unittest import mock

import pytest

from audit import baseline
from audit.baseline import accept, compare
from audit.child import Child
from audit.errors import ProcessError
from audit.record import read_record
from tests.cli.console import audit
from tests.crash.runs import LONG, digest
from tests.records import CLAIMS, one, record_of


def jumping(step: float) -> Callable[[], float]:
    """A clock that goes up by a second, then by `step`, and so on."""
    return (1e9 + (number % 2) * step + number for number in count()).__next__


@pytest.mark.parametrize(
    "step",
    [-1e6, *(pytest.param(s, marks=pytest.mark.slow) for s in (1e6, -1e12, 1e12))],
)
def test_clocks_that_jump_change_no_result(step, uninterrupted) -> None:
    with (
        mock.patch.object(time, "perf_counter", jumping(step)),
        mock.patch.object(time, "time", jumping(step)),
    ):
        assert audit(*LONG, "--jobs", 1).code == 0
    assert digest() == uninterrupted
    record = read_record(Path("out/record.json"))
    assert record.execution.seconds >= 0
    assert all(seconds >= 0 for seconds in record.execution.case_seconds.values())


@pytest.mark.skipif(os.name != "posix", reason="the child is a shell")
@pytest.mark.parametrize(("step", "late"), [(1e6, True), (-1e6, False)])
def test_a_deadline_ends_a_wait_and_no_jump_makes_it_endless(step, late) -> None:
    """Ahead, the child is late, which is no verdict; back, its answer still counts."""
    child = Child(["/bin/sh", "-c", "read -r x; sleep 0.3; echo answer"], "child")
    try:
        real = time.monotonic
        deadline = real() + 60
        child.send(b"go\n")
        with mock.patch.object(time, "monotonic", side_effect=lambda: real() + step):
            if late:
                with pytest.raises(ProcessError, match="did not answer within the time limit"):
                    child.line(deadline)
            else:
                assert child.line(deadline) == b"answer"
    finally:
        child.close()


class Calendar(dt.datetime):
    """A calendar that shows a given day."""

    today_is = dt.date(2030, 1, 1)

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
        return dt.datetime(
            cls.today_is.year, cls.today_is.month, cls.today_is.day, 23, 59, tzinfo=tz
        )


@pytest.mark.parametrize(
    ("today", "code"),
    [("1970-01-01", 0), ("2030-06-30", 0), ("2030-07-01", 1), ("9999-12-31", 1)],
)
def test_an_acceptance_lapses_by_the_date_of_the_day(today, code, monkeypatch) -> None:
    """Its last day is included, and a clock far off is no crash."""
    record = record_of([one("a", CLAIMS[0], "subject", "refuted")])
    accepted = accept(record, {"*": "known"}, "2030-06-30")
    monkeypatch.setattr(Calendar, "today_is", dt.date.fromisoformat(today))
    monkeypatch.setattr(baseline.dt, "datetime", Calendar)
    assert compare(record, accepted).summary.exit_code == code
