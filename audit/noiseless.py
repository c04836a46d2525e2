"""A generator without chance: the mechanism runs, and its noise is where the caller puts it.

Additive draws (Laplace, normal, Gumbel, logistic) return their location plus a chosen multiple of
their scale; all others return their median. The same code then shows what it adds its noise to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from audit.view import Floats

Size = int | Sequence[int] | None


class _Noiseless:
    """The draws of a `NoiselessGenerator`."""

    offsets: Floats
    drawn: list[tuple[str, float]]
    others: set[str]

    def spawn(self, n_children: int) -> list[Any]:
        """Itself, so that the draws of all children are counted together."""
        return [self] * n_children

    def _additive(self, family: str, loc: Any, scale: Any, size: Size) -> Any:
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        scales = np.broadcast_to(np.asarray(scale, dtype=float), shape)
        first = len(self.drawn)
        self.drawn += [(family, float(value)) for value in scales.ravel()]
        offsets = np.zeros(scales.size)
        given = self.offsets[first : first + scales.size]
        offsets[: len(given)] = given
        values = np.asarray(loc, dtype=float) + scales * offsets.reshape(scales.shape)
        return float(values) if values.ndim == 0 else values

    def _median(self, name: str, value: Any, size: Size) -> Any:
        self.others.add(name)
        shape = np.shape(value) if size is None else size
        values = np.broadcast_to(np.asarray(value), shape).copy()
        return values.item() if values.ndim == 0 else values

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Location, moved by the offset times the scale."""
        return self._additive("laplace", loc, scale, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Location, moved by the offset times the scale."""
        return self._additive("normal", loc, scale, size)

    def standard_normal(self, size: Size = None, *_: Any, **__: Any) -> Any:
        """The offset."""
        return self._additive("normal", 0.0, 1.0, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Location, moved by the offset times the scale."""
        return self._additive("gumbel", loc, scale, size)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Location, moved by the offset times the scale."""
        return self._additive("logistic", loc, scale, size)

    def random(self, size: Size = None, *_: Any, **__: Any) -> Any:
        """One half."""
        return self._median("random", 0.5, size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None) -> Any:
        """The middle."""
        return self._median("uniform", (np.asarray(low) + np.asarray(high)) / 2, size)

    def exponential(self, scale: Any = 1.0, size: Size = None) -> Any:
        """The median."""
        return self._median("exponential", np.asarray(scale) * math.log(2), size)

    def standard_exponential(self, size: Size = None, *_: Any, **__: Any) -> Any:
        """The median."""
        return self._median("exponential", math.log(2), size)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Size = None) -> Any:
        """The median."""
        return self._median("gamma", special.gammaincinv(shape, 0.5) * scale, size)

    def geometric(self, p: Any, size: Size = None) -> Any:
        """The median."""
        middle = np.ceil(-math.log(2) / np.log1p(-np.minimum(p, 1 - 1e-16)))
        return self._median("geometric", middle.astype(np.int64), size)

    def binomial(self, n: Any, p: Any, size: Size = None) -> Any:
        """The rounded mean, which is a median."""
        middle = np.rint(np.asarray(n) * np.asarray(p)).astype(np.int64)
        return self._median("binomial", middle, size)

    def integers(self, low: Any, high: Any = None, size: Size = None, *_: Any, **__: Any) -> Any:
        """The middle of the range."""
        low, high = (0, low) if high is None else (low, high)
        return self._median("integers", (np.asarray(low) + np.asarray(high) - 1) // 2, size)


class NoiselessGenerator(_Noiseless, np.random.Generator):  # type: ignore[misc]
    """Stands in for the generator that a mechanism is given.

    Attributes:
        offsets: Multiples of its scale that each additive draw gets, in the order in which the
            draws are made; beyond the end they are 0.
        drawn: Family and scale of every additive draw so far, one entry per number.
        others: Names of the draws that are not additive.
    """

    def __init__(self, offsets: Floats | None = None) -> None:
        super().__init__(np.random.SFC64(0))
        self.offsets = np.empty(0) if offsets is None else offsets
        self.drawn = []
        self.others = set()
