"""Reports: every format is a pure function of a record.

A format is one line in `FORMATS`; its module is imported when the format is asked for, so that
the text report needs neither the template engine nor the plotting library.
"""

from __future__ import annotations

import importlib

from audit.entrypoints import add, load, points
from audit.errors import UsageError
from audit.record import Record

FORMATS: dict[str, str] = {
    "text": "audit.render.text:render_text",
    "json": "audit.render.document:render_json",
    "markdown": "audit.render.markdown:render_markdown",
    "html": "audit.render.page:render_html",
}


def formats() -> dict[str, str]:
    """All formats: ours, and those of the entry points ``audit.renderers``, by ``module:attr``."""
    found = dict(FORMATS)
    for point in points("audit.renderers"):
        load(point)
        add(found, {point.name: point.value}, point)
    return found


def render(record: Record, name: str, *, width: int = 100, color: bool = False) -> str:
    """A record as a report; the same record always gives the same characters.

    Args:
        record: What a run wrote.
        name: One of `formats`.
        width: Columns that the tables of the text report may fill.
        color: Whether the text report uses terminal colours.

    Returns:
        The report, ending with a newline.

    Raises:
        UsageError: For an unknown format, or a record whose results do not fit its plan.
    """
    known_formats = formats()
    if name not in known_formats:
        raise UsageError(f"format {name!r}: expected one of {', '.join(known_formats)}")
    known = {case.name for case in record.plan.cases}
    strays = [result.name for result in record.results if result.name not in known]
    if strays:
        raise UsageError(
            f"record: expected every result to be planned, but the plan lacks {strays[0][:100]!r};"
            " give a record as `run` wrote it"
        )
    module, _, attr = known_formats[name].partition(":")
    text: str = getattr(importlib.import_module(module), attr)(record, width=width, color=color)
    return text
