"""Claims: what an implementation promises, as a trade-off curve and a privacy profile.

A claim *is* its profile ``delta_at(epsilon)`` (the hockey-stick divergence that it allows at each
epsilon), equivalently its trade-off function ``miss_rate(false_alarm)``. A mechanism that meets
the claim is ``(e, delta_at(e))``-DP for every ``e``; evidence against any one of these points
refutes the claim.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

from audit.divergences import box_delta, renyi_delta, two_lines
from audit.divergences import gaussian_delta as gaussian_delta
from audit.divergences import gaussian_mu as gaussian_mu
from audit.errors import UsageError
from audit.numbers import number

Floats = npt.NDArray[np.float64]

LARGEST_EPSILON = 200.0
_DELTAS = (0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
RELATIONS = ("replace-one", "add-remove", "declared")


class Claim(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What is promised, about which projection of the output, for which neighbours.

    Attributes:
        view: Name of the promised projection: ``output``, ``actions``, ``transcript``,
            ``prices_all``, ``prices_except``, ``prices_after``, ...
        relation: Neighbour relation: ``replace-one``, ``add-remove`` or ``declared``.
        unit: What one record is: ``event`` or ``user``.
        source: Where the claim comes from (a paper, ``file:line``, a configuration file).
    """

    view: str = "output"
    relation: str = "declared"
    unit: str = "event"
    source: str = ""

    symbol: ClassVar[str] = "epsilon"

    @property
    def parameter(self) -> float | None:
        """The claim's own parameter, where it promises more than a point of a profile."""
        return None

    def delta_at(self, epsilon: float) -> float:
        """Privacy profile: the smallest delta promised at `epsilon` >= 0."""
        raise NotImplementedError

    def epsilon_at(self, delta: float) -> float:
        """Inverse of the profile: the smallest epsilon with ``delta_at(epsilon) <= delta``.

        Returns:
            The epsilon, rounded up in the last place, or ``inf`` when none reaches `delta`.
        """
        if self.delta_at(0.0) <= delta:
            return 0.0
        low, high = 0.0, 1.0
        while self.delta_at(high) > delta:
            low, high = high, 2 * high
            if low > LARGEST_EPSILON:
                return math.inf
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta_at(middle) > delta else (low, middle)
        return high

    def points(self) -> tuple[tuple[float, float], ...]:
        """The points ``(epsilon, delta)`` of the profile at which an audit may confront the claim.

        One point for pure and approximate claims; a grid along the profile for the others, of
        which scouting freezes one.
        """
        return _points_of(self)

    def miss_rate(self, false_alarm: npt.ArrayLike) -> Floats:
        """Trade-off function: the smallest type II error that the claim allows.

        Args:
            false_alarm: Type I errors in [0, 1], any shape.

        Returns:
            Type II errors, same shape: the supremum over e of
            ``max(0, 1 - delta(e) - exp(e) a, exp(-e) (1 - delta(e) - a))``
            (Wasserman and Zhou 2010; Dong, Roth and Su 2022, Proposition 2.12).
        """
        alarm = np.asarray(false_alarm, dtype=float)
        best = np.zeros_like(alarm)
        for e in np.linspace(0.0, min(self.epsilon_at(1e-9), 60.0), 241):
            best = np.maximum(best, two_lines(alarm, float(e), self.delta_at(float(e))))
        return best

    def group(self, records: int) -> Claim:
        """What the claim implies for inputs that differ in `records` records, not in one.

        Raises:
            UsageError: For fewer than one record, or when the claim implies nothing that far.
        """
        raise NotImplementedError

    def same_promise(self, other: Claim) -> bool:
        """Whether another claim promises the same, wherever either comes from."""
        return msgspec.structs.replace(self, source="") == msgspec.structs.replace(other, source="")


class PureDp(Claim, frozen=True, tag="pure"):
    """epsilon-differential privacy (Dwork, McSherry, Nissim and Smith 2006)."""

    epsilon: float

    def __post_init__(self) -> None:
        _require_positive(self, "epsilon")

    def delta_at(self, epsilon: float) -> float:
        """Profile of randomised response, the worst epsilon-DP mechanism."""
        return box_delta(self.epsilon, 0.0, epsilon)

    def group(self, records: int) -> PureDp:
        """``records * epsilon`` (Dwork and Roth 2014, Theorem 2.2)."""
        return msgspec.structs.replace(self, epsilon=_group_of(records) * self.epsilon)

    def points(self) -> tuple[tuple[float, float], ...]:
        """The claim itself."""
        return ((self.epsilon, 0.0),)

    def miss_rate(self, false_alarm: npt.ArrayLike) -> Floats:
        """Trade-off function ``max(0, 1 - e^eps a, e^-eps (1 - a))``."""
        return two_lines(np.asarray(false_alarm, dtype=float), self.epsilon, 0.0)

    def __str__(self) -> str:
        return f"{self.epsilon:.4g}-DP"


