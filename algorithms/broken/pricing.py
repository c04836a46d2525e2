"""Private covariance with the mistakes that implementations make, and what each one costs.

The claims stay those of the correct mechanism. Multiples of mu below are for the first of 1023
records; epsilon is for a claim of (1, 1e-6) with the exact calibration on an axis pair.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.private_cov import PrivateCov
from algorithms.primitives import tree
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]


class HalfNoise(PrivateCov):
    """Half of the declared noise: twice the mu on every pair (epsilon 2.123 instead of 1)."""

    @property
    def scale(self) -> float:
        """Half of what the calibration asks for."""
        return super().scale / 2


class AddRemoveSensitivity(PrivateCov):
    """Noise for adding or removing a record under a replace-one claim: sensitivity 1, not sqrt(2).

    Real mu is sqrt(2) times the declared one (epsilon 1.455 instead of 1).
    """

    @property
    def _sensitivity(self) -> float:
        return super()._sensitivity / math.sqrt(2)


class RedrawnNoise(PrivateCov):
    """Node noise drawn again at every query instead of being kept.

    Each S_n then has fresh noise of popcount(n) nodes, and averaging many sums wears it off. Real
    mu^2 of record t is ``||M||_O^2 sum_{n >= t} 1/popcount(n)``: 4.841 times the declared mu
    (epsilon 5.71 instead of 1).
    """

    def _noise(self, n: int, rng: np.random.Generator) -> Floats:
        draws = self._normals(n, self.records, rng)
        draws *= np.sqrt(tree.node_counts(self.records))[:, None]
        return draws

    def _independent(self, sums: Floats, which: npt.NDArray[Any]) -> Floats:
        return np.asarray(sums[:, which], dtype=float)

    def _variance(self) -> Floats:
        return super()._variance() * tree.node_counts(self.records)[:, None]


class SharedNoise(PrivateCov):
    """One noise matrix W drawn once and added to every node.

    The difference of two nodes is then free of noise, for instance ``S_3 - S_2 - S_1``, so any
    record is revealed exactly: epsilon is infinite.

    Raises:
        UsageError: For fewer than three records, where every node may hold the same record.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.records < 3:
            raise UsageError(f"SharedNoise: expected records >= 3, got records={self.records!r}")

    def _noise(self, n: int, rng: np.random.Generator) -> Floats:
        return self._normals(n, 1, rng) * tree.node_counts(self.records)[:, None]

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``inf`` or ``-inf``: which side the noiseless difference of two nodes belongs to."""
        found = self._noiseless(pair)
        seen = views["sums"]
        if found is None:
            return np.zeros(len(seen))
        values = self._independent(seen, found)
        leak = values[:, 0] - values[:, 1]
        off = []
        for side in (pair.left, pair.right):
            nodes = self._independent(np.cumsum(self._outer(side), axis=0)[None], found)[0]
            off.append(np.sum((leak - (nodes[0] - nodes[1])) ** 2, axis=1))
        return np.where(off[0] < off[1], np.inf, -np.inf)

    def mu(self, pair: Pair) -> float:
        """Infinite on every pair that changes the statistic."""
        return 0.0 if self._noiseless(pair) is None else math.inf

    def exact_profile(self, pair: Pair, epsilon: float) -> float:  # noqa: ARG002
        """One at every epsilon on every pair that changes the statistic."""
        return 0.0 if self._noiseless(pair) is None else 1.0

    def _noiseless(self, pair: Pair) -> npt.NDArray[np.intp] | None:
        """A node that holds the changed record and one that does not."""
        changed = np.any(self._shift(pair) != 0, axis=1)
        if changed.all() or not changed.any():
            return None
        return np.array([np.argmax(changed), np.argmin(changed)])
