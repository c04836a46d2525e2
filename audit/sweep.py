"""Sweeps: the same mechanism at several values of one parameter, to see the bound follow it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.errors import UsageError

STEPS = 6
MOST_STEPS = 50
_FORM = "expected name=low:high or name=low:high:steps with 0 < low <= high, such as epsilon=0.1:4"


@dataclass(frozen=True)
class Sweep:
    """One parameter and its values.

    Attributes:
        name: Keyword of the target, such as ``epsilon``.
        values: Its values, increasing.
    """

    name: str
    values: tuple[float, ...]


def parse_sweep(text: str) -> Sweep:
    """Read ``name=low:high[:steps]``: values in equal ratios, both ends included.

    Raises:
        UsageError: For another form, or more than 50 steps.
    """
    name, _, interval = text.partition("=")
    parts = interval.split(":")
    try:
        low, high = float(parts[0]), float(parts[1])
        steps = int(parts[2]) if len(parts) > 2 else STEPS
    except (ValueError, IndexError):
        raise UsageError(f"--sweep {text!r}: {_FORM}") from None
    possible = 0 < low <= high < math.inf and len(parts) <= 3 and name.strip().isidentifier()
    if not (possible and 1 <= steps <= MOST_STEPS):
        raise UsageError(f"--sweep {text!r}: {_FORM}, and 1 to {MOST_STEPS} steps")
    values = np.geomspace(low, high, steps if high > low else 1)
    values[0], values[-1] = low, high
    return Sweep(name.strip(), tuple(dict.fromkeys(float(f"{value:.4g}") for value in values)))


def settled(name: str, value: float, known: Mapping[str, Any]) -> dict[str, Any]:
    """One value as a keyword argument; a whole number where the target has one."""
    whole = isinstance(known.get(name), int) and not isinstance(known.get(name), bool)
    return {name: round(value) if whole else value}


def suffix(parameters: Mapping[str, float]) -> str:
    """What the name of a swept case ends with, such as `` epsilon=0.5``."""
    return "".join(f" {name}={value:.4g}" for name, value in parameters.items())


def words(parameters: Mapping[str, float]) -> tuple[str, ...]:
    """Command-line words that reproduce one value of a sweep."""
    return tuple(
        word
        for name, value in parameters.items()
        for word in ("--sweep", f"{name}={value!r}:{value!r}:1")
    )


def steps_of(text: str) -> list[dict[str, float]]:
    """The parameters at each step of ``--sweep``; one step that changes nothing without a text."""
    if not text:
        return [{}]
    sweep = parse_sweep(text)
    return [{sweep.name: value} for value in sweep.values]
