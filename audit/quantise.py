"""Rounding, so that floating-point dust never decides a claim about real numbers.

A double leaks its origin: ``abs(y) - abs(y - 1)`` rounds differently on the two sides of a pair,
and an event built on such an ulp certifies an epsilon that the real-number mechanism does not
have. Unless the ``bits`` threat is on, every view is rounded to a grid of powers of two before
an attack sees it, and every score before it is binned. Grid steps are powers of two, so sums and
differences of rounded values are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from audit.view import Floats, Views

BITS = 30
_MAGNITUDE_BITS = 44
_ROWS = 512


@dataclass(frozen=True)
class Grid:
    """Step of the rounding grid for every column, frozen in scouting.

    Attributes:
        steps: Column name to positive powers of two, one per entry of a trial.
    """

    steps: Mapping[str, Floats]

    def apply(self, views: Views) -> Views:
        """Views rounded to the grid; columns that scouting never saw use the default step."""
        rounded = {}
        for name, column in views.columns.items():
            step = self.steps.get(name)
            if step is None or step.shape != column.shape[1:]:
                step = np.full(column.shape[1:], 2.0**-BITS)
            rounded[name] = _round(column, step)
        return Views(views.form, rounded)


def grid_of(views: Views) -> Grid:
    """The grid for views like these: 2^-30 of the spread, at least 2^-44 of the magnitude."""
    return Grid({name: _step(column) for name, column in views.columns.items()})


def round_scores(scores: Floats, largest: float) -> Floats:
    """Scores rounded to 2^-30 of `largest` (or of 1 when that is smaller)."""
    return _round(np.asarray(scores, dtype=float), _power(np.asarray(max(1.0, largest)), BITS))


def _step(column: Floats) -> Floats:
    some = column[:: max(1, len(column) // _ROWS)]
    values = np.where(np.isfinite(some), some, np.nan)
    empty = np.all(np.isnan(values), axis=0)
    values = np.where(empty, 0.0, values)
    low, high = _middle(values)
    largest = np.nanmax(np.abs(values), axis=0)
    with np.errstate(over="ignore"):
        between = np.minimum(high - low, np.finfo(float).max)
    spread = np.where(between > 0, between, np.where(largest > 0, largest, 1.0))
    return np.maximum(_power(spread, BITS), _power(np.maximum(largest, 1e-300), _MAGNITUDE_BITS))


def _middle(values: Floats) -> tuple[Floats, Floats]:
    """Fifth and ninety-fifth percentile per column, NaN left out (it sorts to the end)."""
    ordered = np.sort(values, axis=0)
    last = np.maximum((~np.isnan(values)).sum(axis=0) - 1, 0)
    ranks = [np.floor(0.05 * last), np.ceil(0.95 * last)]
    low, high = (np.take_along_axis(ordered, r[None].astype(int), axis=0)[0] for r in ranks)
    return low, high


def _power(x: Floats, bits: int) -> Floats:
    return np.asarray(np.exp2(np.ceil(np.log2(x)) - bits), dtype=float)


def _round(x: Floats, step: Floats) -> Floats:
    with np.errstate(over="ignore"):  # the largest doubles become infinite, each always alike
        rounded: Floats = np.rint(x / step)
        rounded *= step
    return rounded
