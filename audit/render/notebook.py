"""Results and records in a notebook: the verdict, the picture, the certified profile."""

from __future__ import annotations

from importlib.resources import files

from audit.record import CaseResult, Record
from audit.render import curves, timeline
from audit.render import sentences as say
from audit.render.picture import Pictures, drawing
from audit.render.reach import reach
from audit.render.templating import environment, for_html, markup

_SCOPE = ".dpaudit"


def result_html(result: CaseResult) -> str:
    """A result as a piece of a page: verdict, error rates, profile, sequences.

    Returns:
        One ``<div>`` with a style sheet of its own; nothing outside it is styled.
    """
    drawn = ""
    if result.choice and result.trials:
        with drawing():
            drawn = Pictures().trade_off(result)
    sequences = [
        (rounds.column, markup(timeline.sequence(rounds)), timeline.told(rounds))
        for rounds in result.rounds
    ]
    return _piece(
        results=[(result, markup(reach(result)))],
        lead=say.verdict_sentence(result),
        picture=markup(drawn),
        boxes=bool(curves.confidence_boxes(result)),
        profile=result.profile,
        sequences=sequences,
    )


def record_html(record: Record) -> str:
    """A record as a piece of a page: the outcome and a line per case."""
    return _piece(
        results=[(result, markup(reach(result))) for result in record.results],
        lead=f"{record.summary.sentence} {say.false_alarm_sentence(record)}",
        picture="",
        boxes=False,
        profile=(),
        sequences=[],
    )


def _piece(**shown: object) -> str:
    palette = (files("audit.render") / "templates" / "palette.css").read_text(encoding="utf-8")
    template = environment(for_html).get_template("notebook.html")
    return template.render(palette=_scoped(palette), **shown)


def _scoped(palette: str) -> object:
    return markup(palette.replace(":root", _SCOPE))
