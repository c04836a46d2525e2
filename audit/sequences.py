"""Rounds: what a sequence looks like on both sides, and which of its rounds give the pair away.

A summary for the eye, made of scouting trials that are no evidence: nothing here is certified. A
view's column of shape (n, T) becomes a few numbers per round, for at most `MOST_ROUNDS` rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

import msgspec
import numpy as np

from audit.pair import Pair
from audit.view import PROJECTIONS, Array, Floats, Views, kept_rounds

MOST_ROUNDS = 64
FALSE_ALARM = 0.01
_MOST_TRIALS = 2_000
_MOST_VALUES = 8
_MOST_SHARES = 2
_DIGITS = 4
_QUANTILES = (0.1, 0.9)

SHARE = "share of"
_SPREAD_LINES = 3

Lines = tuple[tuple[float | None, ...], ...]
_Round = Annotated[int, msgspec.Meta(ge=0, le=10**7)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """One column of the view over its rounds, on both sides of the chosen pair.

    Attributes:
        column: Name of the column, with the entry that tells most where a round has several.
        rounds: The rounds shown, 0-based and increasing.
        total: How many rounds the column has, shown or not.
        own: Rounds at which the inputs differ; empty where entries are not rounds of the input.
        in_order: Whether entries are rounds of the input.
        lines: Names of what is shown per round: ``mean`` and quantiles, or shares of values.
        left: One sequence per line, one number per round; None where no trial has a number.
        right: The same on the right side.
        gap: Per round, the largest difference between the sides in the probability of any event
            "the value is at most x" (Kolmogorov and Smirnov), as measured.
        noise: Equal sides stay below this in every round and entry of the column with probability
            at least 0.99.
        trials: Scouting trials looked at, left and right.

    Raises:
        ValueError: When there is not one number per round.
    """

    column: str
    rounds: tuple[_Round, ...]
    total: _Round
    own: tuple[_Round, ...]
    in_order: bool
    lines: tuple[str, ...]
    left: Lines
    right: Lines
    gap: tuple[_Share, ...]
    noise: float
    trials: tuple[int, int]

    def __post_init__(self) -> None:
        drawn = (self.gap, *self.left, *self.right)
        if not self.rounds or any(len(line) != len(self.rounds) for line in drawn):
            raise ValueError(f"expected one number for each of {len(self.rounds)} rounds")
        if not len(self.left) == len(self.right) == len(self.lines) > 0:
            raise ValueError(f"expected {len(self.lines)} lines on both sides")
        if len(self.lines) < _SPREAD_LINES and not self.lines[0].startswith(SHARE):
            raise ValueError(f"expected shares, or a mean and two quantiles, got {self.lines}")


def rounds_of(left: Views | None, right: Views | None, view: str, pair: Pair) -> tuple[Rounds, ...]:
    """Summaries of the decisions in the order of the input, and of the column that tells most.

    Args:
        left: Scouted views of the left input, as the adversary sees them.
        right: The same of the right input.
        view: Name of the audited projection.
        pair: The pair they were played on.

    Returns:
        None to two summaries, at most one per column.
    """
    if left is None or right is None or not (len(left) and len(right)):
        return ()
    found = list(_summaries(left, right, view, pair))
    if not found:
        return ()
    loudest = max(found, key=lambda one: max(one.gap))
    ordered = next((one for one in found if one.in_order), loudest)
    return (ordered,) if ordered is loudest else (ordered, loudest)


def _summaries(left: Views, right: Views, view: str, pair: Pair) -> Iterator[Rounds]:
    for name, column in left.columns.items():
        other = right.columns.get(name)
        if other is None or column.ndim < 2 or column.shape[1:] != other.shape[1:]:
            continue
        if column.shape[1] > 1 and column[0].size > 1:
            sides = column[:_MOST_TRIALS], other[:_MOST_TRIALS]
            yield _summary(name, *sides, _places(name, column.shape[1], view, pair), pair)


def _places(name: str, shown: int, view: str, pair: Pair) -> Array | None:
    """The rounds of the input that a column shows; None when its entries are something else."""
    base, _, which = view.rpartition("_")
    which = which if base == name and which in PROJECTIONS else "all"
    if pair.length is None:
        return None
    places = kept_rounds(pair.length, which, pair.differs or ())
    return places if len(places) == shown else None


def _summary(name: str, left: Floats, right: Floats, places: Array | None, pair: Pair) -> Rounds:
    total, several = left.shape[1], left.ndim > 2
    flat = [side.reshape(len(side), total, -1) for side in (left, right)]
    apart = _apart(*flat)
    entry = int(np.argmax(apart.max(axis=0)))
    one, other = (side[:, :, entry] for side in flat)
    kept = _loudest(apart[:, entry])
    one, other = one[:, kept], other[:, kept]
    lines, drawn = _lines(one, other)
    numbers = np.arange(total) if places is None else places
    spread = math.sqrt(1 / len(one) + 1 / len(other))
    return Rounds(
        column=f"{name}, entry {entry + 1}" if several else name,
        rounds=tuple(int(number) for number in numbers[kept]),
        total=total if places is None else int(pair.length or total),
        own=() if places is None else tuple(pair.differs or ()),
        in_order=places is not None,
        lines=lines,
        left=drawn[0],
        right=drawn[1],
        gap=tuple(_rounded(_gap(a, b)) or 0.0 for a, b in zip(one.T, other.T, strict=True)),
        # Dvoretzky, Kiefer and Wolfowitz in two samples of equal size (Wei and Dudley 2012).
        noise=round(spread * math.sqrt((1 + math.log(apart.size / FALSE_ALARM)) / 2), _DIGITS),
        trials=(len(one), len(other)),
    )


@np.errstate(over="ignore", invalid="ignore")
def _apart(left: Floats, right: Floats) -> Floats:
    """Difference of means in standard deviations; shape (T, entries)."""
    means, variances = zip(*(_moments(side) for side in (left, right)), strict=True)
    spread = np.sqrt((variances[0] + variances[1]) / 2)
    floor = 1e-9 * (np.abs(means[0]) + np.abs(means[1])) + np.finfo(float).tiny
    return np.asarray(np.nan_to_num(np.abs(means[0] - means[1]) / (spread + floor)), dtype=float)


@np.errstate(over="ignore", invalid="ignore")
def _moments(side: Floats) -> tuple[Floats, Floats]:
    known = np.isfinite(side)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, side, 0.0).sum(axis=0) / count
    return mean, np.square(np.where(known, side - mean, 0.0)).sum(axis=0) / count


def _loudest(apart: Floats) -> Array:
    """Of `MOST_ROUNDS` equal stretches of rounds, the round of each that tells most."""
    if len(apart) <= MOST_ROUNDS:
        return np.arange(len(apart))
    cuts = np.linspace(0, len(apart), MOST_ROUNDS + 1).round().astype(int)
    return np.array([a + int(np.argmax(apart[a:b])) for a, b in pairwise(cuts)])


def _lines(left: Floats, right: Floats) -> tuple[tuple[str, ...], tuple[Lines, Lines]]:
    values = np.unique(np.concatenate([left.ravel(), right.ravel()]))
    whole = len(values) <= _MOST_VALUES and bool(np.isfinite(values).all())
    if not (whole and np.array_equal(values, values.round())):
        return ("mean", "lower tenth", "upper tenth"), (_spread(left), _spread(right))
    shares = [np.array([(side == v).mean(axis=0) for v in values]) for side in (left, right)]
    told = np.argsort(-np.abs(shares[0] - shares[1]).max(axis=1), kind="stable")
    most = 1 if len(values) == 2 else _MOST_SHARES
    kept = np.array([len(values) - 1]) if most == 1 else np.sort(told[:most])
    names = tuple(f"{SHARE} {values[i]:g}" for i in kept)
    return names, (_numbers(shares[0][kept]), _numbers(shares[1][kept]))


def _spread(side: Floats) -> Lines:
    """Mean of the numbers, and two order statistics, where missing ones come last."""
    ordered = np.sort(side, axis=0)
    ends = [ordered[math.ceil(q * len(side)) - 1] for q in _QUANTILES]
    known = np.isfinite(side).any(axis=0)
    return _numbers(np.where(known, np.vstack([_moments(side)[0], *ends]), np.nan))


def _numbers(lines: Floats) -> Lines:
    return tuple(tuple(_rounded(value) for value in line) for line in lines.tolist())


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _gap(left: Floats, right: Floats) -> float:
    """Largest distance of two empirical distribution functions; a missing number comes last."""
    one, other = np.sort(left), np.sort(right)
    values = np.concatenate([one, other])
    below = [np.searchsorted(side, values, side="right") / len(side) for side in (one, other)]
    return float(np.abs(below[0] - below[1]).max())
