"""Neighbouring inputs, and where they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from audit.claim import RELATIONS
from audit.errors import UsageError


@dataclass(frozen=True, eq=False)
class Pair:
    """Two inputs that a claim calls neighbours. The adversary may choose both.

    Attributes:
        left: One input, anything the mechanism accepts.
        right: The other input.
        label: A short name for reports.
        relation: ``replace-one`` (equal length, exactly one record differs), ``add-remove`` (one
            has one record more) or ``declared`` (the caller vouches for it; nothing is checked).
            With `records` > 1: up to so many differ, or are more.
        differs: Positions along the leading axis where the inputs differ; found when omitted.
        records: How many records of neighbours may differ: more than one for a group audit.

    Raises:
        UsageError: When the inputs are not neighbours under `relation`.
    """

    left: Any
    right: Any
    label: str = ""
    relation: str = "declared"
    differs: tuple[int, ...] | None = None
    records: int = 1

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise UsageError(
                f"pair {self.label!r}: expected a relation in {', '.join(RELATIONS)}; "
                f"got {self.relation!r}"
            )
        if self.differs is None:
            object.__setattr__(self, "differs", differing_positions(self.left, self.right))
        if self.relation == "replace-one":
            self._check_replace_one()
        elif self.relation == "add-remove":
            self._check_add_remove()

    def side(self, left: bool) -> Any:
        """The input of one side."""
        return self.left if left else self.right

    @property
    def alike(self) -> bool:
        """Whether both inputs are known to be the same, so that nothing could tell them apart."""
        try:
            sides = [msgspec.json.encode(x, enc_hook=listed) for x in (self.left, self.right)]
        except (TypeError, ValueError, RecursionError):
            return self.left is self.right
        return sides[0] == sides[1]

    @property
    def position(self) -> int:
        """Index of the first differing record; 0 for inputs without a leading axis."""
        return self.differs[0] if self.differs else 0

    @property
    def length(self) -> int | None:
        """Number of records of both inputs; None without a common leading axis."""
        columns = None if self.differs is None else _as_columns(self.left)
        return len(columns[0]) if columns else None

    def _check_replace_one(self) -> None:
        if self.differs is None or not 1 <= len(self.differs) <= self.records:
            where = "unequal lengths" if self.differs is None else f"positions {self.differs}"
            raise UsageError(
                f"pair {self.label!r}: replace-one neighbours must differ in exactly "
                f"{self._records()} of equally many; these differ in {where}. Change that many "
                "only, or declare the relation of the claim as 'declared'"
            )

    def _check_add_remove(self) -> None:
        left, right = _as_records(self.left), _as_records(self.right)
        if left is None or right is None or not _few_more(left, right, self.records):
            raise UsageError(
                f"pair {self.label!r}: add-remove neighbours must be sequences of which one has "
                f"exactly {self._records()} more and otherwise the same records in the same order"
            )

    def _records(self) -> str:
        return "one record" if self.records == 1 else f"one to {self.records} records"


def listed(value: Any) -> Any:
    """Arrays and numbers of numpy as JSON knows them.

    Raises:
        TypeError: For anything else.
    """
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(type(value).__name__)


def differing_positions(left: Any, right: Any) -> tuple[int, ...] | None:
    """Positions along the leading axis at which two inputs differ.

    Mappings and dataclasses of equally long columns count as tables: a row differs when any
    column differs there.

    Returns:
        The positions, or None when the inputs have no common leading axis.
    """
    columns, others = _as_columns(left), _as_columns(right)
    if columns is None or others is None or len(columns) != len(others):
        return None
    if len(columns[0]) != len(others[0]):
        return None
    different = [_different_rows(a, b) for a, b in zip(columns, others, strict=True)]
    return tuple(sorted(set().union(*different)))


def _different_rows(a: Any, b: Any) -> set[int]:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape:
        unequal = ~np.asarray(_equal(a, b)).reshape(len(a), -1).all(axis=1)
        return set(np.flatnonzero(unequal).tolist())
    return {i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not _same(x, y)}


def _as_columns(data: Any) -> list[Sequence[Any]] | None:
    """Equally long columns: the entries of a table, or the one sequence itself."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        data = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    values = list(data.values()) if isinstance(data, Mapping) else [data]
    columns = [value for value in values if _is_column(value)]
    return columns if columns and len({len(column) for column in columns}) == 1 else None


def _as_records(data: Any) -> list[Any] | None:
    columns = _as_columns(data)
    return None if columns is None else list(zip(*columns, strict=True))


def _is_column(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.all(_equal(a, b)))
    return bool(_equal(a, b))


def _equal(a: Any, b: Any) -> Any:
    return (a == b) | ((a != a) & (b != b))


def _few_more(left: Sequence[Any], right: Sequence[Any], most: int) -> bool:
    """Whether the longer is the shorter with one to `most` records put in."""
    long, short = (left, right) if len(left) > len(right) else (right, left)
    if not 1 <= len(long) - len(short) <= most:
        return False
    found = 0
    for record in long:
        if found < len(short) and _same(record, short[found]):
            found += 1
    return found == len(short)
