"""More mistakes in private covariance, and what each one costs.

As in `algorithms.broken.pricing` the claims stay those of the correct mechanism; multiples of mu
are for the first of 1023 records with an axis pair, for the exact and the basic calibration, and
epsilon is for a claim of (1, 1e-6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.calibration import CALIBRATIONS
from algorithms.pricing.private_cov import PrivateCov
from algorithms.primitives import tree
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]

_RAW_SQUARE = 26.0
_VISITS = 3.0
_TIE = 1e-7


class OneLevel(PrivateCov):
    """Noise for one node only: m = 1 in the formula.

    Real mu is 3.162 times the exact one, sqrt(m) (epsilon 3.525); 10.79 times the basic one (2.74).
    """

    @property
    def scale(self) -> float:
        """What the calibration asks for when a record touches one node."""
        return _scale_for(self, 1)


class NaturalLog(PrivateCov):
    """Levels counted with the natural logarithm: 7 instead of 10 for 1023 records.

    Real mu is 1.195 times the exact one (epsilon 1.21); 1.444 times the basic one (0.312).
    """

    @property
    def scale(self) -> float:
        """What the calibration asks for with ``floor(ln N) + 1`` levels."""
        return _scale_for(self, math.floor(math.log(self.records)) + 1)


class RootScale(PrivateCov):
    """The square root of sigma passed as the standard deviation.

    Real mu is sqrt(sigma) times the declared one: 4.347 (epsilon 5.05), basic 8.99 (2.24).
    """

    @property
    def scale(self) -> float:
        """The square root of what the calibration asks for."""
        return math.sqrt(self.declared_scale) * self.noise_factor


class RawFeatures(PrivateCov):
    """Features not normalised: the data, though of norm at most 1, stand for norms up to sqrt(26).

    Real mu is 26 times the declared one (epsilon 47.5; basic 7.43).
    """

    def _outer(self, data: Mapping[str, Any]) -> Floats:
        return _RAW_SQUARE * super()._outer(data)


class RepeatVisits(PrivateCov):
    """One customer owns three records in the same nodes, under a claim for one record.

    Real mu is 3 times the declared one (epsilon 3.32; basic 0.683).
    """

    def _outer(self, data: Mapping[str, Any]) -> Floats:
        return _VISITS * super()._outer(data)


class NeverReset(PrivateCov):
    """Tree levels that are added to but never emptied.

    The first record then enters the nodes with multiplicities 1, 1, 1, 2, 1, 2, 1, 5, ...: at 1023
    records mu is above 7e5 under every calibration, so epsilon is infinite for all purposes.
    """

    def _exact(self, outer: Floats) -> Floats:
        levels = np.zeros((tree.levels(len(outer)) + 1, outer.shape[1]))
        nodes = np.empty_like(outer)
        for n in range(1, len(outer) + 1):
            j = (n & -n).bit_length() - 1
            levels[j] += levels[:j].sum(axis=0) + outer[n - 1]
            nodes[n - 1] = levels[j]
        return np.asarray(tree.prefix_sums(nodes[None])[0])


class _Revealing(PrivateCov):
    """A covariance of which some function comes without noise: any record it sees is revealed."""

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``inf`` or ``-inf`` by the noiseless part; the Gaussian ratio if that does not tell."""
        if not self._tells(pair):
            return super().log_likelihood_ratio(views, pair)
        seen = self._noiseless(views)
        off = [np.abs(seen - self._truth(side)).max(axis=1) for side in (pair.left, pair.right)]
        return np.where(off[0] < off[1], np.inf, -np.inf)

    def mu(self, pair: Pair) -> float:
        """Infinite on every pair that the noiseless part tells apart."""
        return math.inf if self._tells(pair) else super().mu(pair)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """One at every epsilon on every pair that the noiseless part tells apart."""
        return 1.0 if self._tells(pair) else super().exact_profile(pair, epsilon)

    def _tells(self, pair: Pair) -> bool:
        return bool(np.abs(self._truth(pair.left) - self._truth(pair.right)).max() > _TIE)

    def _noiseless(self, views: Views) -> Floats:
        raise NotImplementedError

    def _truth(self, data: Mapping[str, Any]) -> Floats:
        raise NotImplementedError


class NoiselessDiagonal(_Revealing):
    """``triu(Z, 1)`` plus its transpose for the noise: the diagonal has none.

    Any pair that differs on the diagonal is revealed: epsilon is infinite.
    """

    def _noise(self, n: int, rng: np.random.Generator) -> Floats:
        sums = super()._noise(n, rng)
        sums[:, :, self._diagonal] = 0.0
        return sums

    @property
    def _diagonal(self) -> npt.NDArray[np.intp]:
        rows, columns = self._shape.entries(self.dimension)
        return np.flatnonzero(rows == columns)

    def _noiseless(self, views: Views) -> Floats:
        return views["sums"][:, :, self._diagonal].reshape(len(views), -1)

    def _truth(self, data: Mapping[str, Any]) -> Floats:
        return self._exact(self._outer(data))[:, self._diagonal].ravel()


class ExactBonus(_Revealing):
    """Noisy sums for refreshing, but the bonus of every price from the exact covariance.

    Interior prices reveal the bonus ``sqrt(phi^T Lam^-1 phi)``; it is emitted here for the axis
    vectors and their sum as ``bonus``, shape (n, d + 1). Epsilon is infinite.
    """

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release all prefix sums, and the bonuses of d + 1 probing customers."""
        bonus = np.broadcast_to(self._truth(data), (n, self.dimension + 1))
        return {**super().run(data, n, rng), "bonus": bonus}

    def _noiseless(self, views: Views) -> Floats:
        return views["bonus"]

    def _truth(self, data: Mapping[str, Any]) -> Floats:
        features = np.asarray(data["features"], dtype=float)
        inverse = np.linalg.inv(features.T @ features + np.eye(self.dimension))
        probes = np.vstack([np.eye(self.dimension), np.ones(self.dimension)])
        return np.asarray(np.sqrt(np.einsum("pi,ij,pj->p", probes, inverse, probes)), dtype=float)


def _scale_for(cov: PrivateCov, levels: int) -> float:
    rule = CALIBRATIONS[cov.calibration]
    sensitivity = cov._sensitivity
    return rule(cov.epsilon, cov.delta, levels, sensitivity) * cov.noise_factor
