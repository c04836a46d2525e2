"""A generator without chance: the mechanism runs, and its noise is where the caller puts it.

Additive draws (Laplace, normal, Gumbel, logistic) return their location plus a chosen multiple of
their scale. Of all others nothing is known without noise, so they end the run, and so does one
draw too many: a loop that draws until it likes what it gets would never end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.view import Floats, Views

Size = int | Sequence[int] | None


class ChanceError(BaseException):
    """A draw that has no value without noise; no code under audit should catch it."""


@dataclass(frozen=True)
class Quiet:
    """One play without noise.

    Attributes:
        views: What it emitted.
        families: Law of every draw.
    """

    views: Views
    families: tuple[str, ...]


class NoiselessGenerator(np.random.Generator):
    """Stands in for the generator that a mechanism is given.

    Attributes:
        offsets: Multiples of its scale that each additive draw gets, in the order in which the
            draws are made; beyond the end they are 0.
        most: Numbers that may be drawn.
        drawn: Family and scale of every draw so far, one entry per number.
    """

    def __init__(self, most: int, offsets: Floats | None = None) -> None:
        super().__init__(np.random.SFC64(0))
        self.most = most
        self.offsets = np.empty(0) if offsets is None else offsets
        self.drawn: list[tuple[str, float]] = []

    def spawn(self, n_children: int) -> list[Any]:
        """Itself, so that the draws of all children are counted together."""
        return [self] * n_children

    def _additive(self, family: str, loc: Any, scale: Any, size: Size) -> Any:
        shape = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        scales = np.broadcast_to(np.asarray(scale, dtype=float), shape)
        first = len(self.drawn)
        if first + scales.size > self.most:
            raise ChanceError(f"more than {self.most} draws")
        self.drawn += [(family, float(value)) for value in scales.ravel()]
        offsets = np.zeros(scales.size)
        given = self.offsets[first : first + scales.size]
        offsets[: len(given)] = given
        values = np.asarray(loc, dtype=float) + scales * offsets.reshape(scales.shape)
        return float(values) if values.ndim == 0 else values

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:  # type: ignore[override]
        """Location, moved by the offset times the scale."""
        return self._additive("laplace", loc, scale, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:  # type: ignore[override]
        """Location, moved by the offset times the scale."""
        return self._additive("normal", loc, scale, size)

    def standard_normal(self, size: Size = None, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        """The offset."""
        return self._additive("normal", 0.0, 1.0, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:  # type: ignore[override]
        """Location, moved by the offset times the scale."""
        return self._additive("gumbel", loc, scale, size)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:  # type: ignore[override]
        """Location, moved by the offset times the scale."""
        return self._additive("logistic", loc, scale, size)


def _unknown(name: str) -> Callable[..., Any]:
    def draw(*_: Any, **__: Any) -> Any:
        raise ChanceError(f"{name} has no value without noise")

    return draw


_KNOWN = {"spawn", "laplace", "normal", "standard_normal", "gumbel", "logistic"}
for _name in set(dir(np.random.Generator)) - _KNOWN:
    if not _name.startswith("_"):
        draws = _unknown(_name)
        setattr(NoiselessGenerator, _name, property(draws) if _name == "bit_generator" else draws)
