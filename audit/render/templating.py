"""The template engine, with every expression cleaned and escaped unless it is our own markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from audit.record import Finding, Record
from audit.render import curves, figures, glossary, origin, sweeps, timeline, wording
from audit.render import sentences as say

if TYPE_CHECKING:
    from jinja2 import Environment

_ANYWHERE = re.compile(r"([\\`*\[\]#|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_AT_THE_START = re.compile(r"^(\d*)([-+=.)])(?=[\s=-]|$)")


def environment(escape: Callable[[object], object]) -> Environment:
    """An environment over the shipped templates.

    Args:
        escape: Turns what an expression gives into what is written.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("audit.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=escape,
    )
    made.globals.update(
        say=say,
        key=figures,
        sweeps=sweeps,
        words=wording,
        glossary=glossary,
        curves=curves,
        origin=origin,
        timeline=timeline,
    )
    return made


def markup(html: str) -> object:
    """HTML of our own making, which is not escaped."""
    from markupsafe import Markup

    return Markup(html)  # noqa: S704


def for_html(value: object) -> object:
    """Foreign strings without control characters; the engine escapes them afterwards."""
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return wording.clean(value)
    return value


def for_markdown(value: object) -> object:
    """Foreign strings on one line, with every character that could become markup escaped."""
    from markupsafe import Markup, escape

    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    marked = str(escape(wording.one_line(value))).replace("&#39;", "'").replace("&#34;", '"')
    marked = _AT_THE_START.sub(r"\1\\\2", _ANYWHERE.sub(r"\\\1", marked))
    return Markup(marked.replace("@", "&#64;"))  # noqa: S704


def fence(code: str) -> object:
    """A fenced block of markdown that its content cannot end."""
    from markupsafe import Markup

    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    bar = "`" * max(3, longest + 1)
    return Markup(f"{bar}console\n{wording.one_line(code)}\n{bar}")  # noqa: S704


def findings_by_case(record: Record) -> dict[str, list[Finding]]:
    """The findings of each case."""
    grouped: dict[str, list[Finding]] = {}
    for finding in record.summary.findings:
        grouped.setdefault(finding.case, []).append(finding)
    return grouped
