"""What privacy costs: regret against the horizon and against epsilon, beside the guarantee.

A mechanism offers the numbers through the capability
``utility_curves(horizons, epsilons, runs, seed)``, a mapping from ``rounds`` and ``epsilon`` to
points with ``policy``, ``rounds``, ``epsilon``, ``regret``, ``error`` and perhaps ``guarantee``.
Nothing is audited here, and nothing is certified.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from audit.errors import UsageError
from audit.files import write_atomically
from audit.mechanism import capability
from audit.registry import resolve
from audit.render.regret import AXES, Point, picture, promise

HEADS = ("policy", "rounds", "epsilon", "regret", "standard error", "guarantee")
Curves = Mapping[str, Sequence[Point]]


def utility(
    name: str, *, horizons: str, epsilons: str, runs: int, seed: int, out: Path | None
) -> int:
    """Measure, then write a page, or a table to a file or stdout.

    Args:
        name: Catalogue name or ``module:attr``.
        horizons: Numbers of rounds, comma-separated; the mechanism's usual ones when empty.
        epsilons: Promised epsilons, likewise.
        runs: Runs per point.
        seed: Root of the random streams.
        out: File ending in ``.html`` or ``.md``; stdout when omitted.

    Raises:
        UsageError: For bad numbers or another ending, or a mechanism without the capability.
    """
    if out is not None and out.suffix not in (".html", ".md"):
        raise UsageError(f"--out: expected a file ending in .html or .md, got {str(out)!r}")
    if runs < 2:
        raise UsageError(f"--runs: expected at least 2, got {runs}")
    sizes = [_whole(number) for number in _numbers("--horizons", horizons)] or None
    promised = _numbers("--epsilons", epsilons) or None
    curves = measure(name, sizes, promised, runs, seed)
    lead = f"Mean over {runs} runs a point, seed {seed}. Measured, not certified."
    if out is None:
        click.echo(markdown(name, lead, curves), nl=False)
        return 0
    text = page(name, lead, curves) if out.suffix == ".html" else markdown(name, lead, curves)
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


def rows(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """Cells of a table under `HEADS`."""
    return [
        (p.policy, str(p.rounds), *map(_cell, (p.epsilon, p.regret, p.error, promise(p))))
        for p in points
    ]


def markdown(name: str, lead: str, curves: Curves) -> str:
    """The tables."""
    lines = [f"# What privacy costs: {name}", "", lead]
    for against, points in curves.items():
        lines += ["", f"## Regret against {AXES[against]}", "", _line(HEADS)]
        lines += [_line(["---"] + ["---:"] * (len(HEADS) - 1)), *map(_line, rows(points))]
    return "\n".join(lines) + "\n"


def page(name: str, lead: str, curves: Curves) -> str:
    """One self-contained page with a picture above each table."""
    from markupsafe import Markup

    from audit.render.templating import environment, for_html

    drawn = [
        {
            "against": AXES[against],
            "picture": Markup(picture(points, against)),  # noqa: S704
            "rows": rows(points),
        }
        for against, points in curves.items()
    ]
    template = environment(for_html).get_template("utility.html")
    return template.render(name=name, lead=lead, heads=HEADS, curves=drawn)


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
