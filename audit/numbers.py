"""Numbers of any library that users give, as plain ones that a record can hold."""

from __future__ import annotations

import math
from numbers import Integral, Real

from audit.errors import UsageError


def number(given: object) -> float:
    """A plain number; nan for what is none, which no check of a range lets pass."""
    if not isinstance(given, Real):
        return math.nan
    try:
        return float(given)
    except OverflowError:
        return math.inf


def whole(given: object, place: str) -> int:
    """A plain whole number.

    Raises:
        UsageError: For anything else; `place` names the setting.
    """
    if isinstance(given, Integral):
        return int(given)
    if not number(given).is_integer():
        raise UsageError(f"{place}: expected a whole number, got {given!r}")
    return int(number(given))
