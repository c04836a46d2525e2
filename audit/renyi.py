"""Betting against a Renyi divergence: claims about it (zCDP, Renyi, Gaussian) in their own terms.

Converting such a claim to (epsilon, delta) gives away most of what it says: a single event sees
little of a moment. Here a whole score testifies: the powers of a capped likelihood ratio on either
side, which Hoelder's inequality ties together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

from audit.bounds import last_rejected
from audit.claim import RenyiClaim
from audit.evidence import Counts

Floats = npt.NDArray[np.float64]
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]

LARGEST_DIVERGENCE = 200.0
_LARGEST_ORDER = 64.0
_ORDERS = (1.01, 1.03, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, _LARGEST_ORDER)
_SHRINKS = (1.0, 0.85, 0.7)
_CAPS = (1.5, 3.0, 10.0, 30.0, 100.0, 1000.0)
_ANCHORS = (1.0, 10.0, 100.0)
_CAUTION = 0.6  # scouting flatters the edge
_HALVINGS = 10
_CELLS = 128
_REACH = 5.0
_LARGEST_LOG = 100.0
_SMALLEST_ANCHOR = 1e-300


class RenyiBet(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen bet against the Renyi divergence of one order.

    Attributes:
        order: The order, above 1.
        left: Whether the left law is the one of which the divergence is taken.
        posterior: Scouted probability of *left* in each score bin.
        shrink: Power to which the scouted likelihood ratio is taken first.
        cap: Largest likelihood ratio.
        anchor: Scouted mean of the ratio to the power of the order, on the other side, or more.
        balance: What a trial of the first law pays to one of the other; takes the coin's noise.
        stake: Share of the wealth that the worst trial loses.
    """

    order: Annotated[float, msgspec.Meta(gt=1, le=_LARGEST_ORDER)]
    left: bool
    posterior: tuple[Annotated[float, msgspec.Meta(gt=0, lt=1)], ...]
    shrink: Annotated[float, msgspec.Meta(gt=0, le=1)]
    cap: Annotated[float, msgspec.Meta(gt=0, le=1e3)]
    anchor: Annotated[float, msgspec.Meta(ge=1e-300, le=1e300)]
    balance: Annotated[float, msgspec.Meta(ge=0, le=1e300)]
    stake: Share


@dataclass(frozen=True)
class Belief:
    """What scouting believes about a score.

    Attributes:
        expected: Expected trials per side and bin, times any number, shape (2, k).
        posterior: P(left | bin) to choose a bet by, shape (k,).
        final: P(left | bin) to bet with, shape (bins,).
    """

    expected: Floats
    posterior: Floats
    final: Floats


def renyi_log_wealth(prefixes: Counts, bet: RenyiBet, divergence: float) -> Floats:
    """Log-wealth after every block of a bet that no divergence above `divergence` pays.

    Why this is valid: let P be the law of which the divergence of order b is taken, Q the other,
    a = (b - 1)/b, and h >= 0 any function of the score bin. By Hoelder's inequality
    E_P[h] <= exp(a D) E_Q[h^(1/a)]^a, and a concave power lies below its tangent at 1, so
    E_P[h] <= exp(a D) (a E_Q[h^(1/a)] + 1 - a). A trial plays P or Q with probability 1/2 each, so
    exp(-a D) 2 h on a trial of P, -2 a h^(1/a) on one of Q, less 1 - a on either, has a mean of at
    most 0, and so it has when P always pays Q the same. All of this is frozen before any trial
    testifies, and the stake never loses more than all: wealth is a non-negative supermartingale
    (Ville 1939) at every divergence that is not exceeded. A bin may even depend on other trials'
    views, as long as no label is in it: given all views labels are independent, and the bin that
    is worst for the bound is a function of a trial's own view again.

    Args:
        prefixes: Running counts, shape (blocks, 2, bins), row 0 left.
        bet: The frozen bet.
        divergence: The null: the Renyi divergence of the bet's order is at most this.

    Returns:
        Shape (blocks,).
    """
    gains = np.log1p(_payoffs(bet, divergence))
    return np.asarray(np.tensordot(prefixes, gains, axes=((1, 2), (0, 1))), dtype=float)


