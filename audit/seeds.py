"""The ``seed`` threat: few seeds, and state that trials share.

Whoever knows the code and can try all of its seeds can undo the noise. Few seeds show as views
that repeat to the last bit although their numbers look continuous; with N trials about N^2 / 10
seeds can be seen. State shows as a trial that comes out differently when it is played again later.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audit.attack import Game
from audit.memory import one
from audit.record import Finding, PlannedCase
from audit.streams import Phase, Side, stream
from audit.view import Floats, Views, concatenate, same_views

_REPLAYS = 6
_MOST_TRIALS = 1024
_FEWEST_REPEATS = 5
_FEWEST_VALUES = 16


def seed_findings(game: Game, planned: PlannedCase, seed: int) -> tuple[tuple[Finding, ...], int]:
    """What the ``seed`` threat finds, and the trials that it took."""
    count = min(_MOST_TRIALS, max(64, planned.scouting // 4))
    views = [one(game, rng) for rng in _streams(planned.name, seed, count)]
    found = []
    if _depends_on_the_past(game, planned.name, seed, views):
        message = "a trial played again later, from the same generator state, gave another view"
        found.append(Finding.about(planned, "DP022", message))
    seeds = few_seeds(views)
    if seeds is not None:
        message = f"{count} trials repeat each other as if there were about {seeds:,} seeds in all"
        found.append(Finding.about(planned, "DP021", message))
    return tuple(found), count + 3 * _REPLAYS


def _streams(case: str, seed: int, count: int) -> Iterator[np.random.Generator]:
    return (stream(seed, case, Phase.SEED, Side.LEFT, block) for block in range(count))


def _depends_on_the_past(game: Game, case: str, seed: int, views: list[Views]) -> bool:
    """Whether trials played again after others come out differently, but not when at once."""
    at_once = [one(game, next(_streams(case, seed, 1))) for _ in range(2)]
    for rng in _streams(case, seed, _REPLAYS):
        one(game, rng, left=False)
    later = [one(game, rng) for rng in _streams(case, seed, _REPLAYS)]
    changed = not all(same_views(a, b) for a, b in zip(views, later, strict=False))
    return changed and same_views(*at_once)


def few_seeds(views: list[Views]) -> int | None:
    """Estimated number of seeds, where whole views repeat although their numbers are continuous.

    Args:
        views: One trial each, from independent generators.

    Returns:
        None when nothing repeats, or repeats are natural: few values, or values on a lattice.
    """
    pooled = views[0]
    for view in views[1:]:
        pooled = concatenate(pooled, view)
    rows = np.nan_to_num(pooled.matrix(), nan=1.5e300)
    if not any(_looks_continuous(np.unique(column)) for column in rows.T):
        return None
    _, counts = np.unique(rows, axis=0, return_counts=True)
    repeats = int((counts * (counts - 1) // 2).sum())
    pairs = len(rows) * (len(rows) - 1) // 2
    return round(pairs / repeats) if repeats >= _FEWEST_REPEATS else None


def _looks_continuous(values: Floats) -> bool:
    """Whether sorted distinct values are many and no multiples of their smallest distance."""
    if len(values) < _FEWEST_VALUES or not np.isfinite(values).all():
        return False
    steps = np.diff(values)
    multiples = steps / steps.min()
    return bool(np.mean(np.abs(multiples - np.rint(multiples)) > 0.01) > 0.25)
