"""Pictures as small inline SVG: text stays text, colours are CSS variables of the page.

One figure of each kind is built and reused, since building axes costs more than drawing lines.
"""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audit.record import CaseResult
from audit.render import curves
from audit.render.sentences import smallest_caught

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

# Stand-ins that the drawing library accepts, each replaced by the page's variable of that name.
INKS: dict[str, str] = {
    "axis": "#010101",
    "grid": "#020202",
    "claim": "#030303",
    "forbidden": "#040404",
    "measured": "#050505",
    "certified": "#060606",
    "caught": "#070707",
    "box": "#080808",
}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpaudit",
    "font.size": 10.0,
    "path.simplify": False,
    "axes.edgecolor": INKS["grid"],
    "axes.labelcolor": INKS["axis"],
    "xtick.labelcolor": INKS["axis"],
    "ytick.labelcolor": INKS["axis"],
    "text.color": INKS["axis"],
    "grid.color": INKS["grid"],
}
_DPI = 72
_MOST_DOTS = 33
_TRADE_OFF = "Trade-off between false alarms and misses: claim, measurement and certified bound"
_WEALTH = "Log-wealth of the bet against the claim after each block of trials"


def drawing() -> AbstractContextManager[None]:
    """The settings that pictures are drawn under, whatever the user's own are."""
    from matplotlib import style

    context: AbstractContextManager[None] = style.context(["default", _SETTINGS])
    return context


class Pictures:
    """Draws the pictures of one report; use it inside `drawing`."""

    def __init__(self) -> None:
        place = (0.145, 0.14, 0.83, 0.84)
        self._square = new_figure(360, 332, place)
        self._strip = new_figure(360, 120, (0.145, 0.2, 0.83, 0.73))
        self._frame = _square_frame(new_figure(360, 332, place))

    def trade_off(self, result: CaseResult) -> str:
        """The claim's trade-off curve, the region below it, and what was measured.

        Returns:
            One ``<svg>`` element.
        """
        axes = _cleared(self._square)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        _claim(axes, *curves.claim_curve(result.claim))
        _bounds(axes, result)
        alarm, miss = curves.error_rates(result)
        _line(axes, alarm, miss, "measured", 1)
        _dots(axes, alarm, miss)
        for box in curves.confidence_boxes(result):
            (left, right), (low, high) = box.alarm, box.miss
            _line(axes, [left, right, right, left, left], [low, low, high, high, low], "box", 1.6)
        return element(svg_of(self._square), _TRADE_OFF, self._frame)

    def wealth(self, result: CaseResult, target: float) -> str:
        """The log-wealth of the bet against the claim after each block.

        Args:
            result: A result with log-wealth.
            target: The log-wealth that refutes.

        Returns:
            One ``<svg>`` element.
        """
        axes = _cleared(self._strip)
        wealth = np.nan_to_num(np.array([0.0, *result.log_wealth]))
        top, bottom = max(target, wealth.max(), 1.0), min(0.0, wealth.min())
        blocks = np.arange(len(wealth), dtype=float)
        axes.set(xlim=(0, blocks[-1]), ylim=(bottom, top))
        _line(axes, [0, blocks[-1]], [0, 0], "grid", 1)
        _line(axes, [0, blocks[-1]], [target, target], "certified", 1.2, (4, 3))
        _line(axes, blocks, wealth, "measured", 1.4)
        if len(blocks) <= _MOST_DOTS:
            _dots(axes, blocks, wealth)
        apart = 0.15 * (top - bottom)
        _labels(axes, len(result.log_wealth), [0.0, *(h for h in (bottom, top) if abs(h) > apart)])
        return element(svg_of(self._strip), _WEALTH)


