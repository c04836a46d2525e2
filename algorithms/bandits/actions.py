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
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from algorithms.bandits.canaries import Canary
from algorithms.bandits.ftpl import Ftpl
from algorithms.bandits.learners import Estimating, Learner
from algorithms.bandits.release import looked_up
from audit.errors import UsageError
from audit.pair import Pair

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
ActionRatio = Callable[..., Floats]

PARTICLES = 400
_MOST_COLUMNS = 200_000
_TAIL = 45.0
_PANEL_NODES = 12
_GRADES = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 0.7, 1.5, 3.0, 6.0, 12.0, 24.0])
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


class _Key:
    """A mechanism and its means, equal when they look and are the same."""

    def __init__(self, mechanism: Played, means: Floats) -> None:
        self.mechanism, self.means = mechanism, means
        self._value = repr(mechanism), means.shape, means.tobytes()

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._value == other._value


def _law(mechanism: Played, means: Floats) -> Floats:
    return _known_law(_Key(mechanism, means))


@lru_cache(maxsize=32)
def _known_law(key: _Key) -> Floats:
    """Law of the last action of a canary, shape (K,), or of both actions of others, (K, K)."""
    mechanism, means = key.mechanism, key.means
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
        points, weights = _quadrature(kinks, mechanism.noise_scale)
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
    """Gauss-Legendre panels that shrink towards the kinks and end where the density is 1e-19."""
    away = np.concatenate([-_GRADES[::-1], [0.0], _GRADES]) * scale
    every = np.concatenate([kink + away for kink in kinks])
    low, high = min(kinks) - _TAIL * scale, max(kinks) + _TAIL * scale
    edges = np.unique(np.concatenate([every[(every > low) & (every < high)], [low, high]]))
    points, weights = np.polynomial.legendre.leggauss(_PANEL_NODES)
    half = np.diff(edges)[:, None] / 2
    centre = (edges[:-1] + edges[1:])[:, None] / 2
    return (centre + half * points).ravel(), (half * weights).ravel()


def filtered_ratio(mechanism: Played) -> ActionRatio | None:
    """A particle filter for the actions of a conversion, or None if its learner is no `Estimating`.

    Returns:
        Function ``(views, pair, rng, particles=PARTICLES)`` of the column ``actions``, shape
        (n, T), that estimates ln P_left / P_right; shape (n,). All sequences share the particles'
        noise, so an estimate is a function of its own sequence and of the generator alone.
    """
    if not isinstance(mechanism.new_learner(), Estimating):
        return None

    def estimate(
        views: Any, pair: Pair, rng: np.random.Generator, particles: int = PARTICLES
    ) -> Floats:
        actions = np.asarray(views["actions"]).astype(np.intp)
        starts = np.cumsum([0, *mechanism.lengths[:-1]])
        rows, where = np.unique(actions[:, starts], axis=0, return_inverse=True)
        size, seed = max(1, _MOST_COLUMNS // particles), int(rng.integers(2**62))
        parts = [
            _Filter(mechanism, pair, rows[at : at + size], particles, seed).run()
            for at in range(0, len(rows), size)
        ]
        return np.concatenate(parts)[where.ravel()] if parts else np.empty(0)

    return estimate


class _Shared:
    """A source of uniforms of which all sequences get the same."""

    def __init__(self, seed: int, particles: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._particles = particles

    def random(self, size: int) -> Floats:
        """Uniforms on (0, 1], one per particle and the same for all sequences."""
        return np.tile(1 - self._rng.random(self._particles), size // self._particles)


class _Filter:
    """Particles of the right side along given arms, several sequences side by side."""

    def __init__(
        self, mechanism: Played, pair: Pair, arms: Array, particles: int, seed: int
    ) -> None:
        self.mechanism, self.rng = mechanism, _Shared(seed, particles)
        self.means = mechanism.means(pair.left), mechanism.means(pair.right)
        self.arms, self.shape = arms, (len(arms), particles)
        self.weights = np.zeros(self.shape)
        self.ratio = np.zeros(self.shape)
        learner = mechanism.new_learner()
        assert isinstance(learner, Estimating)  # noqa: S101  (checked by filtered_ratio)
        self.learner = learner

    def run(self) -> Floats:
        """Log of the weighted mean of the exponential of the ratio, shape (sequences,)."""
        # An impossible sequence has no particle left and no ratio: NaN.
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._run()

    def _run(self) -> Floats:
        self.learner.start(self.ratio.size, cast(np.random.Generator, self.rng))
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
        sign, size = self.rng.random(len(arm)), self.rng.random(len(arm))
        noisy = there + scale * np.where(sign < 0.5, 1.0, -1.0) * -np.log(size)
        loss = (np.abs(noisy - there) - np.abs(noisy - here)) / scale
        self.ratio += loss.reshape(self.shape)
        self.learner.update(arm, noisy)

    def _resample(self) -> None:
        """Systematic resampling of the sequences whose weights have become too unequal."""
        offset = self.rng.random(self.shape[1])[0]
        share = np.exp(self.weights - self.weights.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        poor = np.flatnonzero(1 / (share * share).sum(axis=1) < self.shape[1] / 2)
        if not len(poor):
            return
        count = self.shape[1]
        copies = np.ones(self.shape, dtype=np.int64)
        reached = np.ceil(np.cumsum(share[poor], axis=1) * count - offset)
        reached = np.clip(reached, 0, count).astype(np.int64)
        reached[:, -1] = count
        copies[poor] = np.diff(reached, axis=1, prepend=0)
        chosen = np.repeat(np.arange(self.ratio.size), copies.ravel())
        # The chance of the arm just followed belongs to the particle and must move with it.
        self.learner.keep(chosen)
        self.learner.follow(np.repeat(self.arms[:, self.learner.count], count))
        self.ratio = self.ratio.ravel()[chosen].reshape(self.shape)
        self.weights[poor] = 0.0
