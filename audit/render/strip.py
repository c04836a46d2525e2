"""Wide, low pictures, written as SVG at once: a page of many cases holds thousands of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from audit.render.wording import number

WIDTH, HEIGHT = 360, 130
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 352.0, 8.0, 104.0

Values = Sequence[float | None]


@dataclass
class Strip:
    """A picture with both axes linear; everything drawn is clamped to them.

    Attributes:
        title: What a screen reader says.
        across: Smallest and largest x.
        up: Smallest and largest y.
    """

    title: str
    across: tuple[float, float]
    up: tuple[float, float]
    _parts: list[str] = field(default_factory=list)

    def line(self, x: Sequence[float], y: Values, ink: str, *, dash: str = "") -> None:
        """A line, broken where `y` is None; a lone point between gaps is a dot."""
        for run in _runs(x, y):
            points = " ".join(self._place(*point) for point in run)
            dashes = f' stroke-dasharray="{dash}"' if dash else ""
            if len(run) == 1:
                points, dashes = f"{points} {points}", ' stroke-linecap="round"'
            self._parts.append(
                f'<polyline points="{points}" fill="none" stroke="var(--{ink})"'
                f' stroke-width="{1.5 if len(run) > 1 else 4}"{dashes}/>'
            )

    def band(self, x: Sequence[float], low: Values, high: Values, ink: str) -> None:
        """The area between two lines, where both are known."""
        known = [
            (a, b, c)
            for a, b, c in zip(x, low, high, strict=True)
            if b is not None and c is not None
        ]
        there = [self._place(a, c) for a, _, c in known]
        back = [self._place(a, b) for a, b, _ in reversed(known)]
        if len(known) > 1:
            points = " ".join(there + back)
            self._parts.append(
                f'<polygon points="{points}" fill="var(--{ink})" fill-opacity="0.16"/>'
            )

    def bars(self, x: Sequence[float], y: Sequence[float], ink: str) -> None:
        """One bar from 0 at every x."""
        gap = (_RIGHT - _LEFT) / max(1, len(x))
        path = "".join(
            f"M{self._place(a, 0)}L{self._place(a, b)}" for a, b in zip(x, y, strict=True)
        )
        self._parts.append(
            f'<path d="{path}" stroke="var(--{ink})" stroke-width="{min(9.0, 0.6 * gap):.1f}"/>'
        )

    def level(self, y: float, ink: str) -> None:
        """A dashed line across."""
        self.line(self.across, (y, y), ink, dash="5 3")

    def mark(self, x: float) -> None:
        """A dotted line from top to bottom, for the rounds at which inputs differ."""
        self.line((x, x), self.up, "axis", dash="1.5 2.5")

    def svg(self, start: str, end: str, *, heights: Sequence[float] = ()) -> str:
        """The ``<svg>`` element.

        Args:
            start: Words below the left end of the horizontal axis.
            end: Words below its right end.
            heights: Where the vertical axis has numbers; at both ends when empty.
        """
        places = [(y, _BOTTOM - _share(y, self.up) * (_BOTTOM - _TOP)) for y in heights or self.up]
        frame = (
            f'<path d="M{_LEFT:g} {_BOTTOM:g}H{_RIGHT:g}" stroke="var(--grid)"/>'
            + "".join(_text(_LEFT - 6, down + 4, "end", _minus(y)) for y, down in places)
            + _text(_LEFT, HEIGHT - 8, "start", start)
            + _text(_RIGHT, HEIGHT - 8, "end", end)
        )
        return (
            f'<svg role="img" aria-label="{self.title}" viewBox="0 0 {WIDTH} {HEIGHT}">'
            f"<title>{self.title}</title>{frame}{''.join(self._parts)}</svg>"
        )

    def _place(self, x: float, y: float) -> str:
        right = _share(x, self.across) * (_RIGHT - _LEFT) + _LEFT
        down = _BOTTOM - _share(y, self.up) * (_BOTTOM - _TOP)
        return f"{right:.1f},{down:.1f}"


def span(values: Sequence[float | None], *, zero: bool = False) -> tuple[float, float]:
    """Limits of an axis that holds all known values; never a single point.

    Args:
        values: What is to be shown.
        zero: Whether the axis starts at 0.
    """
    known = [v for v in values if v is not None and abs(v) < 1e150]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if zero:
        low = 0.0
    return (low, high) if high > low else (low - 0.5 * (not zero), low + (1.0 if zero else 0.5))


def _share(value: float, limits: tuple[float, float]) -> float:
    share = (value - limits[0]) / (limits[1] - limits[0])
    return min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0


def _runs(x: Sequence[float], y: Values) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for a, b in zip(x, y, strict=True):
        if b is not None:
            runs[-1].append((a, b))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _minus(value: float) -> str:
    return number(value).replace("-", "−")


def _text(x: float, y: float, anchor: str, words: str) -> str:
    return f'<text x="{x:g}" y="{y:.1f}" text-anchor="{anchor}" fill="var(--axis)">{words}</text>'
