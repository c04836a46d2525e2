"""What an adversary with periodic fake customers reads off the prices: refreshes and estimates.

When the same few contexts come again and again (`algorithms.pricing.market.probed`, ``cycle``), a
price that differs from that of the same context one period earlier is a refresh, to the round
unless prices are at the ceiling. The period after it holds one equation per context for the new
estimate (`inversion.recover`). That yields, for every refresh, how many records were used and the
theta released, and with them the exact likelihood ratio of the estimator's part of the transcript,
up to the rounding of the grid.

The time of a refresh speaks of the covariance, too: the released log determinant reached its
threshold just then, so the tree's noise must have made up for what the records' own determinant
lacked. To first order that noise is ``tr(Lam^-1 W)``, Gaussian with a variance that is known.

Why a wrong guess is harmless: the result is only a score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants
from algorithms.pricing.inversion import UNSEEN_PRICE, recover
from algorithms.pricing.likelihoods import Priced
from algorithms.pricing.market import Market
from algorithms.pricing.releasers import covariance_of
from algorithms.pricing.rounds import Optimiser
from algorithms.pricing.transcript import mass
from algorithms.primitives.objective_law import log_density
from algorithms.primitives.symmetric import SHAPES

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_LONGEST = 40


def period_of(public: Constants, market: Market) -> int:
    """Rounds after which the contexts repeat from the exploration on; 0 when they do not."""
    late = market.contexts[public.explore :]
    longest = min(_LONGEST, len(late) // 2)
    repeats = (j for j in range(1, longest + 1) if np.array_equal(late[j:], late[:-j]))
    return next(repeats, 0)


@dataclass(frozen=True)
class Refresh:
    """One refresh of some trials.

    Attributes:
        records: How many records it used.
        rows: Which trials, shape (r,).
    """

    records: int
    rows: Rows


def refreshes(public: Constants, market: Market, prices: Floats, period: int) -> list[Refresh]:
    """Refreshes that the prices show, in order of time.

    Args:
        public: Public constants.
        market: Either side.
        prices: Shape (n, T); nothing before the exploration's end is looked at.
        period: Of the contexts.
    """
    start, optimiser = public.explore, Optimiser(public, 1)
    last = np.full(len(prices), -period)
    found = []
    for t in range(start, public.rounds):
        early = t < start + period
        before = optimiser.prices(market.contexts[t])[0] if early else prices[:, t - period]
        rows = np.flatnonzero((prices[:, t] != before) & (t >= last + period))
        if rows.size:
            # The exploration has doubled the determinant; a price at the ceiling hides it a while.
            found.append(Refresh(start if early else t, rows))
            last[rows] = t
    return found


def periodic_score(
    public: Constants, markets: tuple[Market, Market], place: int, prices: Floats, guess: Floats
) -> Floats:
    """Which of two customers was there, from the prices of periodic fakes; shape (n,).

    Args:
        public: Public constants, with the noise really drawn.
        markets: Left and right, different in customer `place` only, with periodic contexts.
        place: 0-based customer.
        prices: Shape (n, T); NaN where they are not in view.
        guess: First guess at theta, shape (2k,).
    """
    period = period_of(public, markets[0])
    seen = np.where(np.isnan(prices), UNSEEN_PRICE, prices)
    score = np.zeros(len(prices))
    times = _Times(public, markets, seen)
    bought = [_outcomes(market, seen) for market in markets]
    for refresh in refreshes(public, markets[0], seen, period):
        if refresh.records <= place:
            continue
        shown = seen[refresh.rows]
        score[refresh.rows] += times.score(refresh, shown)
        if refresh.records + period <= public.rounds:
            theta, told = _estimates(public, markets[0], shown, refresh.records, period, guess)
            sides = [outcomes[refresh.rows, : refresh.records] for outcomes in bought]
            found = _estimator_ratio(public, markets, shown, sides, theta)
            score[refresh.rows] += np.where(told, found, 0.0)
    return score


def _estimates(
    public: Constants, market: Market, shown: Floats, start: int, period: int, guess: Floats
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Theta from the period that starts there, and whether it has enough interior prices."""
    window = slice(start, start + period)
    inside = (shown[:, window] > 0) & (shown[:, window] < public.grid[-1])
    weights = inside.astype(float)
    theta = recover(market.contexts[window], shown[:, window], guess, weights, public.demand)
    return theta, inside.sum(axis=1) >= public.dimension


def _outcomes(market: Market, prices: Floats) -> Floats:
    """What the customers of one side do at these prices, shape (n, T)."""
    every = [market.respond(t, prices[:, t]) for t in range(prices.shape[1])]
    return np.stack(every, axis=1)


def _estimator_ratio(
    public: Constants,
    markets: tuple[Market, Market],
    shown: Floats,
    bought: list[Floats],
    theta: Floats,
) -> Floats:
    ratio = np.zeros(len(shown))
    for market, outcomes, sign in zip(markets, bought, (1, -1), strict=True):
        used = outcomes.shape[1]
        contexts, ridge = market.contexts[:used], public.ridge_mle
        model = Priced(public.link, contexts, shown[:, :used], outcomes, ridge)
        ratio += sign * log_density(model, theta, public.nu)
    return ratio


class _Times:
    """Log-likelihood ratio of when the determinant doubled, to first order.

    Args:
        public: Public constants.
        markets: Left and right.
        seen: Prices, shape (n, T).
    """

    def __init__(self, public: Constants, markets: tuple[Market, Market], seen: Floats) -> None:
        self.public, self.markets = public, markets
        start, none = public.explore, public.dimension * math.log(public.ridge_cov)
        laws = np.array([self._law(market, seen, start) for market in markets])
        # What the exploration has doubled is refreshed at its end, visibly or not.
        doubled = laws[:, 0] > none + math.log(2.0)
        self._logdets = np.where(doubled, laws[:, 0], none)
        self._variances = np.where(doubled, laws[:, 1], 0.0)

    def score(self, refresh: Refresh, shown: Floats) -> Floats:
        """Score of one refresh, shape (r,); 0 where the exploration had doubled it long before."""
        rows, fits = refresh.rows, []
        for side, market in enumerate(self.markets):
            logdet, variance = self._law(market, shown, refresh.records)
            lacked = self._logdets[side, rows] + math.log(2.0) - logdet
            spread = variance + self._variances[side, rows]
            fits.append(-(lacked**2) / (2 * spread) - np.log(spread) / 2)
            self._logdets[side, rows], self._variances[side, rows] = logdet, variance
        if refresh.records == self.public.explore:
            return np.zeros(len(rows))
        return np.asarray(fits[0] - fits[1], dtype=float)

    def _law(self, market: Market, shown: Floats, records: int) -> tuple[Floats, Floats]:
        """Log determinant of the records themselves and its variance under the tree's noise."""
        public, shape = self.public, SHAPES[self.public.shape]
        exact = covariance_of(public, mass(public, market, shown, range(records)))
        rows, columns = shape.entries(public.dimension)
        inverse = np.linalg.inv(exact)[:, rows, columns]
        twice = np.where((rows != columns) & shape.mirrored, 2.0, 1.0)
        spread = twice * public.sigma * shape.scales(public.dimension)
        nodes = records.bit_count()
        return np.linalg.slogdet(exact)[1], nodes * np.sum((inverse * spread) ** 2, axis=1)
