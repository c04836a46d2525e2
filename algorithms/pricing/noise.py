"""Noise of objective perturbation for an (epsilon, delta) budget, five ways, by name.

One call adds ``w^T theta`` with ``w ~ N(0, nu^2 I)`` to a regularised loss of curvature beta and
ridge rho. Every rule below needs ``rho >= 2 beta / epsilon`` per call (`ridge_floor`).

* **kst_zeta**: ``zeta sqrt(8 ln(2/delta) + 4 eps) / eps`` (Kifer, Smith and Thakurta 2012,
  Theorem 2), for adding or removing a record. Their proof treats the gradient's change as
  independent of w; for generalised linear models the gradient is parallel to the fixed phi, which
  repairs it.
* **kst_gamma**: the same with ``Gamma = sup ||g - g'||`` for zeta: replacing a record. The change
  lies in the span of phi and phi', so a chi variable with *two* degrees of freedom bounds it.
* **exact_label**: ``|dy| sqrt(k) / mu(eps, delta)``. Changing the outcome alone shifts w by
  ``|dy| ||phi||``, which is a Gaussian mechanism: exact, for such neighbours only.
* **hs_add**: the hockey-stick bound of Redberg, Koskela and Wang (2023), adding or removing.
* **hs_rep**: the same idea for replacing: the loss of a call is at most
  ``ln(1 + beta/rho) + q^2/2 + q chi_2`` with ``q = Gamma/nu``, convolved over the calls.

The first two share the budget among k calls by advanced composition, hs_add by basic composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scipy import special

from algorithms.pricing.demand import Link
from algorithms.primitives.accounting import capped_share, loss_bound_delta, smallest
from audit.claim import gaussian_mu
from audit.errors import UsageError

_WIDEST = 1e9


@dataclass(frozen=True)
class Budget:
    """What the noise is calibrated for.

    Attributes:
        epsilon: Of all calls together.
        delta: Of all calls together.
        calls: The most calls k that a record may enter, a public constant.
        ridge: rho of every call.
        radius: Bound R on the norm of theta; ``inf`` when unconstrained.
        link: The demand model.
    """

    epsilon: float
    delta: float
    calls: int
    ridge: float
    radius: float
    link: Link

    @property
    def share(self) -> tuple[float, float]:
        """(epsilon, delta) of one call under advanced composition; all of it for one call."""
        if self.calls == 1:
            return self.epsilon, self.delta
        return capped_share(self.epsilon, self.delta, self.calls)

    @property
    def jacobian(self) -> float:
        """``ln(1 + beta/rho)``: the most that the Jacobian contributes when replacing."""
        return math.log1p(self.link.curvature / self.ridge)

    @property
    def replacement(self) -> float:
        """``Gamma(R)``."""
        return self.link.replacement_bound(self.radius)


def ridge_floor(budget: Budget) -> float:
    """The smallest ridge ``2 beta / eps'`` that the published theorems allow per call."""
    return 2 * budget.link.curvature / budget.share[0]


def kst(epsilon: float, delta: float, size: float) -> float:
    """``size sqrt(8 ln(2/delta) + 4 eps) / eps`` for one call."""
    return size * math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon


def kst_zeta(budget: Budget) -> float:
    """Standard deviation nu for adding or removing a record."""
    return kst(*budget.share, budget.link.gradient_bound(budget.radius))


def kst_gamma(budget: Budget) -> float:
    """Standard deviation nu for replacing a record."""
    return kst(*budget.share, budget.replacement)


def exact_label(budget: Budget) -> float:
    """Standard deviation nu that is exact when outcomes alone may change."""
    mu = gaussian_mu(budget.epsilon, budget.delta)
    return budget.link.spread * math.sqrt(budget.calls) / mu


