"""Views: what the adversary sees, for a block of trials, with nothing flattened away.

Whatever an implementation emits is part of the view: the values, but also type, shape, keys, a
missing step, an exception, NaN. A block of trials becomes *columns* of numbers (NaN where a trial
has no such entry) and one *form* per trial, a string that spells out everything else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from audit.errors import MechanismError, UsageError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

WHOLE = ("output", "transcript")
PROJECTIONS = ("all", "except", "after")
_MOST_PATHS = 8192
_EXACT_INTEGERS = 2**53
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclass(frozen=True)
class Raised:
    """An exception that one trial ended in: an outcome like any other."""

    kind: str
    message: str = ""


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
    def names(self) -> tuple[str, ...]:
        """Names of all leaves (single numbers), in column order."""
        return tuple(
            leaf for name, column in self.columns.items() for leaf in _leaves(name, column)
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

    def take(self, rows: Array) -> Views:
        """The views of some trials."""
        return Views(self.form[rows], {k: v[rows] for k, v in self.columns.items()})


def _leaves(name: str, column: Floats) -> list[str]:
    if column.ndim == 1:
        return [name]
    return [name + "".join(f"[{i}]" for i in index) for index in np.ndindex(column.shape[1:])]


def concatenate(first: Views, second: Views) -> Views:
    """The trials of both, one after the other; columns that only one has are NaN in the other."""
    form = np.concatenate([first.form, second.form])
    names, others = set(first.columns), set(second.columns)
    same = names == others and all(first[k].shape[1:] == second[k].shape[1:] for k in first.columns)
    if same:
        return Views(form, {k: np.concatenate([first[k], second[k]]) for k in first.columns})
    leaves = tuple(dict.fromkeys(first.names + second.names))
    both = np.concatenate([first.matrix(leaves), second.matrix(leaves)])
    return Views(form, {name: both[:, i] for i, name in enumerate(leaves)})


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
        _check_lengths(columns, n)
        return _from_arrays(columns, n)
    if isinstance(emitted, np.ndarray) and emitted.dtype.kind in "biufc" and emitted.ndim:
        _check_lengths({"value": emitted}, n)
        return _from_arrays({"value": emitted}, n)
    if isinstance(emitted, Sequence | np.ndarray) and not isinstance(emitted, str | bytes):
        if len(emitted) != n:
            raise MechanismError(_wrong_axis("value", (len(emitted),), n))
        return _from_objects(list(emitted))
    raise MechanismError(
        f"run returned {type(emitted).__name__}; expected an array or a sequence with one entry "
        f"per trial (leading axis {n}), or a mapping of such arrays"
    )


def _is_block(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind in "biufc"


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
    form = ";".join(f"{k}:{v.dtype.kind}{list(v.shape[1:])}" for k, v in columns.items())
    numbers: dict[str, Floats] = {}
    for name, column in columns.items():
        if column.dtype.kind == "c":
            numbers[f"{name}.real"], numbers[f"{name}.imag"] = column.real, column.imag
        else:
            numbers[name] = np.asarray(column, dtype=float)
    return Views(np.full(n, form, dtype=object), numbers)


def _from_objects(outputs: list[Any]) -> Views:
    kinds = {type(x) for x in outputs}
    if len(kinds) == 1 and kinds <= {float, np.float64}:
        # the form of a trial must not depend on its neighbours in the block: see _encode
        kind = _encode(outputs[0], "value", {})
        form = np.full(len(outputs), kind, dtype=object)
        return Views(form, {"value": np.asarray(outputs, dtype=float)})
    table: dict[str, Floats] = {}
    forms = np.empty(len(outputs), dtype=object)
    for row, output in enumerate(outputs):
        leaves: dict[str, float] = {}
        forms[row] = _encode(output, "value", leaves)
        for path, number in leaves.items():
            if path not in table:
                if len(table) >= _MOST_PATHS:
                    continue
                table[path] = np.full(len(outputs), np.nan)
            table[path][row] = number
    return Views(forms, dict(sorted(table.items())))


def _encode(x: Any, path: str, leaves: dict[str, float]) -> str:
    """Write the numbers in `x` to `leaves` and return its form."""
    if x is None:
        return "None"
    if isinstance(x, Raised):
        leaves[f"{path}.message"] = category(x.message)
        return f"raised {x.kind}"
    if isinstance(x, np.ndarray | np.generic):
        return _encode_array(np.asarray(x), path, leaves)
    if isinstance(x, bool | int | float | complex):
        return _encode_number(x, path, leaves)
    if isinstance(x, Decimal | Fraction):
        return _encode_exact(x, path, leaves)
    if isinstance(x, str | bytes | bytearray):
        leaves[path] = category(x if isinstance(x, str) else bytes(x).hex())
        leaves[f"{path}.len"] = len(x)
        return type(x).__name__
    return _encode_container(x, path, leaves)


def _encode_number(x: Any, path: str, leaves: dict[str, float]) -> str:
    if isinstance(x, complex):
        leaves[f"{path}.real"], leaves[f"{path}.imag"] = x.real, x.imag
    elif isinstance(x, int) and abs(x) > _EXACT_INTEGERS:
        leaves[path] = math.copysign(_to_float(abs(x)), 1 if x > 0 else -1)
        leaves[f"{path}.exact"] = category(hex(x))  # str() refuses more than 4,300 digits
    else:
        leaves[path] = float(x)
    return type(x).__name__


def _encode_exact(x: Decimal | Fraction, path: str, leaves: dict[str, float]) -> str:
    """A number that a float rounds: its size, and a code where the rounding loses something."""
    missing = isinstance(x, Decimal) and x.is_nan()
    leaves[path] = number = math.nan if missing else _to_float(x)
    if missing or number != x:
        leaves[f"{path}.exact"] = category(str(x))
    return type(x).__name__


def _to_float(x: int | Decimal | Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, 1 if x > 0 else -1)


def _encode_array(x: Array, path: str, leaves: dict[str, float]) -> str:
    form = f"array[{x.dtype.kind}]{list(x.shape)}"
    if x.dtype.kind not in "biuf":
        inner = [_encode(v, f"{path}[{i}]", leaves) for i, v in enumerate(x.ravel().tolist())]
        return form + _summary(inner)
    flat = x.astype(float)
    for index in np.ndindex(x.shape):
        leaves[path + "".join(f"[{i}]" for i in index)] = float(flat[index])
    return form


def _encode_container(x: Any, path: str, leaves: dict[str, float]) -> str:
    kind = type(x).__name__
    if hasattr(x, "to_dict") and hasattr(x, "dtypes"):  # pandas objects, without importing it
        x = {"index": list(x.index), "values": x.to_numpy(), "kind": str(x.dtypes)}
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        x = {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
    elif isinstance(x, set | frozenset):
        x = sorted(x, key=repr)
    if isinstance(x, Mapping):
        leaves[f"{path}.len"] = len(x)
        parts = [f"{k!r}:{_encode(v, f'{path}[{k!r}]', leaves)}" for k, v in x.items()]
        return f"{kind}{{{','.join(parts)}}}"
    if isinstance(x, Sequence):
        leaves[f"{path}.len"] = len(x)
        return kind + _summary([_encode(v, f"{path}[{i}]", leaves) for i, v in enumerate(x)])
    leaves[path] = category(_ADDRESS.sub("0x", repr(x)))
    return f"object {kind}"


def _summary(parts: list[str]) -> str:
    if len(parts) > 1 and len(set(parts)) == 1:
        return f"[{len(parts)} x {parts[0]}]"
    return f"[{','.join(parts)}]"


def category(text: str) -> float:
    """A stable number for a text: equal texts, equal numbers; different ones almost never."""
    return float(
        int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6], "big")
    )


def project(views: Views, view: str, positions: Sequence[int]) -> Views:
    """Keep only what a named view shows.

    Args:
        views: Everything the mechanism emitted.
        view: ``output`` or ``transcript`` (everything), a column's name, or that name followed by
            ``_all``, ``_except`` (all rounds but the customer's own) or ``_after`` (of these, the
            rounds after the customer's first).
        positions: The rounds at which the pair differs (0-based): the customer's own.

    Raises:
        UsageError: When the mechanism emits no such column.
    """
    if view in WHOLE:
        return views
    name, _, which = view.rpartition("_")
    if all(str(form).startswith("raised ") for form in views.form):
        return Views(views.form)
    if view in views.columns:
        name, which = view, "all"
    if name not in views.columns or which not in PROJECTIONS:
        raise UsageError(
            f"view {view!r}: expected 'output', 'transcript', or one of the columns "
            f"{', '.join(views.columns)} with or without _all, _except, _after"
        )
    column = views[name]
    rounds = kept_rounds(column.shape[1], which, positions)
    return Views(views.form, {name: column if which == "all" else column[:, rounds]})


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
