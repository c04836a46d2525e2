"""Extensions of other packages: entry points, loaded with errors that name their package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import Any

from audit.errors import UsageError


def points(group: str) -> Iterator[metadata.EntryPoint]:
    """Entry points of a group, in the order of their names.

    Args:
        group: Such as ``audit.mechanisms``.
    """
    yield from sorted(metadata.entry_points(group=group), key=lambda point: point.name)


def load(point: metadata.EntryPoint) -> Any:
    """What an entry point names.

    Raises:
        UsageError: When it cannot be imported.
    """
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  (a package may raise anything)
        package = point.dist.name if point.dist else "an unknown package"
        raise UsageError(
            f"entry point {point.name!r} of {package} ({point.group}): cannot load {point.value}: "
            f"{type(error).__name__}: {error}. Repair or uninstall that package"
        ) from None


def add(found: dict[str, Any], new: dict[str, Any], point: metadata.EntryPoint) -> None:
    """Add names to a catalogue.

    Raises:
        UsageError: When a name is taken.
    """
    twice = sorted(set(found) & set(new))
    if twice:
        package = point.dist.name if point.dist else "an unknown package"
        raise UsageError(
            f"entry point {point.name!r} of {package} ({point.group}): the name {twice[0]!r} is "
            "taken by another package; rename or uninstall one of them"
        )
    found |= new
