"""Streams against a policy: the canary's round, the other customers, and losses that answer back.

The adversary knows the policy and chooses all rounds but one freely, the same on both sides. Fixed
rounds can be extreme, tied or spread out; adaptive ones answer what the policy has done, which
keeps it where the canary's round matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attacks.values import backgrounds, changes, in_turn
from audit.domain import Domain
from audit.pair import Pair

_OUTCOMES = "outcomes"


def stream_pairs(domain: Domain, records: int) -> Iterator[Pair]:
    """Pairs of streams that differ in one round, or in `records` rounds in a row."""
    rounds = (domain.sizes or (1, 1))[1]
    kinds = range(len(backgrounds(domain.streams[_main(domain)], 1)))
    own = range(len(_most_changes(domain)))
    changed = (
        _streams(domain, rounds, 0, rest, change, records) for rest in kinds for change in own
    )
    placed = (
        _streams(domain, rounds, at, rest, 0, records)
        for rest in (0, 1, 3)
        for at in rounds_worth_trying(rounds)
    )
    adaptive = (
        _adaptive(_streams(domain, rounds, at, 0, 0, records), rule)
        for at in rounds_worth_trying(rounds)[:3]
        for rule in rules(domain)
    )
    return in_turn([changed, adaptive, placed])


def stream_variants(domain: Domain, pair: Pair) -> Iterator[Pair]:
    """The pair with its round elsewhere, with other rounds around it, and with other answers."""
    rounds, own, records = len(pair.left[_main(domain)]), pair.position, pair.records
    main = domain.streams[_main(domain)]
    for at in rounds_worth_trying(rounds):
        yield _moved(pair, at)
    for name, rest in backgrounds(main, rounds):
        sides = []
        for side in (pair.left, pair.right):
            entries = list(rest)
            entries[own : own + records] = side[_main(domain)][own : own + records]
            sides.append({**side, _main(domain): entries})
        yield Pair(
            sides[0], sides[1], f"{pair.label}, others {name}", pair.relation, records=records
        )
    for rule in rules(domain):
        yield _adaptive(pair, rule)


def rounds_worth_trying(rounds: int) -> list[int]:
    """The first and the last round, the middle, and both sides of a power of two."""
    power = 1 << max(0, (rounds - 1).bit_length() - 1)
    found = (0, power - 1, power, rounds // 2, rounds - 1)
    return list(dict.fromkeys(at for at in found if 0 <= at < rounds))


def rules(domain: Domain) -> list[dict[str, float]]:
    """Answers to what a policy does: punish or reward staying, buy below a price."""
    outcomes = domain.streams.get(_OUTCOMES)
    if outcomes is None or not outcomes.bounds:
        return []
    small, large = outcomes.bounds
    if outcomes.dimension > 1:
        return [{"last": large, "others": small}, {"last": small, "others": large}]
    bars = [small + share * (large - small) for share in (0.25, 0.5, 0.75)]
    return [{"below": bar, "then": large, "else": small} for bar in bars]


def _main(domain: Domain) -> str:
    """The stream that the policy learns from."""
    return _OUTCOMES if _OUTCOMES in domain.streams else next(iter(domain.streams))


def _most_changes(domain: Domain) -> list[tuple[str, Any, Any]]:
    return max((changes(stream) for stream in domain.streams.values()), key=len)


def _streams(domain: Domain, rounds: int, at: int, rest: int, change: int, records: int) -> Pair:
    """Streams on one background that differ in one place by one of the changes."""
    first = min(at, rounds - records)
    sides: list[dict[str, Any]] = [{}, {}]
    for name, stream in domain.streams.items():
        filled = backgrounds(stream, rounds)[rest][1]
        options = changes(stream)
        for side, value in zip(sides, options[min(change, len(options) - 1)][1:], strict=True):
            side[name] = [*filled[:first], *[value] * records, *filled[first + records :]]
    kind = backgrounds(domain.streams[_main(domain)], 1)[rest][0]
    label = f"round {first + 1}, {_most_changes(domain)[change][0]}, others {kind}"
    return Pair(sides[0], sides[1], label, "replace-one", records=records)


def _adaptive(pair: Pair, rule: dict[str, float]) -> Pair:
    """The pair with all rounds but its own answered by a rule."""
    own = set(pair.differs or ())
    sides = []
    for side in (pair.left, pair.right):
        kept = [value if t in own else None for t, value in enumerate(side[_OUTCOMES])]
        if kept and any(isinstance(value, list) for value in kept):
            wide = len(next(value for value in kept if value is not None))
            kept = [[None] * wide if value is None else value for value in kept]
        sides.append({**side, _OUTCOMES: kept, "responses": rule})
    words = ", ".join(f"{key} {value:g}" for key, value in rule.items())
    return Pair(
        sides[0], sides[1], f"{pair.label}; answers: {words}", pair.relation, records=pair.records
    )


def _moved(pair: Pair, at: int) -> Pair:
    """The pair with its differing rounds taken out and put in at another place."""
    own, records, sides = pair.position, pair.records, []
    for side in (pair.left, pair.right):
        moved = {}
        for name, entries in side.items():
            if not isinstance(entries, list):
                moved[name] = entries
                continue
            rest = [*entries[:own], *entries[own + records :]]
            moved[name] = [*rest[:at], *entries[own : own + records], *rest[at:]]
        sides.append(moved)
    return Pair(
        sides[0], sides[1], f"{pair.label}, at round {at + 1}", pair.relation, records=records
    )