class ApproxDp(Claim, frozen=True, tag="approx"):
    """(epsilon, delta)-differential privacy."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _require_positive(self, "epsilon")
        if not 0 <= _plain(self, "delta") < 1:
            raise UsageError(f"claim: expected 0 <= delta < 1, got delta={self.delta!r}")

    def delta_at(self, epsilon: float) -> float:
        """Profile of the revealing box (Kairouz, Oh and Viswanath 2015, Theorem 3.3)."""
        return box_delta(self.epsilon, self.delta, epsilon)

    def group(self, records: int) -> ApproxDp:
        """``(k eps, delta (e^(k eps) - 1)/(e^eps - 1))`` (Vadhan 2017, Lemma 2.2, sum kept)."""
        far = _group_of(records) * self.epsilon
        delta = self.delta * math.expm1(min(far, 700.0)) / math.expm1(min(self.epsilon, 700.0))
        if delta >= 1:
            raise _too_many(self, records, f"delta would be {delta:.3g}")
        return msgspec.structs.replace(self, epsilon=far, delta=delta)

    def points(self) -> tuple[tuple[float, float], ...]:
        """The claim itself."""
        return ((self.epsilon, self.delta),)

    def miss_rate(self, false_alarm: npt.ArrayLike) -> Floats:
        """Trade-off function ``max(0, 1 - d - e^eps a, e^-eps (1 - d - a))``."""
        return two_lines(np.asarray(false_alarm, dtype=float), self.epsilon, self.delta)

    def __str__(self) -> str:
        return f"({self.epsilon:.4g}, {self.delta:.4g})-DP"


class GaussianDp(Claim, frozen=True, tag="gaussian"):
    """mu-Gaussian differential privacy (Dong, Roth and Su 2022)."""

    mu: float

    symbol: ClassVar[str] = "mu"
    largest_order: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        _require_positive(self, "mu")

    @property
    def parameter(self) -> float:
        """The claimed mu."""
        return self.mu

    def divergence_at(self, order: float) -> float:
        """Renyi divergence of N(0, 1) and N(mu, 1), which no post-processing exceeds."""
        return self.mu**2 * order / 2

    def parameter_at(self, order: float, divergence: float) -> float:
        """The smallest mu that allows a Renyi divergence of an order."""
        return math.sqrt(2 * divergence / order)

    def delta_at(self, epsilon: float) -> float:
        """``Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)`` (Balle and Wang 2018, Theorem 8)."""
        return gaussian_delta(self.mu, epsilon)

    def group(self, records: int) -> GaussianDp:
        """``records * mu`` (Dong, Roth and Su 2022, Theorem 2.14)."""
        return msgspec.structs.replace(self, mu=_group_of(records) * self.mu)

    def epsilon_at(self, delta: float) -> float:
        """Inverse of the profile; no finite epsilon has delta 0."""
        return super().epsilon_at(delta) if delta > 0 else math.inf

    def miss_rate(self, false_alarm: npt.ArrayLike) -> Floats:
        """Trade-off function ``Phi(Phi^-1(1 - a) - mu)``."""
        alarm = np.clip(np.asarray(false_alarm, dtype=float), 0.0, 1.0)
        return np.asarray(special.ndtr(special.ndtri(1 - alarm) - self.mu), dtype=float)

    def __str__(self) -> str:
        return f"{self.mu:.4g}-GDP"


class ZeroConcentratedDp(Claim, frozen=True, tag="zcdp"):
    """rho-zero-concentrated differential privacy (Bun and Steinke 2016).

    Its profile is the conversion to (epsilon, delta) of Canonne, Kamath and Steinke (2020,
    Proposition 12), minimised over a fine grid of orders, which gives away much of the claim; so
    its Renyi divergences are audited as well (`audit.renyi`).
    """

    rho: float

    symbol: ClassVar[str] = "rho"
    largest_order: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        _require_positive(self, "rho")

    @property
    def parameter(self) -> float:
        """The claimed rho."""
        return self.rho

    def divergence_at(self, order: float) -> float:
        """Largest Renyi divergence of an order above 1 that the claim allows."""
        return self.rho * order

    def parameter_at(self, order: float, divergence: float) -> float:
        """The smallest rho that allows a Renyi divergence of an order."""
        return divergence / order

    def group(self, records: int) -> ZeroConcentratedDp:
        """``records^2 * rho`` (Bun and Steinke 2016, Proposition 1.9)."""
        return msgspec.structs.replace(self, rho=_group_of(records) ** 2 * self.rho)

    def delta_at(self, epsilon: float) -> float:
        """Profile implied by all Renyi orders at once."""
        orders = tuple(1 + np.geomspace(1e-2, 1e6, 400))
        return renyi_delta(orders, tuple(self.rho * a for a in orders), epsilon)

    def __str__(self) -> str:
        return f"{self.rho:.4g}-zCDP"


class RenyiDp(Claim, frozen=True, tag="renyi"):
    """(order, epsilon)-Renyi differential privacy (Mironov 2017); converted like zCDP."""

    order: float
    epsilon: float

    symbol: ClassVar[str] = "Renyi epsilon"

    def __post_init__(self) -> None:
        _require_positive(self, "epsilon")
        if not 1 < _plain(self, "order") < math.inf:
            raise UsageError(
                f"claim: expected a finite Renyi order > 1, got order={self.order!r}; an infinite "
                "one is eps= alone"
            )

    @property
    def parameter(self) -> float:
        """The epsilon of its order."""
        return self.epsilon

    @property
    def largest_order(self) -> float:
        """The claim's own order; divergences of smaller ones are no larger."""
        return self.order

    def divergence_at(self, order: float) -> float:
        """Largest Renyi divergence of an order that the claim allows; none above its own."""
        return self.epsilon if order <= self.order else math.inf

    def parameter_at(self, order: float, divergence: float) -> float:
        """The smallest epsilon that allows a Renyi divergence of an order up to the claim's."""
        return divergence if order <= self.order else 0.0

    def group(self, records: int) -> RenyiDp:
        """``(order / 2^c, 3^c epsilon)`` for the next 2^c records (Mironov 2017, Proposition 2)."""
        doublings = math.ceil(math.log2(_group_of(records)))
        if self.order < 2 ** (doublings + 1):
            raise _too_many(self, records, f"the order must be at least {2 ** (doublings + 1)}")
        return msgspec.structs.replace(
            self, order=self.order / 2**doublings, epsilon=3**doublings * self.epsilon
        )

    def delta_at(self, epsilon: float) -> float:
        """Profile implied by the one order."""
        return renyi_delta((self.order,), (self.epsilon,), epsilon)

    def __str__(self) -> str:
        return f"({self.order:.4g}, {self.epsilon:.4g})-RDP"


