"""White-box certificates: what the algorithm's density shows, and whether the code draws from it.

Where a mechanism knows the exact log-likelihood ratio L of its released view, far fewer runs
certify far more than counting can. Such a certificate speaks of the *algorithm that the density
was written for*; whether the code draws from that density is a question of its own, which the
label-calibration test answers. Side by side they form the ladder: the theorem's epsilon, the
accountant's tight value, the certificate, and beside it the evidence from counting.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.attack import Game
from audit.bounds import LARGEST_EPSILON
from audit.claim import AnyClaim, ApproxDp, PureDp
from audit.errors import UsageError
from audit.mechanism import capability
from audit.pair import Pair
from audit.record import Ladder, PlannedCase
from audit.streams import Phase, Side, stream
from audit.view import Views, collect, project

Floats = npt.NDArray[np.float64]

USUAL_DELTA = 1e-5
# lambda delta: large stakes for tilted runs, whose excess is steady, small ones for plain runs.
_STAKES = np.concatenate([np.geomspace(0.05, 0.98, 5), np.geomspace(1e-7, 0.04, 20)])
_LOG_SHARES = np.log(np.repeat([0.7 / 5, 0.3 / 20], [5, 20]))
_KAPPAS = (0.67, 0.8, 1.25, 1.5)
_MOST_RUNS = 1000
_PILOT = 48
_LARGEST_LOSS = 700.0
_ROUNDING = 1e-9


def certified_epsilon(
    losses: npt.ArrayLike, log_weights: npt.ArrayLike, alpha: float, delta: float
) -> float:
    """Certified epsilon at `delta` from exact privacy losses.

    Why this is valid: Y = w (1 - exp(eps - L))_+ is non-negative and has mean delta(eps), the
    hockey-stick divergence, when L is drawn from the left law, or from any other law with
    importance weight w. If delta(eps) <= delta, then prod(1 + lambda (Y_i - delta)) has mean at
    most 1 for every lambda in [0, 1/delta), and so has the average over a fixed set of lambdas;
    it exceeds 1/alpha with probability at most alpha (Markov). It decreases in eps, so the
    largest rejected epsilon is found by bisection and is at most the true one then. For delta = 0
    no statistics are needed: a loss that occurs is a lower bound by itself.

    Args:
        losses: Exact L, shape (n,); infinite values are allowed.
        log_weights: Log importance weights, shape (n,).
        alpha: Probability with which the result may exceed the true epsilon.
        delta: The delta.

    Returns:
        The certified epsilon, between 0 and 60.
    """
    loss = np.nan_to_num(np.asarray(losses, dtype=float), nan=0.0, posinf=np.inf, neginf=-np.inf)
    if len(loss) == 0:
        return 0.0
    if delta <= 0:
        largest = min(float(loss.max()), LARGEST_EPSILON)
        return max(0.0, largest - _ROUNDING * max(1.0, largest))
    weight = np.exp(np.asarray(log_weights, dtype=float))
    target = -math.log(alpha)
    low, high = 0.0, LARGEST_EPSILON
    if _log_wealth(loss, weight, low, delta) < target:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        rejected = _log_wealth(loss, weight, middle, delta) >= target
        low, high = (middle, high) if rejected else (low, middle)
    return low


def _log_wealth(loss: Floats, weight: Floats, epsilon: float, delta: float) -> float:
    excess = weight * np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0)))
    growth = np.log1p(_STAKES[:, None] / delta * (excess - delta)).sum(axis=1)
    return float(np.logaddexp.reduce(growth + _LOG_SHARES))


def calibration_log_wealth(losses: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Largest log-wealth of a bet that labels do not follow the stated density.

    Why this is valid: if the code draws from the density, a fair label given the view is
    Bernoulli(sigmoid(L)); the likelihood ratio of Bernoulli(sigmoid(kappa L)) against it is a
    test martingale for every fixed kappa, and so is their average; its maximum over time exceeds
    1/alpha with probability at most alpha (Ville 1939).

    Args:
        losses: Exact L in the order of play, shape (n,).
        labels: 1 where the left input was played, shape (n,).
    """
    loss = np.nan_to_num(np.asarray(losses, dtype=float), nan=0.0)
    loss = np.clip(loss, -_LARGEST_LOSS, _LARGEST_LOSS)
    sign = 2 * np.asarray(labels, dtype=float) - 1
    paths = [
        np.cumsum(special.log_expit(kappa * sign * loss) - special.log_expit(sign * loss))
        for kappa in _KAPPAS
    ]
    if len(loss) == 0:
        return 0.0
    return float(np.max(np.logaddexp.reduce(paths, axis=0) - math.log(len(_KAPPAS))))


def accountant_epsilon(mechanism: Any, pairs: tuple[Pair, ...], delta: float) -> float | None:
    """The exact epsilon at `delta` on the worst of some pairs, where the mechanism knows it."""
    profile: Callable[[Pair, float], float] | None = capability(mechanism, "exact_profile")
    if profile is None:
        return None
    try:
        return max(_invert(lambda e, p=pair: profile(p, e), max(delta, 1e-12)) for pair in pairs)  # type: ignore[misc]
    except UsageError:
        return None


def _invert(profile: Callable[[float], float], delta: float) -> float:
    low, high = 0.0, 1.0
    if profile(low) <= delta:
        return 0.0
    while profile(high) > delta:
        low, high = high, 2 * high
        if low > LARGEST_EPSILON:
            return LARGEST_EPSILON
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if profile(middle) > delta else (low, middle)
    return high