def renyi_divergence(prefixes: Counts, bet: RenyiBet, alpha: float) -> float:
    """Certified Renyi divergence of the bet's order; holds whenever one stops looking.

    Why this is valid: every payoff falls as the null grows, so the rejected nulls form an interval
    from 0. The true divergence is in it only if its own wealth has reached 1/alpha, which has
    probability at most alpha.

    Args:
        prefixes: Running counts, shape (blocks, 2, bins), row 0 left.
        bet: The frozen bet.
        alpha: Probability with which the result may exceed the true divergence.

    Returns:
        The largest divergence rejected, at least 0 and at most 200.
    """

    def rejects(divergence: float) -> bool:
        wealth = renyi_log_wealth(prefixes, bet, divergence)
        return alpha > 0 and len(wealth) > 0 and bool(wealth.max() >= -math.log(alpha))

    return last_rejected(rejects, LARGEST_DIVERGENCE)


def renyi_bet(belief: Belief, claim: RenyiClaim, *, trials: int, alpha: float) -> RenyiBet:
    """The bet whose wealth should grow fastest against a claim, or against what can be rejected.

    Where so many trials should not reject the claim, the bet is laid against the largest share of
    it that they should, so that as much as possible is certified.

    Args:
        belief: What scouting believes about the score.
        claim: The claim.
        trials: Testifying trials.
        alpha: Share of the error budget of the test.
    """
    sides = belief.expected / belief.expected.sum()

    def best(part: float) -> tuple[RenyiBet, bool]:
        bet = _best_bet(sides, belief.posterior, claim, part)
        growth = _growth(sides, bet, part * claim.divergence_at(bet.order))
        return bet, growth.refutes(trials, alpha, 0.5)

    bet, refutes = best(1.0)
    low, high = 0.0, 1.0
    for _ in range(0 if refutes else _HALVINGS):
        middle = (low + high) / 2
        bet, refutes = best(middle)
        low, high = (middle, high) if refutes else (low, middle)
    return msgspec.structs.replace(bet, posterior=tuple(belief.final.tolist()))


@dataclass(frozen=True)
class Growth:
    """Log-wealth that a trial adds to a bet: mean and standard deviation."""

    mean: float
    spread: float

    def refutes(self, trials: int, alpha: float, power: float) -> bool:
        """Whether so many trials refute with that probability, by the central limit theorem."""
        lag = float(special.ndtri(power)) * math.sqrt(trials) * self.spread
        return trials * self.mean - lag >= -math.log(alpha)


def gaussian_growth(mu: float, claim: RenyiClaim) -> Growth:
    """Growth of the best bet against a claim when the truth is N(0, 1) against N(mu, 1)."""
    middles = np.linspace(-_REACH - mu / 2, _REACH + mu / 2, _CELLS)
    cuts = (middles[1:] + middles[:-1]) / 2
    left, right = (
        np.diff(np.concatenate([[0.0], special.ndtr(cuts - shift), [1.0]]))
        for shift in (mu / 2, -mu / 2)
    )
    posterior = np.clip(special.expit(mu * middles), 1e-4, 1 - 1e-4)
    sides = np.stack([left, right]) / 2
    bet = _best_bet(sides, posterior, claim, 1.0)
    return _growth(sides, bet, claim.divergence_at(bet.order))


def _payoffs(bet: RenyiBet, divergence: float) -> Floats:
    """What one trial wins of the wealth, shape (2, bins); at least -stake."""
    log_ratio = _log_ratio(np.asarray(bet.posterior), bet.shrink, bet.cap, left=bet.left)
    won, lost = _terms(log_ratio, bet.order, bet.anchor, divergence)
    won, lost = _balanced(won, lost, bet.order, bet.balance)
    return bet.stake * np.stack([won, lost] if bet.left else [lost, won])


