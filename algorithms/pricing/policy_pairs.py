"""Markets that differ in one customer: the pairs on which the pricing policy is played.

Claim: none; neighbours are inputs, not releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from algorithms.pricing.constants import Constants
from algorithms.pricing.market import ALWAYS, NEVER
from audit.pair import Pair

Floats = npt.NDArray[np.float64]
Customer = tuple[Floats, float]


def market_pair(
    data: Mapping[str, Floats], left: Customer, right: Customer, label: str, place: int
) -> Pair:
    """Two markets that differ in one customer.

    Args:
        data: ``contexts`` and ``valuations``; not changed.
        left: Context, shape (k,), and valuation of the customer on the left side.
        right: The same on the right side.
        label: Name for reports.
        place: 0-based customer.
    """
    sides = []
    for context, valuation in (left, right):
        side = {name: column.copy() for name, column in data.items()}
        side["contexts"][place], side["valuations"][place] = context, valuation
        sides.append(side)
    return Pair(sides[0], sides[1], label=f"{label}, round {place + 1}", relation="replace-one")


def replacements(
    public: Constants, data: Mapping[str, Floats], customer: int, view: str
) -> Iterator[Pair]:
    """The pairs that are worst for some releaser, or for the own price in view.

    Args:
        public: Public constants.
        data: ``contexts`` and ``valuations``.
        customer: 0-based; when negative the first, or one in the last quarter for ``prices_all``.
        view: What is in view.
    """
    first, last = np.eye(public.wide)[[0, -1]]
    if view == "prices_all":
        place = 3 * public.rounds // 4 if customer < 0 else customer
        # Nobody's best price is always the ceiling, and an average customer's rarely is.
        first = np.full(public.wide, public.wide**-0.5)
        yield market_pair(
            data, (first, NEVER), (0 * first, NEVER), "customer against nobody", place
        )
        return
    place = max(0, customer)
    yield market_pair(data, (first, NEVER), (0 * first, NEVER), "customer against nobody", place)
    yield market_pair(data, (first, ALWAYS), (last, NEVER), "customer replaced", place)
    yield market_pair(data, (first, ALWAYS), (first, NEVER), "outcome flipped", place)


def null_pair(public: Constants, data: Mapping[str, Floats], customer: int = 0) -> Pair:
    """One customer twice, nothing to see: ``(phi, y)`` and ``(-phi, 1 - y)``, logistic demand.

    Both features have the same square and, since ``f(-eta) = 1 - f(eta)``, the same gradient.
    """
    place, x = max(0, customer), np.full(public.wide, public.wide**-0.5)
    return market_pair(data, (x, ALWAYS), (-x, NEVER), "the same customer twice", place)