AnyClaim = PureDp | ApproxDp | GaussianDp | ZeroConcentratedDp | RenyiDp
RenyiClaim = GaussianDp | ZeroConcentratedDp | RenyiDp


@lru_cache(maxsize=256)
def _points_of(claim: Claim) -> tuple[tuple[float, float], ...]:
    grid = {round(claim.epsilon_at(d), 6) for d in _DELTAS}
    return tuple((e, claim.delta_at(e)) for e in sorted(grid) if 0 < e < LARGEST_EPSILON)


def _too_many(claim: Claim, records: int, why: str) -> UsageError:
    return UsageError(f"claim: {claim} says nothing about {records} records ({why}); take fewer")


def _group_of(records: int) -> int:
    if not (math.isfinite(records) and records > 0):
        raise UsageError(f"claim: expected a finite records > 0, got records={records!r}")
    return records


def _require_positive(claim: Claim, name: str) -> None:
    given = getattr(claim, name)
    if not 0 < _plain(claim, name) < math.inf:
        raise UsageError(f"claim: expected a finite {name} > 0, got {name}={given!r}")


def _plain(claim: Claim, name: str) -> float:
    """The number of a claim made a plain one, which a record can hold; nan if it is none."""
    plain = number(getattr(claim, name))
    msgspec.structs.force_setattr(claim, name, plain)
    return plain
