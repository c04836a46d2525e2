"""What the actions alone of a batched conversion give away.

Where inputs differ in one feedback only, ``P_left(a) / P_right(a)`` is the conditional expectation,
given the actions, of the exponential of the transcript's log-likelihood ratio. It has a formula for
canaries, whose last action is a bin of one feedback, and an integral over one Laplace law when only
two arms are ever chosen. Otherwise a particle filter estimates it (Gordon, Salmond and Smith 1993;
the ratio is the filter's weighted mean of the exponential). An estimate is a score: it chooses
which guesses to make, and only counts of guesses certify anything.

Claim: none beyond that of `algorithms.bandits.conversion`: actions are a post-processing of the
transcript, so their log-ratios lie between -eps and eps whatever these functions return.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from algorithms.bandits.canaries import Canary
from algorithms.bandits.ftpl import Ftpl
from algorithms.bandits.learners import Estimating, Learner
from algorithms.bandits.release import differing, looked_up
from audit.errors import UsageError
from audit.pair import Pair

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
ActionRatio = Callable[..., Floats]

PARTICLES = 400
_MOST_COLUMNS = 200_000
_TAIL = 45.0
_PANEL_NODES = 24
_PANELS = 12
_MOST_REDRAWS = 400
_NEGLIGIBLE = 1e-14


class Played(Protocol):
    """What these functions need to know of a batched conversion."""

    @property
    def arms(self) -> int:
        """Number of arms."""

    @property
    def batch(self) -> int:
        """Rounds per batch."""

    @property
    def updates(self) -> int:
        """Number of full batches."""

    @property
    def lengths(self) -> list[int]:
        """Rounds of every stretch with one arm."""

    @property
    def noise_scale(self) -> float:
        """Scale of the noise on the feedback."""

    def means(self, data: Any) -> Floats:
        """Mean losses by batch and arm."""

    def new_learner(self) -> Learner:
        """A fresh base learner."""


def has_law(mechanism: Played) -> bool:
    """Whether the law of the actions, as far as it depends on the losses, has a formula."""
    learner = mechanism.new_learner()
    short = len(mechanism.lengths) <= 2
    return isinstance(learner, Canary) or (short and isinstance(learner, Estimating))


def ratio(mechanism: Played, actions: Array, pair: Pair) -> Floats:
    """Exact ln P_left / P_right of actions of shape (n, T); shape (n,).

    Raises:
        UsageError: When the law has no formula.
    """
    left, right = (_law(mechanism, mechanism.means(side)) for side in (pair.left, pair.right))
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.log(left) - np.log(right)
    if table.ndim == 1:
        return np.asarray(table[actions[:, -1]])
    return np.asarray(table[actions[:, 0], actions[:, -1]])


def profile(mechanism: Played, pair: Pair, epsilon: float) -> float:
    """Exact hockey-stick divergence of the actions.

    Raises:
        UsageError: When the law has no formula.
    """
    laws = np.stack(
        [_law(mechanism, mechanism.means(side)).ravel() for side in (pair.left, pair.right)]
    )
    grown = np.exp(epsilon) * laws[::-1]
    return float(np.maximum(laws - grown, 0.0).sum(axis=1).max())


def _law(mechanism: Played, means: Floats) -> Floats:
    """Law of the last action of a canary, shape (K,), or of both actions of others, (K, K)."""
    learner = mechanism.new_learner()
    if isinstance(learner, Canary):
        return _canary_law(mechanism, learner, means)
    if has_law(mechanism) and isinstance(learner, Estimating):
        return _two_step_law(mechanism, learner, means)
    raise UsageError(
        "bandit: the law of the actions of this learner has no closed form; audit the transcript, "
        "or use the learner threshold or quantile, or two batches"
    )


def _canary_law(mechanism: Played, canary: Canary, means: Floats) -> Floats:
    if canary.watched + 1 == len(mechanism.lengths):
        return np.asarray(np.eye(mechanism.arms)[0])
    mean = looked_up(means[canary.watched], np.zeros(1, int), np.zeros(1, int))
    return canary.law(float(mean[0]), mechanism.noise_scale)


def _two_step_law(mechanism: Played, learner: Estimating, means: Floats) -> Floats:
    """``P(I_1 = a, I_2 = b)``, integrating the second law against the first noise."""
    law = np.zeros((mechanism.arms, mechanism.arms))
    learner.start(1, np.random.default_rng(0))
    first = learner.probs()[:, 0]
    if len(mechanism.lengths) == 1:
        return np.asarray(np.diag(first))
    for arm in range(mechanism.arms):
        mean = float(looked_up(means[0], None, np.array([arm]))[0])
        learner.start(1, np.random.default_rng(0))
        learner.follow(np.array([arm]))
        kinks = [0.0, mean, *learner.kinks()]
        points, weights = _quadrature(sorted(kinks), mechanism.noise_scale)
        density = np.exp(-np.abs(points - mean) / mechanism.noise_scale)
        density /= 2 * mechanism.noise_scale
        law[arm] = first[arm] * (_second(learner, arm, points) @ (weights * density))
    return law


def _second(learner: Estimating, arm: int, feedback: Floats) -> Floats:
    """Law of the second action given the first and its feedback, shape (K, number of points)."""
    arms = np.full(len(feedback), arm)

    def started() -> Floats:
        learner.start(len(feedback), np.random.default_rng(0))
        return np.exp(learner.follow(arms))

    chance = float(started()[0])
    if not isinstance(learner, Ftpl):
        learner.update(arms, feedback)
        return learner.probs()
    total, left = np.zeros((learner.setting.arms, len(feedback))), 1.0
    for count in range(1, min(learner.cap, _MOST_REDRAWS) + 1):
        share = left if count == learner.cap else left * chance
        started()
        learner.count_in(arms, feedback, np.full(len(feedback), count))
        total += share * learner.probs()
        left -= share
        if left < _NEGLIGIBLE:
            break
    return total


def _quadrature(kinks: list[float], scale: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre panels between the kinks, and out to where the density is below 1e-19."""
    low, high = kinks[0] - _TAIL * scale, kinks[-1] + _TAIL * scale
    edges = [low, *kinks, high]
    points, weights = np.polynomial.legendre.leggauss(_PANEL_NODES)
    found: list[tuple[Floats, Floats]] = []
    for start, stop in pairwise(edges):
        cuts = np.linspace(start, stop, _PANELS + 1)
        half = np.diff(cuts)[:, None] / 2
        centre = (cuts[:-1] + cuts[1:])[:, None] / 2
        found.append(((centre + half * points).ravel(), (half * weights).ravel()))
    return np.concatenate([p for p, _ in found]), np.concatenate([w for _, w in found])


