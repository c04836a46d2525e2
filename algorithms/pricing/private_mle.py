"""Private maximum likelihood: the demand parameter by objective perturbation, a few times over.

The second of the two releasers behind privacy-preserving dynamic personalised pricing (Chen,
Simchi-Levi and Wang 2022, *Privacy-Preserving Dynamic Personalized Pricing with Demand Learning*,
Management Science, Algorithm 3): every call releases the minimiser of the ridge-regularised
negative log-likelihood of the records so far plus ``w^T theta``, with fresh Gaussian w.

Claim
-----
Inside the ball the released theta determines ``w = -G(theta)``. Replacing a record moves w by
``g - g'``, which lies in the span of phi and phi' whatever theta is, and has norm at most Gamma:
the Gaussian part of the log-likelihood ratio is at most ``q^2/2 + q chi_2`` with ``q = Gamma/nu``,
the Jacobian part at most ``ln(1 + beta/rho)``. The constrained minimiser is the conditional law's
mixture over the multiplier, for which the same bounds hold. Calls use fresh noise, so their losses
add. Changing an outcome alone moves w by the constant ``dy phi``: each call is then exactly
``|dy| ||phi||/nu``-Gaussian DP when unconstrained, and at most that when constrained. See
`algorithms.pricing.noise` for what each calibration makes of this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.canaries import background, canary_pair
from algorithms.pricing.demand import Link, link
from algorithms.pricing.features import FEATURE_MAPS, checked
from algorithms.pricing.likelihoods import Common
from algorithms.pricing.noise import (
    NOISES,
    RELATIONS,
    Budget,
    check_theorem,
    loss_bound,
    ridge_floor,
)
from algorithms.primitives.accounting import gaussian_profile, loss_bound_delta
from algorithms.primitives.objective import Tilted, minimise
from algorithms.primitives.objective_law import log_density
from audit.claim import AnyClaim, ApproxDp, GaussianDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.table import Table, customer_pairs
from audit.view import Views

Floats = npt.NDArray[np.float64]

_FARTHEST = 4.0
SOURCE = "Chen, Simchi-Levi and Wang (2022), Management Science, Algorithm 3 (PrivateMLE)"


@dataclass(frozen=True)
class PrivateMle:
    """Objective perturbation of a demand model (Chen, Simchi-Levi and Wang 2022, Algorithm 3).

    Data are a mapping with ``features``, shape (records, dimension), rows of norm at most 1, and
    ``outcomes``, shape (records,), clipped to the link's range.

    Attributes:
        dimension: Length d >= 1 of a feature vector.
        records: Number N of records.
        epsilon: Budget of all calls together.
        delta: Budget of all calls together.
        times: How many records each call uses; one call on all of them when empty.
        demand: ``logistic`` or ``linear``.
        bound: Public bound on linear outcomes.
        radius: R, or ``inf`` for the unconstrained minimiser.
        ridge: rho; the theorem's floor ``2 beta / eps'`` when 0.
        calibration: One of `algorithms.pricing.noise.NOISES`.
        claim_as: ``approx``, or ``gaussian`` (with ``exact_label`` only).
        noise_factor: Multiplies all noise and leaves the claim as it is.
        inputs: Pairs to play instead of the worst ones known.

    Raises:
        UsageError: For a parameter out of its range.
    """

    dimension: int = 2
    records: int = 30
    epsilon: float = 1.0
    delta: float = 1e-6
    times: tuple[int, ...] = ()
    demand: str = "logistic"
    bound: float = 1.0
    radius: float = math.inf
    ridge: float = 0.0
    calibration: str = "hs_rep"
    claim_as: str = "approx"
    noise_factor: float = 1.0
    inputs: tuple[Pair, ...] = ()

    def __post_init__(self) -> None:
        _require(self.dimension >= 1, "dimension >= 1", dimension=self.dimension)
        _require(self.records >= 2, "records >= 2", records=self.records)
        _require(0 < self.epsilon < math.inf, "a finite epsilon > 0", epsilon=self.epsilon)
        _require(0 < self.delta < 1, "0 < delta < 1", delta=self.delta)
        _require(self.radius > 0, "radius > 0", radius=self.radius)
        _require(0 < self.noise_factor < math.inf, "> 0", noise_factor=self.noise_factor)
        known = self.calibration in NOISES
        _require(known, f"one of {', '.join(NOISES)}", calibration=self.calibration)
        exact = ("approx", "gaussian") if self.calibration == "exact_label" else ("approx",)
        _require(self.claim_as in exact, f"one of {', '.join(exact)}", claim_as=self.claim_as)
        ordered = all(1 <= a <= self.records for a in self.times)
        _require(ordered, f"times from 1 to {self.records}", times=self.times)
        check_theorem(self.calibration, self.budget)
        coming = RELATIONS[self.calibration] == "add-remove" and len(self.times) > 0
        _require(not coming, "no times when records come and go", times=self.times)

    @property
    def link(self) -> Link:
        """The demand model."""
        return link(self.demand, self.bound)

    @property
    def call_times(self) -> tuple[int, ...]:
        """How many records each call uses."""
        return self.times or (self.records,)

    @property
    def budget(self) -> Budget:
        """What the noise is calibrated for."""
        calls, strength = len(self.call_times), self.ridge
        if not strength:
            probe = Budget(self.epsilon, self.delta, calls, 1.0, self.radius, self.link)
            strength = ridge_floor(probe)
        return Budget(self.epsilon, self.delta, calls, strength, self.radius, self.link)

    @property
    def declared_scale(self) -> float:
        """Standard deviation nu that the calibration asks for."""
        return NOISES[self.calibration](self.budget)

    @property
    def scale(self) -> float:
        """Standard deviation nu of the noise that is drawn."""
        return self.declared_scale * self.noise_factor

    def noise_scaled(self, factor: float) -> PrivateMle:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    @property
    def claim(self) -> AnyClaim:
        """What the calibration promises about all released parameters together."""
        context = {
            "view": "transcript",
            "relation": RELATIONS[self.calibration],
            "source": f"{SOURCE}, {self.calibration} calibration",
        }
        if self.claim_as == "gaussian":
            calls = math.sqrt(len(self.call_times))
            return GaussianDp(self.link.spread * calls / self.declared_scale, **context)
        return ApproxDp(self.epsilon, self.delta, **context)

    def pairs(self) -> Sequence[Pair]:
        """The pairs known to be bad for the claimed relation, at the first record."""
        if self.inputs:
            return self.inputs
        flip = self.flip_pair()
        if RELATIONS[self.calibration] == "add-remove":
            return (self._removed(),)
        return (flip, self.context_pair()) if self.calibration != "exact_label" else (flip,)

    def flip_pair(self, position: int = 0) -> Pair:
        """One outcome at either end of its range, all else equal."""
        first = np.eye(self.dimension)[0]
        high, low = self.link.bound, self.link.bound - self.link.spread
        return self.pair((first, high), (first, low), "outcome flipped", position)

    def context_pair(self, position: int = 0) -> Pair:
        """Another customer with another outcome: as far apart as two gradients get."""
        first, last = np.eye(self.dimension)[[0, -1]]
        low = self.link.bound - self.link.spread
        if self.dimension == 1:
            last = 0 * last
        return self.pair((first, low), (last, low), "customer replaced", position)

    def null_pair(self, position: int = 0) -> Pair:
        """``(phi, y)`` and ``(-phi, y flipped)``: the same record to the model, nothing to see."""
        first = np.eye(self.dimension)[0]
        high, low = self.link.bound, self.link.bound - self.link.spread
        return self.pair((first, high), (-first, low), "the same record twice", position)

    def pair(
        self,
        left: tuple[Floats, float],
        right: tuple[Floats, float],
        label: str = "",
        position: int = 0,
    ) -> Pair:
        """Neighbours that differ in one record; see `algorithms.pricing.canaries`."""
        relation = RELATIONS[self.calibration]
        relation = "replace-one" if relation == "add-remove" else relation
        return canary_pair(self.background(), left, right, label, position, relation)

    def background(self) -> dict[str, Floats]:
        """Records that are on no one's side."""
        return background(self.records, self.dimension, self.link)

    def with_table(self, table: Table, feature_map: str = "interaction") -> PrivateMle:
        """The same mechanism on real customers, their prices and what they did.

        The pairs replace the first customer by the worst one that the public bounds allow and by
        the real one whose features and outcome are farthest away.

        Args:
            table: At least two customers.
            feature_map: As for `algorithms.pricing.private_cov.PrivateCov.with_table`.

        Raises:
            UsageError: For an unknown map or a calibration that is not for replaced customers.
        """
        _require(feature_map in FEATURE_MAPS, f"one of {', '.join(FEATURE_MAPS)}", map=feature_map)
        proper = RELATIONS[self.calibration] == "replace-one"
        _require(proper, "a replace-one calibration", calibration=self.calibration)

        def featured(data: Mapping[str, Floats]) -> dict[str, Floats]:
            rows = FEATURE_MAPS[feature_map](data["contexts"], data["prices"])
            return {"features": rows, "outcomes": data["outcomes"]}

        pairs = tuple(
            Pair(featured(p.left), featured(p.right), label=p.label, relation="replace-one")
            for p in customer_pairs(table)
        )
        width = pairs[0].left["features"].shape[1]
        return replace(self, dimension=width, records=len(table), inputs=pairs)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release all minimisers, `n` times.

        Returns ``thetas``, shape (n, K, d).

        Raises:
            UsageError: For features of another shape or with a norm above 1.
        """
        return {"thetas": self._release(self._models(data), self._tilts(n, rng))}

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Floats], Floats]:
        """Plays of the left input in which large losses are common, for white-box certificates.

        The noise is shifted by ``tilt (g - g')``, the records' gradients taken at 0; for a flipped
        outcome that is the law proportional to ``exp(tilt L) P``. On a ball, or for other
        customers, large tilts would only spoil the weights: there the shift is limited.

        Returns:
            The emitted columns and the log importance weights, shape (n,).
        """
        left, right = self._models(pair.left), self._models(pair.right)
        zero = np.zeros((1, self.dimension))
        sides = [np.array([m.derivatives(zero)[0][0] for m in ms]) for ms in (left, right)]
        shift = sides[0] - sides[1]
        flipped = np.array_equal(left[-1].features, right[-1].features)
        if math.isfinite(self.radius) or not flipped:
            tilt = min(tilt, _FARTHEST * self.scale / max(float(np.linalg.norm(shift)), 1e-300))
        tilts = self._tilts(n, rng) + tilt * shift
        log_weights = np.sum(tilt * shift * (tilt * shift / 2 - tilts), axis=(1, 2)) / self.scale**2
        return {"thetas": self._release(left, tilts)}, log_weights

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right``, interior or boundary as each theta requires; shape (n,)."""
        left, right = self._models(pair.left), self._models(pair.right)
        thetas = views["thetas"]
        ratio = np.zeros(len(thetas))
        for which in self._alike():
            flat = thetas[:, which].reshape(-1, self.dimension)
            for models, sign in ((left, 1), (right, -1)):
                found = log_density(models[which[0]], flat, self.scale, self.radius)
                ratio += sign * found.reshape(len(thetas), -1).sum(axis=1)
        return ratio

    def mu(self, pair: Pair) -> float:
        """Gaussian parameter of a pair that differs in one outcome: exact when unconstrained.

        Raises:
            UsageError: For pairs that differ in features.
        """
        sides = [np.asarray(side["features"], dtype=float) for side in (pair.left, pair.right)]
        if not np.array_equal(sides[0], sides[1]):
            raise UsageError("PrivateMle: expected a pair that differs in outcomes, not features")
        change = self._outcomes(pair.left) - self._outcomes(pair.right)
        shift = change[:, None] * sides[0]
        each = [np.linalg.norm(shift[:used].sum(axis=0)) for used in self.call_times]
        return float(np.linalg.norm(each)) / self.scale

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Hockey-stick divergence of a pair that differs in one outcome; exact unconstrained."""
        return gaussian_profile(self.mu(pair), epsilon)

    def accountant(self, epsilon: float) -> float:
        """Profile that the noise drawn guarantees for any replaced record, all calls together."""
        offset, width = loss_bound(self.budget, self.scale)
        calls = len(self.call_times)
        return loss_bound_delta(epsilon, calls=calls, offset=offset, width=width)

    def _release(self, models: Sequence[Common], tilts: Floats) -> Floats:
        thetas = np.empty_like(tilts)
        for which in self._alike():
            flat = tilts[:, which].reshape(-1, self.dimension)
            tilted = Tilted(models[which[0]], flat)
            found = minimise(tilted, len(flat), radius=self.radius, scale=self.scale)
            thetas[:, which] = found.reshape(len(tilts), len(which), self.dimension)
        return thetas

    def _alike(self) -> list[list[int]]:
        """Calls that use the same records, which are solved together."""
        calls = self.call_times
        return [[k for k, used in enumerate(calls) if used == u] for u in dict.fromkeys(calls)]

    def _removed(self) -> Pair:
        data = self.background()
        rest = {name: column[1:] for name, column in data.items()}
        return Pair(data, rest, label="a record removed", relation="add-remove")

    def _tilts(self, n: int, rng: np.random.Generator) -> Floats:
        return self.scale * rng.standard_normal((n, len(self.call_times), self.dimension))

    def _outcomes(self, data: Mapping[str, Any]) -> Floats:
        return self.link.clipped(data["outcomes"])

    def _features(self, data: Mapping[str, Any]) -> Floats:
        missing = RELATIONS[self.calibration] == "add-remove"
        count = len(data["features"]) if missing else self.records
        allowed = count if self.records - missing <= count <= self.records else self.records
        return checked(data["features"], (allowed, self.dimension))

    def _models(self, data: Mapping[str, Any]) -> list[Common]:
        features, outcomes = self._features(data), self._outcomes(data)
        if outcomes.shape != (len(features),):
            raise UsageError(
                f"PrivateMle: expected {len(features)} outcomes, got shape {outcomes.shape}. "
                "Give one outcome per record"
            )
        strength = self.budget.ridge
        return [
            Common(self.link, features[:used], outcomes[:used], strength)
            for used in self.call_times
        ]


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"PrivateMle: expected {expected}, got {name}={value!r}")
