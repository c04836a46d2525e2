"""The numbers behind the pictures: trade-off curves, measured error rates, their uncertainty.

Convention: the adversary raises the alarm by saying *left*. A false alarm says left when the
input was the right one; a miss says right when it was the left one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.claim import AnyClaim, ApproxDp, PureDp
from audit.record import CaseResult, Choice, PlannedCase
from audit.render.sentences import of_one_run

Floats = npt.NDArray[np.float64]

_MOST_POINTS = 32
_SMALLEST_EPSILON = 1e-9
_ONE = 1 - 1e-12


@dataclass(frozen=True)
class Box:
    """A confidence rectangle for the two error rates of one decision rule.

    Attributes:
        alarm: Lower and upper limit of the false-alarm rate.
        miss: Lower and upper limit of the miss rate.
    """

    alarm: tuple[float, float]
    miss: tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One score bin of the evidence table.

    Attributes:
        scores: The range of scores, in words.
        posterior: Scouted probability of *left*.
        guess: ``left``, ``right`` or ``abstain``.
        left: Trials on the left input.
        right: Trials on the right input.
    """

    scores: str
    posterior: float
    guess: str
    left: int
    right: int


@lru_cache(maxsize=1024)
def claim_curve(claim: AnyClaim) -> tuple[Floats, Floats]:
    """The trade-off curve of a claim.

    Returns:
        False-alarm rates from 0 to 1 and the smallest miss rates that the claim allows there.
    """
    if isinstance(claim, PureDp):
        alarm = _corners(claim.epsilon, 0.0)
    elif isinstance(claim, ApproxDp):
        alarm = _corners(claim.epsilon, claim.delta)
    else:
        return _smooth(claim)
    return alarm, np.asarray(claim.miss_rate(alarm), dtype=float)


def _smooth(claim: AnyClaim) -> tuple[Floats, Floats]:
    # Dense near the ends, where the curves of large epsilons bend, and where both errors are
    # equal, where converted claims have a corner.
    alarm = (1 - np.cos(np.linspace(0, np.pi, 401))) / 2
    miss = np.asarray(claim.miss_rate(alarm), dtype=float)
    corner = int(np.argmin(np.abs(alarm - miss)))
    kept = np.union1d(np.arange(0, 401, 8), np.clip([corner - 1, corner, corner + 1], 0, 400))
    return alarm[kept], miss[kept]


def boundary(epsilon: float, delta: float) -> tuple[Floats, Floats]:
    """The trade-off curve of (`epsilon`, `delta`)-DP; both are clipped to its range."""
    claim = ApproxDp(epsilon=max(epsilon, _SMALLEST_EPSILON), delta=min(max(delta, 0.0), _ONE))
    return claim_curve(claim)


def _corners(epsilon: float, delta: float) -> Floats:
    # Two lines that meet where false-alarm and miss rate are equal.
    return np.array([0.0, (1 - delta) / (1 + math.exp(min(epsilon, 700.0))), 1 - delta, 1.0])


def error_rates(result: CaseResult) -> tuple[Floats, Floats]:
    """Measured false-alarm and miss rates of the frozen attack at every threshold.

    Bins join *left* in the order of their scouted posterior.

    Returns:
        Two arrays from (0, 1) to (1, 0); empty without trials on both sides.
    """
    choice, counts = _testimony(result)
    sides = counts.sum(axis=1)
    if choice is None or not sides.all():
        return np.empty(0), np.empty(0)
    order = np.argsort(-np.asarray(choice.posterior), kind="stable")
    kept = order[counts[:, order].sum(axis=0) > 0]
    told = np.cumsum(counts[:, kept], axis=1) / sides[:, None]
    told = np.concatenate([np.zeros((2, 1)), told], axis=1)
    some = np.unique(np.linspace(0, told.shape[1] - 1, _MOST_POINTS).round().astype(int))
    return told[1, some], 1 - told[0, some]


def confidence_boxes(result: CaseResult) -> list[Box]:
    """Rectangles that hold the true error rates of both frozen decision rules at once.

    The rules are "say left only where the guess is left" and "say left unless the guess is
    right". Four rates share the case's alpha, each through a two-sided Clopper-Pearson interval.

    Returns:
        Two rectangles; none without trials on both sides, nor after an early stop, where
        intervals for a fixed number of trials would claim too much, nor for canaries that share
        a run.
    """
    choice, counts = _testimony(result)
    if choice is None or result.stopped or of_one_run(result):
        return []
    if not counts.sum(axis=1).all():
        return []
    guess = np.asarray(choice.guess)
    return [_box(counts, says, result.alpha / 4) for says in (guess > 0, guess >= 0)]


def _box(counts: npt.NDArray[np.int64], says_left: npt.NDArray[np.bool_], alpha: float) -> Box:
    left, right = (int(side) for side in counts.sum(axis=1))
    return Box(
        alarm=interval(int(counts[1, says_left].sum()), right, alpha),
        miss=interval(int(counts[0, ~says_left].sum()), left, alpha),
    )


def interval(hits: int, trials: int, alpha: float) -> tuple[float, float]:
    """Two-sided interval for a probability (Clopper and Pearson 1934).

    Args:
        hits: Successes.
        trials: Trials, > 0.
        alpha: Probability, shared equally by both ends, that the interval misses the truth.
    """
    low = special.betaincinv(hits, trials - hits + 1, alpha / 2) if hits else 0.0
    high = special.betainccinv(hits + 1, trials - hits, alpha / 2) if hits < trials else 1.0
    return float(low), float(high)


def wealth_target(planned: PlannedCase, result: CaseResult) -> float:
    """The log-wealth that refutes, by the share of alpha that is spent on the bet that is drawn."""
    own = result.choice is not None and result.choice.renyi is not None
    share = planned.shares.renyi if own else planned.shares.betting
    return -math.log(share) if share > 0 else 0.0


def rows(result: CaseResult) -> list[Row]:
    """The evidence table: the bins that any trial fell into, all blocks together."""
    choice, counts = _testimony(result)
    if choice is None:
        return []
    return [
        Row(
            scores=_range(choice.edges, index),
            posterior=choice.posterior[index],
            guess={1: "left", -1: "right"}.get(choice.guess[index], "abstain"),
            left=int(counts[0, index]),
            right=int(counts[1, index]),
        )
        for index in np.flatnonzero(counts.sum(axis=0)).tolist()
    ]


def _range(edges: tuple[float, ...], index: int) -> str:
    if not edges:
        return "any"
    if index == 0:
        return f"below {edges[0]:.4g}"
    if index == len(edges):
        return f"from {edges[-1]:.4g}"
    return f"{edges[index - 1]:.4g} to {edges[index]:.4g}"


def _testimony(result: CaseResult) -> tuple[Choice | None, npt.NDArray[np.int64]]:
    choice = result.choice
    if choice is None:
        return None, np.zeros((2, 0), dtype=np.int64)
    return choice, result.evidence.total
