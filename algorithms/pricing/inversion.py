"""What prices alone tell: the estimate behind them, and a score for one customer.

Without a bonus the best price of logistic demand ``f(a - b p)`` solves ``b p (1 - f) = 1``, that
is ``p = (1 + W(e^(a - 1)))/b`` with Lambert's W; that of linear demand is ``a/(2 b)``. Customers
whose contexts are known (fake ones, for instance) turn their prices into equations for theta; from
d interior prices on, least squares recovers it (linear demand: up to its size). The gradient of the
loss at the recovered estimate then says which of two records is the likelier, exactly as if the
estimate had been released, up to the error of the inversion.

Why a wrong inversion is harmless: the result is only a score.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from algorithms.pricing.constants import Constants
from algorithms.pricing.market import Market

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_STEPS = 15
_WINDOW = 100
_DAMPING = 1e-3
_SMALLEST_SLOPE = 1e-3
UNSEEN_PRICE = 0.5
_GRID_STEPS = 2.0
_EARLIER, _LATER = 30, 10
_CHUNK = 256
_OWN_SPREAD = 0.05


def best_price(theta: Floats, contexts: Floats, demand: str = "logistic") -> Floats:
    """Best price without a bonus, any real number.

    Args:
        theta: Shape (n, 2k).
        contexts: Shape (S, k).
        demand: ``logistic`` or ``linear``.

    Returns:
        Shape (n, S).
    """
    return _price_and_slopes(theta, contexts, demand)[0]


def recover(
    contexts: Floats, prices: Floats, start: Floats, weights: Floats, demand: str = "logistic"
) -> Floats:
    """Estimates of demand that explain prices: damped Gauss-Newton (Levenberg 1944).

    Args:
        contexts: Shape (S, k).
        prices: Shape (n, S).
        start: First guess, shape (2k,).
        weights: Shape (n, S); 0 for prices at a corner, which give no equation.
        demand: ``logistic`` or ``linear``.

    Returns:
        Shape (n, 2k).
    """
    theta = np.tile(start, (len(prices), 1))
    damping = np.full(len(prices), _DAMPING)
    price, slopes = _price_and_slopes(theta, contexts, demand)
    loss = np.sum(weights * (price - prices) ** 2, axis=1)
    for _ in range(_STEPS):
        weighted = slopes * weights[..., None]
        normal = np.einsum("nsi,nsj->nij", weighted, slopes)
        pull = np.einsum("nsi,ns->ni", weighted, price - prices)
        ridge = damping * (np.trace(normal, axis1=1, axis2=2) + 1e-12)
        normal += ridge[:, None, None] * np.eye(normal.shape[1])
        tried = theta - np.linalg.solve(normal, pull[..., None])[..., 0]
        new_price, new_slopes = _price_and_slopes(tried, contexts, demand)
        new_loss = np.sum(weights * (new_price - prices) ** 2, axis=1)
        better = new_loss < loss
        theta[better], loss[better] = tried[better], new_loss[better]
        price[better], slopes[better] = new_price[better], new_slopes[better]
        damping = np.where(better, damping / 10, damping * 10)
    return theta


def placed(shown: Floats, place: int, rounds: int) -> Floats:
    """Prices in the rounds in which they were charged, NaN where they are not in view.

    Args:
        shown: All prices, all but one customer's, or those after it: shape (n, S).
        place: 0-based customer.
        rounds: T.

    Returns:
        Shape (n, T).
    """
    where = np.arange(rounds)
    if shown.shape[1] == rounds - place - 1:
        where = where[place + 1 :]
    elif shown.shape[1] == rounds - 1:
        where = np.delete(where, place)
    prices = np.full((len(shown), rounds), np.nan)
    prices[:, where] = shown
    return prices


def own_price_score(
    public: Constants, markets: tuple[Market, Market], place: int, prices: Floats, guess: Floats
) -> Floats:
    """Which of two customers was offered the price in round `place`; shape (n,).

    Prices of customers nearby tell the estimate, and the estimate tells what either customer would
    have been offered.

    Args:
        public: Public constants.
        markets: Left and right, different in that customer only.
        place: 0-based customer.
        prices: All prices, shape (n, T).
        guess: First guess at theta, shape (2k,).
    """
    start = max(0, min(place - _WINDOW // 2, public.rounds - _WINDOW))
    near = np.setdiff1d(np.arange(start, min(start + _WINDOW, public.rounds)), [place])
    shown, top = prices[:, near], public.grid[-1]
    inside = ((shown > 0) & (shown < top)).astype(float)
    theta = recover(markets[0].contexts[near], shown, guess, inside, public.demand)
    offers = [best_price(theta, m.contexts[[place]], public.demand)[:, 0] for m in markets]
    off = [prices[:, place] - np.clip(offer, 0.0, top) for offer in offers]
    return np.asarray((off[1] ** 2 - off[0] ** 2) / (2 * _OWN_SPREAD**2), dtype=float)


def price_score(
    public: Constants, markets: tuple[Market, Market], prices: Floats, guess: Floats
) -> Floats:
    """Which of two customers was there, judged by the prices of the others; shape (n,).

    Args:
        public: Public constants.
        markets: Left and right, different in one customer only.
        prices: Shape (n, T); NaN where they are not in view.
        guess: First guess at theta, shape (2k,).
    """
    late = slice(max(public.explore, public.rounds - _WINDOW), public.rounds)
    shown = prices[:, late]
    inside = (shown > 0) & (shown < public.grid[-1])
    shown, weights = np.where(inside, shown, 0.0), inside.astype(float)
    theta = recover(markets[0].contexts[late], shown, guess, weights, public.demand)
    seen = np.where(np.isnan(prices), UNSEEN_PRICE, prices)
    refreshed = last_refresh(public, markets[0], prices, theta)
    left, right = (_log_fit(public, m, seen, theta, refreshed) for m in markets)
    return np.asarray(left - right, dtype=float)


def _log_fit(
    public: Constants, market: Market, prices: Floats, theta: Floats, refreshed: Rows
) -> Floats:
    """Log density of the estimates up to their Jacobian, the refresh unknown; shape (n,).

    One record more or less moves the gradient as much as a replaced customer does, so the density
    is averaged over the rounds near the supposed refresh.
    """
    fits = np.empty(len(prices))
    for start in range(0, len(prices), _CHUNK):
        part = slice(start, start + _CHUNK)
        summed = _gradients(public, market, prices[part], theta[part])
        when = refreshed[part, None] + np.arange(-_EARLIER, _LATER + 1)
        when = np.clip(when, 1, public.rounds)
        near = np.take_along_axis(summed, when[..., None] - 1, axis=1)
        fits[part] = special.logsumexp(-np.sum(near**2, axis=2) / (2 * public.nu**2), axis=1)
    return fits


def _gradients(public: Constants, market: Market, prices: Floats, theta: Floats) -> Floats:
    """Gradient of the loss of the first 1, ..., T records at each estimate, shape (n, T, d)."""
    bought = np.stack([market.respond(t, prices[:, t]) for t in range(public.rounds)], axis=1)
    base, slope = np.split(theta / math.sqrt(2), 2, axis=1)
    eta = base @ market.contexts.T - prices * (slope @ market.contexts.T)
    excess = (public.link.mean(eta) - bought) / math.sqrt(2)
    moved = excess[..., None] * market.contexts
    both = np.concatenate([moved, -prices[..., None] * moved], axis=2)
    return np.asarray(np.cumsum(both, axis=1) + public.ridge_mle * theta[:, None], dtype=float)


def last_refresh(public: Constants, market: Market, prices: Floats, theta: Floats) -> Rows:
    """Records behind the last estimate: the rounds before prices began to agree with it; (n,)."""
    fitted = np.clip(best_price(theta, market.contexts, public.demand), 0.0, public.grid[-1])
    allowed = _GRID_STEPS * (public.grid[1] - public.grid[0])
    with np.errstate(invalid="ignore"):
        off = np.abs(prices - fitted) > allowed
    # The last window was fitted, so what does not agree there is noise, not another estimate.
    off[:, max(public.explore, public.rounds - _WINDOW) :] = False
    off[:, : public.explore] = True
    return np.asarray(public.rounds - np.argmax(off[:, ::-1], axis=1), dtype=np.intp)


def _price_and_slopes(theta: Floats, contexts: Floats, demand: str) -> tuple[Floats, Floats]:
    """Best prices (n, S) and their derivatives in theta (n, S, 2k)."""
    k = contexts.shape[1]
    base = theta[:, :k] @ contexts.T / math.sqrt(2)
    slope = np.maximum(theta[:, k:] @ contexts.T / math.sqrt(2), _SMALLEST_SLOPE)
    if demand == "linear":
        top, rise = base / 2, np.full_like(base, 0.5)
    else:
        grown: Floats = np.asarray(np.exp(np.minimum(base - 1, 600.0)), dtype=np.float64)
        lambert = np.real(special.lambertw(grown, 0))
        top, rise = 1 + lambert, lambert / (1 + lambert)
    price = top / slope
    by_base = (rise / slope)[..., None] * contexts / math.sqrt(2)
    by_slope = (-price / slope)[..., None] * contexts / math.sqrt(2)
    return price, np.concatenate([by_base, by_slope], axis=2)
