"""Private covariance: a running sum of phi phi^T, released after every customer.

The first of the two releasers behind privacy-preserving dynamic personalised pricing (Chen,
Simchi-Levi and Wang 2022, *Privacy-Preserving Dynamic Personalized Pricing with Demand Learning*,
Management Science, Algorithm 2): the binary tree mechanism over d x d matrices, from which the
policy learns when to refit its demand model and how uncertain it is.

Claim
-----
Record t enters the nodes ``t, t + lowbit(t), ...`` and no others, at most ``m = floor(log2 N)+1``
of them. Replacing phi_t by phi'_t moves each by ``M = phi phi^T - phi' phi'^T``, and the nodes
carry independent Gaussian noise, so the whole transcript is exactly
``sqrt(c_t) ||M||_O``-Gaussian DP, with c_t the number of nodes touched and ``||M||_O`` the norm
of M weighted by the precision of each entry (see `algorithms.primitives.symmetric`). Later records
may be chosen in view of earlier releases without changing this (Dong, Roth and Su 2022, Theorem
3.2). The worst case is the first record, ``c_t = m``, with two unit vectors as far apart as the
shape of the noise allows; the noise is calibrated to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.calibration import CALIBRATIONS
from algorithms.pricing.features import FEATURE_MAPS, checked
from algorithms.primitives import tree
from algorithms.primitives.symmetric import SHAPES, NoiseShape
from algorithms.primitives.tilting import gaussian_log_weights
from audit.claim import AnyClaim, ApproxDp, GaussianDp, gaussian_delta
from audit.errors import UsageError
from audit.pair import Pair
from audit.table import Table, customer_pairs
from audit.view import Views

Floats = npt.NDArray[np.float64]

SOURCE = "Chen, Simchi-Levi and Wang (2022), Management Science, Algorithm 2 (PrivateCov)"


@dataclass(frozen=True)
class PrivateCov:
    """Binary tree mechanism over ``phi phi^T`` (Chen, Simchi-Levi and Wang 2022, Algorithm 2).

    Data are a mapping with ``features``, shape (records, dimension), rows of norm at most 1.

    Attributes:
        dimension: Length d >= 2 of a feature vector.
        records: Number N of records; a policy over T rounds has N = T - 1.
        epsilon: Budget of the whole transcript.
        delta: Budget of the whole transcript.
        shape: Shape of the noise: ``mirrored``, ``half-sum``, ``root-half-sum`` or ``full``.
        calibration: ``exact``, ``basic`` or ``advanced``.
        claim_as: ``approx`` to promise (epsilon, delta)-DP, ``gaussian`` to promise the mu-GDP
            that this noise gives.
        noise_factor: Multiplies all noise and leaves the claim as it is; 1 unless the audit
            itself is being tested.
        inputs: Pairs to play instead of the worst ones.

    Raises:
        UsageError: For a parameter out of its range.
    """

    dimension: int = 2
    records: int = 31
    epsilon: float = 1.0
    delta: float = 1e-6
    shape: str = "mirrored"
    calibration: str = "exact"
    claim_as: str = "approx"
    noise_factor: float = 1.0
    inputs: tuple[Pair, ...] = ()

    def __post_init__(self) -> None:
        _require(self.dimension >= 2, "dimension >= 2", dimension=self.dimension)
        _require(self.records >= 1, "records >= 1", records=self.records)
        _require(0 < self.epsilon < math.inf, "a finite epsilon > 0", epsilon=self.epsilon)
        _require(0 < self.delta < 1, "0 < delta < 1", delta=self.delta)
        _require(0 < self.noise_factor < math.inf, "> 0", noise_factor=self.noise_factor)
        for name, choices in (
            ("shape", tuple(SHAPES)),
            ("calibration", tuple(CALIBRATIONS)),
            ("claim_as", ("approx", "gaussian")),
        ):
            value = getattr(self, name)
            _require(value in choices, f"one of {', '.join(choices)}", **{name: value})

    @property
    def claim(self) -> AnyClaim:
        """What the calibration promises about the transcript, for replacing one record."""
        source = f"{SOURCE}, {self.calibration} calibration"
        if self.claim_as == "gaussian":
            mu = self._sensitivity * math.sqrt(tree.levels(self.records)) / self.declared_scale
            return GaussianDp(mu, view="transcript", relation="replace-one", source=source)
        return ApproxDp(
            self.epsilon,
            self.delta,
            view="transcript",
            relation="replace-one",
            source=source,
        )

    @property
    def declared_scale(self) -> float:
        """Standard deviation s of the noise that the calibration asks for."""
        rule = CALIBRATIONS[self.calibration]
        return rule(self.epsilon, self.delta, tree.levels(self.records), self._sensitivity)

    @property
    def scale(self) -> float:
        """Standard deviation s of the noise that is drawn."""
        return self.declared_scale * self.noise_factor

    def noise_scaled(self, factor: float) -> PrivateCov:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    def pairs(self) -> Sequence[Pair]:
        """The first record replaced: axis vectors, then axis vectors turned by 45 degrees.

        The axis pair is the worst for every shape; the turned pair equals it for all shapes but
        ``mirrored``.
        """
        if self.inputs:
            return self.inputs
        first, second = np.eye(self.dimension)[:2]
        turned = (first + second) / math.sqrt(2), (first - second) / math.sqrt(2)
        return (self.pair(first, second, "axis"), self.pair(*turned, "turned"))

    def pair(self, left: Floats, right: Floats, label: str = "", position: int = 0) -> Pair:
        """Neighbours that differ in one record; the other records are axis vectors in turn.

        Args:
            left: The record on the left side, shape (d,).
            right: The record on the right side, shape (d,).
            label: Name for reports.
            position: 0-based place of the record.
        """
        rest = np.eye(self.dimension)[np.arange(self.records) % self.dimension]
        one, other = rest.copy(), rest.copy()
        one[position], other[position] = left, right
        return _neighbours(one, other, label)

    def with_table(self, table: Table, feature_map: str = "interaction") -> PrivateCov:
        """The same mechanism on real customers.

        Row i of the features is the map of customer i and their price. The last customer is left
        out, since no price follows that could depend on them. The pairs replace the first
        customer by the worst one that the public bounds allow and by the real one whose
        ``||M||_O`` is largest.

        Args:
            table: At least three customers.
            feature_map: ``interaction`` for ``(x, -p x)/sqrt(2)``, ``intercept`` for
                ``(x, 1)/sqrt(2)``.

        Raises:
            UsageError: For an unknown map or when no customer differs in their features.
        """
        _require(feature_map in FEATURE_MAPS, f"one of {', '.join(FEATURE_MAPS)}", map=feature_map)
        played = table.first(len(table) - 1)

        def featured(rows: Floats) -> Floats:
            return FEATURE_MAPS[feature_map](rows[..., :-2], rows[..., -2])

        def distance(one: Floats, others: Floats) -> Floats:
            return self._gap(featured(one), featured(others))

        pairs = tuple(
            _neighbours(featured(_rows(pair.left)), featured(_rows(pair.right)), pair.label)
            for pair in customer_pairs(played, distance=distance)
        )
        width = np.shape(pairs[0].left["features"])[1]
        return replace(self, dimension=width, records=len(played), inputs=pairs)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release all prefix sums, `n` times.

        Returns:
            ``sums``, shape (n, records, D): the drawn entries of S_1, ..., S_N, D = d(d+1)/2 for
            the symmetric shapes (row-major upper triangle) and d^2 for ``full``.

        Raises:
            UsageError: For features of another shape or with a norm above 1.
        """
        sums = self._noise(n, rng)
        sums += self._exact(self._outer(data))
        return {"sums": sums}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right`` of the transcript: Gaussian, node by node; shape (n,)."""
        everything = np.arange(self.records)
        left, right = (self._exact(self._outer(side))[None] for side in (pair.left, pair.right))
        shift = self._shift(pair)
        moved = np.flatnonzero(np.any(shift != 0, axis=1))
        middle = self._independent((left + right) / 2, everything)[0, moved]
        weight = (shift / self._variance())[moved]
        seen = self._independent(views["sums"], moved)
        ratio = np.einsum("nkd,kd->n", seen, weight) - np.sum(middle * weight)
        return np.asarray(ratio, dtype=float)

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Floats], Floats]:
        """Transcripts from the law proportional to ``exp(tilt L) P_left``, and log weights.

        Without a density to tilt (an infinite mu) they are plain transcripts of weight one.
        """
        emitted = self.run(pair.left, n, rng)
        if not math.isfinite(self.mu(pair)):
            return emitted, np.zeros(n)
        moved = self._outer(pair.left) - self._outer(pair.right)
        emitted["sums"] += tilt * self._exact(moved)
        form = np.full(n, "", dtype=object)
        losses = self.log_likelihood_ratio(Views(form, emitted), pair)
        return emitted, gaussian_log_weights(losses, self.mu(pair), tilt)

    def mu(self, pair: Pair) -> float:
        """Exact Gaussian parameter of the transcript on a pair: ``sqrt(c_t) ||M||_O``."""
        return math.sqrt(np.sum(self._shift(pair) ** 2 / self._variance()))

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence of a pair at `epsilon` (Balle and Wang 2018, Theorem 8)."""
        mu = self.mu(pair)
        return gaussian_delta(mu, epsilon) if mu > 0 else 0.0

    @property
    def _shape(self) -> NoiseShape:
        return SHAPES[self.shape]

    @property
    def _sensitivity(self) -> float:
        return self._shape.sensitivity

    def _outer(self, data: Mapping[str, Any]) -> Floats:
        features = checked(data["features"], (self.records, self.dimension))
        return self._shape.outer(features)

    def _exact(self, outer: Floats) -> Floats:
        """Released sums without their noise: (N, D) to (N, D), linear."""
        return np.cumsum(outer, axis=0)

    def _shift(self, pair: Pair) -> Floats:
        # Rows are subtracted before they are summed, so untouched nodes are exactly zero.
        moved = self._exact(self._outer(pair.left) - self._outer(pair.right))
        nodes: Floats = self._independent(moved[None], np.arange(self.records))[0]
        return nodes

    def _noise(self, n: int, rng: np.random.Generator) -> Floats:
        return tree.prefix_sums(self._normals(n, self.records, rng))

    def _normals(self, n: int, count: int, rng: np.random.Generator) -> Floats:
        scales = self.scale * self._shape.scales(self.dimension)
        draws = rng.standard_normal((n, count, len(scales)))
        draws *= scales
        return draws

    def _independent(self, sums: Floats, which: npt.NDArray[Any]) -> Floats:
        return tree.node_values(sums, which)

    def _variance(self) -> Floats:
        spread = self.scale * self._shape.scales(self.dimension)
        return np.tile(spread**2, (self.records, 1))

    def _gap(self, one: Floats, others: Floats) -> Floats:
        shape = self._shape
        change = (shape.outer(one) - shape.outer(others)) / shape.scales(one.shape[-1])
        return np.asarray(np.linalg.norm(change, axis=-1), dtype=float)


def _neighbours(left: Floats, right: Floats, label: str) -> Pair:
    one, other = checked(left, left.shape), checked(right, right.shape)
    return Pair({"features": one}, {"features": other}, label=label, relation="replace-one")


def _rows(data: Mapping[str, Any]) -> Floats:
    return np.column_stack([data["contexts"], data["prices"], data["outcomes"]])


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"PrivateCov: expected {expected}, got {name}={value!r}")
