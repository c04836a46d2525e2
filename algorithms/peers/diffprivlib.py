"""diffprivlib: noise mechanisms, a quantile, logistic and linear regression.

Claim: the epsilon, and delta, that each is asked for, about replacing one record.

Every release gets a ``random_state`` from the audit's stream, and an accountant of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.peers.support import Floats, legacy, needed, one_by_one, source
from audit.claim import AnyClaim, ApproxDp, PureDp
from audit.pair import Pair

_PACKAGE = "diffprivlib"


@dataclass(frozen=True)
class Additive:
    """A number of sensitivity one with noise.

    Attributes:
        kind: ``Laplace``, ``Gaussian`` or ``GaussianAnalytic``.
        epsilon: What is asked for.
        delta: What is asked for.
    """

    kind: str
    epsilon: float
    delta: float = 0.0

    @property
    def claim(self) -> AnyClaim:
        """What is asked for."""
        where = source(_PACKAGE, f"mechanisms.{self.kind}")
        if self.delta:
            return ApproxDp(epsilon=self.epsilon, delta=self.delta, source=where)
        return PureDp(epsilon=self.epsilon, source=where)

    def pairs(self) -> Sequence[Pair]:
        """Numbers one apart."""
        return (Pair(0.0, 1.0, "one apart"),)

    def run(self, data: float, n: int, rng: np.random.Generator) -> Floats:
        """Noisy numbers, shape (n,)."""
        made = getattr(needed("diffprivlib.mechanisms", _PACKAGE), self.kind)
        asked = {"epsilon": self.epsilon, "delta": self.delta, "sensitivity": 1.0}
        return one_by_one(lambda r: made(**asked, random_state=legacy(r)).randomise(data), n, rng)


@dataclass(frozen=True)
class Quantile:
    """The median of few numbers in [0, 1].

    Attributes:
        epsilon: What is asked for.
    """

    epsilon: float

    @property
    def claim(self) -> PureDp:
        """What is asked for."""
        return PureDp(
            epsilon=self.epsilon, relation="replace-one", source=source(_PACKAGE, "tools.quantile")
        )

    def pairs(self) -> Sequence[Pair]:
        """The median moves from one end to the other, or within."""
        rest = [0.0, 0.0, 1.0, 1.0]
        return tuple(
            Pair([left, *rest], [right, *rest], f"{left:g} or {right:g}", "replace-one")
            for left, right in ((0.0, 1.0), (0.0, 0.5))
        )

    def run(self, data: list[float], n: int, rng: np.random.Generator) -> Floats:
        """Noisy medians, shape (n,)."""
        quantile = needed("diffprivlib.tools", _PACKAGE).quantile
        return one_by_one(
            lambda r: quantile(
                data, 0.5, epsilon=self.epsilon, bounds=(0, 1), random_state=legacy(r), **_free()
            ),
            n,
            rng,
        )


@dataclass(frozen=True)
class Regression:
    """A fitted model: its coefficients and intercept are seen.

    Attributes:
        kind: ``LogisticRegression`` or ``LinearRegression``.
        epsilon: What is asked for.
        largest: A feature lies in [`smallest`, `largest`].
        smallest: See `largest`.
        another: Feature of one of the two records that both inputs share; the other's is 0.
        options: Other keyword arguments of the model.
    """

    kind: str
    epsilon: float
    largest: float = 1.0
    smallest: float = -1.0
    another: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def claim(self) -> PureDp:
        """What is asked for."""
        where = source(_PACKAGE, f"models.{self.kind}")
        return PureDp(epsilon=self.epsilon, relation="replace-one", source=where)

    def pairs(self) -> Sequence[Pair]:
        """One of three records has a feature at either end, in the middle, or another outcome.

        The two others have both outcomes, so that the classes are always the same.
        """
        low, high = self.smallest, self.largest
        changes = (
            ((0.0, 1.0), (high, 1.0)),
            ((low, 1.0), (high, 1.0)),
            ((high, 0.0), (high, 1.0)),
        )
        return tuple(
            Pair(
                self._rows(*left), self._rows(*right), f"(x, y) = {left} or {right}", "replace-one"
            )
            for left, right in changes
            if left != right
        )

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> Floats:
        """Coefficient and intercept, shape (n, 2)."""
        made = getattr(needed("diffprivlib.models", _PACKAGE), self.kind)
        x, y = np.asarray(data["x"]), np.asarray(data["y"])

        def fit(r: np.random.Generator) -> list[float]:
            model = made(epsilon=self.epsilon, random_state=legacy(r), **self._known(), **_free())
            model.fit(x, y)
            return [float(np.ravel(model.coef_)[0]), float(np.ravel(model.intercept_)[0])]

        return one_by_one(fit, n, rng)

    def _rows(self, x: float, y: float) -> dict[str, Floats]:
        features = [[x], [self.another], [0.0]]
        return {"x": np.array(features), "y": np.array([y, 0.0, 1.0])}

    def _known(self) -> dict[str, Any]:
        """The public bounds, as the model wants them."""
        if self.kind == "LogisticRegression":
            return {"data_norm": max(abs(self.smallest), abs(self.largest)), **self.options}
        bounds = {"bounds_X": (self.smallest, self.largest), "bounds_y": (0.0, 1.0)}
        return {**bounds, **self.options}


def _free() -> dict[str, Any]:
    """An accountant of its own: the shared one remembers every release."""
    return {"accountant": needed("diffprivlib", _PACKAGE).BudgetAccountant()}
