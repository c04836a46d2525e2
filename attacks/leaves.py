"""Views as rows of numbers in a layout frozen when an attack is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audit.view import Array, Floats, Views

DERIVED_BITS = 26
FEWEST = 8
_SCALE_ROWS = 1024
_LARGEST = 1e4


def rows_of(views: Views, names: tuple[str, ...]) -> Floats:
    """The leaves called `names`, shape (n, d); NaN where a trial has none of that name."""
    if not len(views):
        return np.empty((0, len(names)))
    return views.matrix(names)


def names_of(left_views: Views, right_views: Views) -> tuple[str, ...]:
    """Leaves of either side, in column order."""
    if left_views.names == right_views.names:
        return left_views.names
    return tuple(dict.fromkeys(left_views.names + right_views.names))


def stacked(left_views: Views, right_views: Views) -> tuple[tuple[str, ...], Floats, int]:
    """Names of the leaves, rows of both sides (left first), and how many are left ones."""
    names = names_of(left_views, right_views)
    rows = np.concatenate([rows_of(left_views, names), rows_of(right_views, names)])
    return names, rows, len(left_views)


@dataclass(frozen=True)
class Silent:
    """The scorer of an attack that found nothing to look at.

    Attributes:
        description: Why it says nothing.
    """

    description: str = "the view holds no numbers"

    def __call__(self, views: Views) -> Floats:
        """Zeros, shape (n,)."""
        return np.zeros(len(views))


def hopeless(names: tuple[str, ...], rows: Floats, left: int) -> str:
    """Why a model cannot be fitted to these rows; empty when it can."""
    if not names:
        return "the view holds no numbers"
    if min(left, len(rows) - left) < FEWEST:
        return f"fewer than {FEWEST} scouting trials on a side"
    return ""


def some(rows: Floats, most: int = _SCALE_ROWS) -> Floats:
    """At most about `most` of the rows, evenly spaced."""
    return rows[:: max(1, -(-len(rows) // most))]


def scale_of(rows: Floats) -> tuple[Floats, Floats]:
    """Robust centre and spread of every column.

    Returns:
        Median and half the 5 % to 95 % range of the finite entries, each of shape (d,); a spread
        of 0 is replaced by the largest magnitude, or by 1.
    """
    sample = some(rows)
    finite = np.isfinite(sample)
    low, centre, high = quantiles(np.where(finite, sample, np.inf), (0.05, 0.5, 0.95), finite)
    spread = (high - low) / 2
    largest = np.where(np.abs(centre) > 0, np.abs(centre), 1.0)
    return centre, np.where(spread > 0, spread, largest)


def quantiles(rows: Floats, shares: tuple[float, ...], known: Array | None = None) -> Floats:
    """Quantiles of every column.

    Args:
        rows: Shape (n, d), without NaN.
        shares: Probabilities, k of them.
        known: Mask of the entries to use, shape (n, d); the others must be +inf.

    Returns:
        Shape (k, d); 0 for a column without a known entry.
    """
    ordered = np.sort(np.ascontiguousarray(rows.T), axis=1)
    count = np.full(rows.shape[1], len(rows)) if known is None else known.sum(axis=0)
    if not ordered.size:
        return np.zeros((len(shares), rows.shape[1]))
    at = (np.outer(np.maximum(count - 1, 0), shares)).astype(int)
    found = np.take_along_axis(ordered, at, axis=1)
    return np.where(count[:, None] > 0, found, 0.0).T


def step_of(spread: Floats) -> Floats:
    """Rounding step for values derived from leaves of this spread: a power of two.

    Sixteen times coarser than the grid of the leaves themselves, so that two leaves that differ
    by a constant up to rounding differ by one and the same number after rounding.
    """
    size = np.clip(np.abs(spread), 1e-290, 1e290)
    return np.asarray(np.exp2(np.ceil(np.log2(size)) + 1 - DERIVED_BITS), dtype=float)


def rounded(values: Floats, step: Floats | float) -> Floats:
    """Values rounded to multiples of `step`; NaN and infinities stay what they are."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.rint(values / step) * step, dtype=float)


@dataclass(frozen=True)
class Layout:
    """Which leaves, in which order, and how large they are.

    Attributes:
        names: Leaf names, d of them.
        centre: Median of each, shape (d,).
        spread: Half the 5 % to 95 % range of each, shape (d,); positive.
        gaps: Indices of the leaves that are missing (NaN) in some scouted trials.
    """

    names: tuple[str, ...]
    centre: Floats
    spread: Floats
    gaps: tuple[int, ...] = ()

    @classmethod
    def of(cls, rows: Floats, names: tuple[str, ...]) -> Layout:
        """The layout of scouted rows, shape (n, d)."""
        centre, spread = scale_of(rows)
        gaps = np.flatnonzero(np.isnan(rows).any(axis=0))
        return cls(names, centre, spread, tuple(int(i) for i in gaps))

    def standard(self, rows: Floats) -> Floats:
        """Rows in units of the spread; missing numbers become 0, everything is finite."""
        with np.errstate(invalid="ignore", over="ignore"):
            units = (rows - self.centre) / self.spread
        return np.clip(np.nan_to_num(units, nan=0.0), -_LARGEST, _LARGEST)

    def missing(self, rows: Floats) -> Floats:
        """Indicators of the missing leaves, shape (n, number of gaps)."""
        return np.isnan(rows[:, list(self.gaps)]).astype(float)
