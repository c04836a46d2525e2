"""Reports: every format is a pure function of a record.

A format is one line in `FORMATS`, or an entry point of the group ``audit.renderers`` of an
installed package: a function ``(record, *, width, color) -> str``. Its module is imported when the
format is asked for, so that the text report needs neither the template engine nor the plotting
library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from audit.entrypoints import add, load, points
from audit.errors import UsageError
from audit.record import Record

GROUP = "audit.renderers"
FORMATS: dict[str, str] = {
    "text": "audit.render.text:render_text",
    "json": "audit.render.document:render_json",
    "markdown": "audit.render.markdown:render_markdown",
    "html": "audit.render.page:render_html",
    "junit": "audit.render.junit:render_junit",
    "sarif": "audit.render.sarif:render_sarif",
    "github": "audit.render.github:render_github",
}


def formats() -> dict[str, str]:
    """All formats: ours, and those of the entry points ``audit.renderers``, by ``module:attr``."""
    found = dict(FORMATS)
    for point in points(GROUP):
        load(point)
        add(found, {point.name: point.value}, point)
    return found


def known(name: str) -> str:
    """The name of a format.

    Raises:
        UsageError: For an unknown format.
    """
    _home(name)
    return name


def _home(name: str) -> str:
    found = formats()
    if name not in found:
        raise UsageError(f"format {name!r}: expected one of {', '.join(found)}")
    return found[name]


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
        UsageError: For an unknown format, or a renderer that cannot be imported.
    """
    renderer = _renderer(name)
    return renderer(record, width=width, color=color)


def _renderer(name: str) -> Callable[..., str]:
    module, _, attr = _home(name).partition(":")
    found: Callable[..., str] = getattr(importlib.import_module(module), attr)
    return found