def filtered_ratio(mechanism: Played) -> ActionRatio | None:
    """A particle filter for the actions of a conversion, or None if its learner is no `Estimating`.

    Returns:
        Function ``(views, pair, rng, particles=PARTICLES)`` of the column ``actions``, shape
        (n, T), that estimates ln P_left / P_right; shape (n,). Equal actions get equal estimates.
    """
    if not isinstance(mechanism.new_learner(), Estimating):
        return None

    def estimate(
        views: Any, pair: Pair, rng: np.random.Generator, particles: int = PARTICLES
    ) -> Floats:
        actions = np.asarray(views["actions"]).astype(np.intp)
        starts = np.cumsum([0, *mechanism.lengths[:-1]])
        rows, where = np.unique(actions[:, starts], axis=0, return_inverse=True)
        size = max(1, _MOST_COLUMNS // particles)
        parts = [
            _Filter(mechanism, pair, rows[at : at + size], particles, rng).run()
            for at in range(0, len(rows), size)
        ]
        return np.concatenate(parts)[where.ravel()] if parts else np.empty(0)

    return estimate


class _Filter:
    """Particles of the right side along given arms, several sequences side by side."""

    def __init__(
        self, mechanism: Played, pair: Pair, arms: Array, particles: int, rng: np.random.Generator
    ) -> None:
        self.mechanism, self.rng = mechanism, rng
        self.means = mechanism.means(pair.left), mechanism.means(pair.right)
        self.last = int(max(differing(*self.means), default=-1))
        self.arms, self.shape = arms, (len(arms), particles)
        self.weights = np.zeros(self.shape)
        self.ratio = np.zeros(self.shape)
        learner = mechanism.new_learner()
        assert isinstance(learner, Estimating)  # noqa: S101  (checked by filtered_ratio)
        self.learner = learner

    def run(self) -> Floats:
        """Log of the weighted mean of the exponential of the ratio, shape (sequences,)."""
        self.learner.start(self.ratio.size, self.rng)
        for j in range(self.arms.shape[1]):
            arm = np.repeat(self.arms[:, j], self.shape[1])
            self.weights += self.learner.follow(arm).reshape(self.shape)
            if j < self.mechanism.updates:
                self._resample()
                self._learn(j, arm)
        top = self.weights - self.weights.max(axis=1, keepdims=True)
        share = np.exp(top)
        return np.asarray(np.log((share * np.exp(self.ratio)).sum(axis=1) / share.sum(axis=1)))

    def _learn(self, j: int, arm: Array) -> None:
        before = np.repeat(self.arms[:, j - 1], self.shape[1]) if j else None
        here, there = (looked_up(means[j], before, arm) for means in self.means)
        scale = self.mechanism.noise_scale
        noisy = there + self.rng.laplace(0.0, scale, len(arm))
        loss = (np.abs(noisy - there) - np.abs(noisy - here)) / scale
        self.ratio += loss.reshape(self.shape)
        self.learner.update(arm, noisy)

    def _resample(self) -> None:
        """Systematic resampling of the sequences whose weights have become too unequal."""
        share = np.exp(self.weights - self.weights.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        poor = np.flatnonzero(1 / (share * share).sum(axis=1) < self.shape[1] / 2)
        if not len(poor):
            return
        count = self.shape[1]
        rows = np.arange(self.ratio.size).reshape(self.shape)
        total = np.minimum(np.cumsum(share[poor], axis=1), 1.0)
        total[:, -1] = 1.0
        lattice = (self.rng.random((len(poor), 1)) + np.arange(count)) / count
        offset = np.arange(len(poor))[:, None]
        found = np.searchsorted((total + offset).ravel(), (lattice + offset).ravel())
        picked = np.minimum(found.reshape(len(poor), count) - offset * count, count - 1)
        rows[poor] = poor[:, None] * count + np.maximum(picked, 0)
        chosen = rows.ravel()
        # The chance of the arm just followed belongs to the particle and must move with it.
        self.learner.keep(chosen)
        self.learner.follow(np.repeat(self.arms[:, self.learner.count], count))
        self.ratio = self.ratio.ravel()[chosen].reshape(self.shape)
        self.weights[poor] = 0.0
