"""How far an event carries: counted on scouted trials, judged by a robust certified bound.

An attack aims at the bound that fresh trials will certify, so candidates are ranked by a lower
confidence limit for the log odds of being right when the attack guesses (Wilson 1927, at three
standard deviations), maximised over how often it abstains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from audit.view import Floats

Codes = npt.NDArray[np.uint64]

DEVIATIONS = 3.0
_TAILS = 16
_FEWEST = 6


def lower_log_odds(right: npt.ArrayLike, wrong: npt.ArrayLike) -> Floats:
    """Lower confidence limit for ln(p/(1-p)), p the chance that a guess is right.

    Args:
        right: Numbers of right guesses, any shape (need not be integers).
        wrong: Numbers of wrong guesses, same shape.

    Returns:
        The limit (Wilson 1927), 0 where it would be negative.
    """
    r, w = np.asarray(right, dtype=float), np.asarray(wrong, dtype=float)
    square = DEVIATIONS**2
    total = np.maximum(r + w, 1e-9)
    margin = DEVIATIONS * np.sqrt(r * w / total + square / 4)
    low = np.maximum(r + square / 2 - margin, 0.5 * (total + square)) / (total + square)
    return np.asarray(np.log(low) - np.log1p(-low), dtype=float)


@dataclass(frozen=True)
class Tail:
    """The best use of a number: guess left when it is large (or small), abstain between.

    Attributes:
        gain: Certified log odds of the best pair of thresholds.
        sign: 1 when large means left, else -1.
        centre: Where the two sides are furthest apart.
        contrast: How different the sides are anywhere in its range (chi-square less its mean).
    """

    gain: float
    sign: int = 1
    centre: float = 0.0
    contrast: float = 0.0


def best_tail(left: Floats, right: Floats) -> Tail:
    """Rank a number by its tails.

    Args:
        left: Values on the left, shape (n,); NaN is ignored.
        right: Values on the right.
    """
    a, b = np.sort(left[~np.isnan(left)]), np.sort(right[~np.isnan(right)])
    if min(len(a), len(b)) < _FEWEST:
        return Tail(0.0)
    edges = np.sort(np.concatenate([a[_places(len(a))], b[_places(len(b))]]))
    edges = edges[np.isfinite(edges)]
    if not len(edges):
        return Tail(0.0)
    fair = min(len(left), len(right)) / np.array([[len(left)], [len(right)]])
    above = fair * np.stack([len(x) - np.searchsorted(x, edges, "left") for x in (a, b)])
    below = fair * np.stack([np.searchsorted(x, edges, "right") for x in (a, b)])
    apart = edges < edges[::-1]  # else the two tails overlap
    both = (above[:, ::-1] + below[::-1]) * apart
    guesses = np.stack([above, below[::-1], both], axis=1)  # row 0: right if large means left
    gains = lower_log_odds(guesses, guesses[::-1]).max(axis=(1, 2))
    away = edges[np.argmax(np.abs(above[0] - above[1]))]
    sign = 1 if gains[0] >= gains[1] else -1
    return Tail(float(gains.max()), sign, float(away), _contrast(np.diff(below)))


def _contrast(cells: Floats) -> float:
    total = cells.sum(axis=0)
    square = (cells[0] - cells[1]) ** 2 / np.maximum(total, 1.0)
    return float(square.sum() - np.count_nonzero(total))


def _most(right: Floats, wrong: Floats) -> float:
    return float(lower_log_odds(right, wrong).max())


@lru_cache(maxsize=64)
def _places(n: int) -> npt.NDArray[np.int64]:
    """Ranks of the thresholds among n values: geometric from both ends."""
    sizes = np.unique(np.geomspace(_FEWEST, max(_FEWEST, n / 2), _TAILS).astype(np.int64))
    return np.concatenate([sizes - 1, n - sizes])


@dataclass(frozen=True)
class Table:
    """Smoothed log odds of left for every code seen at least twice.

    Attributes:
        keys: Sorted codes, shape (k,).
        odds: ``ln((left + 1/2)/(right + 1/2))`` of each, shape (k,).
        other: The same for all codes that are not among the keys, taken together.
    """

    keys: Codes
    odds: Floats
    other: float

    def __call__(self, codes: Codes) -> Floats:
        """Log odds of each code, shape (n,)."""
        return np.append(self.odds, self.other)[place(self.keys, codes)]


@dataclass(frozen=True)
class Tally:
    """Counts of left and right per code, in two halves of the scouted trials.

    Attributes:
        keys: Sorted codes seen at least twice, shape (k,).
        counts: Shape (2 halves, 2 sides, k + 1), side 0 = left; the last entry counts all others.
    """

    keys: Codes
    counts: Floats

    @classmethod
    def of(cls, codes: Codes, left: int) -> Tally:
        """Count `codes`, of which the first `left` come from the left."""
        keys = repeated(codes)
        where = place(keys, codes)
        where += (len(keys) + 1) * (np.arange(len(codes)) >= left)
        size = 2 * (len(keys) + 1)
        halves = [np.bincount(where[half::2], minlength=size) for half in (0, 1)]
        return cls(keys, np.stack(halves).reshape(2, 2, -1).astype(float))

    @property
    def gain(self) -> float:
        """Certified log odds of the table of one half, used on the other half."""
        own, other = self.counts, self.counts[::-1]
        odds = np.log(other[:, 0] + 0.5) - np.log(other[:, 1] + 0.5)
        right = np.where(odds > 0, own[:, 0], own[:, 1])
        wrong = np.where(odds > 0, own[:, 1], own[:, 0])
        right[odds == 0], wrong[odds == 0] = 0.0, 0.0
        order = np.argsort(-np.abs(odds).ravel(), kind="stable")
        return _most(np.cumsum(right.ravel()[order]), np.cumsum(wrong.ravel()[order]))

    def table(self) -> Table:
        """The table of both halves together."""
        total = self.counts.sum(axis=0)
        odds = np.log(total[0] + 0.5) - np.log(total[1] + 0.5)
        return Table(self.keys, odds[:-1], float(odds[-1]))


def repeated(codes: Codes) -> Codes:
    """Codes that occur at least twice, sorted."""
    ordered = np.sort(codes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    fresh = np.ones(len(twice), dtype=bool)
    fresh[1:] = twice[1:] != twice[:-1]
    return np.asarray(twice[fresh], dtype=np.uint64)


def place(keys: Codes, codes: Codes) -> npt.NDArray[np.int64]:
    """Index of each code among sorted `keys`; ``len(keys)`` for the others."""
    if not len(keys):
        return np.zeros(len(codes), dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
    return np.where(keys[at] == codes, at, len(keys)).astype(np.int64)


def codes_of(values: Floats) -> Codes:
    """A code for every number: equal numbers, equal codes; -0 is 0 and all NaNs are alike."""
    plain = np.where(np.isnan(values), np.nan, values) + 0.0
    return np.ascontiguousarray(plain).view(np.uint64)


def mixed(codes: Codes, salt: int) -> Codes:
    """Codes scrambled, differently for every salt, so that sums of them identify tuples."""
    factor = np.uint64((0x9E3779B97F4A7C15 * (2 * salt + 1)) % 2**64 | 1)
    x = (codes ^ (codes >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(29))) * factor
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(30)), dtype=np.uint64)


def halves(n: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Masks of the even and of the odd trials."""
    even = np.arange(n) % 2 == 0
    return even, ~even
