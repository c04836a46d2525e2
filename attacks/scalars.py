"""Numbers derived from a row of leaves: one number per trial, rounded so that no ulp decides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from attacks.leaves import Layout, quantiles, rounded, some, step_of
from audit.view import Floats

FEW = 12
SEVERAL = 64
MANY = 256
_SCREEN_QUANTILES = (0.01, 0.06, 0.25, 0.5, 0.75, 0.94, 0.99)
_SCREEN_ROWS = 800
_ALPHABET = 12
_PHASE_STEP = 2.0**-10


@dataclass(frozen=True)
class Scalar:
    """One number derived from a row.

    Attributes:
        kind: What is computed: a key of `KINDS`.
        at: Indices of the leaves it is computed from; empty means all.
        about: A constant that some kinds need (a centre, a symbol).
        step: Rounding step of the result; 0 leaves it as it is.
    """

    kind: str
    at: tuple[int, ...] = ()
    about: float = 0.0
    step: float = 0.0

    def __call__(self, rows: Floats) -> Floats:
        """Values, shape (n,), for rows of shape (n, d)."""
        with np.errstate(all="ignore"):
            values = KINDS[self.kind][1](rows, self.at, self.about)
        return rounded(values, self.step) if self.step else values

    def describe(self, names: Sequence[str]) -> str:
        """The number in words."""
        leaves = [names[i] for i in self.at]
        return KINDS[self.kind][0].format(*leaves, about=f"{self.about:.6g}")


def _filled(rows: Floats, number: float) -> Floats:
    if not rows.size or not np.isnan(np.min(rows)):
        return rows
    return np.where(np.isnan(rows), number, rows)


def _ordered(rows: Floats) -> Floats:
    return np.sort(_filled(rows, np.inf), axis=1)


def _largest(rows: Floats) -> Floats:
    return np.asarray(np.max(_filled(rows, -np.inf), axis=1), dtype=float)


def _smallest(rows: Floats) -> Floats:
    return np.asarray(np.min(_filled(rows, np.inf), axis=1), dtype=float)


def _position(rows: Floats) -> Floats:
    return np.asarray(np.argmax(_filled(rows, -np.inf), axis=1), dtype=float)


def _distinct(rows: Floats) -> Floats:
    ordered = np.sort(rows, axis=1)
    return np.asarray(1.0 + np.sum(ordered[:, 1:] > ordered[:, :-1], axis=1), dtype=float)


def _switches(rows: Floats) -> Floats:
    return np.asarray(np.sum(rows[:, 1:] != rows[:, :-1], axis=1), dtype=float)


Compute = Callable[[Floats, tuple[int, ...], float], Floats]

KINDS: dict[str, tuple[str, Compute]] = {
    "value": ("{0}", lambda x, i, _c: x[:, i[0]]),
    "away": ("|{0} - {about}|", lambda x, i, c: np.abs(x[:, i[0]] - c)),
    "phase": ("{0} modulo {about}", lambda x, i, c: np.remainder(x[:, i[0]], c)),
    "difference": ("{0} - {1}", lambda x, i, _c: x[:, i[0]] - x[:, i[1]]),
    "rank": ("order statistic {about} of the view", lambda x, _i, c: _ordered(x)[:, int(c)]),
    "sum": ("the sum of the view", lambda x, _i, _c: _filled(x, 0.0).sum(axis=1)),
    "norm": ("the norm of the view", lambda x, _i, _c: np.linalg.norm(_filled(x, 0.0), axis=1)),
    "largest": ("the largest number in the view", lambda x, _i, _c: _largest(x)),
    "smallest": ("the smallest number in the view", lambda x, _i, _c: _smallest(x)),
    "range": ("the range of the view", lambda x, _i, _c: _largest(x) - _smallest(x)),
    "position": ("the position of the largest number", lambda x, _i, _c: _position(x)),
    "missing": ("the number of missing entries", lambda x, _i, _c: 1.0 * np.isnan(x).sum(axis=1)),
    "distinct": ("the number of distinct entries", lambda x, _i, c: _distinct(rounded(x, c))),
    "switches": ("the number of changes along the view", lambda x, _i, c: _switches(rounded(x, c))),
    "symbol": ("how often {about} occurs", lambda x, _i, c: 1.0 * np.sum(x == c, axis=1)),
}
"""Kind to its words and its function of (rows, leaf indices, constant)."""

AGGREGATES = (
    "sum", "norm", "largest", "smallest", "range", "position", "missing", "distinct", "switches",
)  # fmt: skip
MIXING = ("sum", "norm", "range")
CHEAP = ("sum", "norm", "largest", "smallest", "range", "missing")


def leaf_scalars(rows: Floats, left: int) -> list[Scalar]:
    """Every leaf, or the most promising ones of many.

    Args:
        rows: Scouted rows, shape (n, d), the left ones first.
        left: How many are left ones.
    """
    return [Scalar("value", (int(i),)) for i in promising(rows, left, SEVERAL)]


def derived_scalars(rows: Floats, left: int, layout: Layout) -> list[Scalar]:
    """Differences, order statistics, aggregates and symbol counts worth ranking.

    Args:
        rows: Scouted rows, shape (n, d), the left ones first.
        left: How many are left ones.
        layout: Their layout.
    """
    d = rows.shape[1]
    if d < 2:
        return [Scalar("missing")] if layout.gaps else []
    coarsest = float(step_of(layout.spread).max())
    found = [*_differences(rows, left, layout), *_symbols(rows)]
    kinds = [k for k in AGGREGATES if k in CHEAP or d <= MANY]
    found += [Scalar(kind, (), coarsest) for kind in kinds if kind != "missing" or layout.gaps]
    found += [Scalar("rank", (), float(i)) for i in {1, d // 2, d - 2} if 2 < d <= SEVERAL]
    sample = some(rows)
    return [s if s.step else replace(s, step=_own_step(s, sample, coarsest)) for s in found]


def away_scalars(scalars: Sequence[Scalar], layout: Layout) -> list[Scalar]:
    """Distances of single leaves from their medians."""
    leaves = [s.at[0] for s in scalars if s.kind == "value"]
    steps = step_of(layout.spread)
    centres = rounded(layout.centre, steps)
    return [Scalar("away", (i,), float(centres[i]), float(steps[i])) for i in leaves]


def phase_scalars(rows: Floats, left: int) -> list[Scalar]:
    """Remainders of leaves on a lattice that lies elsewhere on either side.

    Discrete noise hides which of its multiples was drawn, but not what is left over when data are
    no multiples themselves; with much noise no value repeats, so that only the remainder tells.

    Args:
        rows: Scouted rows, shape (n, d), the left ones first.
        left: How many are left ones.
    """
    if rows.shape[1] > SEVERAL:
        return []
    found = []
    for i, column in enumerate(rows.T):
        spacing = _spacing(column[:left])
        if spacing and _phases(column[:left], spacing) != _phases(column[left:], spacing):
            found.append(Scalar("phase", (i,), spacing, spacing * _PHASE_STEP))
    return found


def _spacing(values: Floats) -> float:
    """The smallest distance of many values whose distances are its multiples; 0 for others."""
    steps = np.diff(np.unique(values[np.isfinite(values)]))
    if len(steps) < FEW or steps.min() < steps.sum() * _PHASE_STEP**2:
        return 0.0
    multiples = steps / steps.min()
    whole = np.abs(multiples - np.rint(multiples)) < _PHASE_STEP
    return float(steps.min()) if whole.all() else 0.0


def _phases(values: Floats, spacing: float) -> set[float]:
    finite = values[np.isfinite(values)]
    return set(rounded(np.remainder(finite, spacing), spacing * _PHASE_STEP).tolist())


def _differences(rows: Floats, left: int, layout: Layout) -> list[Scalar]:
    d = rows.shape[1]
    if d <= FEW:
        pairs = list(itertools.combinations(range(d), 2))
    else:
        with np.errstate(invalid="ignore"):
            best = promising(rows[:, 1:] - rows[:, :-1], left, SEVERAL // 2)
        pairs = [(int(i), int(i) + 1) for i in best]
    steps = step_of(layout.spread)
    return [Scalar("difference", (j, i), 0.0, float(max(steps[i], steps[j]))) for i, j in pairs]


def _symbols(rows: Floats) -> list[Scalar]:
    symbols = np.unique(some(rows, 64))
    symbols = symbols[np.isfinite(symbols)]
    if rows.shape[1] < 4 or len(symbols) > _ALPHABET:
        return []
    return [Scalar("symbol", (), float(symbol)) for symbol in symbols]


def _own_step(scalar: Scalar, sample: Floats, coarsest: float) -> float:
    """Rounding step from a derived number's own scale; arithmetic inherits the leaves' steps."""
    values = scalar(sample)
    finite = values[np.isfinite(values)]
    largest = float(np.abs(finite).max()) if len(finite) else 1.0
    own = float(step_of(np.asarray(largest or 1.0)))
    return max(own, coarsest) if scalar.kind in MIXING else own


def promising(rows: Floats, left: int, most: int) -> npt.NDArray[np.int64]:
    """Indices of the columns whose distribution functions differ most between the sides.

    Why it is robust: only counts below quantiles are compared (two-sample z scores, and sums of
    both tails), so heavy tails, missing numbers and units do not matter.

    Args:
        rows: Scouted rows, shape (n, d), the left ones first.
        left: How many are left ones.
        most: How many to keep; all when there are not more.
    """
    d = rows.shape[1]
    if d <= most:
        return np.arange(d)
    edges = quantiles(_filled(some(rows, _SCREEN_ROWS), -np.inf), _SCREEN_QUANTILES)
    n, m = max(left, 1), max(len(rows) - left, 1)
    sides = np.stack([np.arange(len(rows)) < left, np.arange(len(rows)) >= left])
    counted = [sides.astype(np.float32) @ (rows <= edge).astype(np.float32) for edge in edges]
    below = np.stack(counted, axis=1).astype(float)
    shares = (below.sum(axis=0) + 0.5) / (n + m + 1)
    apart = below[0] / n - below[1] / m
    error = np.sqrt(shares * (1 - shares) * (1 / n + 1 / m))
    single = np.abs(apart) / error
    paired = np.abs(apart - apart[::-1])[: len(edges) // 2] / (1.5 * error[: len(edges) // 2])
    strength = np.concatenate([single, paired]).max(axis=0)
    return np.sort(np.argsort(-strength, kind="stable")[:most])
