"""Views: what the adversary sees, for a block of trials, with nothing flattened away.

Whatever an implementation emits is part of the view: the values, but also type, shape, keys, a
missing step, an exception, NaN. A block of trials becomes *columns* of numbers (NaN where a trial
has no such entry) and one *form* per trial, a string that spells out everything else.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from audit.encode import Array as Array
from audit.encode import Raised as Raised
from audit.encode import category as category
from audit.encode import encode, low_bits, type_of
from audit.errors import MechanismError, UsageError
from audit.outcome import MOST_ITEMS

Floats = npt.NDArray[np.float64]

WHOLE = ("output", "transcript")
PROJECTIONS = ("all", "except", "after")
_MOST_NAMES = 2 * MOST_ITEMS


@dataclass(frozen=True)
class Views:
    """The views of a block of trials.

    Attributes:
        form: Shape (n,), strings: the form of each trial's output.
        columns: Name to float array of shape (n, ...).
    """

    form: Array
    columns: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.form)

    def __getitem__(self, name: str) -> Floats:
        return self.columns[name]

    @cached_property
    def raised(self) -> npt.NDArray[np.bool_]:
        """Which trials ended in an exception, shape (n,)."""
        return np.array([str(form).startswith("raised ") for form in self.form], dtype=bool)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all leaves (single numbers), in column order."""
        return tuple(
            leaf
            for name, column in self.columns.items()
            for leaf in _leaves(name, column.shape[1:])
        )

    def matrix(self, names: Sequence[str] | None = None) -> Floats:
        """Leaves as one matrix.

        Args:
            names: The leaves wanted; all when omitted. Unknown ones are NaN.

        Returns:
            Shape (n, number of leaves).
        """
        flat = [column.reshape(len(self), -1) for column in self.columns.values()]
        own = np.concatenate(flat, axis=1) if flat else np.empty((len(self), 0))
        if names is None or tuple(names) == self.names:
            return own
        where = {name: i for i, name in enumerate(self.names)}
        wanted = np.full((len(self), len(names)), np.nan)
        for i, name in enumerate(names):
            if name in where:
                wanted[:, i] = own[:, where[name]]
        return wanted

    def shaped(self, name: str, shape: tuple[int, ...]) -> Floats:
        """The column of that name and shape of a trial; NaN for entries that are not there."""
        column = self.columns.get(name)
        if column is not None and column.shape[1:] == shape:
            return column
        if not self.columns:
            return np.full((len(self), *shape), np.nan)
        return self.matrix(_leaves(name, shape)).reshape(len(self), *shape)

    def take(self, rows: Array) -> Views:
        """The views of some trials."""
        return Views(self.form[rows], {k: v[rows] for k, v in self.columns.items()})


