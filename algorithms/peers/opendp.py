"""OpenDP: additive noise, tree of counts, noisy maximum.

Claim: what ``Measurement.map`` states for inputs at distance one, or what dp-accounting computes
for the noise that OpenDP documents.

OpenDP draws from the operating system. Its runs cannot be repeated, which DP007 tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

from algorithms.peers.support import Floats, needed, one_by_one, source
from audit.claim import AnyClaim, ApproxDp, PureDp, ZeroConcentratedDp
from audit.pair import Pair

_FEATURES = ("contrib", "honest-but-curious", "idealized-numerics", "private-selection-v2")


def _opendp() -> Any:
    found = needed("opendp.prelude", "opendp")
    found.enable_features(*_FEATURES)
    return found


@cache
def _additive(kind: str, scale: float) -> Any:
    """Laplace or Gaussian noise on one number."""
    dp = _opendp()
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return {"laplace": dp.m.make_laplace, "gaussian": dp.m.make_gaussian}[kind](*space, scale=scale)


@cache
def _tree(leaves: int, branching: int, scale: float) -> Any:
    """Counts of a tree's nodes with discrete Laplace noise."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=int), size=leaves), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=leaves, branching_factor=branching)
    return tree >> dp.m.then_laplace(scale=scale)


@cache
def _selection(scale: float) -> Any:
    """Index of the largest noisy score."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    return dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)


@dataclass(frozen=True)
class Additive:
    """A number of sensitivity one with noise, asked `answers` times.

    Attributes:
        kind: ``laplace`` or ``gaussian``.
        scale: Scale of the noise of one answer.
        answers: How many answers are released.
        delta: Delta of the claim that dp-accounting computes; 0 for OpenDP's own claim.
    """

    kind: str
    scale: float
    answers: int = 1
    delta: float = 0.0

    @property
    def claim(self) -> AnyClaim:
        """OpenDP's own, or dp-accounting's at `delta`."""
        if self.delta:
            return ApproxDp(
                epsilon=self._accounted(), delta=self.delta, source=source("dp-accounting", "PLD")
            )
        stated = _additive(self.kind, self.scale).map(1.0) * self.answers
        where = source("opendp", f"make_{self.kind}, map(1.0)")
        if self.kind == "laplace":
            return PureDp(epsilon=stated, source=where)
        return ZeroConcentratedDp(rho=stated, source=where)

    def _accounted(self) -> float:
        makers = {
            "laplace": pld.from_laplace_mechanism,
            "gaussian": pld.from_gaussian_mechanism,
        }
        composed = makers[self.kind](self.scale).self_compose(self.answers)
        return float(composed.get_epsilon_for_delta(self.delta))

    def pairs(self) -> Sequence[Pair]:
        """Numbers one apart."""
        return (Pair(0.0, 1.0, "one apart"),)

    def run(self, data: float, n: int, rng: np.random.Generator) -> Floats:
        """Noisy numbers, shape (n, answers)."""
        noisy = _additive(self.kind, self.scale)
        return one_by_one(lambda _: [noisy(data) for _ in range(self.answers)], n, rng)


@dataclass(frozen=True)
class Tree:
    """A histogram as a tree of noisy counts.

    Attributes:
        leaves: Bins of the histogram.
        branching: Children per node.
        scale: Scale of the discrete Laplace noise of one node.
    """

    leaves: int = 8
    branching: int = 2
    scale: float = 4.0

    @property
    def claim(self) -> PureDp:
        """OpenDP's own: a record is in one node per level."""
        stated = _tree(self.leaves, self.branching, self.scale).map(1)
        return PureDp(epsilon=stated, source=source("opendp", "make_b_ary_tree, map(1)"))

    def pairs(self) -> Sequence[Pair]:
        """One record in the first bin, or none."""
        counts = np.zeros(self.leaves, dtype=int)
        first = counts.copy()
        first[0] = 1
        return (Pair(first.tolist(), counts.tolist(), "one record in the first bin"),)

    def run(self, data: list[int], n: int, rng: np.random.Generator) -> Floats:
        """Noisy counts of all nodes, shape (n, nodes)."""
        noisy = _tree(self.leaves, self.branching, self.scale)
        return one_by_one(lambda _: noisy(data), n, rng)


@dataclass(frozen=True)
class NoisyMax:
    """The index of the largest of five scores, each of sensitivity one.

    Attributes:
        scale: Scale of the noise.
    """

    scale: float = 2.0

    @property
    def claim(self) -> PureDp:
        """OpenDP's own."""
        stated = _selection(self.scale).map(1.0)
        return PureDp(epsilon=stated, source=source("opendp", "make_noisy_max, map(1.0)"))

    def pairs(self) -> Sequence[Pair]:
        """Scores of which the first goes down and the others up."""
        return (Pair([0.0, 3, 3, 3, 3], [-1.0, 4, 4, 4, 4], "first down, others up"),)

    def run(self, data: list[float], n: int, rng: np.random.Generator) -> Floats:
        """Indices, shape (n,)."""
        noisy, scores = _selection(self.scale), [float(score) for score in data]
        return one_by_one(lambda _: noisy(scores), n, rng)