def new_figure(width: int, height: int, place: tuple[float, float, float, float]) -> Figure:
    """A figure of some points with axes at `place`: left, bottom, width, height of 1."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    FigureCanvasSVG(figure)
    figure.add_axes(place)
    return figure


def svg_of(figure: Figure) -> str:
    """What the drawing library writes of a figure, without dates."""
    stream = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(stream, format="svg", transparent=True, dpi=_DPI, metadata=nothing)
    return stream.getvalue()


def _square_frame(figure: Figure) -> str:
    axes = figure.axes[0]
    ticks, names = [0, 0.25, 0.5, 0.75, 1], ["0", "¼", "½", "¾", "1"]
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false-alarm rate", ylabel="miss rate")
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
    axes.tick_params(left=False, bottom=False, pad=5)
    axes.spines[["top", "right"]].set_visible(False)
    return _body(svg_of(figure))


def _cleared(figure: Figure) -> Axes:
    # Drawing decorated axes afresh for every case would take most of the time.
    axes = figure.axes[0]
    for artist in [*axes.lines, *axes.patches, *axes.texts]:
        artist.remove()
    axes.set_axis_off()
    return axes


def _line(
    axes: Axes,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    ink: str,
    width: float,
    dashes: tuple[int, int] | None = None,
) -> None:
    style: Any = (0, dashes) if dashes else "-"
    axes.plot(np.asarray(x), np.asarray(y), color=INKS[ink], lw=width, ls=style, clip_on=False)


def _dots(axes: Axes, x: Floats, y: Floats) -> None:
    # Lines of no length with round ends: one short path instead of one element per point.
    gap = np.full(len(x), np.nan)
    along, up = (np.column_stack([v, v, gap]).ravel() for v in (x, y))
    axes.plot(along, up, color=INKS["measured"], lw=4, solid_capstyle="round", clip_on=False)


def _labels(axes: Axes, blocks: int, heights: list[float]) -> None:
    for height in heights:
        text = f"{height:.3g}".replace("-", "−")
        axes.annotate(
            text, (0, height), (-8, 0), textcoords="offset points", ha="right", va="center"
        )
    plural = "block" if blocks == 1 else "blocks"
    below: dict[str, Any] = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "va": "top",
    }
    axes.annotate("start", (0, 0), (0, -8), ha="left", **below)
    axes.annotate(f"{blocks} {plural} of trials", (1, 0), (0, -8), ha="right", **below)


def _claim(axes: Axes, alarm: Floats, miss: Floats) -> None:
    axes.fill([0, *alarm, 1], [0, *miss, 0], color=INKS["forbidden"], lw=0, clip_on=False)
    _line(axes, [0, 1], [1, 0], "grid", 1, (1, 3))
    _line(axes, alarm, miss, "claim", 2)


def _bounds(axes: Axes, result: CaseResult) -> None:
    _, caught = smallest_caught(result)
    if caught is not None:
        _line(axes, *curves.boundary(caught, result.delta), "caught", 1.4, (2, 2))
    if result.epsilon_lower > 0:
        _line(axes, *curves.boundary(result.epsilon_lower, result.delta), "certified", 1.6, (6, 3))


def element(svg: str, title: str, frame: str = "") -> str:
    """An SVG document as an element of a page.

    Args:
        svg: What the drawing library wrote.
        title: What a screen reader says.
        frame: Elements to draw below it.

    Returns:
        The ``<svg>`` element in the page's colours and fonts, without ids and style sheets.
    """
    box = re.search(r'viewBox="[^"]*"', svg)
    view = box.group(0) if box else ""
    return (
        f'<svg role="img" aria-label="{title}" {view}><title>{title}</title>{frame}'
        f"{_body(svg)}</svg>"
    )


def _body(svg: str) -> str:
    body = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    body = re.sub(r"<(metadata|defs)>.*?</\1>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r' id="[^"]*"| transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r'<path d="[^"]*" style="fill: none"/>', "", body)
    body = re.sub(r' (d|x|y|transform)="[^"]*"', _rounded, body)
    body = re.sub(r"font-size: 10px; font-family: [^;]*; ?", "", body)
    body = re.sub(r"stroke-(dashoffset|linejoin): [^;\"]*;? ?", "", body)
    for name, ink in INKS.items():
        body = body.replace(ink, f"var(--{name})")
    return re.sub(r"</?g>", "", re.sub(r"\s+", " ", body)).strip()


def _rounded(attribute: re.Match[str]) -> str:
    # A tenth of a pixel is enough, and halves the page.
    return re.sub(
        r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), attribute[0]
    )