def climb(game: Game, planned: PlannedCase, seed: int) -> Ladder | None:
    """The ladder of a case on its chosen pair, or None without an exact likelihood ratio.

    Args:
        game: The chosen game.
        planned: The case's plan.
        seed: Root of all random streams.
    """
    if not is_white_box(game):
        return None
    delta = ladder_delta(planned.claim)
    runs = min(_MOST_RUNS, max(20, planned.trials // 20))
    theorem = planned.claim.epsilon_at(delta)
    accountant = accountant_epsilon(game.mechanism, (game.pair,), delta)
    aim = accountant if accountant is not None else theorem
    directions = [
        _one_direction(replace(game, pair=pair), planned, side, seed, runs // 2, delta, aim)
        for side, pair in ((Side.LEFT, game.pair), (Side.RIGHT, _swapped(game.pair)))
    ]
    wealth = calibration_log_wealth(*_labelled_losses(game, planned.name, seed, runs))
    return Ladder(
        delta=delta,
        theorem=min(theorem, LARGEST_EPSILON),
        accountant=accountant,
        certificate=max(certified for certified, _ in directions),
        runs=runs,
        tilted=any(tilt > 0 for _, tilt in directions),
        calibration_log_wealth=round(wealth, 6),
        calibrated=wealth < -math.log(planned.shares.calibration),
    )


def is_white_box(game: Game) -> bool:
    """Whether the mechanism knows the exact likelihood ratio of this view."""
    return capability(game.mechanism, "log_likelihood_ratio", game.view) is not None


def ladder_delta(claim: AnyClaim) -> float:
    """The delta at which the rungs are compared: the claim's own, or 1e-5 for other curves."""
    if isinstance(claim, PureDp):
        return 0.0
    return claim.delta if isinstance(claim, ApproxDp) else USUAL_DELTA


def _swapped(pair: Pair) -> Pair:
    return Pair(pair.right, pair.left, pair.label, "declared", pair.differs)


def _one_direction(
    game: Game, planned: PlannedCase, side: Side, seed: int, runs: int, delta: float, aim: float
) -> tuple[float, float]:
    """Certified epsilon of one direction, and the tilt that was used."""

    def play(tilt: float, n: int, block: int) -> tuple[Floats, Floats]:
        rng = stream(seed, planned.name, Phase.CERTIFY, side, block)
        return _losses(game, tilt, n, rng)

    tilt = 0.0
    if delta > 0 and capability(game.mechanism, "tilted_run") is not None:
        centred = _choose_tilt(lambda t, block: play(t, _PILOT, block)[0], 1.08 * aim)
        tilt = _best_tilt(play, centred, planned.shares.certificate / 2, delta)
    losses, log_weights = play(tilt, runs, 0)
    alpha = planned.shares.certificate / 2
    return certified_epsilon(losses, log_weights, alpha, delta), tilt


def _choose_tilt(pilot: Callable[[float, int], Floats], aim: float) -> float:
    """The tilt at which losses centre on `aim`, by doubling and bisection on pilot runs."""
    low, high = 0.0, 1.0
    for block in range(1, 12):
        if float(np.mean(pilot(high, block))) >= aim:
            break
        low, high = high, 2 * high
    for block in range(12, 18):
        middle = (low + high) / 2
        below = float(np.mean(pilot(middle, block))) < aim
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def _best_tilt(
    play: Callable[[float, int, int], tuple[Floats, Floats]],
    centred: float,
    alpha: float,
    delta: float,
) -> float:
    """The tilt that certifies most on pilot runs: centring may ask for more than weights bear."""

    def certified(tilt: float, block: int) -> float:
        return certified_epsilon(*play(tilt, 2 * _PILOT, block), alpha, delta)

    tilts = [centred, centred / 2, centred / 8, centred / 64, 0.0]
    return max((certified(tilt, 18 + i), tilt) for i, tilt in enumerate(tilts))[1]


def _losses(game: Game, tilt: float, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Exact losses of `n` runs on the left input, tilted, and their log importance weights.

    A certificate speaks of the stated law, which `tilted_run` draws from at tilt 0 too; the code
    itself is played only where there is no such sampler.
    """
    tilted = capability(game.mechanism, "tilted_run")
    if tilted is not None:
        emitted, log_weights = tilted(game.pair, tilt, n, rng)
    else:
        emitted, log_weights = game.mechanism.run(game.pair.left, n, rng), np.zeros(n)
    return _exact_loss(game, collect(emitted, n)), np.asarray(log_weights, dtype=float)


def _exact_loss(game: Game, views: Views) -> Floats:
    seen = project(views, game.view, game.pair.differs or ())
    ratio = capability(game.mechanism, "log_likelihood_ratio", game.view)
    return np.asarray(ratio(seen, game.pair), dtype=float)


def _labelled_losses(game: Game, name: str, seed: int, n: int) -> tuple[Floats, Floats]:
    """Losses of `n` trials with fair labels, in order of play."""
    labels = stream(seed, name, Phase.CALIBRATE, Side.LABELS, 0).integers(0, 2, n)
    losses = np.empty(n)
    for left, side in ((True, Side.LEFT), (False, Side.RIGHT)):
        rows = np.flatnonzero(labels == int(left))
        if len(rows):
            rng = stream(seed, name, Phase.CALIBRATE, side, 0)
            emitted = game.mechanism.run(game.pair.side(left), len(rows), rng)
            losses[rows] = _exact_loss(game, collect(emitted, len(rows)))
    return losses, labels.astype(float)