def _log_ratio(posterior: Floats, shrink: Any, cap: Any, *, left: bool) -> Floats:
    log_odds = special.logit(posterior)
    return np.asarray(np.minimum(shrink * (log_odds if left else -log_odds), np.log(cap)))


def _terms(log_ratio: Floats, order: Any, anchor: Any, divergence: Any) -> tuple[Floats, Floats]:
    """Payoffs on trials of P and of Q; bins come last."""
    a = (order - 1) / order
    log_other = np.minimum(order * log_ratio - np.log(anchor), _LARGEST_LOG)
    won = 2 * np.exp(a * (log_other - divergence)) - (1 - a)
    return won, -(2 * a * np.exp(log_other) + 1 - a)


def _balanced(won: Floats, lost: Floats, order: Any, balance: Any) -> tuple[Floats, Floats]:
    """Payoffs after the balance, scaled so that none is below -1 at any divergence."""
    least = balance + 1 / order  # what a trial of P pays when h is 0
    worst = np.maximum(least, -(lost + balance).min(axis=-1, keepdims=True))
    return (won - balance) / worst, (lost + balance) / worst


def _best_bet(sides: Floats, posterior: Floats, claim: RenyiClaim, part: float) -> RenyiBet:
    """The best bet against a part of what a claim allows, whichever side comes first."""
    bets = [_best_of_side(sides, posterior, claim, part, left=left) for left in (True, False)]
    return max(bets, key=lambda found: found[0])[1]


def _best_of_side(
    sides: Floats, posterior: Floats, claim: RenyiClaim, part: float, *, left: bool
) -> tuple[float, RenyiBet]:
    """The best bet of a grid, each with most of its growth-optimal stake (Kelly 1956)."""
    on_p, on_q = sides if left else sides[::-1]
    grid = _grid(min(claim.largest_order, _LARGEST_ORDER))
    order, shrink, cap, multiple = grid.T[..., None]
    log_ratio = _log_ratio(posterior, shrink, cap, left=left)
    mean = np.exp(order * log_ratio) @ on_q[:, None] / on_q.sum()
    anchor = np.maximum(multiple * mean, _SMALLEST_ANCHOR)
    allowed = part * np.array([[claim.divergence_at(float(o))] for o in grid[:, 0]])
    won, lost = _terms(log_ratio, order, anchor, allowed)
    means = won @ on_p / on_p.sum(), lost @ on_q / on_q.sum()
    balance = np.maximum(0.0, means[0] - means[1])[:, None] / 2
    won, lost = _balanced(won, lost, order, balance)
    edge, square = won @ on_p + lost @ on_q, won**2 @ on_p + lost**2 @ on_q
    stake = _CAUTION * np.clip(edge / np.maximum(square, 1e-300), 0.0, 1.0)[:, None]
    growth = np.log1p(stake * won) @ on_p + np.log1p(stake * lost) @ on_q
    best = int(np.argmax(growth))
    return float(growth[best]), RenyiBet(
        order=float(grid[best, 0]),
        left=left,
        posterior=tuple(posterior.tolist()),
        shrink=float(grid[best, 1]),
        cap=float(grid[best, 2]),
        anchor=float(anchor[best, 0]),
        balance=float(balance[best, 0]),
        stake=float(stake[best, 0]),
    )


@cache
def _grid(largest_order: float) -> Floats:
    """Orders, shrinks, caps and multiples of the anchor, shape (bets, 4)."""
    orders = [*(order for order in _ORDERS if order < largest_order), largest_order]
    return np.array(list(product(orders, _SHRINKS, _CAPS, _ANCHORS)))


def _growth(sides: Floats, bet: RenyiBet, divergence: float) -> Growth:
    gains = np.log1p(_payoffs(bet, divergence))
    mean = float((sides * gains).sum())
    return Growth(mean, math.sqrt(max(0.0, float((sides * gains**2).sum()) - mean**2)))
