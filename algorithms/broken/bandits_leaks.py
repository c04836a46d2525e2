"""Broken twins of the batched Laplace conversion in which something else than the scale is wrong.

Every twin keeps the claim of `algorithms.bandits.conversion.BatchedLaplace`, and every docstring
gives the epsilon that it really has on the pairs it offers.

Claim: eps-DP, as the original's, and false.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.ftrl import Htinf
from algorithms.bandits.learners import Estimating, Learner
from algorithms.bandits.release import Array, Floats, differing, looked_up
from algorithms.broken.bandits import Unlike
from algorithms.primitives.laplace import product_profile
from audit.pair import Pair


class OverlappingBatches(BatchedLaplace):
    """Neighbouring batches share their end element: each also counts the next one's first round.

    A boundary round leaves through two releases. Really 2 eps, exactly.
    """

    def means(self, data: Any) -> Floats:
        """Sum of tau + 1 losses divided by tau, shape (J, K)."""
        losses = self.losses(data)
        total = super().means(data)
        boundary = losses[self.batch : self.updates * self.batch + 1 : self.batch]
        total[: len(boundary)] += boundary / self.batch
        return total

    def pairs(self) -> tuple[Pair, ...]:
        """Losses 0 against R on all arms in the first round of the second batch."""
        low = np.zeros((self.horizon, self.arms))
        return (self.worst_pair(low, self.batch, "boundary round"),)

    def transcript_profile(self, pair: Pair, epsilon: float) -> float:
        """That of two Laplace pairs."""
        moves = np.abs(self.means(pair.left) - self.means(pair.right)).max(axis=1)
        return product_profile((moves / self.noise_scale).tolist(), epsilon)


class RawSkip(Unlike):
    """HTINF decides on the exact mean whether to skip, and on the noisy one by how much to learn.

    The skip bits belong to the transcript, since the state is no function of the rest. Really
    infinite: means 0 and 1 give different bits, delta = 1.
    """

    def new_learner(self) -> Learner:
        """HTINF that is fed exact and noisy means."""
        return _RawSkipHtinf(self.setting, **self.options)

    def feedback(self, exact: Floats, noisy: Floats) -> Floats:
        """Both, shape (2, n)."""
        return np.stack([exact, noisy])


class _RawSkipHtinf(Htinf):
    def update(self, arm: Array, feedback: Floats) -> None:
        exact, noisy = feedback
        used = np.abs(exact) <= self.largest()
        self.hidden = {"skipped": (~used).astype(np.int8)}
        self._add(arm, np.where(used, noisy, 0.0) / self._chance)


class FullInformation(BatchedLaplace):
    """The noisy means of all K arms are logged, each with noise for one. Really K eps, exactly."""

    def play(
        self,
        means: Floats,
        data: Any,  # noqa: ARG002
        n: int,
        rng: np.random.Generator,
    ) -> dict[str, Array]:
        """Play a block of trials; ``noisy`` has shape (K, J, n)."""
        noisy = rng.laplace(0.0, self.noise_scale, (self.arms, self.updates, n))
        learner = self.new_learner()
        learner.start(n, rng)
        arms = np.empty((len(self.lengths), n), dtype=np.int32)
        for j, mean in enumerate(means):
            arms[j] = arm = learner.act()
            before = arms[j - 1] if j else None
            for k in range(self.arms):
                noisy[k, j] += looked_up(mean, before, np.full(n, k))
            learner.update(arm, noisy[arm, j, np.arange(n)])
        if len(arms) > self.updates:
            arms[-1] = learner.act()
        return {"actions": np.repeat(arms, self.lengths, axis=0), "noisy": noisy}

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """As the original's; ``noisy`` has shape (n, J, K)."""
        emitted = self.play(self.means(data), data, n, rng)
        return {name: column.T for name, column in emitted.items()}

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts: all arms of the differing batches count."""
        left, right = self.means(pair.left), self.means(pair.right)
        noisy = np.asarray(views["noisy"])
        ratio = np.zeros(len(noisy))
        for j in differing(left, right):
            ratio += (np.abs(noisy[:, j] - right[j]) - np.abs(noisy[:, j] - left[j])).sum(axis=1)
        return ratio / self.noise_scale

    def pairs(self) -> tuple[Pair, ...]:
        """The oblivious pairs of the original."""
        return super().pairs()[:2]

    def transcript_profile(self, pair: Pair, epsilon: float) -> float:
        """That of K Laplace pairs."""
        moves = np.abs(self.means(pair.left) - self.means(pair.right))
        return product_profile((moves / self.noise_scale).ravel().tolist(), epsilon)

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """The transcript only."""
        return ("transcript", "output")


class Peek(Unlike):
    """The action of a batch is drawn after its own losses were added to the estimates.

    The first action alone tells the sides apart, by as much as one loss can move a probability:
    unbounded as the learner's rate grows, really about 6 with ``htinf`` at ``sigma = .05``.
    """

    def play(
        self,
        means: Floats,
        data: Any,  # noqa: ARG002
        n: int,
        rng: np.random.Generator,
    ) -> dict[str, Array]:
        """Play a block of trials that fits into the cache; columns with the trials last."""
        noisy = self.noise(n, rng)
        learner = self.new_learner()
        assert isinstance(learner, Estimating)  # noqa: S101
        learner.start(n, rng)
        arms = np.empty((self.updates, n), dtype=np.int32)
        for j, mean in enumerate(means):
            learner.losses += mean[:, None]
            arms[j] = arm = learner.act()
            learner.losses -= mean[:, None]
            noisy[j] += mean[arm]
            learner.update(arm, noisy[j])
        return {"actions": np.repeat(arms, self.batch, axis=0), "noisy": noisy}

    def pairs(self) -> tuple[Pair, ...]:
        """Arm 0 is the good one in the first round on the left, the bad one on the right."""
        sides = [np.zeros((self.horizon, self.arms)) for _ in range(2)]
        sides[0][0, 1:] = self.bound
        sides[1][0, 0] = self.bound
        left, right = ({"losses": side} for side in sides)
        return (Pair(left, right, label="first round", relation="replace-one"),)


class KnownSeed(Unlike):
    """The noise comes from a stream whose seed is the horizon, so everybody can subtract it.

    Really infinite: the feedback without its noise is the exact mean, delta = 1.
    """

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """The same Laplace noise in every trial, shape (J, n)."""
        del rng
        drawn = np.random.default_rng(self.horizon).laplace(0.0, self.noise_scale, self.updates)
        return np.tile(drawn[:, None], n)
