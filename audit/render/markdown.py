"""The markdown report: the same facts as tables, for pull requests and wikis."""

from __future__ import annotations

from audit.record import Record
from audit.render.templating import environment, fence, for_markdown


def render_markdown(record: Record, *, width: int, color: bool) -> str:  # noqa: ARG001
    """The record as markdown in which no foreign string can become markup."""
    engine = environment(for_markdown)
    engine.globals["fence"] = fence
    planned = {case.name: case for case in record.plan.cases}
    sections = [(planned[result.name], result) for result in record.results]
    return engine.get_template("report.md").render(record=record, sections=sections)
