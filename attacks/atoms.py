"""Values that repeat exactly: whole rows, parts of them, single numbers.

Why this is valid: every score is a frozen function of the view, fitted on scouting trials only
(counts per event, as in StatDP, Ding et al. 2018); what the event is worth is counted on fresh
trials.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attacks.counting import Codes, Tally, codes_of, mixed, repeated
from attacks.events import TableScorer, short
from attacks.leaves import Layout, Silent, stacked
from attacks.scalars import (
    FEW,
    SEVERAL,
    Scalar,
    derived_scalars,
    leaf_scalars,
    phase_scalars,
)
from audit.attack import Game, Scorer
from audit.view import Floats, Views

_SYMBOLS = 64
_PREFIXES = 32


@dataclass(frozen=True)
class Key:
    """A code of a row: rows with equal entries at some places have equal codes.

    Attributes:
        kind: ``scalar``, ``tuple`` (the leaves `at`) or ``multiset`` (all leaves, in any order).
        at: Indices of leaves.
        scalar: The number, for the kind ``scalar``.
    """

    kind: str
    at: tuple[int, ...] = ()
    scalar: Scalar | None = None

    def __call__(self, rows: Floats) -> Codes:
        """Codes, shape (n,), of rows of shape (n, d)."""
        if self.scalar is not None:
            return codes_of(self.scalar(rows))
        if self.kind == "multiset":
            rows = np.sort(rows, axis=1)
        columns = self.at or range(rows.shape[1])
        total = np.zeros(len(rows), dtype=np.uint64)
        for j in columns:
            total += mixed(codes_of(rows[:, j]), j)
        return total

    def describe(self, names: Sequence[str]) -> str:
        """What is looked up, in words."""
        if self.scalar is not None:
            return self.scalar.describe(names)
        if self.kind == "multiset":
            return "all values in any order"
        return short("(" + ", ".join(names[i] for i in self.at) + ")") if self.at else "the view"


@dataclass(frozen=True)
class Atoms:
    """Guess from values that repeat exactly: discrete views, point masses, noiseless differences.

    Counts of whole rows, of their prefixes and pairs, and of single leaves, differences and
    aggregates; the best table on held-out halves of the scouted trials wins.
    """

    name: str = "atoms"
    slow: bool = False
    learns: bool = True

    def applies(self, game: Game) -> bool:  # noqa: ARG002
        """Every view can be tried."""
        return True

    def fit(
        self,
        game: Game,  # noqa: ARG002
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Count every candidate and keep the best."""
        names, rows, left = stacked(left_views, right_views)
        best, chosen = -1.0, None
        for key, codes in _candidates(rows, left, names):
            tally = Tally.of(codes, left)
            if len(tally.keys) and tally.gain > best:
                best, chosen = tally.gain, (key, tally)
        if chosen is None:
            return Silent("no value repeats")
        key, tally = chosen
        words = f"log odds of the exact value of {key.describe(names)}"
        return TableScorer(names, key, tally.table(), words)


def _candidates(rows: Floats, left: int, names: tuple[str, ...]) -> list[tuple[Key, Codes]]:
    if not names:
        return []
    layout = Layout.of(rows, names)
    leaves = leaf_scalars(rows, left)
    scalars = leaves + derived_scalars(rows, left, layout) + phase_scalars(rows, left)
    found = [(Key("scalar", scalar=s), codes_of(s(rows))) for s in scalars]
    discrete = [k.scalar.at[0] for k, c in found[: len(leaves)] if k.scalar and _is_discrete(c)]
    return found + _tuples(rows, discrete)


def _is_discrete(codes: Codes) -> bool:
    return 1 < len(repeated(codes[: 16 * _SYMBOLS])) <= _SYMBOLS


def _tuples(rows: Floats, discrete: list[int]) -> list[tuple[Key, Codes]]:
    """Joint codes: the whole row, all its values in any order, its prefixes, pairs of leaves."""
    d = rows.shape[1]
    if d < 2:
        return []
    if d > SEVERAL:
        return [(Key("tuple"), Key("tuple")(rows))]
    column = [mixed(codes_of(rows[:, j]), j) for j in range(d)]
    sums = list(itertools.accumulate(column))
    found = [(Key("tuple", tuple(range(j + 1))), sums[j]) for j in range(1, min(d - 1, _PREFIXES))]
    found += [(Key("tuple"), sums[-1]), (Key("multiset"), Key("multiset")(rows))]
    pairs = itertools.combinations(discrete if len(discrete) <= FEW else [], 2)
    return found + [(Key("tuple", (i, j)), column[i] + column[j]) for i, j in pairs]
