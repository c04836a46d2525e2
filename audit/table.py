"""Real customers from a user's own file, scaled by public bounds, and pairs made of them.

The bounds are declared, never measured: a bound read off the data would depend on the very
records whose privacy is at stake, and no claim about the scaled data would hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError
from audit.pair import Pair
from audit.sheet import finite_number, locate, read_rows, refuse

Floats = npt.NDArray[np.float64]
Bounds = Mapping[str, tuple[float, float]]
Distance = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True, eq=False)
class Table:
    """Customers in the order in which they came.

    Attributes:
        contexts: Shape (T, k), entries in [0, 1/sqrt(k)], so that every norm is at most 1.
        prices: Shape (T,), in [0, 1] of the public price range; 1 when no price was recorded.
        outcomes: Shape (T,), in [0, 1] of the public outcome range.
        priced: Whether prices were recorded and so belong to a customer's record.
    """

    contexts: Floats
    prices: Floats
    outcomes: Floats
    priced: bool = True

    def __len__(self) -> int:
        return len(self.outcomes)

    def first(self, count: int) -> Table:
        """The first `count` customers."""
        return Table(self.contexts[:count], self.prices[:count], self.outcomes[:count], self.priced)

    def to_data(self) -> dict[str, Floats]:
        """The columns by name: ``contexts``, ``prices``, ``outcomes``."""
        return {"contexts": self.contexts, "prices": self.prices, "outcomes": self.outcomes}


def scaled(contexts: Floats, prices: Floats | None, outcomes: Floats, bounds: Floats) -> Table:
    """Scale raw columns by public bounds; missing entries become 0 and others are clipped.

    Args:
        contexts: Shape (T, k), NaN where missing.
        prices: Shape (T,), or None when there are none.
        outcomes: Shape (T,).
        bounds: Shape (k + 2, 2): low and high of each context, of the price and of the outcome.
    """
    priced = prices is not None
    price = np.full(len(outcomes), bounds[-2, 1]) if prices is None else prices
    raw = np.column_stack([contexts, price, outcomes])
    unit = np.clip((raw - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0]), 0.0, 1.0)
    unit = np.nan_to_num(unit, nan=0.0)
    wide = contexts.shape[1]
    return Table(unit[:, :wide] / math.sqrt(wide), unit[:, wide], unit[:, wide + 1], priced)


def read_table(
    path: str | Path,
    *,
    context: Sequence[str],
    outcome: str,
    price: str | None = None,
    bounds: Bounds,
) -> Table:
    """Read customers from a comma-separated UTF-8 file with a header row.

    Args:
        path: The file.
        context: Names of the columns that describe a customer.
        outcome: Name of the column that says what the customer did.
        price: Name of the column with the price that the customer saw, if it was recorded.
        bounds: Public (low, high) of every column used.

    Raises:
        UsageError: For anything wrong with the file, naming file, row (the header is row 1),
            column and remedy.
    """
    columns = [*context, *([price] if price is not None else []), outcome]
    limits = _check_bounds(columns, context, bounds)
    header, rows = read_rows(Path(path))
    where = locate(str(path), header, columns)
    values = [
        [_number(str(path), row, name, cells[where[name]], bounds[name]) for name in columns]
        for row, cells in rows
    ]
    if not values:
        refuse(str(path), "expected customers below the header, got none. Add one row a customer")
    raw, wide = np.array(values), len(context)
    if price is None:
        limits = np.insert(limits, wide, (0.0, 1.0), axis=0)
    return scaled(raw[:, :wide], raw[:, wide] if price is not None else None, raw[:, -1], limits)


def customer_pairs(
    table: Table, *, position: int = 0, distance: Distance | None = None
) -> tuple[Pair, ...]:
    """Replace one real customer by the worst customer allowed and by another real one.

    Early customers influence most of what is released later, so the first is replaced unless told
    otherwise. The worst customer is found by a local search over the corners of the public
    bounds, from the farthest real customer; a corner only ever makes a pair, so missing the very
    worst one costs power and nothing else.

    Args:
        table: At least two customers.
        position: 0-based customer to replace.
        distance: How far apart two customers are, from rows (k + 2,) and (m, k + 2) of contexts,
            price and outcome to (m,); Euclidean when omitted.

    Returns:
        Pairs of mappings with ``contexts``, ``prices`` and ``outcomes``: the worst customer
        first, then the farthest real one. Customers at distance 0 make no pair.

    Raises:
        UsageError: For fewer than two customers, a bad position, or no customer at any distance.
    """
    if len(table) < 2 or not 0 <= position < len(table):
        raise UsageError(
            f"customer pairs: expected at least two customers and a position among them, got "
            f"{len(table)} customers and position {position}"
        )
    measure = distance or _euclidean
    rows = np.column_stack(list(table.to_data().values()))
    apart = measure(rows[position], rows)
    other = int(np.argmax(apart))
    worst = _worst(table, rows[position], rows[other], measure)
    found = [(worst, "the worst within bounds")] if _far(measure, rows[position], worst) else []
    if apart[other] > 0:
        found.append((rows[other], f"customer {other + 1}"))
    if not found:
        raise UsageError(
            "customer pairs: no customer within the bounds differs from customer "
            f"{position + 1}. Use more context columns"
        )
    label = f"customer {position + 1} replaced by"
    return tuple(_replace(table, position, new, f"{label} {name}") for new, name in found)


def _worst(table: Table, own: Floats, start: Floats, measure: Distance) -> Floats:
    """Move one coordinate at a time to a bound, as long as that leads farther from `own`."""
    wide = table.contexts.shape[1]
    top = np.concatenate([np.full(wide, 1 / math.sqrt(wide)), [1.0, 1.0]])
    free = [i for i in range(wide + 2) if table.priced or i != wide]
    current, best = start, float(measure(own, start[None])[0])
    while True:
        tries = np.tile(current, (2 * len(free), 1))
        for k, i in enumerate(free):
            tries[2 * k, i], tries[2 * k + 1, i] = 0.0, top[i]
        apart = measure(own, tries)
        if not apart.max() > best * (1 + 1e-9):
            return current
        current, best = tries[np.argmax(apart)], float(apart.max())


def _replace(table: Table, position: int, new: Floats, label: str) -> Pair:
    left = {name: column.copy() for name, column in table.to_data().items()}
    right = {name: column.copy() for name, column in left.items()}
    right["contexts"][position] = new[:-2]
    right["prices"][position], right["outcomes"][position] = new[-2:]
    return Pair(left, right, label=label, relation="replace-one")


def _euclidean(one: Floats, others: Floats) -> Floats:
    return np.asarray(np.linalg.norm(others - one, axis=1), dtype=float)


def _far(measure: Distance, own: Floats, other: Floats) -> bool:
    return bool(measure(own, other[None])[0] > 0)


def _check_bounds(columns: Sequence[str], context: Sequence[str], bounds: Bounds) -> Floats:
    if not context:
        raise UsageError("table: expected at least one context column, got none")
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise UsageError(f"table: column {twice[0]!r} is given two roles; give it one")
    for name in columns:
        if name not in bounds:
            raise UsageError(
                f"table: no public bounds for column {name!r}. Declare them, as in "
                f"bounds={{{name!r}: (0, 100)}}; they must not be computed from the data"
            )
        _check_interval(name, bounds[name])
    unused = sorted(set(bounds) - set(columns))
    if unused:
        raise UsageError(
            f"table: bounds for {unused[0]!r}, which is none of the columns used "
            f"({', '.join(columns)}). Correct the name or drop the bounds"
        )
    return np.array([bounds[name] for name in columns], dtype=float)


def _check_interval(name: str, interval: tuple[float, float]) -> None:
    low, high = interval
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(
            f"table: bounds of column {name!r}: expected finite low < high, got {interval!r}"
        )


def _number(path: str, row: int, name: str, cell: str, interval: tuple[float, float]) -> float:
    value, (low, high) = finite_number(path, row, name, cell), interval
    if not low <= value <= high:
        refuse(
            path,
            f"row {row}, column {name!r}: {value:g} is outside the declared bounds ({low:g}, "
            f"{high:g}). Correct the cell, or declare wider bounds that do not depend on the data",
        )
    return value


def parse_bounds(text: str) -> dict[str, tuple[float, float]]:
    """Public bounds from ``column=low:high,...``.

    Raises:
        UsageError: For another form.
    """
    bounds = {}
    for part in text.split(","):
        name, _, interval = part.partition("=")
        low, _, high = interval.partition(":")
        try:
            bounds[name.strip()] = (float(low), float(high))
        except ValueError:
            raise UsageError(f"--bounds: expected column=low:high, got {part!r}") from None
    return bounds
