"""The contract of a mechanism, as short experiments.

Every bound needs independent trials. A batched function that shares a draw between the trials of
one call, or state that survives a call, breaks that silently; these experiments find it before
anything testifies. A false alarm costs time, a miss costs validity, so their level is no smaller
than comfort asks for; `audit.judge` looks again at the blocks that testified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from scipy import special

from audit.attack import Game
from audit.streams import Phase, Side, stream
from audit.view import Floats, Views, concatenate, same_views

GROUPS = 8
LEVEL = 1e-4


@dataclass(frozen=True)
class Check:
    """One line of ``python -m audit check``.

    Attributes:
        name: What was checked.
        passed: Whether it holds.
        message: What was seen.
    """

    name: str
    passed: bool
    message: str


def batch_views(game: Game, case: str, seed: int, size: int) -> list[Views]:
    """Views of `GROUPS` calls of `size` trials each, on the left input."""
    return [
        game.play(True, size, stream(seed, case, Phase.CONTRACT, Side.LEFT, block))
        for block in range(GROUPS)
    ]


def independent(groups: Sequence[Views]) -> bool:
    """Whether the trials of one call look as different as trials of different calls.

    Two tests, each at a level of 1e-4 in all (measured: 1e-3 for calls of four trials, where the
    law of F is a rough guide so far out; an alarm makes an audit slower, not wrong): a rank
    analysis of variance between calls per leaf (Kruskal and Wallis 1952), which sees a draw that
    all trials of a call share, and a count of equal rows within and across calls, which sees draws
    that some of them share.
    """
    pooled = groups[0]
    for group in groups[1:]:
        pooled = concatenate(pooled, group)
    rows = pooled.matrix()
    sizes = [len(group) for group in groups]
    return not (_calls_differ(rows, len(groups), sizes[0]) or _repeats(rows, len(groups), sizes[0]))


def _calls_differ(rows: Floats, groups: int, size: int) -> bool:
    values = np.nan_to_num(rows, nan=0.0, posinf=1e300, neginf=-1e300)
    if values.shape[1] == 0:
        return False
    order = values.argsort(axis=0, kind="stable")
    ranks = np.empty_like(values)
    np.put_along_axis(ranks, order, np.arange(len(values), dtype=float)[:, None], axis=0)
    ranks = _average_ties(values, ranks)
    grouped = ranks.reshape(groups, size, -1)
    means = grouped.mean(axis=1)
    between = size * ((means - ranks.mean(axis=0)) ** 2).sum(axis=0) / (groups - 1)
    within = ((grouped - means[:, None]) ** 2).sum(axis=(0, 1)) / (groups * (size - 1))
    varies = between > 0
    ratio = np.divide(between, within, out=np.full_like(between, np.inf), where=within > 0)
    tail = special.fdtrc(groups - 1, groups * (size - 1), ratio)
    level = LEVEL / values.shape[1]
    suspects = values[:, varies & (tail < level)].T.reshape(-1, groups, size)
    return any(_division(calls) < level for calls in suspects)


def _division(calls: Floats) -> float:
    """Probability that exchangeable trials share out these values among calls as they did.

    No test may call it rarer. It matters for a number that is nearly always the same: where four
    of the five exceptions fall into one call, the analysis of variance is wrong by thousands.

    Args:
        calls: One row per call.
    """
    kinds, which = np.unique(calls, return_inverse=True)
    table = np.stack([np.bincount(row, minlength=len(kinds)) for row in which.reshape(calls.shape)])
    sums = table.sum(axis=0), table.sum(axis=1)
    ways = sum(special.gammaln(counts + 1).sum() for counts in sums)
    ways -= special.gammaln(table.sum() + 1) + special.gammaln(table + 1).sum()
    return float(np.exp(ways))


def _average_ties(values: Floats, ranks: Floats) -> Floats:
    averaged, ordered = ranks.copy(), np.sort(values, axis=0)
    for column in np.flatnonzero((ordered[1:] == ordered[:-1]).any(axis=0)):
        _, where = np.unique(values[:, column], return_inverse=True)
        averaged[:, column] = (np.bincount(where, ranks[:, column]) / np.bincount(where))[where]
    return averaged


def _repeats(rows: Floats, groups: int, size: int) -> bool:
    """Equal rows within a call far more often than across calls."""
    call = np.repeat(np.arange(groups), size)
    _, where = np.unique(np.nan_to_num(rows, nan=1.5e300), axis=0, return_inverse=True)
    where = where.ravel()
    everywhere = _pairs(np.bincount(where))
    inside = sum(_pairs(np.bincount(where[call == c])) for c in range(groups))
    chance = (size - 1) / (groups * size - 1)
    if inside == 0:
        return False
    return float(special.betainc(inside, everywhere - inside + 1, chance)) < LEVEL


def _pairs(counts: Any) -> int:
    return int((counts * (counts - 1) // 2).sum())


def same_seed_same_view(game: Game, case: str, seed: int, size: int) -> bool:
    """Whether two plays from the same generator state give identical views."""
    first, second = (
        game.play(True, size, stream(seed, case, Phase.CONTRACT, Side.LEFT, 0)) for _ in range(2)
    )
    return same_views(first, second)


def snapshot(data: Any) -> bytes:
    """What an input holds, to see later whether a run changed it."""
    try:
        return msgspec.json.encode(data, enc_hook=lambda x: np.asarray(x).tolist())
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):
        return repr(data).encode()
