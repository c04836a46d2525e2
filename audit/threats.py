"""Threats that are looked at only when asked for; every report says which were.

* ``bits``: trailing bits of floating-point numbers, so nothing is rounded;
* ``duration``: how long a trial takes, as one more number of the view;
* ``seed``: few seeds, and state that trials share.
"""

from __future__ import annotations

from collections.abc import Sequence

from audit.errors import UsageError

THREATS = ("bits", "duration", "seed")


def in_scope(names: Sequence[str]) -> dict[str, bool]:
    """Every threat, and whether it was asked for.

    Raises:
        UsageError: For an unknown threat.
    """
    unknown = [name for name in names if name not in THREATS]
    if unknown:
        raise UsageError(f"threat {unknown[0]!r}: expected one of {', '.join(THREATS)}")
    return {name: name in names for name in THREATS}
