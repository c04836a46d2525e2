"""Public constants of the pricing policy, fixed before the first customer comes.

Privacy must not depend on how they are chosen, so nothing here may be read off the data. Named
sets are given for the test market of `algorithms.pricing.market`, in which a policy really
learns: a set under which nothing is refreshed, or under which every price stays at the ceiling,
makes an audit vacuous (`Constants.doublings` tells the first before anything runs).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.demand import Link, link
from algorithms.primitives.symmetric import SHAPES
from audit.errors import UsageError

Floats = npt.NDArray[np.float64]


def _require(met: bool, expected: str, name: str, value: object) -> None:
    if not met:
        raise UsageError(f"pricing: expected {expected}, got {name}={value!r}")


@dataclass(frozen=True)
class Constants:
    """Public constants of a policy over T rounds.

    Attributes:
        rounds: T.
        wide: Length k of a context; features have length d = 2k.
        explore: T0, rounds with uniformly random prices.
        cap: The most refreshes (calls to the private estimator).
        bonus: gamma, weight of the uncertainty.
        ridge_cov: rho of the released covariance.
        ridge_mle: rho of the private estimator.
        radius: R.
        sigma: Standard deviation of the covariance noise; 0 for none.
        nu: Standard deviation of the estimator's noise; 0 for none.
        prices: Number of grid prices in [0, 1].
        demand: ``logistic`` or ``linear``.
        bound: Public bound on linear outcomes.
        shape: Shape of the covariance noise.

    Raises:
        UsageError: For a constant out of its range.
    """

    rounds: int = 1024
    wide: int = 2
    explore: int = 100
    cap: int = 8
    bonus: float = 0.1
    ridge_cov: float = 60.0
    ridge_mle: float = 5.0
    radius: float = 8.0
    sigma: float = 4.0
    nu: float = 12.0
    prices: int = 101
    demand: str = "logistic"
    bound: float = 1.0
    shape: str = "mirrored"

    def __post_init__(self) -> None:
        for name, low in (("rounds", 3), ("wide", 1), ("cap", 1), ("prices", 2), ("explore", 0)):
            _require(getattr(self, name) >= low, f"{name} >= {low}", name, getattr(self, name))
        for name in ("ridge_cov", "ridge_mle", "radius"):
            value = getattr(self, name)
            _require(0 < value < math.inf, f"a finite {name} > 0", name, value)
        for name in ("bonus", "sigma", "nu"):
            value = getattr(self, name)
            _require(0 <= value < math.inf, f"a finite {name} >= 0", name, value)
        _require(self.explore < self.rounds, "explore < rounds", "explore", self.explore)
        _require(self.shape in SHAPES, f"one of {', '.join(SHAPES)}", "shape", self.shape)
        link(self.demand, self.bound)

    @property
    def dimension(self) -> int:
        """D = 2k."""
        return 2 * self.wide

    @property
    def records(self) -> int:
        """N = T - 1: no price follows the last customer."""
        return self.rounds - 1

    @cached_property
    def grid(self) -> Floats:
        """Prices offered, shape (prices,)."""
        return np.linspace(0.0, 1.0, self.prices)

    @cached_property
    def link(self) -> Link:
        """Demand model."""
        return link(self.demand, self.bound)

    @property
    def doublings(self) -> float:
        """``d log2(1 + T/(d rho))``: the most refreshes that the data can trigger."""
        d = self.dimension
        return d * math.log2(1 + self.rounds / (d * self.ridge_cov))


# Hardly private: what prices tell can be seen in them with a few hundred plays.
_WEAK: Mapping[str, Any] = {
    "bonus": 0.0,
    "ridge_cov": 4.0,
    "ridge_mle": 1.0,
    "sigma": 0.5,
    "prices": 801,
}
_REAL: Mapping[str, Any] = {"cap": 7, "ridge_mle": 3.0, "sigma": 8.0, "nu": 16.0}
PRESETS: Mapping[str, Constants] = MappingProxyType(
    {
        "working": Constants(),
        "lively": Constants(ridge_cov=50.0, ridge_mle=2.0),
        "louder": Constants(sigma=2.0, ridge_cov=30.0),
        "brief": Constants(
            rounds=1536,
            explore=150,
            sigma=8.0,
            ridge_cov=90.0,
            ridge_mle=3.0,
            nu=16.0,
            cap=6,
        ),
        "long": Constants(rounds=4096, explore=400, sigma=10.0, ridge_cov=200.0),
        "single": Constants(
            rounds=300,
            explore=200,
            cap=1,
            bonus=0.0,
            ridge_cov=4.0,
            ridge_mle=1.0,
            sigma=150.0,
            nu=300.0,
            prices=401,
        ),
        "capped": Constants(
            rounds=400,
            explore=90,
            cap=6,
            ridge_cov=4.0,
            ridge_mle=4.0,
            radius=20.0,
            sigma=1.0,
            nu=8.0,
        ),
        # For real customers (`algorithms.pricing.contexts`), who look much like one another.
        "households": Constants(**_REAL, rounds=3072, wide=4, explore=400, ridge_cov=75.0),
        "patients": Constants(
            **{**_REAL, "sigma": 7.0, "nu": 24.0}, rounds=4096, wide=5, explore=1300, ridge_cov=45.0
        ),
        "shoppers": Constants(
            rounds=660,
            wide=5,
            explore=150,
            cap=7,
            ridge_cov=10.0,
            ridge_mle=2.0,
            sigma=1.2,
            nu=10.0,
        ),
        "faint": Constants(**_WEAK, rounds=300, explore=100, cap=3, nu=0.7),
        "lone": Constants(**_WEAK, rounds=230, explore=200, cap=1, nu=1.0),
        "timed": Constants(
            rounds=80,
            explore=16,
            cap=1,
            bonus=0.0,
            ridge_cov=30.0,
            ridge_mle=0.5,
            radius=20.0,
            sigma=0.2,
            nu=0.3,
            prices=801,
        ),
        "open": Constants(
            rounds=4096, sigma=0.0, nu=0.0, ridge_cov=1.0, ridge_mle=1.0, bonus=0.5, cap=40
        ),
        "ceiling": Constants(
            rounds=4096, explore=0, sigma=10.0, ridge_cov=200.0, ridge_mle=200.0, bonus=0.5
        ),
        "frozen": Constants(
            rounds=4096,
            explore=0,
            sigma=165.0,
            ridge_cov=3000.0,
            ridge_mle=3000.0,
            nu=800.0,
            bonus=0.5,
        ),
    }
)


def constants(preset: str, **changes: object) -> Constants:
    """A named set of constants, some of them changed.

    Raises:
        UsageError: For an unknown name or constant.
    """
    if preset not in PRESETS:
        raise UsageError(f"pricing: expected one of {', '.join(PRESETS)}, got preset={preset!r}")
    known = {field.name for field in fields(Constants)}
    unknown = sorted(set(changes) - known)
    if unknown:
        raise UsageError(f"pricing: no constant {unknown[0]!r}; there are {', '.join(known)}")
    return replace(PRESETS[preset], **changes)  # type: ignore[arg-type]
