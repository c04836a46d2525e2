"""Inputs that an adversary tries when nobody names a pair.

One in five faults of real implementations shows on special inputs only: an outlier, ties, constant
data, an empty table, a size at which a rounding jumps. These are tried first, in an order that
depends on nothing but the domain; refinement goes on from the pairs that looked best.

Why this is valid: pairs are chosen on scouting trials, and any pair of neighbours may refute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from attacks.sampled import sampled_pairs
from attacks.streams import stream_pairs, stream_variants
from attacks.values import backgrounds, changes, high, in_turn, low, middle, outside
from attacks.vectors import vector_pairs
from audit.domain import Domain
from audit.pair import Pair

_USUAL_SIZE = 10
_LARGEST_SIZE = 2048
_JUMPS = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    10,
    15,
    16,
    31,
    32,
    63,
    64,
    99,
    100,
    127,
    128,
    255,
    256,
    999,
    1000,
)
_MOST = 96


@dataclass(frozen=True)
class Proposals:
    """Pairs that have broken implementations before."""

    def propose(self, domain: Domain, relations: Sequence[str], records: int = 1) -> Sequence[Pair]:
        """Pairs worth trying, the most promising first."""
        if domain.strategy is not None:
            found = sampled_pairs(domain.strategy, relations)
        elif domain.streams:
            found = stream_pairs(domain, records)
        elif domain.sizes is None:
            found = _single_values(domain)
        else:
            found = in_turn([_of_relation(domain, r, records) for r in relations])
        return tuple(_distinct(found))

    def jumps(
        self, domain: Domain, relations: Sequence[str], raises: Callable[[Any], bool]
    ) -> Sequence[Pair]:
        """Constant data of the size at which they begin to raise, or cease to, and one more."""
        if domain.sizes is None or domain.streams or "add-remove" not in relations:
            return ()
        sizes = _sizes(domain)[1]
        values = [("low", low(domain)), ("high", high(domain))]
        found = ((n, v, _turn(v, sizes[0], sizes[-1], raises)) for n, v in values)
        return tuple(
            add([value] * size, size, value, f"one more than {size}, all {name}", 1)
            for name, value, size in found
            if size is not None
        )

    def refine(self, domain: Domain, pair: Pair) -> Sequence[Pair]:
        """Pairs close to one that has shown promise: its change elsewhere, or among others."""
        if domain.strategy is not None or (domain.sizes is None and not domain.streams):
            return ()
        if domain.streams:
            return tuple(_distinct(stream_variants(domain, pair)))
        if pair.relation == "add-remove":
            return tuple(_distinct(_more_or_fewer(domain, pair)))
        return tuple(_distinct(_elsewhere(domain, pair)))


def _distinct(pairs: Iterator[Pair]) -> Iterator[Pair]:
    seen: set[str] = set()
    for pair in pairs:
        key = repr((pair.left, pair.right))
        if key not in seen and len(seen) < _MOST and repr(pair.left) != repr(pair.right):
            seen.add(key)
            yield pair


def _single_values(domain: Domain) -> Iterator[Pair]:
    """Inputs that are one value; numbers at most `distance` apart where that is declared."""
    if domain.distance is not None and domain.dimension > 1:
        yield from vector_pairs(domain)
        return
    if domain.distance is None or domain.categories:
        for name, left, right in changes(domain):
            yield Pair(left, right, name)
        return
    step, small, large = domain.distance, low(domain), high(domain)
    starts = [("low end", small), ("high end", large - step), ("middle", middle(domain))]
    starts += [("across zero", -step / 2)] if small < 0 < large else []
    starts += [("at a rounding jump", float(2**k) - step / 2) for k in range(0, 11, 2)]
    for name, start in starts:
        if small <= start <= large - step:
            yield Pair(start, start + step, name)
    for value in outside(domain):
        yield Pair(value, value + step, "beyond the bounds")


def _turn(value: Any, few: int, many: int, raises: Callable[[Any], bool]) -> int | None:
    """The size after which constant data change sides; None when both ends are alike."""
    before = raises([value] * few)
    if raises([value] * many) == before:
        return None
    while many - few > 1:
        middle_size = (few + many) // 2
        alike = raises([value] * middle_size) == before
        few, many = (middle_size, many) if alike else (few, middle_size)
    return few


def _of_relation(domain: Domain, relation: str, records: int) -> Iterator[Pair]:
    if relation == "replace-one":
        return _replaced(domain, records)
    return _added(domain, records)


def _sizes(domain: Domain) -> tuple[int, list[int]]:
    """The usual size, and those at which something may jump."""
    fewest, most = domain.sizes or (1, _USUAL_SIZE)
    most = min(most, max(fewest, _LARGEST_SIZE))
    usual = min(most, max(fewest, _USUAL_SIZE))
    return usual, sorted({s for s in (*_JUMPS, fewest, most - 1, most) if fewest <= s <= most})


def places(size: int) -> list[tuple[str, int]]:
    """Positions worth a try: the ends, the middle, and next to powers of two."""
    power = 1 << max(0, (size - 1).bit_length() - 1)
    found = [("first", 0), ("last", size - 1), ("middle", size // 2)]
    found += [("before a power of two", power - 1), ("after a power of two", power)]
    return list({at: (name, at) for name, at in reversed(found) if 0 <= at < size}.values())[::-1]


def _replaced(domain: Domain, records: int) -> Iterator[Pair]:
    """Changes on backgrounds in the usual size, places, and other sizes, one of each in turn."""
    usual, sizes = _sizes(domain)
    if usual < records:
        return iter(())
    small, large = low(domain), high(domain)
    changed = (
        swap(rest, 0, left, right, f"{change}, others {name}", records)
        for name, rest in backgrounds(domain, usual)
        for change, left, right in changes(domain)
    )
    placed = (
        swap(rest, at, small, large, f"{place} record, others {name}", records)
        for name, rest in backgrounds(domain, usual)[:2]
        for place, at in places(usual)
    )
    sized = (
        swap([value] * size, 0, small, large, f"of {size} in all, others all {name}", records)
        for size in sizes
        for name, value in (("low", small), ("high", large))
        if size >= max(1, records)
    )
    return in_turn([changed, sized, placed])


def swap(rest: list[Any], at: int, left: Any, right: Any, label: str, records: int) -> Pair:
    """`records` records from a place on, which are `left` on one side and `right` on the other."""
    first = min(at, len(rest) - records)
    one, other = (
        [*rest[:first], *[value] * records, *rest[first + records :]] for value in (left, right)
    )
    return Pair(one, other, label, "replace-one", records=records)


def _added(domain: Domain, records: int) -> Iterator[Pair]:
    """A record more, extreme or beyond: among others, and at sizes at which something jumps."""
    usual, sizes = _sizes(domain)
    fewest, most = domain.sizes or (0, usual)
    extras = [("high", high(domain)), ("low", low(domain))]
    extras += [("outside", value) for value in outside(domain)]
    base = max(fewest, min(usual, most - records))
    among = (
        add(rest, len(rest), value, f"one more, {kind}, others {name}", records)
        for name, rest in backgrounds(domain, base)
        for kind, value in extras
        if base + records <= most
    )
    sized = (
        add([value] * size, at, high(domain), f"one more than {size}, {place}", records)
        for value in (low(domain), high(domain))
        for size in sizes
        for place, at in (("last", size), ("first", 0))
        if size + records <= most and (at or place == "last")
    )
    return in_turn([sized, among])


def add(rest: list[Any], at: int, value: Any, label: str, records: int) -> Pair:
    """The records on one side, and `records` more of a value on the other."""
    more = [*rest[:at], *[value] * records, *rest[at:]]
    return Pair(rest, more, label, "add-remove", records=records)


def _elsewhere(domain: Domain, pair: Pair) -> Iterator[Pair]:
    """The same change at other places, on other backgrounds, and the other way round."""
    at, records = pair.position, pair.records
    left, right = pair.left[at], pair.right[at]
    size = len(pair.left)
    for name, place in places(size):
        rest = [value for i, value in enumerate(pair.left) if not at <= i < at + records]
        filler = rest[0] if rest else left
        yield swap(
            [*rest, *[filler] * records], place, left, right, f"{pair.label}, {name}", records
        )
    for name, rest in backgrounds(domain, size):
        yield swap(rest, at, left, right, f"{pair.label}, among {name}", records)
    for name, a, b in changes(domain):
        yield swap(list(pair.left), at, a, b, f"{pair.label}, {name}", records)
    for other in _sizes(domain)[1]:
        if other >= max(1, records) and size // 4 <= other <= 4 * size:
            rest = (list(pair.left) * (other // size + 1))[:other]
            yield swap(rest, 0, left, right, f"{pair.label}, {other} records", records)


def _more_or_fewer(domain: Domain, pair: Pair) -> Iterator[Pair]:
    """The same extra record among more or fewer others, and other extra records."""
    rest = list(pair.left if len(pair.left) < len(pair.right) else pair.right)
    fewest, most = domain.sizes or (0, len(rest))
    for size in (len(rest) - 1, len(rest) + 1, 2 * len(rest), len(rest) // 2):
        if fewest <= size <= most - pair.records:
            filler = rest or [low(domain)]
            other = (filler * (size // len(filler) + 1))[:size]
            yield add(other, size, high(domain), f"{pair.label}, {size} others", pair.records)
    for value in [high(domain), low(domain), middle(domain), *outside(domain)]:
        for at in (0, len(rest)):
            yield add(rest, at, value, f"{pair.label}, one at {at}", pair.records)
