"""Generalised linear demand: what a customer of features phi does at parameter theta.

The loss of a record is ``l(theta; phi, y) = m(phi^T theta) - y phi^T theta`` with ``f = m'``, so
that demand has mean ``f(phi^T theta)`` and the gradient of the loss is ``(f - y) phi``. What
privacy rests on is how far one record can move that gradient:

* `Link.gradient_bound` ``zeta(R) = sup ||g||`` when a record is added or removed;
* `Link.replacement_bound` ``Gamma(R) = sup ||g - g'||`` when it is replaced by any other.

Both are over ``||phi|| <= 1`` and ``||theta|| <= R`` (McCullagh and Nelder 1989 for the model;
Kifer, Smith and Thakurta 2012 for the role of zeta).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]
Curve = Callable[[Floats], Floats]

_ANGLES = 200_001


@dataclass(frozen=True)
class Link:
    """A demand model.

    Attributes:
        name: ``logistic`` or ``linear``.
        bound: Outcomes lie in [0, 1] (logistic) or [-bound, bound] (linear).
        curvature: ``beta = sup f'``.
    """

    name: str
    bound: float
    curvature: float

    def loss(self, eta: Floats) -> Floats:
        """``m(eta)``, any shape."""
        if self.name == "linear":
            return eta**2 / 2
        return np.logaddexp(0.0, eta)

    def mean(self, eta: Floats) -> Floats:
        """``f(eta)``, any shape."""
        if self.name == "linear":
            return eta
        return np.asarray(special.expit(eta), dtype=float)

    def moments(self, eta: Floats) -> tuple[Floats, Floats]:
        """``f(eta)`` and ``f'(eta)``, any shape."""
        mean = self.mean(eta)
        return mean, np.ones_like(eta) if self.name == "linear" else mean * (1 - mean)

    def clipped(self, outcomes: npt.ArrayLike) -> Floats:
        """Outcomes as floats in their public range."""
        low = -self.bound if self.name == "linear" else 0.0
        return np.asarray(np.clip(np.asarray(outcomes, dtype=float), low, self.bound))

    @property
    def spread(self) -> float:
        """The largest difference of two outcomes."""
        return 2 * self.bound if self.name == "linear" else 1.0

    def gradient_bound(self, radius: float) -> float:
        """``zeta(R)``: 1 for logistic demand, R + B for linear."""
        return radius + self.bound if self.name == "linear" else 1.0

    def replacement_bound(self, radius: float) -> float:
        """``Gamma(R) = sup ||g - g'||`` over two records and ``||theta|| <= R``.

        With theta at angle a to both features, on opposite sides of it, the worst is
        ``2 sg(R cos a) sin a`` for logistic demand and ``2 (R cos a + B) sin a`` for linear.
        """
        return _replacement_bound(self.name, self.bound, radius)


@lru_cache(maxsize=64)
def _replacement_bound(name: str, bound: float, radius: float) -> float:
    if math.isinf(radius):
        return 2.0 if name == "logistic" else math.inf
    angle = np.linspace(0.0, math.pi / 2, _ANGLES)
    along = radius * np.cos(angle)
    size = along + bound if name == "linear" else special.expit(along)
    return float(np.max(2 * size * np.sin(angle)))


def link(name: str, bound: float = 1.0) -> Link:
    """A demand model by name.

    Args:
        name: ``logistic`` or ``linear``.
        bound: Public bound B of linear outcomes; logistic outcomes are always in [0, 1].

    Raises:
        UsageError: For another name or a bound that is not finite and positive.
    """
    if name not in ("logistic", "linear"):
        raise UsageError(f"link: expected logistic or linear, got {name!r}")
    if not 0 < bound < math.inf:
        raise UsageError(f"link: expected a finite bound > 0 on outcomes, got bound={bound!r}")
    return Link("logistic", 1.0, 0.25) if name == "logistic" else Link("linear", bound, 1.0)
