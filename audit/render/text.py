"""The text report: for terminals and logs."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from audit.record import CaseResult, Finding, Record
from audit.render import figures, origin, sweeps, timeline
from audit.render import sentences as say
from audit.render.wording import (
    clean,
    count,
    number,
    one_line,
    seconds,
    tidy,
    whole,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

STYLES = {
    "refuted": "bold red",
    "unrefuted": "cyan",
    "blind": "yellow",
    "error": "magenta",
    "caught": "green",
    "missed": "bold red",
    "silent": "green",
    "heard": "bold red",
}
SHORT = {
    **say.LABELS,
    "caught": "Caught",
    "missed": "NOT CAUGHT",
    "refuted": "REFUTED",
    "silent": "Nothing seen",
    "heard": "FALSE ALARM",
}
FEW_CASES = 10
LONGEST_NAME = 80


def render_text(record: Record, *, width: int, color: bool) -> str:
    """The record as a table of cases, one sentence per verdict, findings and threats.

    With more than `FEW_CASES` cases, only the verdicts that need attention get a sentence. Lines
    stay within `width`, but for the commands, which stay whole so that they can be copied.
    """
    console = _console(width, color)
    _header(console, record)
    if record.results:
        console.print(_table(record.results))
        if any(result.role == "informational" for result in record.results):
            console.print("* informational: reports only, does not gate", style="dim")
        _verdicts(console, record)
    _sweeps(console, record)
    _changes(console, record)
    for finding in say.notable(record):
        _finding(console, finding)
    _footer(console, record)
    return _text_of(console)


def _console(width: int, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        force_interactive=False,
        color_system="standard" if color else None,
        legacy_windows=False,
        emoji=False,
        markup=False,
        highlight=False,
        _environ={},
    )


def _text_of(console: Console) -> str:
    stream = console.file
    text = stream.getvalue() if isinstance(stream, io.StringIO) else ""
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _header(console: Console, record: Record) -> None:
    plan, run = record.plan, record.execution
    console.print(clean(record.summary.sentence), style="bold")
    console.print(say.false_alarm_sentence(record))
    if mode := say.mode_sentence(record):
        console.print(mode, style="yellow")
    if progress := say.progress_sentence(record):
        console.print(progress, style="yellow")
    stop = "with early stopping" if plan.early_stop else "without early stopping"
    each = f"{whole(plan.trials)} trials each, {stop}"
    if record.results and all(say.of_one_run(result) for result in record.results):
        each = f"one run with {whole(plan.trials)} canaries each"
    console.print(
        f"{count(len(record.results), 'case', 'cases')}, {each};"
        f" seed {plan.seed}, {seconds(run.seconds)}.",
        style="dim",
    )


def _table(results: tuple[CaseResult, ...]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("case", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for name in ("certified\nof claimed", "could have\ncaught", "trials"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        table.add_row(*_cells(result))
    return table


def _cells(result: CaseResult) -> list[Text | str]:
    from rich.text import Text

    star = "*" if result.role == "informational" else ""
    key = say.badge(result)
    claimed = f"{tidy(result.claim)} of {one_line(result.view, LONGEST_NAME)}"
    return [
        Text(one_line(result.name, LONGEST_NAME)).append(f"\n  {claimed}", style="dim"),
        Text(SHORT[key] + star, style=STYLES[key]),
        say.certified(result, " of "),
        say.caught(result),
        whole(result.trials),
    ]


def _verdicts(console: Console, record: Record) -> None:
    from rich.padding import Padding
    from rich.text import Text

    few = len(record.results) <= FEW_CASES
    shown = [r for r in record.results if few or say.needs_attention(r)]
    for result in shown:
        console.print(Text(one_line(result.name, LONGEST_NAME), style=STYLES[say.badge(result)]))
        for sentence in _sentences(record, result):
            console.print(Padding(Text(sentence), (0, 0, 0, 2)))
    hidden = len(record.results) - len(shown)
    if hidden:
        more = count(hidden, "more case", "more cases")
        console.print(f"{more}: not refuted, or a control or null test that went as it must.")


def _sentences(record: Record, result: CaseResult) -> list[str]:
    """Verdict, ladder, and where the evidence came from."""
    steps = ", ".join(f"{name} {number(value)}" for name, value in figures.rungs(result))
    delta = number(result.ladder.delta) if result.ladder else ""
    found = [
        say.verdict_sentence(result),
        f"Ladder at delta {delta}: {steps}." if steps else "",
        origin.origin_sentence(record.planned(result.name), result),
        *(f"{one_line(r.column, 60)}: {timeline.told(r)}" for r in result.rounds),
    ]
    return [sentence for sentence in found if sentence]


def _sweeps(console: Console, record: Record) -> None:
    from rich import box
    from rich.table import Table

    for swept in sweeps.sweeps(record):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in sweeps.HEAD:
            table.add_column(name, justify="right", overflow="fold")
        for row in swept.rows:
            table.add_row(*row)
        console.print()
        console.print(one_line(swept.title, LONGEST_NAME), style="bold")
        console.print(table)
        console.print(swept.sentence)


def _changes(console: Console, record: Record) -> None:
    from rich.padding import Padding
    from rich.text import Text

    lines = say.change_lines(record)
    if lines:
        console.print()
        console.print("Since the baseline", style="bold")
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def _finding(console: Console, finding: Finding) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    heading = f"{say.title(finding)}: {one_line(finding.case, LONGEST_NAME)}"
    console.print(Text(heading, style="bold"))
    console.print(Padding(Text(clean(finding.message)), (0, 0, 0, 2)))
    if finding.reproduce:
        console.print(Text(f"  $ {one_line(finding.reproduce)}"), soft_wrap=True)


def _footer(console: Console, record: Record) -> None:
    console.print()
    console.print(f"{say.threats_sentence(record)} {say.rounding_sentence(record)}")
