"""Pair search: from many proposed pairs to the few that scouting looks at closely.

Successive halving (Karnin, Koren and Somekh 2013): all proposals are played a few times, the better
half goes on with twice as many trials, and so on; then pairs close to the best ones get the same
chance. What a pair leaks without noise counts too, where it is known.

Why this is valid: everything here is scouting, on streams of its own; whatever pair comes out, it
testifies on fresh trials.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from audit.attack import Game
from audit.errors import MechanismError, UsageError
from audit.exact import difference
from audit.mechanism import play
from audit.pair import Pair
from audit.plan import Case, as_json
from audit.record import Tried
from audit.streams import Phase, Side, stream
from audit.view import Floats, Views, concatenate

_SHARE = 0.5
_REFINED_SHARE = 0.4
_FEWEST = 4
_KEPT = 3
_REFINED = 2
_MOST_COLUMNS = 256
_MOST_DRAWS = 32
_ASKED = 2**31  # pairs have lower addresses
_UNPLAYABLE = -1.0  # evidence of a pair of which no trial returned; any other is above -1/2


@dataclass
class _Candidate:
    """A pair under consideration.

    Attributes:
        index: Address of its streams.
        parent: Index of the proposal that it comes from.
        game: The game on it.
        loss: Its exact loss without noise; None where that is not known.
        evidence: How clearly the trials so far tell its sides apart.
        left: Views so far.
        right: Views so far.
        trials: Trials so far.
    """

    index: int
    parent: int
    game: Game
    loss: float | None = None
    evidence: float = 0.0
    left: Views | None = None
    right: Views | None = None
    trials: int = field(default=0)

    @property
    def playable(self) -> bool:
        """Whether trials of it return."""
        return self.evidence != _UNPLAYABLE

    @property
    def rank(self) -> float:
        """What candidates are ordered by: what trials show, or what is known without noise."""
        exact = -math.expm1(-self.loss) / 2 if self.loss else 0.0
        return max(exact, self.evidence) if self.playable else self.evidence

    def play(self, per_side: int, case: str, seed: int) -> None:
        """Play more trials; a pair that cannot be played, or only raises, is no candidate."""
        block = self.trials
        self.trials += 2 * per_side
        if not self.playable:
            return
        try:
            fresh = [
                self.game.play(
                    left, per_side, stream(seed, case, Phase.SEARCH, side, block, self.index)
                )
                for left, side in ((True, Side.LEFT), (False, Side.RIGHT))
            ]
        except (UsageError, MechanismError):
            self.evidence = _UNPLAYABLE
            return
        self.left = concatenate(self.left, fresh[0]) if self.left else fresh[0]
        self.right = concatenate(self.right, fresh[1]) if self.right else fresh[1]
        self.evidence = evidence(self.left, self.right)


@dataclass(frozen=True)
class Searched:
    """What came out of a search.

    Attributes:
        case: The case with the pairs that are left, the best first.
        origins: Index of the proposal that each of them comes from.
        tried: Every pair that was tried, in order.
        trials: Trials spent.
    """

    case: Case
    origins: tuple[int, ...]
    tried: tuple[Tried, ...]
    trials: int


def search(case: Case, seed: int) -> Searched:
    """Thin out the pairs of a case and refine the best ones.

    Args:
        case: A case with a domain.
        seed: Root of all random streams.

    Raises:
        MechanismError: When no pair could be played.
    """
    budget = int(case.planned.scouting * _SHARE)
    jumps, asked = _jumps(case, seed)
    first = [_candidate(case, i, i, pair) for i, pair in enumerate(case.pairs)]
    first = [*(_candidate(case, len(first) + i, 0, pair) for i, pair in enumerate(jumps)), *first]
    best = _halve(first, _spend(budget * (1 - _REFINED_SHARE)), case, seed)
    best = [c for c in best if c.playable]
    if not best:
        raise MechanismError(_why_none(first[-1].game))
    closer = _refined(case, best[:_REFINED], len(first))
    better = _halve(closer, _spend(budget * _REFINED_SHARE), case, seed) if closer else []
    alive = [c for c in better if c.playable]
    kept = sorted([*best, *alive], key=lambda c: c.rank, reverse=True)[:_KEPT]
    tried = [c for c in (*first, *closer) if c.trials]
    return Searched(
        replace(case, pairs=tuple(c.game.pair for c in kept)),
        tuple(c.parent for c in kept),
        tuple(_tried(c) for c in tried),
        sum(c.trials for c in tried) + asked,
    )


def _why_none(game: Game) -> str:
    """Why no pair was left, with what one of them says and what it was given."""
    said, given = game.complaint(), as_json(game.pair.left)
    example = f"; on {given}: {said}" if said else f"; the last input was {given}"
    return (
        f"no pair of the domain could be played without an exception{example}. "
        'If inputs are lists of records, state "sizes"; if vectors, "dimension"'
    )


def _jumps(case: Case, seed: int) -> tuple[Sequence[Pair], int]:
    """Pairs between which the mechanism begins to raise, and the trials that finding them took."""
    name, asked = case.planned.name, itertools.count()
    if case.domain is None or case.proposer is None:
        return (), 0

    def raises(data: Any) -> bool:
        rng = stream(seed, name, Phase.SEARCH, Side.LEFT, next(asked), _ASKED)
        try:
            return bool(play(case.mechanism, data, 1, rng).raised.all())
        except (UsageError, MechanismError):
            return True

    relations = case.domain.relations(case.planned.claim.relation)
    return case.proposer.jumps(case.domain, relations, raises), next(asked)


def _spend(trials: float) -> int:
    return max(int(trials), 4 * _FEWEST)


def _candidate(case: Case, index: int, parent: int, pair: Pair) -> _Candidate:
    found = _Candidate(index, parent, Game(case.mechanism, pair, case.planned.view))
    exact = difference(found.game, _MOST_DRAWS)
    found.loss = min(exact.loss, 1e6) if exact else None
    return found


def _refined(case: Case, best: Sequence[_Candidate], start: int) -> list[_Candidate]:
    if case.domain is None or case.proposer is None:
        return []
    close = [
        (parent.parent, pair)
        for parent in best
        for pair in case.proposer.refine(case.domain, parent.game.pair)
    ]
    return [_candidate(case, start + i, parent, pair) for i, (parent, pair) in enumerate(close)]


def _halve(found: Sequence[_Candidate], budget: int, case: Case, seed: int) -> list[_Candidate]:
    """The best few, by successive halving within a budget; the first ones where it is small."""
    alive = sorted(found, key=lambda c: math.inf if c.loss is None else c.loss, reverse=True)
    rounds = max(1, math.ceil(math.log2(max(len(alive), 2) / _KEPT)))
    alive = alive[: max(_KEPT, budget // (2 * _FEWEST * rounds))]
    rounds = max(1, math.ceil(math.log2(max(len(alive), 2) / _KEPT)))
    for _ in range(rounds):
        per_side = max(_FEWEST, budget // (2 * rounds * len(alive)))
        for candidate in alive:
            candidate.play(per_side, case.planned.name, seed)
        ranked = sorted(alive, key=lambda c: c.rank, reverse=True)
        alive = ranked[: max(_KEPT, math.ceil(len(ranked) / 2))]
    return alive


def _tried(candidate: _Candidate) -> Tried:
    return Tried(
        label=candidate.game.pair.label,
        trials=candidate.trials,
        evidence=round(candidate.evidence, 4),
        loss=None if candidate.loss is None else round(candidate.loss, 4),
    )


def evidence(left: Views, right: Views) -> float:
    """How clearly two sides differ: the largest excess of an area under a curve over chance.

    Over all numbers, distances from their medians, differences of neighbouring ones, and forms;
    less one standard error, so that many trials count for more than few.

    Returns:
        Between -1/2 and 1/2; -1 when no trial of either side returned.
    """
    forms = [np.array([str(form) for form in side.form]) for side in (left, right)]
    if left.raised.all() and right.raised.all():
        return _UNPLAYABLE
    error = math.sqrt((1 / len(left) + 1 / len(right)) / 12)
    kinds = np.unique(np.concatenate(forms))
    by_form = max(float(abs(np.mean(forms[0] == k) - np.mean(forms[1] == k))) / 2 for k in kinds)
    rows = concatenate(left, right).matrix()[:, :_MOST_COLUMNS]
    features = _features(np.nan_to_num(rows, nan=-1e300, posinf=1e300, neginf=-1e300))
    if not features.shape[1]:
        return by_form - error
    from scipy import stats  # a search alone needs it, and it is slow to import

    ranks = stats.rankdata(features, axis=0)
    mean = ranks[: len(left)].mean(axis=0)
    areas = (mean - (len(left) + 1) / 2) / len(right)
    return max(by_form, float(np.abs(areas - 0.5).max())) - error


def _features(rows: Floats) -> Floats:
    if not rows.shape[1]:
        return rows
    with np.errstate(over="ignore"):
        spread = np.abs(rows - np.median(rows, axis=0))
        total = rows.sum(axis=1, keepdims=True)
        return np.concatenate([rows, spread, np.diff(rows, axis=1), total], axis=1)
