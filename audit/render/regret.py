"""The picture of a utility curve: regret against rounds or epsilon, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from audit.render.picture import INKS, drawing, element, new_figure, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {"rounds": "rounds T", "epsilon": "epsilon"}
PROMISE = "guarantee"
_INKS = ("measured", "caught", "axis", "certified", "claim")
_WIDTH, _HEIGHT, _LINE = 560, 340, 12
_PLACE = (0.14, 0.15, 0.62, 0.8)
_DECADE = (1, 2, 5)
_NEAR = 1e-6
_TICK = 0.03


class Point(Protocol):
    """Regret of one policy at one size."""

    @property
    def policy(self) -> str:
        """Whose regret it is."""

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    @property
    def epsilon(self) -> float:
        """Promised epsilon."""

    @property
    def regret(self) -> float:
        """Mean over runs."""

    @property
    def error(self) -> float:
        """Standard error of the mean."""


def promise(point: Point) -> float | None:
    """The regret that theory promises there, or None."""
    found = getattr(point, "guarantee", None)
    return None if found is None else float(found)


@dataclass(frozen=True)
class Audited:
    """What an audit says of one promised epsilon.

    Attributes:
        claimed: The promise.
        certified: Certified lower bound on the true epsilon.
        refuted: Whether the claim was refuted.
    """

    claimed: float
    certified: float
    refuted: bool


def picture(points: Sequence[Point], against: str, audited: Sequence[Audited] = ()) -> str:
    """Regret of every policy, and the guarantee, against one of `AXES`.

    Args:
        points: In any order; those without a position on a logarithmic axis are left out.
        against: ``rounds`` or ``epsilon``.
        audited: Audits of the first policy; against epsilon, each is a line at its regret from
            the certified epsilon to the claimed one.

    Returns:
        One ``<svg>`` element.
    """
    with drawing():
        figure = new_figure(_WIDTH, _HEIGHT, _PLACE)
        axes = figure.axes[0]
        lines = _lines(points, against)
        inks = dict(zip(lines, _INKS, strict=False))
        for name, ink in inks.items():
            _draw(axes, name, lines[name], INKS[ink])
        if against == "epsilon" and lines:
            _audits(axes, lines[next(iter(lines))], audited)
        _name(axes, {name: lines[name][-1] for name in inks}, inks)
        axes.set(xlabel=AXES[against], ylabel="regret")
        axes.spines[["top", "right"]].set_visible(False)
        _ticks(axes, sorted({x for line in lines.values() for x, _ in line}))
        return element(svg_of(figure), f"Regret against {AXES[against]}")


def _lines(points: Sequence[Point], against: str) -> dict[str, list[tuple[float, float]]]:
    lines: dict[str, list[tuple[float, float]]] = {}
    levels = {p.epsilon for p in points if p.policy == points[0].policy}
    places = {p.rounds for p in points} if against == "rounds" else levels
    for point in points:
        own = float(getattr(point, against))
        # A policy without a promise to vary, such as a yardstick, is a level line.
        for x in [own] if own in places else sorted(places):
            lines.setdefault(point.policy, []).append((x, point.regret))
        if (promised := promise(point)) is not None:
            lines.setdefault(PROMISE, []).append((own, promised))
    found = {name: sorted(set(_visible(line))) for name, line in lines.items()}
    return {name: line for name, line in found.items() if line}


def _visible(line: Iterable[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    return ((x, y) for x, y in line if 0 < x < math.inf and 0 < y < math.inf)


def _draw(axes: Axes, name: str, line: list[tuple[float, float]], ink: str) -> None:
    x, y = ([math.log10(value) for value in values] for values in zip(*line, strict=True))
    dashes = (4, 3) if name == PROMISE else (1, 0)
    axes.plot(x, y, color=ink, lw=1.6, ls=(0, dashes), clip_on=False)
    # Lines of no length with round ends are dots.
    for place in zip(x, y, strict=True):
        axes.plot([place[0]] * 2, [place[1]] * 2, color=ink, lw=5, solid_capstyle="round")


def _audits(axes: Axes, line: list[tuple[float, float]], audited: Sequence[Audited]) -> None:
    """From certified to claimed, at the regret of the claimed epsilon; what is 0 starts left."""
    x, y = ([math.log10(value) for value in values] for values in zip(*line, strict=True))
    edge = x[0] - 0.1 * max(1.0, x[-1] - x[0])
    for audit in audited:
        claimed = math.log10(audit.claimed)
        if not x[0] - _NEAR <= claimed <= x[-1] + _NEAR:
            continue
        known = math.log10(audit.certified) if audit.certified > 0 else edge
        height = float(np.interp(claimed, x, y))
        ink = INKS["certified" if audit.refuted else "box"]
        axes.plot([max(known, edge), claimed], [height] * 2, color=ink, lw=1.2, ls=(0, (2, 2)))
        axes.plot([max(known, edge)] * 2, [height - _TICK, height + _TICK], color=ink, lw=2)


def _name(axes: Axes, ends: dict[str, tuple[float, float]], inks: dict[str, str]) -> None:
    """Write the names at the ends of the lines, not on top of each other."""
    low, high = axes.get_ylim()
    height, above = _PLACE[3] * _HEIGHT / (high - low), -math.inf
    for name, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
        place = (math.log10(y) - low) * height
        above = max(place, above + _LINE)
        spot, ink = (math.log10(x), math.log10(y)), INKS[inks[name]]
        offset = (8, above - place)
        axes.annotate(name, spot, offset, textcoords="offset points", va="center", color=ink)


def _ticks(axes: Axes, places: list[float]) -> None:
    low, high = axes.get_ylim()
    steps = _DECADE if high - low < 2 else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    values = [m * 10.0**d for d in decades for m in steps]
    shown = [v for v in values if low <= math.log10(v) <= high]
    axes.yaxis.set_ticks([math.log10(v) for v in shown], [f"{v:g}" for v in shown])
    axes.xaxis.set_ticks([math.log10(x) for x in places], [f"{x:.4g}" for x in places])
    axes.tick_params(left=False, bottom=False, pad=5)
