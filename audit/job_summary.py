"""The job summary of GitHub Actions: the markdown report on the page of the workflow run."""

from __future__ import annotations

import os
from pathlib import Path

from audit import render
from audit.errors import UsageError
from audit.record import Record

VARIABLE = "GITHUB_STEP_SUMMARY"
_MOST_BYTES = 1_000_000
"""A step may write a mebibyte; beyond that GitHub drops the summary altogether."""


def job_summary(record: Record) -> None:
    """Append the markdown report to the file that GitHub names, where it names one.

    Raises:
        UsageError: When that file cannot be written.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return
    text = shortened(render.render(record, "markdown"))
    try:
        with Path(path).open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(
            f"{VARIABLE}={path}: cannot append the job summary: {error.strerror}; unset it or "
            "name a writable file"
        ) from None


def shortened(text: str, most: int = _MOST_BYTES) -> str:
    """The text, or as many of its sections as fit, with a word about the rest."""
    if len(text.encode()) <= most:
        return text
    kept = text.encode()[:most].decode(errors="ignore")
    return kept[: kept.rfind("\n## ") + 1] + "The rest is in the report that the run wrote.\n"
