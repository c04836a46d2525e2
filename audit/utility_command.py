"""What privacy costs: regret against the horizon and against epsilon, beside the guarantee.

A mechanism offers the numbers through the capability
``utility_curves(horizons, epsilons, runs, seed)``, a mapping from ``rounds`` and ``epsilon`` to
points with ``policy``, ``rounds``, ``epsilon``, ``regret``, ``error`` and perhaps ``guarantee``.
Nothing is audited here; what a record of audits certified may be shown beside the regret.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from audit.errors import UsageError
from audit.files import write_atomically
from audit.mechanism import capability
from audit.record import read_record
from audit.registry import resolve
from audit.render.regret import AXES, Audited, Point, picture, promise
from audit.render.sentences import claimed_epsilon
from audit.render.wording import floor

HEADS = ("policy", "rounds", "epsilon", "regret", "standard error", "guarantee")
AUDIT_HEADS = ("claimed epsilon", "certified epsilon", "verdict")
AUDITED = "Claimed and certified"
Curves = Mapping[str, Sequence[Point]]


def utility(
    name: str,
    *,
    horizons: str,
    epsilons: str,
    runs: int,
    seed: int,
    out: Path | None,
    record: Path | None = None,
) -> int:
    """Measure, then write a page, or a table to a file or stdout.

    Args:
        name: Catalogue name or ``module:attr``.
        horizons: Numbers of rounds, comma-separated; the mechanism's usual ones when empty.
        epsilons: Promised epsilons, likewise.
        runs: Runs per point.
        seed: Root of the random streams.
        out: File ending in ``.html`` or ``.md``; stdout when omitted.
        record: Record of audits of the same mechanism, as ``run NAME --sweep epsilon=...`` writes
            it: what is certified goes beside what is claimed.

    Raises:
        UsageError: For bad numbers or another ending, a mechanism without the capability, or a
            record that does not audit it.
    """
    if out is not None and out.suffix not in (".html", ".md"):
        raise UsageError(f"--out: expected a file ending in .html or .md, got {str(out)!r}")
    if runs < 2:
        raise UsageError(f"--runs: expected at least 2, got {runs}")
    sizes = [_whole(number) for number in _numbers("--horizons", horizons)] or None
    promised = _numbers("--epsilons", epsilons) or None
    audited = audits(name, record) if record else []
    curves = measure(name, sizes, promised or [a.claimed for a in audited] or None, runs, seed)
    lead = f"Mean over {runs} runs a point, seed {seed}. Measured, not certified."
    if out is None:
        click.echo(markdown(name, lead, curves, audited), nl=False)
        return 0
    write = page if out.suffix == ".html" else markdown
    text = write(name, lead, curves, audited)
    write_atomically(out, text.encode())
    click.echo(f"utility: {out}", err=True)
    return 0


def measure(
    name: str,
    horizons: Sequence[int] | None,
    epsilons: Sequence[float] | None,
    runs: int,
    seed: int,
) -> Curves:
    """The curves of a named mechanism, without those that have no point.

    Raises:
        UsageError: When it does not offer any.
    """
    offered = capability(resolve(name), "utility_curves")
    if offered is None:
        raise UsageError(
            f"utility {name!r}: this mechanism does not say what it costs; expected a method "
            "utility_curves(horizons, epsilons, runs, seed)"
        )
    curves: Curves = offered(horizons, epsilons, runs, seed)
    return {against: points for against, points in curves.items() if points and against in AXES}


def audits(name: str, path: Path) -> list[Audited]:
    """Claimed and certified epsilons of the audits of a mechanism, by rising claim.

    Raises:
        UsageError: When the record holds none.
    """
    record = read_record(path)
    own = {case.name for case in record.plan.cases if case.target == name}
    found = {
        claimed: Audited(claimed, result.epsilon_lower, result.verdict == "refuted")
        for result in record.results
        if result.name in own and (claimed := claimed_epsilon(result))
    }
    if not found:
        raise UsageError(
            f"--record {path}: expected audits of {name!r}, got none; make it with "
            f"python -m audit run {name} --sweep epsilon=0.5:4"
        )
    return [found[claimed] for claimed in sorted(found)]


def audit_rows(audited: Sequence[Audited]) -> list[tuple[str, ...]]:
    """Cells of a table under `AUDIT_HEADS`."""
    return [
        (_cell(a.claimed), floor(a.certified), "refuted" if a.refuted else "not refuted")
        for a in audited
    ]


def rows(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """Cells of a table under `HEADS`."""
    return [
        (p.policy, str(p.rounds), *map(_cell, (p.epsilon, p.regret, p.error, promise(p))))
        for p in points
    ]


def markdown(name: str, lead: str, curves: Curves, audited: Sequence[Audited] = ()) -> str:
    """The tables."""
    lines = [f"# What privacy costs: {name}", "", lead]
    for against, points in curves.items():
        lines += ["", f"## Regret against {AXES[against]}", "", _line(HEADS)]
        lines += [_line(["---"] + ["---:"] * (len(HEADS) - 1)), *map(_line, rows(points))]
    if audited:
        lines += ["", f"## {AUDITED}", "", _line(AUDIT_HEADS), _line(["---:"] * 3)]
        lines += map(_line, audit_rows(audited))
    return "\n".join(lines) + "\n"


def page(name: str, lead: str, curves: Curves, audited: Sequence[Audited] = ()) -> str:
    """One self-contained page with a picture above each table."""
    from audit.render.templating import environment, for_html, markup

    drawn = [
        {
            "against": AXES[against],
            "picture": markup(picture(points, against, audited)),
            "rows": rows(points),
        }
        for against, points in curves.items()
    ]
    template = environment(for_html).get_template("utility.html")
    return template.render(
        name=name,
        lead=lead,
        heads=HEADS,
        curves=drawn,
        audited=audit_rows(audited),
        audit_title=AUDITED,
        audit_heads=AUDIT_HEADS,
    )


def _numbers(option: str, text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"{option}: expected numbers and commas, got {text!r}") from None
    if any(not 0 < number < math.inf for number in found):
        raise UsageError(f"{option}: expected numbers above 0, got {text!r}")
    return found


def _whole(number: float) -> int:
    if number != int(number):
        raise UsageError(f"--horizons: expected whole numbers, got {number:g}")
    return int(number)


def _cell(value: float | None) -> str:
    return "none" if value is None or math.isnan(value) else f"{value:.4g}"


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(cells) + "|"
