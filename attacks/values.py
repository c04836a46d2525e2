"""Values that an adversary tries in a record: extremes, values beyond them, ordinary ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from audit.domain import Domain
from audit.pair import Pair

_BEYOND = 10.0
_FEW = 6
UNSEEN = "never seen before"


def low(domain: Domain) -> Any:
    """The smallest value, or the first category."""
    return _value(domain, 0.0)


def high(domain: Domain) -> Any:
    """The largest value, or the last category."""
    return _value(domain, 1.0)


def middle(domain: Domain) -> Any:
    """The value in the middle."""
    return _value(domain, 0.5)


def outside(domain: Domain) -> list[Any]:
    """Values beyond what is declared, far above first; none where they never come."""
    if not domain.beyond:
        return []
    if domain.categories:
        whole = all(isinstance(c, int) and not isinstance(c, bool) for c in domain.categories)
        return [max(domain.categories) + 1000 if whole else UNSEEN]
    return [_value(domain, 1.0 + _BEYOND), _value(domain, -_BEYOND)]


def _value(domain: Domain, share: float) -> Any:
    """The value at a share of the way from the smallest to the largest."""
    if domain.categories:
        last = len(domain.categories) - 1
        return domain.categories[round(min(max(share, 0.0), 1.0) * last)]
    smallest, largest = domain.bounds or (0.0, 1.0)
    number = smallest + share * (largest - smallest)
    return [number] * domain.dimension if domain.dimension > 1 else number


def changes(domain: Domain) -> list[tuple[str, Any, Any]]:
    """What a record may be replaced by: a name, the value on the left and on the right."""
    small, large = low(domain), high(domain)
    found = [("opposite extremes", small, large)]
    far = outside(domain)
    if far:
        found.append(("beyond the bounds", small, far[0]))
    if len(far) > 1:
        found += [("far apart", far[1], far[0]), ("beyond from above", large, far[1])]
    if domain.categories:
        found += [(f"category {c!r}", small, c) for c in domain.categories[1 : _FEW - 1]]
        return found
    found.append(("middle to high", middle(domain), large))
    return found + _directions(domain)


def _directions(domain: Domain) -> list[tuple[str, Any, Any]]:
    """Vectors that move in one coordinate, or in all of them by the length of one."""
    if domain.dimension == 1 or not domain.bounds:
        return []
    smallest, largest = domain.bounds
    axis = [largest] + [smallest] * (domain.dimension - 1)
    other = [smallest] * (domain.dimension - 1) + [largest]
    short = smallest + (largest - smallest) / math.sqrt(domain.dimension)
    return [
        ("one coordinate", low(domain), axis),
        ("one coordinate for another", axis, other),
        ("a short vector", low(domain), [short] * domain.dimension),
    ]


def backgrounds(domain: Domain, size: int) -> list[tuple[str, list[Any]]]:
    """What the other records may be: constant, tied, spread out, repeated."""
    small, large = low(domain), high(domain)
    spread = [_value(domain, share) for share in np.linspace(0, 1, max(size, 1)).tolist()]
    return [
        ("all low", [small] * size),
        ("spread out", spread[:size]),
        ("all high", [large] * size),
        ("ties", [small if i % 2 else large for i in range(size)]),
        ("a few high", [small if i % 5 else large for i in range(size)]),
        ("all equal", [middle(domain)] * size),
    ]


def in_turn(kinds: Sequence[Iterator[Pair]]) -> Iterator[Pair]:
    """One pair of each kind in turn."""
    for row in itertools.zip_longest(*kinds):
        yield from (pair for pair in row if pair is not None)
