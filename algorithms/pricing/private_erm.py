"""Two relatives of objective perturbation: gamma noise, and an approximate minimiser.

Both fit logistic demand to features of norm at most 1 and outcomes in {0, 1}.

Claim
-----
*Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2*: with ``||b|| ~ Gamma(d, 2/eps')`` and a
uniform direction the density of b is proportional to ``exp(-eps' ||b|| / 2)``. A replaced record
moves ``b = -G`` by at most 2 and the log-determinant of the Hessian by at most
``2 ln(1 + c/(n Lam))``, c = 1/4; eps' is what the latter leaves of eps. A flipped label moves b by
exactly ``||phi||`` and no Hessian: at most eps'/2. *Approximate minima perturbation* (Iyengar,
Near, Song, Thakkar, Thakurta and Wang 2019, Algorithm 1): the exact minimiser meets the budget of
the objective, and Gaussian output noise covers the distance to it that a gradient of norm g allows,
``n g / Lam``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats
from scipy.spatial import distance

from algorithms.pricing.canaries import background, canary_pair
from algorithms.pricing.demand import link
from algorithms.pricing.features import checked
from algorithms.pricing.likelihoods import Common
from algorithms.primitives.objective import Tilted, minimise
from audit.claim import ApproxDp, PureDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]

_LOGISTIC = link("logistic")
_NODES, _FINE = 24, 64
_TAIL = 40.0


@dataclass(frozen=True)
class _Fit:
    """A private fit of logistic demand on N records.

    Attributes:
        dimension: d.
        records: N.
        epsilon: Budget.
        noise_factor: Multiplies all noise and leaves the claim as it is.

    Raises:
        UsageError: For a parameter out of its range.
    """

    dimension: int = 2
    records: int = 50
    epsilon: float = 1.0
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        _require(self.dimension >= 1, "dimension >= 1", dimension=self.dimension)
        _require(self.records >= 2, "records >= 2", records=self.records)
        _require(0 < self.epsilon < math.inf, "a finite epsilon > 0", epsilon=self.epsilon)

    def pairs(self) -> Sequence[Pair]:
        """A flipped outcome, and a customer replaced."""
        first, last = np.eye(self.dimension)[[0, -1]]
        other = last if self.dimension > 1 else 0 * last
        return (
            self.pair((first, 1.0), (first, 0.0), "outcome flipped"),
            self.pair((first, 0.0), (other, 0.0), "customer replaced"),
        )

    def pair(self, left: tuple[Floats, float], right: tuple[Floats, float], label: str) -> Pair:
        """Neighbours that differ in the first record: features, shape (d,), and outcome."""
        data = background(self.records, self.dimension, _LOGISTIC)
        return canary_pair(data, left, right, label)

    def _model(self, data: Mapping[str, Any], ridge: float) -> Common:
        features = checked(data["features"], (self.records, self.dimension))
        return Common(_LOGISTIC, features, _LOGISTIC.clipped(data["outcomes"]), ridge)


@dataclass(frozen=True)
class GammaPerturbation(_Fit):
    """Objective perturbation with gamma noise, pure eps (Chaudhuri, Monteleoni, Sarwate 2011).

    Attributes:
        ridge: Lam of the mean loss.
    """

    ridge: float = 0.1

    @property
    def claim(self) -> PureDp:
        """Pure epsilon for replacing one record."""
        source = "Chaudhuri, Monteleoni and Sarwate (2011), JMLR 12, Algorithm 2, Theorem 9"
        return PureDp(epsilon=self.epsilon, relation="replace-one", source=source)

    @property
    def share(self) -> tuple[float, float]:
        """Eps' and the total ridge n (Lam + Delta)."""
        total = self.records * self.ridge
        left = self.epsilon - 2 * math.log1p(_LOGISTIC.curvature / total)
        if left > 0:
            return left, total
        return self.epsilon / 2, _LOGISTIC.curvature / math.expm1(self.epsilon / 4)

    @property
    def declared_scale(self) -> float:
        """Scale 2/eps' of the gamma law of ``||b||``."""
        return 2 / self.share[0]

    def noise_scaled(self, factor: float) -> GammaPerturbation:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence of a pair that differs in one outcome.

        The loss is ``(||b - v|| - ||b||)/s`` with v the change of the gradient; it is integrated
        over the length r of b and its angle to v, where it exceeds `epsilon`.

        Raises:
            UsageError: For pairs that differ in features.
        """
        change, scale = self._flip(pair), self.declared_scale * self.noise_factor
        if epsilon * scale >= change:
            return 0.0
        s = scale / change
        nodes, masses = np.polynomial.legendre.leggauss(_FINE)
        kink = (1 - epsilon * s) / 2  # shorter b exceed epsilon in every direction
        total = 0.0
        for low, high in ((0.0, kink), (kink, kink + _TAIL * s)):
            r = low + (high - low) / 2 * (1 + nodes)
            density = stats.gamma.pdf(r, self.dimension, scale=s) * masses * (high - low) / 2
            total += float(density @ self._beyond(r, s, epsilon))
        return total

    def _beyond(self, r: Floats, s: float, epsilon: float) -> Floats:
        """``E (1 - e^(eps - L))_+`` over directions at lengths r, in units of ``||v||``; (k,)."""
        widest = (1 - (epsilon * s) ** 2 - 2 * r * epsilon * s) / (2 * r)
        if self.dimension == 1:
            angle, weight = np.tile([0.0, np.pi], (len(r), 1)), 0.5
        else:
            start = np.arccos(np.clip(widest, -1.0, 1.0))[:, None]
            nodes, masses = np.polynomial.legendre.leggauss(_FINE)
            half = (np.pi - start) / 2
            angle = start + half * (1 + nodes)
            weight = half * masses * np.sin(angle) ** (self.dimension - 2)
            weight = weight / special.beta((self.dimension - 1) / 2, 0.5)
        far = np.sqrt(r[:, None] ** 2 - 2 * r[:, None] * np.cos(angle) + 1)
        loss = (far - r[:, None]) / s
        return np.asarray(np.sum(weight * np.maximum(0.0, -np.expm1(epsilon - loss)), axis=1))

    def _flip(self, pair: Pair) -> float:
        """How far a changed outcome moves the gradient."""
        left, right = (self._model(side, self.share[1]) for side in (pair.left, pair.right))
        same = np.array_equal(left.features, right.features)
        _require(same, "a pair that differs in outcomes for a profile", label=pair.label)
        return float(np.linalg.norm((left.outcomes - right.outcomes) @ left.features))

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release the minimiser: ``theta``, shape (n, d)."""
        direction = rng.standard_normal((n, self.dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        scale = self.declared_scale * self.noise_factor
        tilt = direction * rng.gamma(self.dimension, scale, (n, 1))
        return {"theta": minimise(Tilted(self._model(data, self.share[1]), tilt), n)}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right`` with the Jacobian, shape (n,)."""
        ratio = np.zeros(len(views["theta"]))
        for side, sign in ((pair.left, 1), (pair.right, -1)):
            gradient, hessian = self._model(side, self.share[1]).derivatives(views["theta"])
            size = np.linalg.norm(gradient, axis=1) / (self.declared_scale * self.noise_factor)
            ratio += sign * (np.linalg.slogdet(hessian)[1] - size)
        return ratio


@dataclass(frozen=True)
class ApproximateMinima(_Fit):
    """Approximate minima perturbation (Iyengar et al. 2019, Algorithm 1).

    Attributes:
        delta: Budget.
        gradient: Largest norm g of the mean loss's gradient at which to stop; n^-2 when 0.

    Raises:
        UsageError: For a parameter out of its range.
    """

    delta: float = 1e-6
    gradient: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 < self.delta < 1, "0 < delta < 1", delta=self.delta)
        slack = 0.1 * 0.99 * self.epsilon
        _require(slack < 1, "epsilon below 10.1 (slack below 1)", epsilon=self.epsilon)

    @property
    def claim(self) -> ApproxDp:
        """(epsilon, delta) for replacing one record."""
        source = "Iyengar, Near, Song, Thakkar, Thakurta and Wang (2019), Algorithm 1"
        return ApproxDp(
            epsilon=self.epsilon, delta=self.delta, relation="replace-one", source=source
        )

    @property
    def strength(self) -> float:
        """Lam = 2 beta / (eps_obj - eps_p)."""
        return 2 * _LOGISTIC.curvature / (0.1 * 0.99 * self.epsilon)

    @property
    def stop(self) -> float:
        """g, of the mean loss."""
        return self.gradient or self.records**-2.0

    @property
    def declared_scale(self) -> float:
        """Standard deviation of the summed loss's linear term, n times that of the mean loss."""
        root = math.sqrt(2 * math.log(1 / (0.99 * self.delta)))
        return 2 * (1 + root) / (0.9 * 0.99 * self.epsilon)

    @property
    def output_scale(self) -> float:
        """Standard deviation of the output noise."""
        root = math.sqrt(2 * math.log(1 / (0.01 * self.delta)))
        size = self.records * self.stop / self.strength
        return size * (1 + root) / (0.01 * self.epsilon)

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """All there is, if the output noise covers the steps of a grid of linear terms."""
        steps = self.declared_scale / self.strength / 2
        known = self.dimension <= 2 and self.output_scale >= steps
        return ("transcript", "output") if known else ()

    def noise_scaled(self, factor: float) -> ApproximateMinima:
        """The same mechanism and claim with all noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Release the noisy approximate minimiser: ``theta``, shape (n, d)."""
        draws = rng.standard_normal((2, n, self.dimension)) * self.noise_factor
        theta = self._minimiser(data, draws[0] * self.declared_scale)
        return {"theta": theta + draws[1] * self.output_scale}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """``ln P_left/P_right``, early stop and all, by quadrature to about 1e-5; shape (n,)."""
        left, right = (self._log_density(side, views["theta"]) for side in (pair.left, pair.right))
        return left - right

    def _log_density(self, data: Mapping[str, Any], theta: Floats) -> Floats:
        """Output noise around the minimisers of a Gauss-Hermite grid of linear terms; (n,)."""
        d, (nodes, masses) = self.dimension, np.polynomial.hermite_e.hermegauss(_NODES)
        grid = np.stack(np.meshgrid(*[nodes] * d), axis=-1).reshape(-1, d)
        mass = np.prod(np.meshgrid(*[masses] * d), axis=0).ravel()
        centres = self._minimiser(data, grid * self.declared_scale * self.noise_factor)
        far = distance.cdist(theta, centres, "sqeuclidean")
        spread = self.output_scale * self.noise_factor
        return np.asarray(special.logsumexp(-far / (2 * spread**2), axis=1, b=mass))

    def _minimiser(self, data: Mapping[str, Any], terms: Floats) -> Floats:
        """Where the solver stops with each linear term, (n, d) to (n, d)."""
        tilted = Tilted(self._model(data, self.strength), terms)
        return minimise(tilted, len(terms), tolerance=self.records * self.stop)


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"private fit: expected {expected}, got {name}={value!r}")