@lru_cache(maxsize=64)
def hs_add(budget: Budget) -> float:
    """Smallest nu for which `hs_add_delta` meets the budget of a call."""
    each, share = budget.epsilon / budget.calls, budget.delta / budget.calls
    size = budget.link.gradient_bound(budget.radius)

    def above(nu: float) -> bool:
        return hs_add_delta(each, budget.link.curvature, budget.ridge, size, nu) > share

    return smallest(above, size, _WIDEST, "noise")


@lru_cache(maxsize=64)
def hs_rep(budget: Budget) -> float:
    """Smallest nu for which `hs_rep_delta` meets the budget."""
    return smallest(
        lambda nu: hs_rep_delta(budget, nu) > budget.delta, budget.replacement, _WIDEST, "noise"
    )


def hs_rep_delta(budget: Budget, nu: float, mu: float = 0.0) -> float:
    """Profile of all calls at the budget's epsilon, for any replaced record.

    Args:
        budget: Whose epsilon, calls, ridge, radius and link count.
        nu: Standard deviation of w.
        mu: Parameter of Gaussian releases made beside the calls.
    """
    offset, width = loss_bound(budget, nu)
    return loss_bound_delta(budget.epsilon, calls=budget.calls, offset=offset, width=width, mu=mu)


def loss_bound(budget: Budget, nu: float) -> tuple[float, float]:
    """Offset and width of the bound ``offset + width chi_2`` on the loss of one call."""
    q = budget.replacement / nu
    return budget.jacobian + q**2 / 2, q


def hs_add_delta(epsilon: float, curvature: float, ridge: float, size: float, nu: float) -> float:
    """Hockey-stick bound of one unconstrained call, adding or removing a record.

    Args:
        epsilon: Where the profile is wanted.
        curvature: beta, which must be below `ridge`.
        ridge: rho.
        size: Bound on the gradient of one record.
        nu: Standard deviation of w.

    Returns:
        The bound; 1 when the ridge is too small for the theorem.
    """
    if ridge <= curvature:
        return 1.0
    near = epsilon + math.log1p(-curvature / ridge)
    far = near - size**2 / (2 * nu**2)

    def stick(s: float) -> float:
        first = special.ndtr(size / (2 * nu) - s * nu / size)
        return float(first - math.exp(s + special.log_ndtr(-size / (2 * nu) - s * nu / size)))

    if far >= 0:
        return 2 * stick(near)
    return min(1.0, -math.expm1(far) + 2 * math.exp(far) * stick(size**2 / (2 * nu**2)))


NOISES: dict[str, Callable[[Budget], float]] = {
    "kst_zeta": kst_zeta,
    "kst_gamma": kst_gamma,
    "exact_label": exact_label,
    "hs_add": hs_add,
    "hs_rep": hs_rep,
}
RELATIONS = {
    "kst_zeta": "add-remove",
    "hs_add": "add-remove",
    "kst_gamma": "replace-one",
    "hs_rep": "replace-one",
    # Calibrated for a changed outcome only, which is less than replacing a record.
    "exact_label": "declared",
}


def check_theorem(calibration: str, budget: Budget) -> None:
    """Whether the theorem behind a calibration covers a budget.

    Raises:
        UsageError: For a ridge or a radius outside of it.
    """
    floor, low = ridge_floor(budget), budget.link.curvature
    label, free = calibration == "exact_label", math.isinf(budget.radius)
    if calibration.startswith("kst") and budget.ridge < floor:
        _refuse(f"ridge >= {floor:.6g} with {calibration}", f"ridge={budget.ridge!r}")
    if calibration == "hs_add" and not free:
        _refuse("radius inf with hs_add", f"radius={budget.radius!r}")
    if calibration == "hs_add" and budget.ridge <= low:
        _refuse(f"ridge > {low:g} with hs_add", f"ridge={budget.ridge!r}")
    if budget.link.name == "linear" and free and not label:
        _refuse("a finite radius with linear demand", f"radius={budget.radius!r}")


def _refuse(expected: str, got: str) -> None:
    raise UsageError(f"objective perturbation: expected {expected}, got {got}")
