"""Pairs from a hypothesis strategy: its smallest examples, each with a neighbour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from audit.errors import UsageError
from audit.pair import Pair

_EXAMPLES = 40


def sampled_pairs(strategy: Any, relations: Sequence[str]) -> Iterator[Pair]:
    """Examples of a strategy, the same ones every time.

    Args:
        strategy: Of lists, which are given a neighbour of every relation, or of pairs.
        relations: In which relations.

    Raises:
        UsageError: When hypothesis is not installed, or the strategy gives something else.
    """
    examples = _examples(strategy)
    records = [record for example in examples if isinstance(example, list) for record in example]
    for place, example in enumerate(examples):
        if isinstance(example, Pair):
            yield example
        elif isinstance(example, list):
            yield from _neighbours(example, records[place:] + records, relations)
        else:
            raise UsageError(
                "domain: expected a strategy of lists or of audit.Pair; it gave "
                f"{type(example).__name__}"
            )


def _neighbours(data: list[Any], records: list[Any], relations: Sequence[str]) -> Iterator[Pair]:
    other = next((r for r in records if not data or r != data[0]), None)
    if "replace-one" in relations and data and other is not None:
        yield Pair(data, [other, *data[1:]], f"one of {len(data)} replaced", "replace-one")
    if "add-remove" in relations:
        if data:
            yield Pair(data, data[1:], f"one of {len(data)} removed", "add-remove")
        if other is not None:
            yield Pair(data, [*data, other], f"one added to {len(data)}", "add-remove")


def _examples(strategy: Any) -> list[Any]:
    try:
        from hypothesis import HealthCheck, Phase, given, settings
    except ImportError:
        raise UsageError(
            "domain: a strategy needs hypothesis; install it, or declare bounds or categories"
        ) from None
    found: list[Any] = []

    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found