@lru_cache(maxsize=256)
def _leaves(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    if not shape:
        return (name,)
    return tuple(name + "".join(f"[{i}]" for i in index) for index in np.ndindex(shape))


def concatenate(first: Views, second: Views) -> Views:
    """The trials of both, one after the other; columns that only one has are NaN in the other."""
    return joined([first, second])


def joined(parts: Sequence[Views]) -> Views:
    """The trials of all parts, one after the other; columns that a part lacks are NaN there.

    Every leaf keeps its name and every trial its numbers, whatever stands beside it. Columns stay
    in the parts' order where that is the same, else they are sorted; where their shapes differ,
    every leaf becomes a column.
    """
    form = np.concatenate([part.form for part in parts])
    if not _agree(parts):
        parts = [_in_leaves(part) for part in parts]
    orders = {tuple(part.columns) for part in parts}
    shapes = {name: c.shape[1:] for part in parts for name, c in part.columns.items()}
    names = shapes if len(orders) == 1 else sorted(shapes)
    return Views(
        form,
        {k: np.concatenate([part.shaped(k, shapes[k]) for part in parts]) for k in names},
    )


def _agree(parts: Sequence[Views]) -> bool:
    """Whether columns of one name have one shape, and no column is a leaf of another."""
    shapes = {(name, c.shape[1:]) for part in parts for name, c in part.columns.items()}
    names = {name for name, _ in shapes}
    if len(names) < len(shapes):
        return False
    entries = (leaf for part in parts for leaf in part.names if leaf not in part.columns)
    return len({tuple(part.columns) for part in parts}) == 1 or names.isdisjoint(entries)


def _in_leaves(views: Views) -> Views:
    matrix = views.matrix()
    return Views(views.form, {name: matrix[:, i] for i, name in enumerate(views.names)})


def collect(emitted: Any, n: int) -> Views:
    """Turn what a mechanism emitted for `n` trials into views.

    Args:
        emitted: A numeric array with leading axis n, a mapping of such arrays, views, or a
            sequence of n Python objects of any kind (`Raised` for an exception).
        n: Number of trials.

    Raises:
        MechanismError: When the leading axis is not n.
    """
    if isinstance(emitted, Views):
        return _checked(emitted, n)
    if isinstance(emitted, Mapping) and emitted and all(map(_is_block, emitted.values())):
        columns = {str(k): np.asarray(v) for k, v in emitted.items()}
        if len(columns) < len(emitted):
            raise MechanismError(f"run returned two columns of one name in {list(emitted)}")
        _check_lengths(columns, n)
        return _from_arrays(columns, n)
    if _is_block(emitted):
        _check_lengths({"value": emitted}, n)
        return _from_arrays({"value": emitted}, n)
    if isinstance(emitted, Sequence | np.ndarray) and not isinstance(emitted, str | bytes):
        if len(emitted) != n:
            raise MechanismError(_wrong_axis("value", (len(emitted),), n))
        return _from_objects(list(emitted))
    raise MechanismError(
        f"run returned {_named(emitted)}; expected an array or a sequence with one entry "
        f"per trial (leading axis {n}), or a mapping of arrays of numbers"
    )


def _is_block(value: Any) -> bool:
    """Whether it is an array of numbers with a leading axis, none of them masked."""
    numbers = isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)
    return numbers and value.ndim > 0 and value.dtype.kind in "biufc"


def _named(emitted: Any) -> str:
    """Its type; of a mapping also the entry that is no block of trials."""
    kind = type(emitted).__name__
    odd = (
        [k for k, v in emitted.items() if not _is_block(v)] if isinstance(emitted, Mapping) else []
    )
    return f"{kind} whose entry {odd[0]!r} is {type(emitted[odd[0]]).__name__}" if odd else kind


def _checked(views: Views, n: int) -> Views:
    _check_lengths({"form": views.form, **views.columns}, n)
    return views


def _check_lengths(columns: Mapping[str, Array], n: int) -> None:
    for name, column in columns.items():
        if column.shape[0] != n:
            raise MechanismError(_wrong_axis(name, column.shape, n))


def _wrong_axis(name: str, shape: tuple[int, ...], n: int) -> str:
    return (
        f"run returned {name!r} with shape {shape}; expected a leading axis of {n}, one entry per "
        "trial. A function of one trial must be given with batched=False"
    )


def _from_arrays(columns: Mapping[str, Array], n: int) -> Views:
    form = ";".join(f"{k}:{type_of(v)}{list(v.shape[1:])}" for k, v in columns.items())
    numbers: dict[str, Floats] = {}
    for name, column in columns.items():
        if column.dtype.kind == "c":
            numbers[f"{name}.real"], numbers[f"{name}.imag"] = column.real, column.imag
        else:
            numbers[name] = np.asarray(column, dtype=float)
        low = low_bits(column)
        if low is not None:
            numbers[part_of(name, "low")] = low
    return Views(np.full(n, form, dtype=object), numbers)


