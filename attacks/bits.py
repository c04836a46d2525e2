"""Trailing bits of doubles, for the ``bits`` threat.

A sum of two doubles is rounded to the grid of the larger one, so the last bit that is set in a
noisy answer tells how large the exact answer was (Mironov 2012): ``1 + Laplace`` is a multiple of
2^-53 on its way through [1/2, 1), ``0 + Laplace`` hardly ever is.

Why this is valid: the score is a frozen function of the view, and counts for what fresh trials
show. It speaks of doubles, not of the real numbers that they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attacks.counting import best_tail
from attacks.leaves import Silent, rows_of, stacked
from audit.attack import Game, Scorer
from audit.view import Floats, Views

_MOST_LEAVES = 256
_MANTISSA = 53


def last_bits(values: Floats) -> Floats:
    """The last set bit of every number, as a power of two, shape (n,); NaN where there is none."""
    fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.abs(fraction * 2.0**_MANTISSA).astype(np.int64)
    trailing = np.log2(np.maximum(whole & -whole, 1))
    return np.where(whole > 0, exponent + trailing - _MANTISSA, np.nan)


@dataclass(frozen=True)
class BitsScorer:
    """The last set bit of one number, the lower (or the higher) the more left.

    Attributes:
        names: Frozen leaves.
        at: Which of them is looked at.
        sign: 1 when high means left, else -1.
        description: The event in words.
    """

    names: tuple[str, ...]
    at: int
    sign: int
    description: str

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,)."""
        if not len(views):
            return np.empty(0)
        found = last_bits(rows_of(views, self.names)[:, self.at])
        return self.sign * np.nan_to_num(found, nan=0.0)


@dataclass(frozen=True)
class Bits:
    """Guess from the last set bit of the number in which it tells most."""

    name: str = "bits"
    slow: bool = False
    learns: bool = True

    def applies(self, game: Game) -> bool:
        """Only where views are not rounded: the threat is in scope."""
        return game.grid is None

    def fit(
        self,
        game: Game,  # noqa: ARG002
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Count codes on both sides, number by number."""
        names, rows, left = stacked(left_views, right_views)
        if not names:
            return Silent("the view holds no numbers")
        bits = [last_bits(column) for column in rows.T[:_MOST_LEAVES]]
        tails = [best_tail(column[:left], column[left:]) for column in bits]
        best = max(range(len(tails)), key=lambda i: tails[i].gain)
        relation = ">=" if tails[best].sign > 0 else "<"
        words = f"guesses left when the last set bit of {names[best]} is {relation} 2^"
        return BitsScorer(names, best, tails[best].sign, f"{words}{tails[best].centre:g}")
