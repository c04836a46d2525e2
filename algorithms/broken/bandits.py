"""Broken twins of the batched Laplace conversion: what goes wrong in practice, one bug each.

Every twin keeps the claim of `algorithms.bandits.conversion.BatchedLaplace`, and every docstring
gives the epsilon that it really has on the pairs it offers. An audit that does not refute them is
too weak.

Claim: eps-DP, as the original's, and false.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.per_round import PerRoundLaplace
from algorithms.bandits.release import Floats
from audit.pair import Pair

Profile = Callable[[Pair, float], float]


class HalfNoise(BatchedLaplace):
    """Noise of half the scale that the claim needs. Really 2 eps, exactly."""

    @property
    def noise_scale(self) -> float:
        """Half the declared scale."""
        return super().noise_scale / 2


class SumNoise(BatchedLaplace):
    """Noise calibrated for the mean is added to the sum of the batch, which is then divided.

    So the mean carries noise of scale ``1 / (eps tau^2)``. Really ``eps tau``, exactly: .1 becomes
    1. Harmless, and so invisible, at eps >= 1.
    """

    @property
    def noise_scale(self) -> float:
        """The declared scale divided by the length of a batch."""
        return super().noise_scale / self.batch


class FloorBatch(BatchedLaplace):
    """Batches of ``floor(1 / eps)`` rounds with noise hard-coded for a full one.

    Really ``1 / floor(1 / eps)``, exactly: .6 becomes 1, .35 becomes .5. Harmless when 1/eps is
    a whole number.
    """

    @property
    def batch(self) -> int:
        """Rounds per batch, rounded down."""
        return max(1, int(1 / self.epsilon + 1e-9))

    @property
    def noise_scale(self) -> float:
        """The largest loss, whatever the length of a batch."""
        return self.bound * self.noise_factor


class SwappedScale(PerRoundLaplace):
    """Scale and rate of the noise are swapped: scale ``eps / R``. Really ``1 / eps``, exactly.

    Harmless, and so invisible, at eps = 1; and in the batched form at ``tau = 1 / eps``.
    """

    @property
    def noise_scale(self) -> float:
        """The inverse of the declared scale."""
        return self.noise_factor / super().declared_scale


class NoClamp(BatchedLaplace):
    """Losses are not clamped to [0, R], and these are three times too large.

    Really 3 eps, exactly, on the pairs it offers; unbounded over all inputs.
    """

    def clamped(self, losses: Floats) -> Floats:
        """The losses as they came."""
        return losses

    def pairs(self) -> tuple[Pair, ...]:
        """The worst pairs, with losses up to 3 R."""
        return tuple(_stretched(pair, 3.0) for pair in super().pairs())


class Unlike(BatchedLaplace):
    """A twin whose law is not that of another noise scale: it knows no likelihood of its own."""

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """None: the density of the original is not the twin's."""
        return ()

    @property
    def exact_profile(self) -> Profile | None:
        """None in general; twins that know better say so."""
        return None

    @property
    def action_llr(self) -> None:
        """None: the filter plays the original."""
        return


class SharedNoise(Unlike):
    """One noise draw serves two consecutive batches, as if it were cached.

    The difference of their feedback is free of noise. Really infinite: the transcripts of the two
    sides are disjoint, delta = 1 at every epsilon.
    """

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Laplace noise in which rows 2i and 2i + 1 are equal, shape (J, n)."""
        drawn = rng.laplace(0.0, self.noise_scale, ((self.updates + 1) // 2, n))
        return np.repeat(drawn, 2, axis=0)[: self.updates]


class ReseededNoise(Unlike):
    """The generator of the noise starts afresh from one seed in every batch.

    All batches of a run get the same draw. Really infinite: the difference of any two feedbacks is
    free of noise.
    """

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Laplace noise whose rows are all equal, shape (J, n)."""
        seed = int(rng.integers(2**63))
        rows = [np.random.default_rng(seed) for _ in range(self.updates)]
        return np.stack([row.laplace(0.0, self.noise_scale, n) for row in rows])


class RawLoss(Unlike):
    """The learner decides on the exact mean loss; only the released feedback is noisy.

    Really infinite with a learner such as ``leader``, whose actions then are a function of the
    losses. A randomised learner hides it better, the less it learns.
    """

    def feedback(self, exact: Floats, noisy: Floats) -> Floats:
        """The exact mean, shape (n,)."""
        del noisy
        return exact


class OneSidedNoise(Unlike):
    """Exponential noise in place of Laplace noise of the same scale.

    Feedback below the larger mean is possible on one side only. Really infinite:
    delta = 1 - exp(-eps) at every epsilon.
    """

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Noise that is never negative, shape (J, n)."""
        return rng.exponential(self.noise_scale, (self.updates, n))

    @property
    def exact_profile(self) -> Profile | None:
        """``1 - exp(-distance)`` whatever the epsilon, for the transcript."""
        return self._support_profile if self.view == "transcript" else None

    def _support_profile(self, pair: Pair, epsilon: float) -> float:
        del epsilon
        return float(-np.expm1(-self.shift(pair) / self.noise_scale))


def _stretched(pair: Pair, factor: float) -> Pair:
    left, right = ({"losses": factor * side["losses"]} for side in (pair.left, pair.right))
    return Pair(left, right, label=pair.label, relation=pair.relation)
