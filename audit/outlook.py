"""What frozen choices may be expected to do with the trials that are left."""

from __future__ import annotations

import math
from collections.abc import Sequence

from audit.freeze import Frozen, choose
from audit.record import PlannedCase

_SATISFIED = 0.9
_SURELY = 1.5
_ENOUGH = 2_000


def chosen(found: Sequence[Frozen], planned: PlannedCase, *, last: bool) -> Frozen:
    """The best forecast; where none refutes, a bet that may be expected to, on few sure trials.

    Args:
        found: The candidates.
        planned: The case's plan.
        last: Whether this is the last choice: the growth of a bet needs all of scouting, and no
            small one, to be told from luck.
    """
    best, surest = choose(found), max(found, key=lambda frozen: frozen.growth)
    wealth = surest.growth * sum(planned.blocks)
    wins = best.forecast <= 1 and wealth > -_SURELY * math.log(planned.shares.betting)
    return surest if wins and last and planned.scouting >= _ENOUGH else best


def has_room(found: Sequence[Frozen]) -> bool:
    """Whether a slow attack may still add something: no exact likelihood, and no clear result."""
    exact = any(getattr(frozen.scorer, "log_odds", False) for frozen in found)
    return not exact and max((f.forecast for f in found), default=0.0) < _SATISFIED


def in_plain_sight(frozen: Frozen, planned: PlannedCase, spent: int) -> bool:
    """Whether a bet may be expected to refute within the trials already spent.

    One against Renyi divergences grows at least as fast, and may have the larger share of alpha.
    """
    if frozen.growth <= 0:
        return False
    share = max(planned.shares.betting, planned.shares.renyi)
    return -math.log(share) / frozen.growth < spent
