"""Variants that look suspicious and are private: an audit must not refute them.

Each does something that is a bug in a slightly different place: it changes the feedback after the
noise was added, or adds more noise, or none where nothing is released.

Claim: that of `algorithms.bandits.conversion.BatchedLaplace`, for the reason each docstring gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.release import Array, Floats
from audit.pair import Pair


class ClampedFeedback(BatchedLaplace):
    """The learner is fed the noisy mean clamped to [0, R]: a post-processing of the release."""

    def feedback(self, exact: Floats, noisy: Floats) -> Floats:
        """The clamped noisy mean, shape (n,)."""
        del exact
        return np.clip(noisy, 0.0, self.bound)

    @property
    def action_llr(self) -> None:
        """None: the filter feeds the noisy mean itself."""
        return


class EveryLossNoised(BatchedLaplace):
    """Every loss gets noise of scale ``R / eps`` of its own, then the batch is averaged.

    Each noisy loss is eps-DP by itself, and averaging is a post-processing. The mean has more noise
    than it needs, of another law, so the likelihood ratio of the original is not its own.
    """

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """None: the density is not known in closed form."""
        return ()

    @property
    def exact_profile(self) -> None:
        """None: the noise is a mean of Laplace variables."""
        return

    @property
    def action_llr(self) -> None:
        """None: the filter's noise has another law."""
        return

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Mean of tau independent noises, shape (J, n)."""
        scale = self.noise_factor * self.bound / self.epsilon
        drawn = rng.laplace(0.0, scale, (self.updates, self.batch, n))
        return np.asarray(drawn.mean(axis=1))


class SilentLastBatch(BatchedLaplace):
    """No noise is added to the last batch, whose feedback is neither used nor released."""

    def play(self, means: Floats, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play a block of trials; ``noisy`` lacks the last batch."""
        emitted = super().play(means, data, n, rng)
        return {**emitted, "noisy": emitted["noisy"][:-1]}

    def means(self, data: Any) -> Floats:
        """Means of the full batches; the last one counts as 0, since nothing depends on it."""
        means = super().means(data)
        means[-1] = 0.0
        return means

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Laplace noise for all batches but the last, shape (J, n)."""
        drawn = super().noise(n, rng)
        drawn[-1] = 0.0
        return drawn

    def pairs(self) -> tuple[Pair, ...]:
        """The original's, and one that differs in the last batch, which shows nowhere."""
        low = np.zeros((self.horizon, self.arms))
        last = (self.updates - 1) * self.batch
        return (*super().pairs(), self.worst_pair(low, last, "last batch"))