def _from_objects(outputs: list[Any]) -> Views:
    kinds = {type(x) for x in outputs}
    if len(kinds) == 1 and kinds <= {float, np.float64}:
        # the form of a trial must not depend on its neighbours in the block: see encode
        kind = encode(outputs[0], "value", {})
        form = np.full(len(outputs), kind, dtype=object)
        return Views(form, {"value": np.asarray(outputs, dtype=float)})
    table: dict[str, Floats] = {}
    forms = np.empty(len(outputs), dtype=object)
    for row, output in enumerate(outputs):
        leaves: dict[str, float] = {}
        forms[row] = encode(output, "value", leaves)
        for path, number in _kept(leaves).items():
            if path not in table:
                _require_room(table)
                table[path] = np.full(len(outputs), np.nan)
            table[path][row] = number
    return Views(forms, dict(sorted(table.items())))


def _kept(leaves: dict[str, float]) -> dict[str, float]:
    """The first of many leaves; the others as one category, that tells equal from different."""
    if len(leaves) <= MOST_ITEMS:
        return leaves
    found = list(leaves.items())
    rest = {"rest": category(repr(found[MOST_ITEMS:])), "rest.len": len(found) - MOST_ITEMS}
    return dict(found[:MOST_ITEMS]) | rest


def _require_room(table: Mapping[str, Floats]) -> None:
    if len(table) >= _MOST_NAMES:
        some = ", ".join(repr(name[:40]) for name in itertools.islice(table, 3))
        raise MechanismError(
            f"expected at most {_MOST_NAMES:,} differently named numbers in a call, got more: "
            f"{some}, ... Keys that are drawn anew in every run cannot be compared; emit such a "
            "mapping as a sorted list of pairs"
        )


def same_views(first: Views, second: Views) -> bool:
    """Whether two blocks of trials hold the same, bit for bit."""
    same_form = bool(np.all(first.form == second.form)) and first.names == second.names
    return same_form and bool(np.array_equal(first.matrix(), second.matrix(), equal_nan=True))


def project(views: Views, view: str, positions: Sequence[int]) -> Views:
    """Keep only what a named view shows.

    Args:
        views: Everything the mechanism emitted.
        view: ``output`` or ``transcript`` (everything), a column's name, or that name followed by
            ``_all``, ``_except`` (all rounds but the customer's own) or ``_after`` (of these, the
            rounds after the customer's first).
        positions: The rounds at which the pair differs (0-based): the customer's own.

    Raises:
        UsageError: When the mechanism emits no such column, or one without rounds to leave out.
    """
    if view in WHOLE:
        return views
    name, _, which = view.rpartition("_")
    if view in views.columns:
        name, which = view, "all"
    if name not in views.columns and views.raised.all():
        return Views(views.form)
    if name not in views.columns or which not in PROJECTIONS:
        raise UsageError(
            f"view {view!r}: expected 'output', 'transcript', or one of the columns "
            f"{', '.join(views.columns)} with or without _all, _except, _after"
        )
    parts = part_of(name, "")
    shown = {k: v for k, v in views.columns.items() if k == name or k.startswith(parts)}
    if which == "all":
        return Views(views.form, shown)
    if views[name].ndim < 2:
        raise UsageError(
            f"view {view!r}: column {name!r} is one number per trial, without rounds to leave "
            f"out; audit {name!r}"
        )
    kept = kept_rounds(views[name].shape[1], which, positions)
    return Views(views.form, {k: v[:, kept] for k, v in shown.items()})


def part_of(column: str, path: str) -> str:
    """Name of the column with a part of what another one holds, entry by entry."""
    return f"{column}:{path}"


def kept_rounds(total: int, which: str, positions: Sequence[int]) -> Array:
    """The rounds that a projection keeps.

    Args:
        total: Number of rounds.
        which: One of `PROJECTIONS`.
        positions: The customer's own rounds (0-based); the first when there is none.
    """
    own, rounds = list(positions) or [0], np.arange(total)
    if which != "all":
        rounds = rounds[~np.isin(rounds, own)]
    if which == "after":
        rounds = rounds[rounds > min(own)]
    return rounds
