"""Markets: customers with contexts, and how they respond to a price.

A customer buys when the price is at most their *valuation*. With valuations drawn so that
``P(v >= p) = f(phi(x, p)^T theta)``, demand follows the generalised linear model, and yet a record
``(x, v)`` is a fixed thing that two neighbouring inputs can share: whether this customer buys
depends on the price they are shown and on nothing that anyone else did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from algorithms.pricing.constants import Constants
from audit.errors import UsageError

Floats = npt.NDArray[np.float64]

ALWAYS, NEVER = 2.0, -1.0
PROBES = ("none", "spread", "cycle", "tiny", "constant", "null")
_CYCLE = 8
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Market:
    """A stream of customers.

    Attributes:
        contexts: Shape (T, k), norms at most 1.
        valuations: Highest price at which each customer buys, shape (T,), or (n, T) when every
            trial has customers of its own; None when outcomes are given.
        outcomes: What each customer does whatever the price, shape (T,); None with valuations.
    """

    contexts: Floats
    valuations: Floats | None = None
    outcomes: Floats | None = None

    def respond(self, t: int, prices: Floats) -> Floats:
        """Demand in round t (0-based) at prices of shape (n,); shape (n,)."""
        if self.valuations is not None:
            return np.asarray(prices <= self.valuations[..., t], dtype=float)
        return np.full(len(prices), self.outcomes[t])  # type: ignore[index]


def market_of(data: Mapping[str, Any], public: Constants) -> Market:
    """A market from plain data: ``contexts`` and either ``valuations`` or ``outcomes``.

    Raises:
        UsageError: For wrong shapes, a context outside the unit ball, or neither column.
    """
    contexts = np.asarray(data["contexts"], dtype=float)
    if contexts.shape != (public.rounds, public.wide):
        raise UsageError(
            f"market: expected contexts of shape {(public.rounds, public.wide)} (rounds, length), "
            f"got {contexts.shape}. Set the policy's constants to those of the data"
        )
    worst = float(np.max(np.linalg.norm(contexts, axis=1)))
    if not worst <= 1 + _TOLERANCE:
        raise UsageError(
            f"market: expected contexts of norm at most 1, got {worst:g}. Divide them by a public "
            "bound on their norm"
        )
    name = next((c for c in ("valuations", "outcomes") if c in data), None)
    if name is None or np.shape(data[name])[-1:] != (public.rounds,):
        raise UsageError(
            f"market: expected a column valuations or outcomes of length {public.rounds}, got "
            f"{', '.join(data)}. Add one per customer"
        )
    column = np.asarray(data[name], dtype=float)
    if name == "valuations":
        return Market(contexts, valuations=column)
    return Market(contexts, outcomes=public.link.clipped(column))


def truth(wide: int) -> Floats:
    """Theta of the test market: 2 for every taste, 4.5 for every price sensitivity; shape (2k,)."""
    return np.repeat([2.0, 4.5], wide)


def draw_contexts(rounds: int, wide: int, rng: np.random.Generator) -> Floats:
    """Contexts spread over the positive part of the unit sphere, shape (rounds, wide)."""
    rows = np.abs(rng.standard_normal((rounds, wide)))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def draw_valuations(contexts: Floats, theta: Floats, uniforms: Floats) -> Floats:
    """Valuations under logistic demand: ``P(v >= p) = sg((x^T a - p x^T b)/sqrt(2))``.

    Args:
        contexts: Shape (T, k).
        theta: (a, b), shape (2k,); ``x^T b`` must be positive, or 0 for a customer to whom the
            price does not matter: they buy always or never.
        uniforms: In (0, 1), shape (..., T).

    Returns:
        Shape (..., T).
    """
    base, slope = np.split(theta, 2)
    taste, pull = contexts @ base - math.sqrt(2) * special.logit(uniforms), contexts @ slope
    indifferent = np.where(taste > 0, ALWAYS, NEVER)
    priced = taste / np.where(pull > 0, pull, 1.0)
    return np.asarray(np.where(pull > 0, priced, indifferent), dtype=float)


def sample_market(rounds: int, wide: int = 2, seed: int = 1) -> dict[str, Floats]:
    """The test market as plain data: ``contexts`` (T, k) and ``valuations`` (T,)."""
    rng = np.random.default_rng(seed)
    contexts = draw_contexts(rounds, wide, rng)
    return {
        "contexts": contexts,
        "valuations": draw_valuations(contexts, truth(wide), rng.random(rounds)),
    }


def probed(data: Mapping[str, Floats], kind: str, start: int) -> dict[str, Floats]:
    """A market in which all customers from round `start` on (0-based) are an adversary's fakes.

    Args:
        data: ``contexts`` and ``valuations``; not changed.
        kind: ``spread``: norms between .6 and 1, so that prices spread over the grid; ``cycle``:
            eight contexts of such norms in turn, so that a refresh shows soon; ``tiny``:
            norms of .05, which add almost nothing to any sum; ``constant``: the same context
            every round, so that a new price is a refresh; ``null``: all customers but the first
            along the last axis, so that the others say nothing about the first.
        start: First fake.

    Raises:
        UsageError: For an unknown kind.
    """
    if kind not in PROBES:
        raise UsageError(f"market: expected one of {', '.join(PROBES)}, got probes={kind!r}")
    contexts = data["contexts"].copy()
    late = contexts[start:]
    if kind == "spread":
        late *= np.linspace(0.6, 1.0, len(late))[:, None]
    elif kind == "cycle":
        late[:] = np.resize(_fan(contexts.shape[1]), late.shape)
    elif kind == "tiny":
        late *= 0.05
    elif kind == "constant":
        late[:] = contexts.shape[1] ** -0.5
    elif kind == "null":
        contexts[1:] = np.eye(contexts.shape[1])[-1]
    return {**data, "contexts": contexts}


def _fan(wide: int) -> Floats:
    """Contexts between the axis of each taste and the middle, norms between .6 and 1."""
    turn = np.arange(_CYCLE)
    share = np.linspace(0.2, 0.8, _CYCLE)[:, None]
    rows = share * np.eye(wide)[turn % wide] + (1 - share) / wide
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.linspace(0.6, 1.0, _CYCLE)[3 * turn % _CYCLE, None])
