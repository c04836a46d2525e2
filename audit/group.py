"""Groups: inputs that differ in several records, against what the claim implies for so many.

A claim about one record implies one about k records, which grows with k. Where the changed
records act on the same statistic, so does the leak, and a group of the right size shows it with
far fewer trials: epsilon .1 takes a hundred times as many as k epsilon = 2 does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.claim import Claim
from audit.errors import UsageError
from audit.mechanism import Mechanism, capability
from audit.pair import Pair


@dataclass(frozen=True)
class Grouped:
    """A mechanism on inputs that differ in a group of records.

    It hides all that the mechanism knows about itself: an exact likelihood ratio written for one
    changed record would be wrong for several, and so would a certificate from it.

    Attributes:
        mechanism: What is played.
        inputs: Pairs that differ in a group.
        promised: The group claim.
    """

    mechanism: Mechanism
    inputs: tuple[Pair, ...]
    promised: Any = None

    @property
    def claim(self) -> Any:
        """What is promised about the group."""
        return self.promised

    def pairs(self) -> Sequence[Pair]:
        """Pairs that differ in a group."""
        return self.inputs

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        """Play `n` trials of the mechanism itself."""
        return self.mechanism.run(data, n, rng)

    @property
    def run_alone(self) -> Any:
        """How it keeps what a trial showed before it raised; None for others."""
        return capability(self.mechanism, "run_alone")

    @property
    def play_apart(self) -> Any:
        """How a mechanism in a process of its own is played; None for others."""
        return capability(self.mechanism, "play_apart")


def in_groups(
    mechanism: Mechanism, claim: Claim, pairs: tuple[Pair, ...], records: int
) -> tuple[Mechanism, tuple[Pair, ...]]:
    """The mechanism and the pairs of a group audit.

    A mechanism with the capability ``group_pairs(records)`` knows its groups, and its likelihood
    ratio holds for them. Otherwise given pairs are used as they are, and the mechanism's own ones
    grow by `grow`.

    Args:
        mechanism: The mechanism.
        claim: The group claim.
        pairs: Given pairs, which differ in up to `records` records; may be empty.
        records: Size of the groups.

    Raises:
        UsageError: When there is no pair for a group of that size.
    """
    known = capability(mechanism, "group_pairs")
    if known is not None and not pairs:
        return mechanism, tuple(known(records))
    inputs = pairs or tuple(grow(pair, records) for pair in mechanism.pairs())
    return Grouped(mechanism, inputs, claim), inputs


def grow(pair: Pair, records: int) -> Pair:
    """The pair with its one change made in `records` neighbouring records.

    On either side the record that differs is repeated in the places after it, or before it near
    the end, so that a sequential mechanism meets all of them close together.

    Raises:
        UsageError: When the inputs are no equally long sequences that differ in one record, or
            are too short.
    """
    if pair.differs is None or len(pair.differs) != 1:
        raise UsageError(
            f"pair {pair.label!r}: a group needs inputs that are sequences and differ in one "
            "record; give --pair LEFT RIGHT with inputs that differ in the whole group"
        )
    length = _length(pair.left)
    if records > length:
        raise UsageError(f"pair {pair.label!r}: a group of {records}, but {length} records")
    first = min(pair.position, length - records)
    left, right = (
        _spread(side, pair.position, slice(first, first + records))
        for side in (pair.left, pair.right)
    )
    label = f"{pair.label or 'pair'}, in {records} records"
    return Pair(left, right, label, pair.relation, records=records)


def _length(data: Any) -> int:
    if dataclasses.is_dataclass(data):
        data = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    columns = data.values() if isinstance(data, Mapping) else [data]
    lengths = [len(column) for column in columns if _is_column(column)]
    if not lengths:
        raise UsageError(
            "a group needs inputs that are sequences and can be seen; give --pair LEFT RIGHT with "
            "inputs that differ in the whole group"
        )
    return lengths[0]


def _spread(data: Any, position: int, places: slice) -> Any:
    """`data` with the record at `position` repeated at `places`, in every column."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        columns = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
        return dataclasses.replace(data, **_spread(columns, position, places))
    if isinstance(data, Mapping):
        return {name: _spread(column, position, places) for name, column in data.items()}
    if isinstance(data, np.ndarray) and data.ndim:
        rows = data.copy()
        rows[places] = data[position]
        return rows
    if not _is_column(data):
        return data
    records = list(data)
    records[places] = [data[position]] * len(range(len(records))[places])
    return tuple(records) if isinstance(data, tuple) else records


def _is_column(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
