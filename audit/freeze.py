"""Freezing: turn a fitted attack into one decision rule, before anything testifies.

Bins, posterior, abstention threshold, confronted point and final test are chosen here, on
scouting trials that the attack was not fitted on. None of these trials counts towards a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from scipy import special

from audit import bounds
from audit.attack import Attack, Game, Scorer
from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.evidence import Counts, tabulate
from audit.posterior import Posterior, Sample, largest_of, posteriors_of
from audit.quantise import round_scores
from audit.record import Choice, PlannedCase, Test
from audit.renyi import Belief, renyi_bet
from audit.view import Floats, Views, concatenate

_ENOUGH_GUESSES = 150
_AS_GOOD = 0.95
_GROWTH_ERRORS = 1.3
_WORTH_A_CHANGE = 0.15
_CLEARLY_LESS = 0.9


@dataclass(frozen=True)
class Frozen:
    """A choice with the scorer that makes it, and what it is expected to certify.

    Attributes:
        choice: The frozen choice.
        scorer: Views to scores.
        largest: Scale of the scores, for rounding.
        forecast: Cautiously expected certified epsilon over the confronted one.
        noise: Standard error of the forecast.
        strength: Standard deviations by which honest guesses beat a coin.
        growth: Expected log-wealth per testifying trial against the claim.
        belief: What a bet against Renyi divergences may go by.
        game: The game it was scouted on.
    """

    choice: Choice
    scorer: Scorer
    largest: float
    forecast: float
    noise: float
    strength: float
    growth: float
    belief: Belief
    game: Game

    def tabulate(self, left: Views, right: Views, order: np.random.Generator) -> Counts:
        """Counts of a block of testifying trials; `order` as in `score_sides`."""
        scores = score_sides(self.scorer, left, right, order)
        rounded = [round_scores(side, self.largest) for side in scores]
        return tabulate(rounded[0], rounded[1], self.choice.edges)


def score_sides(
    scorer: Scorer, left: Views, right: Views, order: np.random.Generator
) -> tuple[Floats, Floats]:
    """Scores of both sides.

    A scorer that is not ``rowwise`` lets a score depend on the other trials of the call, so it
    gets all trials in one call, shuffled: it must not learn the side from the call.

    Why this is valid: `order` shuffles every call anew, independently of all views, so that a
    place in the call says nothing about the side. One order for all calls of a size would let
    whatever a scorer does by place (particles from one seed, say) lean the same way in every
    block.
    """
    if getattr(scorer, "rowwise", True):
        one, other = (
            np.asarray(scorer(views), dtype=float) if len(views) else np.empty(0)
            for views in (left, right)
        )
        return one, other
    both = concatenate(left, right)
    places = order.permutation(len(both))
    scores = np.empty(len(both))
    scores[places] = np.asarray(scorer(both.take(places)), dtype=float)
    return scores[: len(left)], scores[len(left) :]


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
    raw = score_sides(scorer, left, right, np.random.default_rng(len(left) + len(right)))
    if getattr(scorer, "rowwise", True):
        _require_rowwise(scorer, left, raw[0], attack.name)
    largest = largest_of(np.concatenate(raw))
    scores = [round_scores(side, largest) for side in raw]
    sample = Sample.of(scores[0], scores[1], largest)
    exact = bool(getattr(scorer, "log_odds", False))
    posteriors = posteriors_of(sample, exact=exact)
    rules = [
        _best_rule(sample, posterior, point, budget)
        for posterior in posteriors
        for point in budget.claim.points()
    ]
    rule = _best_of(rules)
    choice = Choice(
        pair=pair,
        attack=attack.name,
        event=scorer.description,
        edges=tuple(sample.edges.tolist()),
        posterior=tuple(rule.posterior.final.tolist()),
        guess=tuple(int(g) for g in rule.guess),
        epsilon=rule.epsilon,
        delta=rule.delta,
        test=rule.test,
        ranks=_ranks_promise_more(sample.total, rule.posterior.final, budget.trials),
        forecast=rule.margin * rule.epsilon,
    )
    growth = _growth(sample.folds, rule.posterior.honest, rule.epsilon, rule.delta)
    return Frozen(
        choice=choice,
        scorer=scorer,
        largest=largest,
        forecast=rule.margin,
        noise=rule.noise,
        strength=rule.strength,
        growth=growth,
        belief=_belief(sample, posteriors[0]),
        game=game,
    )


def _belief(sample: Sample, posterior: Posterior) -> Belief:
    """By the most trusted posterior; one that was free to fit is judged on the other folds."""
    final = posterior.final
    if posterior.smooth:
        pooled = sample.total.sum(axis=0)
        return Belief(np.stack([pooled * final, pooled * (1 - final)]), final, final)
    folds = np.moveaxis(sample.folds, 1, 0).astype(float)
    return Belief(folds.reshape(2, -1), posterior.honest.ravel(), final)


def with_renyi_bet(choice: Choice, belief: Belief, planned: PlannedCase) -> Choice:
    """The choice with its bet against the Renyi divergences that the claim limits, if it does."""
    claim, trials = planned.divergences, sum(planned.blocks)
    if claim is None:
        return choice
    bet = renyi_bet(belief, claim, trials=trials, alpha=planned.shares.renyi)
    return msgspec.structs.replace(choice, renyi=bet)


def _require_rowwise(scorer: Scorer, views: Views, scores: Floats, name: str) -> None:
    """Sides are scored in separate calls, so a score that looked at other trials would know b."""
    few = np.arange(min(16, len(views)))
    alone = np.asarray(scorer(views.take(few)), dtype=float)
    if not np.allclose(alone, scores[few], rtol=1e-6, atol=1e-9, equal_nan=True):
        raise UsageError(
            f"attack {name!r}: a score must depend on its own view only, but it changes with the "
            "other trials of the call. Learn all statistics in fit, or set rowwise = False"
        )


@dataclass(frozen=True)
class _Rule:
    posterior: Posterior
    guess: Counts
    epsilon: float
    delta: float
    test: Test
    margin: float
    noise: float
    strength: float
    significance: float


def _best_of(rules: Sequence[_Rule]) -> _Rule:
    """Confront where the evidence is most significant; there, the first rule that is as good."""
    clearest = max(rules, key=lambda r: r.significance)
    there = [r for r in rules if (r.epsilon, r.delta) == (clearest.epsilon, clearest.delta)]
    best = max(r.margin for r in there)
    if best <= 0:
        return max(there, key=lambda r: r.strength)
    return next(r for r in there if r.margin >= _AS_GOOD * best)


def _best_rule(
    sample: Sample, posterior: Posterior, point: tuple[float, float], budget: Budget
) -> _Rule:
    """The abstention threshold with the best cautious forecast at one point of the claim.

    Each fold is judged with the posterior of the other folds, so that the noise in a posterior
    does not recommend itself. A smooth posterior that fits the labels is believed about how many
    guesses are right, which is far less noisy than counting them.
    """
    epsilon, delta = point
    right, wrong, sure = _right_wrong(sample.folds, posterior.honest)
    order = np.argsort(-sure, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(sure[order]) < 0, True))
    v, w = np.cumsum(right[order])[ends], np.cumsum(wrong[order])[ends]
    strengths = (v - w) / np.sqrt(np.maximum(v + w, 1))
    guesses = v + w
    believed = v.astype(float)
    if posterior.smooth:
        believed = np.cumsum(((right + wrong) * special.expit(sure))[order])[ends]
    n = int(sample.folds.sum())
    forecasts = _forecasts(believed, guesses, n, delta, posterior.caution, budget)
    best = int(np.argmax(forecasts if forecasts.max() > 0 else strengths))
    level = sure[order][ends[best]]
    surest = np.abs(special.logit(posterior.final))
    guess = np.where((surest >= level) & (surest > 0), np.where(posterior.final > 0.5, 1, -1), 0)
    return _Rule(
        posterior=posterior,
        guess=guess,
        epsilon=epsilon,
        delta=delta,
        test="binomial" if guesses[best] >= _ENOUGH_GUESSES else "ranked",
        margin=float(forecasts[best]) / epsilon,
        noise=_noise(believed[best], guesses[best]) / epsilon,
        strength=float(strengths.max()),
        significance=_significance(believed[best], guesses[best] - believed[best], epsilon, delta),
    )


def _ranks_promise_more(total: Counts, posterior: Floats, trials: int) -> bool:
    """Whether the rank sum should certify a larger mu than right guesses.

    It does for scores that keep rising, such as Gaussian ones, and does not for scores that take
    few values. Both forecasts lie two standard errors below their estimate; as ranks are the best
    test of a claim that is met exactly, guesses must promise clearly more.
    """
    order = np.argsort(posterior, kind="stable")
    left, right = total[0][order].astype(float), total[1][order].astype(float)
    below = np.cumsum(right) - right / 2
    area = float((left * below).sum() / max(1.0, left.sum() * right.sum()))
    hits = left[posterior[order] > 0.5].sum() + right[posterior[order] < 0.5].sum()
    share = float(hits / max(1.0, left.sum() + right.sum()))
    per_side = max(1.0, trials / 2)
    by_ranks = special.ndtri(area - 2 * math.sqrt(1 / (6 * per_side))) * math.sqrt(2)
    by_guesses = 2 * special.ndtri(share - 2 * math.sqrt(1 / (8 * per_side)))
    return bool(by_ranks > _CLEARLY_LESS * by_guesses)


def _noise(right: float, guesses: float) -> float:
    """Standard error of an epsilon estimated from scouted guesses."""
    p = (right + 0.5) / (guesses + 1)
    return float(1 / math.sqrt(max(1.0, guesses) * p * (1 - p)))


def _right_wrong(folds: Counts, honest: Floats) -> tuple[Counts, Counts, Floats]:
    """Right and wrong guesses, and how sure they were, flat over folds and bins."""
    left, right = folds[:, 0].ravel(), folds[:, 1].ravel()
    says_left = honest.ravel() > 0.5
    sure = np.abs(special.logit(honest.ravel()))
    return np.where(says_left, left, right), np.where(says_left, right, left), sure


def _significance(right: float, wrong: float, epsilon: float, delta: float) -> float:
    """Standard deviations by which the right guesses exceed what the point allows."""
    allowed = float(special.expit(epsilon))
    guesses = right + wrong
    written_off = delta * guesses
    spread = max(math.sqrt(max(guesses, 1) * allowed * (1 - allowed)), 1e-9)
    return (right - written_off - allowed * guesses) / spread


def _forecasts(
    right: Floats, guesses: Counts, scouted: int, delta: float, caution: float, budget: Budget
) -> Floats:
    """Epsilons that testimony may be expected to certify, `right` being put cautiously."""
    p = bounds.clopper_pearson_lowers(right, guesses, caution)
    expected = guesses * budget.trials / scouted
    return bounds.binomial_epsilons(
        p * expected, (1 - p) * expected, budget.alpha, delta=delta, trials=budget.trials
    )


def _growth(folds: Counts, honest: Floats, epsilon: float, delta: float) -> float:
    """Mean log-wealth per trial, put cautiously, each fold betting with the others'."""
    bets = np.stack([bounds.log_bets(posterior, [epsilon], delta)[0, 0] for posterior in honest])
    n = folds.sum()
    mean = float((bets * folds).sum() / n)
    spread = float((bets**2 * folds).sum() / n) - mean**2
    return mean - _GROWTH_ERRORS * math.sqrt(max(spread, 0.0) / n)


def choose(candidates: Sequence[Frozen]) -> Frozen:
    """The candidate that testifies: the first whose forecast is the best one up to its noise.

    Where nothing may be expected to be certified, the one that tells the sides apart best.
    """
    best = max(candidate.forecast for candidate in candidates)
    if best <= 0:
        return max(candidates, key=lambda c: c.strength)
    leader = max(candidates, key=lambda c: c.forecast)
    # The noise of an epsilon grows without limit where hardly a guess is wrong.
    level = best - min(leader.noise, _WORTH_A_CHANGE * best)
    return next(c for c in candidates if c.forecast >= level)
