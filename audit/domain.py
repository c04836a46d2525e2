"""Domains: the inputs that an adversary may choose from, when nobody names a pair."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from audit.errors import UsageError
from audit.pair import Pair

_RELATIONS = ("", "replace-one", "add-remove", "both")
_MOST_NUMBERS = 10**6


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The inputs of a mechanism.

    Exactly one of `bounds`, `categories`, `streams` and `strategy` says what a record is. Without
    `sizes` an input is one such value, with `sizes` a list of them; with `streams` it is a mapping
    of lists of the same length, such as the ``outcomes`` and ``contexts`` of `audit.Played`.

    Attributes:
        bounds: Smallest and largest number.
        categories: All values of a record that is no number.
        sizes: Fewest and most records.
        dimension: Numbers per record; a record is a list of them when it is more than one.
        streams: Name to the domain of one entry of that stream.
        strategy: A hypothesis strategy of inputs that are lists, or of pairs (`audit.Pair`).
        distance: Largest distance of neighbouring values, for inputs that are one number, or of
            each coordinate, for inputs that are one vector (answers of queries).
        beyond: Whether values outside of what is declared are tried: a mechanism must deal with
            them, unless its callers guarantee that they never come.
        relation: ``replace-one``, ``add-remove`` or ``both``, for claims that do not say.

    Raises:
        UsageError: For a domain that makes no sense.
    """

    bounds: tuple[float, float] | None = None
    categories: tuple[Any, ...] = ()
    sizes: tuple[int, int] | None = None
    dimension: int = 1
    streams: dict[str, Domain] = {}
    strategy: Any = None
    distance: float | None = None
    beyond: bool = True
    relation: str = ""

    def __post_init__(self) -> None:
        given = [bool(self.bounds), bool(self.categories), bool(self.streams)]
        if sum([*given, self.strategy is not None]) != 1:
            raise UsageError(
                "domain: expected exactly one of bounds, categories, streams and strategy, such as "
                'Domain(bounds=(0, 1), sizes=(0, 20)) or {"bounds": [0, 1], "sizes": [0, 20]}'
            )
        if self.bounds and not -math.inf < self.bounds[0] < self.bounds[1] < math.inf:
            raise UsageError(f"domain: expected bounds low < high, got {self.bounds}")
        if self.sizes and not 0 <= self.sizes[0] <= self.sizes[1]:
            raise UsageError(f"domain: expected sizes 0 <= fewest <= most, got {self.sizes}")
        if self.streams and not (self.sizes and self.sizes[1] > 0):
            raise UsageError("domain: streams need sizes, such as sizes=(20, 20) for 20 rounds")
        if self.dimension < 1:
            raise UsageError(f"domain: expected a dimension >= 1, got {self.dimension}")
        if self._numbers > _MOST_NUMBERS:
            raise UsageError(
                f"domain: expected at most {_MOST_NUMBERS:,} numbers in the smallest input, got "
                "more; declare fewer records at least, or a smaller dimension"
            )
        if self.distance is not None and not self.distance > 0:
            raise UsageError(f"domain: expected a distance > 0, got {self.distance}")
        if self.relation not in _RELATIONS:
            raise UsageError(
                f"domain: expected a relation in {', '.join(_RELATIONS[1:])}; got {self.relation!r}"
            )

    @property
    def _numbers(self) -> int:
        """Numbers in the smallest input."""
        fewest = max(1, self.sizes[0]) if self.sizes else 1
        return fewest * sum(entry.dimension for entry in self.streams.values() or (self,))

    def relations(self, promised: str) -> tuple[str, ...]:
        """The relations to try: what the claim says, else what the domain says."""
        if promised != "declared":
            return (promised,)
        if self.relation == "both":
            return ("replace-one", "add-remove")
        return (self.relation or "replace-one",)


class Proposer(Protocol):
    """An adversary that chooses inputs; a pure function of what it is given."""

    def propose(self, domain: Domain, relations: Sequence[str], records: int = 1) -> Sequence[Pair]:
        """Pairs worth trying, the most promising first.

        Args:
            domain: Where inputs come from.
            relations: In which relations they may be neighbours.
            records: How many records they may differ in.
        """

    def jumps(
        self, domain: Domain, relations: Sequence[str], raises: Callable[[Any], bool]
    ) -> Sequence[Pair]:
        """Pairs between which an implementation begins to raise, found by asking.

        Args:
            domain: Where inputs come from.
            relations: In which relations they may be neighbours.
            raises: Whether a trial on an input raises; every call plays one.
        """

    def refine(self, domain: Domain, pair: Pair) -> Sequence[Pair]:
        """Pairs close to one that has shown promise, which differ in as many records."""


def parse_domain(given: Any) -> Domain:
    """A domain from JSON text or from decoded JSON or TOML.

    Raises:
        UsageError: When it is none.
    """
    try:
        decoded = json.loads(given) if isinstance(given, str) else given
        domain = msgspec.convert(decoded, Domain)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise UsageError(
            f"domain: expected JSON such as {{'bounds': [0, 1], 'sizes': [0, 20]}} in double "
            f"quotes; got {str(given)[:60]!r}: {error}"
        ) from None
    if domain.strategy is not None:
        raise UsageError("domain: a strategy is a Python object; give it to audit.examine")
    return domain
