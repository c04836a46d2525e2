"""Two single releases: a noisy Gram matrix, and a noisy running count.

Claim
-----
*Analyze Gauss* (Dwork, Talwar, Thakurta and Zhang 2014, Algorithm 1): the upper triangle of
``X^T X`` moves by at most 1 in L2 norm when a row of norm at most 1 is added or removed, by
``sqrt(2)`` when it is replaced, and the noise is that of the Gaussian mechanism. *Laplace tree*
(Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011): a value in [0, 1] enters at most
``m = floor(log2 N) + 1`` nodes with noise Lap(m/eps) each, hence pure eps; the record at place t
is exactly ``c_t eps/m`` private, c_t the nodes that hold it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.features import checked
from algorithms.primitives import tree
from algorithms.primitives.accounting import gaussian_profile
from algorithms.primitives.laplace import product_profile
from algorithms.primitives.symmetric import SHAPES
from algorithms.primitives.tilting import gaussian_log_weights
from audit.claim import ApproxDp, PureDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]

_MIRRORED = SHAPES["mirrored"]


@dataclass(frozen=True)
class AnalyzeGauss:
    """``X^T X`` plus a mirrored Gaussian matrix (Dwork, Talwar, Thakurta and Zhang 2014).

    Data are a mapping with ``features``, shape (records, dimension), rows of norm at most 1.

    Attributes:
        dimension: d >= 2.
        records: N; one less on one side of an add-remove pair.
        epsilon: Below 1, where the classical formula is proved.
        delta: In (0, 1).
        relation: ``replace-one`` or ``add-remove``.
        noise_factor: Multiplies all noise and leaves the claim as it is.

    Raises:
        UsageError: For a parameter out of its range.
    """

    dimension: int = 2
    records: int = 20
    epsilon: float = 0.9
    delta: float = 1e-5
    relation: str = "replace-one"
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        _require(self.dimension >= 2, "dimension >= 2", dimension=self.dimension)
        _require(self.records >= 1, "records >= 1", records=self.records)
        _require(0 < self.epsilon < 1, "0 < epsilon < 1", epsilon=self.epsilon)
        _require(0 < self.delta < 1, "0 < delta < 1", delta=self.delta)
        known = self.relation in ("replace-one", "add-remove")
        _require(known, "replace-one or add-remove", relation=self.relation)

    @property
    def claim(self) -> ApproxDp:
        """(epsilon, delta) for the stated neighbours."""
        source = "Dwork, Talwar, Thakurta and Zhang (2014), Analyze Gauss, Algorithm 1"
        return ApproxDp(
            epsilon=self.epsilon, delta=self.delta, relation=self.relation, source=source
        )

    @property
    def declared_scale(self) -> float:
        """Standard deviation of an entry's noise."""
        sensitivity = math.sqrt(2) if self.relation == "replace-one" else 1.0
        return sensitivity * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon

    def noise_scaled(self, factor: float) -> AnalyzeGauss:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    def pairs(self) -> Sequence[Pair]:
        """An axis vector replaced by another, or removed."""
        features = np.eye(self.dimension)[np.arange(self.records) % self.dimension]
        if self.relation == "add-remove":
            rest = {"features": features[1:]}
            return (Pair({"features": features}, rest, "removed", relation=self.relation),)
        other = features.copy()
        other[0] = np.eye(self.dimension)[1]
        return (Pair({"features": features}, {"features": other}, "axis", relation=self.relation),)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release the upper triangle: ``gram``, shape (n, d(d+1)/2)."""
        gram = self._gram(data)
        noise = rng.standard_normal((n, len(gram)))
        return {"gram": gram + noise * (self.declared_scale * self.noise_factor)}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right``, shape (n,)."""
        left, right = self._gram(pair.left), self._gram(pair.right)
        scale = self.declared_scale * self.noise_factor
        ratio = (views["gram"] - (left + right) / 2) @ (left - right) / scale**2
        return np.asarray(ratio, dtype=float)

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Floats], Floats]:
        """Releases from the law proportional to ``exp(tilt L) P_left``, and log weights."""
        emitted = self.run(pair.left, n, rng)
        emitted["gram"] += tilt * (self._gram(pair.left) - self._gram(pair.right))
        losses = self.log_likelihood_ratio(Views(np.full(n, "", dtype=object), emitted), pair)
        return emitted, gaussian_log_weights(losses, self.mu(pair), tilt)

    def mu(self, pair: Pair) -> float:
        """Exact Gaussian parameter of a pair."""
        change = self._gram(pair.left) - self._gram(pair.right)
        return float(np.linalg.norm(change)) / (self.declared_scale * self.noise_factor)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence (Balle and Wang 2018, Theorem 8)."""
        return gaussian_profile(self.mu(pair), epsilon)

    def _gram(self, data: Mapping[str, Any]) -> Floats:
        count = len(data["features"])
        features = checked(data["features"], (count, self.dimension))
        _require(count <= self.records, f"at most {self.records} records", records=count)
        return np.asarray(_MIRRORED.outer(features).sum(axis=0), dtype=float)


@dataclass(frozen=True)
class LaplaceTree:
    """Running sums of values in [0, 1] by the binary tree mechanism with Laplace noise.

    Data are a mapping with ``values``, shape (records,).

    Attributes:
        records: N.
        epsilon: Pure budget of the whole stream.
        noise_factor: Multiplies all noise and leaves the claim as it is.

    Raises:
        UsageError: For a parameter out of its range.
    """

    records: int = 15
    epsilon: float = 1.0
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        _require(self.records >= 1, "records >= 1", records=self.records)
        _require(0 < self.epsilon < math.inf, "a finite epsilon > 0", epsilon=self.epsilon)

    @property
    def claim(self) -> PureDp:
        """Pure epsilon for replacing one value."""
        source = "Chan, Shi and Song (2011); Dwork, Naor, Pitassi and Rothblum (2010)"
        return PureDp(epsilon=self.epsilon, relation="replace-one", source=source)

    @property
    def declared_scale(self) -> float:
        """Scale m/eps of a node's noise."""
        return tree.levels(self.records) / self.epsilon

    def noise_scaled(self, factor: float) -> LaplaceTree:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    def pairs(self) -> Sequence[Pair]:
        """The first value 1 or 0: it enters the most nodes."""
        return (self.pair(0),)

    def pair(self, place: int) -> Pair:
        """The value at a 0-based place 1 or 0, the others 1/2."""
        left, right = np.full((2, self.records), 0.5)
        left[place], right[place] = 1.0, 0.0
        label = f"value {place + 1}"
        return Pair({"values": left}, {"values": right}, label, relation="replace-one")

    def exact_epsilon(self, pair: Pair) -> float:
        """Exact pure epsilon of a pair: the summed moves of the nodes over the noise's scale."""
        return float(self._moves(pair).sum())

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence: one Laplace release per node that moves."""
        return product_profile(self._moves(pair).tolist(), epsilon)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release all prefix sums: ``sums``, shape (n, records)."""
        noise = rng.laplace(0.0, self._scale, (n, self.records))
        return {"sums": tree.prefix_sums(noise) + np.cumsum(self._values(data))}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right``, node by node; shape (n,)."""
        left, right = self._nodes(pair.left), self._nodes(pair.right)
        moved = np.flatnonzero(left != right)
        seen = tree.node_values(views["sums"], moved)
        gap = np.abs(seen - right[moved]) - np.abs(seen - left[moved])
        return np.asarray(gap.sum(axis=1) / self._scale, dtype=float)

    @property
    def _scale(self) -> float:
        return self.declared_scale * self.noise_factor

    def _moves(self, pair: Pair) -> Floats:
        """How far every node moves, in scales of its noise, shape (N,)."""
        change = self._nodes(pair.left) - self._nodes(pair.right)
        return np.asarray(np.abs(change) / self._scale, dtype=float)

    def _nodes(self, data: Mapping[str, Any]) -> Floats:
        sums = np.cumsum(self._values(data))[None]
        return np.asarray(tree.node_values(sums, np.arange(self.records))[0])

    def _values(self, data: Mapping[str, Any]) -> Floats:
        values = np.asarray(data["values"], dtype=float)
        if values.shape != (self.records,):
            raise UsageError(
                f"LaplaceTree: expected {self.records} values, got shape {values.shape}. Set "
                "records to the length of the stream"
            )
        return np.asarray(np.clip(values, 0.0, 1.0))


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"release: expected {expected}, got {name}={value!r}")
