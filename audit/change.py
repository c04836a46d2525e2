"""What became of a case since its baseline."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["new", "known", "worse", "weaker audit", "resolved", "other claim", "absent"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """How a case stands against its baseline; a case about which nothing is to say has none.

    Attributes:
        status: ``new`` a refutation that is not accepted, ``known`` one that is, ``worse`` more
            leaks than the accepted attack measured, ``weaker audit`` less could have been caught,
            ``resolved`` no longer refuted, ``other claim`` or ``absent`` not comparable.
        note: The reason or the numbers, in words.
        accepted: Whether a refutation of the case is accepted.
    """

    status: Status
    note: str
    accepted: bool = False
