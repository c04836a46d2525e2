"""Freezing: turn a fitted attack into one decision rule, before anything testifies.

Bins, posterior, abstention threshold, confronted point and final test are chosen here, on
scouting trials that the attack was not fitted on. None of these trials counts towards a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from audit import bounds
from audit.attack import Attack, Game, Scorer
from audit.claim import AnyClaim
from audit.evidence import Counts, tabulate
from audit.quantise import round_scores
from audit.record import Choice, Test
from audit.view import Floats, Views

BINS_PER_SIGN = 64
_FEW_BINS = 16
FOLDS = 4
_CAUTION = 0.002
_ENOUGH_GUESSES = 150
_AS_GOOD = 0.95


@dataclass(frozen=True)
class Frozen:
    """A choice with the scorer that makes it, and what it is expected to certify.

    Attributes:
        choice: The frozen choice.
        scorer: Views to scores.
        largest: Scale of the scores, for rounding.
        forecast: Cautiously expected certified epsilon over the confronted one.
        strength: Standard deviations by which honest guesses beat a coin.
        growth: Expected log-wealth per testifying trial against the claim.
        game: The game it was scouted on.
    """

    choice: Choice
    scorer: Scorer
    largest: float
    forecast: float
    strength: float
    growth: float
    game: Game

    def tabulate(self, left: Views, right: Views) -> Counts:
        """Counts of a block of testifying trials."""
        scores = [self._score(views) for views in (left, right)]
        return tabulate(scores[0], scores[1], self.choice.edges)

    def _score(self, views: Views) -> Floats:
        if len(views) == 0:
            return np.empty(0)
        return round_scores(self.scorer(views), self.largest)


@dataclass(frozen=True)
class Budget:
    """What testifying will have: trials, error budget, and the claim to confront."""

    claim: AnyClaim
    trials: int
    alpha: float


def freeze(
    game: Game, attack: Attack, scorer: Scorer, left: Views, right: Views, budget: Budget, pair: int
) -> Frozen:
    """Freeze bins, posterior, threshold, confronted point and test for a fitted attack.

    Args:
        game: The game.
        attack: The attack that made `scorer`.
        scorer: A fitted scorer.
        left: Views of left trials that `scorer` was not fitted on (unless it learns nothing).
        right: The same for the right side.
        budget: What testifying will have.
        pair: Index of the pair.
    """
    raw = [np.asarray(scorer(views), dtype=float) for views in (left, right)]
    pooled = np.concatenate(raw)
    known = np.abs(pooled[np.isfinite(pooled)])
    largest = float(known.max()) if len(known) else 1.0
    scores = [round_scores(side, largest) for side in raw]
    edges = bin_edges(np.concatenate(scores), largest)
    folds = np.stack(
        [tabulate(scores[0][f::FOLDS], scores[1][f::FOLDS], edges) for f in range(FOLDS)]
    )
    maps = [
        _Map(np.stack([posterior_of(folds.sum(0) - f) for f in folds]), posterior_of(folds.sum(0)))
    ]
    if getattr(scorer, "log_odds", False):
        stated = _stated_posterior(np.concatenate(scores), edges)
        maps.append(_Map(np.tile(stated, (FOLDS, 1)), stated))
    points = budget.claim.points()
    rules = [_best_rule(folds, posterior, point, budget) for posterior in maps for point in points]
    rule = max(rules, key=lambda r: (round(r.margin, 2), r.strength))
    if len(points) > 1:
        rule = max(rules, key=lambda r: r.significance)
    choice = Choice(
        pair=pair,
        attack=attack.name,
        event=scorer.description,
        edges=tuple(edges.tolist()),
        posterior=tuple(rule.posterior.final.tolist()),
        guess=tuple(int(g) for g in rule.guess),
        epsilon=rule.epsilon,
        delta=rule.delta,
        test=rule.test,
    )
    growth = _growth(folds, rule.posterior.honest, rule.epsilon, rule.delta)
    return Frozen(choice, scorer, largest, rule.margin, rule.strength, growth, game)


@dataclass(frozen=True)
class _Map:
    """P(left | bin): for every fold from the other folds, and from all of them."""

    honest: Floats
    final: Floats


def _stated_posterior(scores: Floats, edges: Floats) -> Floats:
    """The posterior that scores state themselves when they are log-odds."""
    where = np.searchsorted(edges, np.nan_to_num(scores, nan=-np.inf), side="right")
    finite = np.clip(np.nan_to_num(scores, nan=0.0), -30, 30)
    filled = np.bincount(where, minlength=len(edges) + 1)
    mean = np.bincount(where, finite, minlength=len(edges) + 1) / np.maximum(filled, 1)
    return np.asarray(np.clip(special.expit(mean), 1e-4, 1 - 1e-4), dtype=float)


def bin_edges(scores: Floats, largest: float) -> Floats:
    """Edges of at most about 64 bins a sign, finer in the tails, never next to a repeated value.

    An edge lies midway between two scores that were seen, and only where they are far apart
    compared with the rounding of scores: an ulp must not decide on which side a value falls.
    """
    finite = np.sort(scores[np.isfinite(scores)])
    values = np.unique(finite)
    if len(values) < 2:
        return np.array([0.0])
    apart = np.diff(values) > 16 * max(1.0, largest) * 2.0**-30
    middles = (values[1:] + values[:-1]) / 2
    tail = np.geomspace(4 / max(8, len(finite)), 0.02, 12)
    levels = np.concatenate([tail, np.linspace(0.02, 0.98, 2 * BINS_PER_SIGN - 24), 1 - tail])
    where = np.searchsorted(values, np.quantile(finite, levels, method="lower"))
    wanted = np.unique(np.concatenate([where, where - 1]))
    wanted = wanted[(wanted >= 0) & (wanted < len(middles))]
    if len(wanted) > 2 * BINS_PER_SIGN:
        wanted = np.unique(where[(where >= 0) & (where < len(middles))])
    return np.asarray(middles[wanted][apart[wanted]], dtype=float)


def posterior_of(counts: Counts) -> Floats:
    """Scouted P(left | bin): isotonic where there are many bins, smoothed counts where few."""
    left, right = counts.astype(float)
    balance = max(left.sum(), 1.0) / max(right.sum(), 1.0)
    right = right * balance
    if counts.shape[1] > _FEW_BINS:
        left, right = _pool(left, right)
    return np.asarray((left + 0.5) / (left + right + 1), dtype=float)


def _pool(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    total = left + right
    share = np.divide(left, total, out=np.full_like(left, 0.5), where=total > 0)
    fit = optimize.isotonic_regression(share, weights=np.maximum(total, 1e-9))
    block = np.repeat(np.arange(len(fit.blocks) - 1), np.diff(fit.blocks))
    return _spread(block, left), _spread(block, right)


def _spread(block: Counts, side: Floats) -> Floats:
    return np.asarray(np.bincount(block, side)[block], dtype=float)


@dataclass(frozen=True)
class _Rule:
    posterior: _Map
    guess: Counts
    epsilon: float
    delta: float
    test: Test
    margin: float
    strength: float
    significance: float


def _best_rule(folds: Counts, posterior: _Map, point: tuple[float, float], budget: Budget) -> _Rule:
    """The abstention threshold with the best cautious forecast at one point of the claim.

    Each fold is judged with the posterior of the other folds, so that the noise in a posterior
    does not recommend itself.
    """
    epsilon, delta = point
    right, wrong, sure = _right_wrong(folds, posterior.honest)
    order = np.argsort(-sure, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(sure[order]) < 0, True))
    v, w = np.cumsum(right[order])[ends], np.cumsum(wrong[order])[ends]
    n = int(folds.sum())
    forecasts = np.array([_forecast(a, b, n, delta, budget) for a, b in zip(v, w, strict=True)])
    strengths = (v - w) / np.sqrt(np.maximum(v + w, 1))
    best = int(np.argmax(forecasts if forecasts.max() > 0 else strengths))
    level = sure[order][ends[best]]
    surest = np.abs(special.logit(posterior.final))
    guess = np.where((surest >= level) & (surest > 0), np.where(posterior.final > 0.5, 1, -1), 0)
    return _Rule(
        posterior=posterior,
        guess=guess,
        epsilon=epsilon,
        delta=delta,
        test="binomial" if v[best] + w[best] >= _ENOUGH_GUESSES else "ranked",
        margin=float(forecasts[best]) / epsilon,
        strength=float(strengths.max()),
        significance=_significance(v[best], w[best], epsilon, delta),
    )


def _right_wrong(folds: Counts, honest: Floats) -> tuple[Counts, Counts, Floats]:
    """Right and wrong guesses, and how sure they were, flat over folds and bins."""
    left, right = folds[:, 0].ravel(), folds[:, 1].ravel()
    says_left = honest.ravel() > 0.5
    sure = np.abs(special.logit(honest.ravel()))
    return np.where(says_left, left, right), np.where(says_left, right, left), sure


def _significance(right: int, wrong: int, epsilon: float, delta: float) -> float:
    """Standard deviations by which the right guesses exceed what the point allows."""
    allowed = float(special.expit(epsilon))
    guesses = right + wrong
    written_off = delta * guesses
    spread = math.sqrt(max(guesses, 1) * allowed * (1 - allowed))
    return (right - written_off - allowed * guesses) / spread


def _forecast(right: int, wrong: int, scouted: int, delta: float, budget: Budget) -> float:
    if right + wrong == 0:
        return 0.0
    share = budget.trials / scouted
    p = bounds.clopper_pearson_lower(right, right + wrong, _CAUTION)
    guesses = (right + wrong) * share
    return bounds.binomial_epsilon(
        p * guesses, (1 - p) * guesses, budget.alpha, delta=delta, trials=budget.trials
    )


def _growth(folds: Counts, honest: Floats, epsilon: float, delta: float) -> float:
    """Mean log-wealth per trial, less two standard errors, each fold betting with the others'."""
    bets = np.stack([bounds.log_bets(posterior, [epsilon], delta)[0, 0] for posterior in honest])
    n = folds.sum()
    mean = float((bets * folds).sum() / n)
    spread = float((bets**2 * folds).sum() / n) - mean**2
    return mean - 2 * math.sqrt(max(spread, 0.0) / n)


def choose(candidates: Sequence[Frozen]) -> Frozen:
    """The candidate that testifies: the first whose forecast is about the best one.

    Where nothing may be expected to be certified, the one that tells the sides apart best.
    """
    best = max(candidate.forecast for candidate in candidates)
    if best <= 0:
        return max(candidates, key=lambda c: c.strength)
    return next(c for c in candidates if c.forecast >= _AS_GOOD * best)
