"""Evidence: a small table of integers that adds.

``counts[side, bin]`` over signed score bins whose edges were frozen in scouting, one table per
block of trials. Bounds, error rates and wealth are functions of it; blocks of trials add, so
parallel runs, resumed runs, shards and merged records are all the same ``+``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError

Counts = npt.NDArray[np.int64]
LARGEST_COUNT = 2**40
"""Of one bin of one block; sums of these stay far below the largest integer."""
_LONGEST_NUMBER = 10


@dataclass(frozen=True)
class Evidence:
    """Counts per side and score bin, by block.

    Attributes:
        bins: Number of score bins.
        blocks: Block index to counts of shape (2, bins); row 0 is left, row 1 is right.
    """

    bins: int
    blocks: Mapping[int, Counts] = field(default_factory=dict)

    def __add__(self, other: Evidence) -> Evidence:
        """Evidence from both; a block that both hold is an error, since it would count twice."""
        if self.bins != other.bins:
            raise UsageError(f"evidence over {self.bins} bins cannot be added to {other.bins} bins")
        twice = sorted(set(self.blocks) & set(other.blocks))
        if twice:
            raise UsageError(f"evidence: blocks {twice} would be counted twice")
        return Evidence(self.bins, dict(sorted({**self.blocks, **other.blocks}.items())))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evidence):
            return NotImplemented
        return self.bins == other.bins and self.to_rows() == other.to_rows()

    __hash__ = None  # type: ignore[assignment]

    @property
    def trials(self) -> int:
        """Number of trials, both sides together."""
        return int(self.total.sum())

    @property
    def total(self) -> Counts:
        """Counts over all blocks, shape (2, bins)."""
        return sum(self.blocks.values(), np.zeros((2, self.bins), dtype=np.int64))

    def prefixes(self) -> Counts:
        """Running totals over blocks 0, 1, 2, ... up to the first gap, shape (blocks, 2, bins)."""
        tables = []
        for index, block in enumerate(sorted(self.blocks)):
            if index != block:
                break
            tables.append(self.blocks[block])
        if not tables:
            return np.zeros((0, 2, self.bins), dtype=np.int64)
        return np.cumsum(np.stack(tables), axis=0)

    def prefix(self, count: int) -> Evidence:
        """Evidence of the first `count` blocks."""
        return Evidence(self.bins, {b: c for b, c in self.blocks.items() if b < count})

    def to_rows(self) -> dict[str, list[list[int]]]:
        """Plain form for records: block to ``[bin, left, right]`` rows of the non-empty bins."""
        rows = {}
        for block, counts in sorted(self.blocks.items()):
            filled = np.flatnonzero(counts.any(axis=0))
            rows[str(block)] = np.column_stack([filled, counts[:, filled].T]).tolist()
        return rows

    @classmethod
    def from_rows(cls, bins: int, rows: Mapping[str, list[list[int]]]) -> Evidence:
        """Evidence from its plain form.

        Raises:
            UsageError: For a bin out of range, a count that is none, or a block without a number.
        """
        blocks = {}
        for block, entries in rows.items():
            if not (block.isascii() and block.isdigit() and len(block) < _LONGEST_NUMBER):
                raise UsageError(f"evidence: expected blocks by their number, got {block[:40]!r}")
            blocks[int(block)] = _table(entries, bins, block)
        return cls(bins, dict(sorted(blocks.items())))


def _table(entries: list[list[int]], bins: int, block: str) -> Counts:
    for entry in entries:
        known = len(entry) == 3 and 0 <= entry[0] < bins
        if not known or min(entry[1:]) < 0 or max(entry[1:]) > LARGEST_COUNT:
            raise UsageError(
                f"evidence, block {block}: expected [bin < {bins}, left, right] with counts from 0 "
                f"to {LARGEST_COUNT}, got {entry}"
            )
    rows = np.array(entries, dtype=np.int64).reshape(-1, 3)
    if len(np.unique(rows[:, 0])) < len(rows):
        raise UsageError(f"evidence, block {block}: expected every bin once")
    counts = np.zeros((2, bins), dtype=np.int64)
    counts[:, rows[:, 0]] = rows[:, 1:].T
    return counts


def tabulate(
    left_scores: npt.ArrayLike, right_scores: npt.ArrayLike, edges: npt.ArrayLike
) -> Counts:
    """Count scores per side and bin.

    Args:
        left_scores: Scores of trials on the left input.
        right_scores: Scores of trials on the right input.
        edges: Increasing bin edges; bin i holds scores s with edges[i-1] <= s < edges[i]. NaN
            scores go to the first bin.

    Returns:
        Shape (2, len(edges) + 1).
    """
    cut = np.asarray(edges)
    counts = np.zeros((2, len(cut) + 1), dtype=np.int64)
    for row, scores in enumerate((left_scores, right_scores)):
        values = np.asarray(scores)
        where = np.searchsorted(cut, np.where(np.isnan(values), -np.inf, values), side="right")
        counts[row] = np.bincount(where, minlength=len(cut) + 1)
    return counts
