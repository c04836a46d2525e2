"""Scouting: try pairs and attacks on a small share of the budget, keep the most promising one.

Pairs and attacks are thinned out from stage to stage. Attacks are compared by what they may be
expected to certify with the budget that is left. Scouting ends early when a gross leak is in plain
sight.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from audit.attack import Game
from audit.budget import FEWEST_A_SIDE, contract_size, pairs_by_stage
from audit.certificate import climb
from audit.checks import independent, same_seed_same_view, snapshot
from audit.claim import RenyiClaim
from audit.errors import MechanismError
from audit.exact import difference
from audit.freeze import Budget, Frozen, freeze
from audit.isolate import ENDED
from audit.mechanism import CHANGES_ITS_INPUT, capability
from audit.memory import repeats_its_answer
from audit.outlook import chosen, has_room, in_plain_sight
from audit.plan import Case, pasted_pair
from audit.quantise import grid_of
from audit.record import Finding, Ladder, Plan, PlannedCase, Tried
from audit.renyi import renyi_bet
from audit.replay import event_of
from audit.search import Searched, search
from audit.seeds import seed_findings
from audit.sequences import Rounds, rounds_of
from audit.streams import Phase, Side, stream
from audit.timing import Clock
from audit.twin import twin_epsilon
from audit.view import Views, concatenate, joined

STAGES = (0.125, 0.375, 0.5)
_LEAST = 4
_LARGEST_CALL = 10_000
_ABOUT_AS_GOOD = 0.75
_KEPT_ATTACKS = 3

Streams = Mapping[bool, np.random.Generator]


@dataclass(frozen=True)
class Scouted:
    """What scouting found.

    Attributes:
        frozen: The choice that will testify, with its scorer.
        trials: Scouting trials spent.
        exceptions: Share of scouting trials that raised, left and right.
        notes: Findings of the contract tests.
        ladder: White-box certificate on the chosen pair, where there is one.
        twin: True epsilon of the noise-scaled twin that could be caught, where it is known.
        rounds: Sequences of the view over their rounds, for reports.
        seconds: Busy time.
        tried: The pairs that a search tried.
    """

    frozen: Frozen
    trials: int
    exceptions: tuple[float, float]
    notes: tuple[Finding, ...]
    ladder: Ladder | None
    twin: float | None
    rounds: tuple[Rounds, ...]
    seconds: float
    tried: tuple[Tried, ...] = ()


@dataclass
class _Track:
    """One pair under consideration, with all views scouted on it so far."""

    index: int
    game: Game
    left: Views | None = None
    right: Views | None = None
    played: int = 0
    best: Frozen | None = field(default=None)
    dropped: set[str] = field(default_factory=set)

    def extend(self, per_side: int, case: str, seed: int) -> None:
        """Play `per_side` more trials on each side; find the rounding grid on the first."""
        streams = {
            left: stream(seed, case, Phase.SCOUT, tag, self.played, self.index)
            for left, tag in ((True, Side.LEFT), (False, Side.RIGHT))
        }
        order = stream(seed, case, Phase.ORDER, Side.LEFT, self.played, self.index)
        fresh = self._played(per_side, streams, order)
        self.played += 2 * per_side
        if self.left is None or self.right is None:
            self.left, self.right = fresh
            return
        self.left, self.right = concatenate(self.left, fresh[0]), concatenate(self.right, fresh[1])

    def _played(self, per_side: int, streams: Streams, order: np.random.Generator) -> list[Views]:
        """Views of both sides, in calls that need no more memory however large the budget is."""
        sizes = [min(_LARGEST_CALL, per_side - n) for n in range(0, per_side, _LARGEST_CALL)]
        calls = [self.game.play_sides({True: n, False: n}, streams, order) for n in sizes]
        return [joined([call[side] for call in calls]) for side in (True, False)]

    def play_exceptions_singly(self) -> None:
        """Once a trial has raised, play each in a call of its own.

        A batched call that raises is played again; the trials of a call that does not are then no
        longer independent of one another, since all of them returned.
        """
        if max(_raised(self)) > 0:
            self.game = replace(self.game, singly=True)

    def rank_durations(self) -> None:
        """Freeze the durations that others are compared with, and put ranks in their place."""
        if self.left is None or self.right is None or self.game.clock is not None:
            return
        clock = Clock.of(self.left, self.right)
        self.game = replace(self.game, clock=clock)
        self.left, self.right = clock.apply(self.left), clock.apply(self.right)

    def round_views(self) -> None:
        """Freeze the rounding grid from the views so far and round them."""
        if self.left is None or self.right is None or self.game.grid is not None:
            return
        self.game = replace(self.game, grid=grid_of(concatenate(self.left, self.right)))
        self.left, self.right = self.game.rounded(self.left), self.game.rounded(self.right)


def scout_case(case: Case, plan: Plan) -> Scouted:
    """Choose what testifies for a case.

    Raises:
        MechanismError: When the mechanism cannot be played, or no trial of either side returns.
    """
    started = time.perf_counter()
    searched = search(case, plan.seed) if case.domain else None
    case = searched.case if searched else case
    planned = case.planned
    given = _inputs(case)
    notes, singly, spent = _contract(case, plan)
    timed = plan.threats.get("duration", False)
    spent += searched.trials if searched else 0
    tracks = [
        _Track(i, Game(case.mechanism, pair, planned.view, singly=singly, timed=timed))
        for i, pair in enumerate(case.pairs)
    ]
    budget = Budget(planned.claim, sum(planned.blocks), planned.shares.fixed)
    for stage, alive, per_side in _stages(planned, len(tracks), spent):
        tracks = _keep(tracks, alive)
        for track in tracks:
            track.extend(per_side, planned.name, plan.seed)
            if track.game.timed:
                track.rank_durations()
            if plan.rounding_bits:
                track.round_views()
            _require_returns(track)
            track.play_exceptions_singly()
            with np.errstate(over="ignore", invalid="ignore"):  # numbers near the largest double
                _fit_all(case, track, budget, plan.seed, last=stage == len(STAGES) - 1)
        spent += 2 * per_side * len(tracks)
        bests = [track.best for track in tracks if track.best]
        frozen = chosen(bests, planned, last=stage == len(STAGES) - 1)
        if plan.early_stop and in_plain_sight(frozen, planned, spent):
            break
    _require_inputs_kept(case, given)
    winner = next(track for track in tracks if track.best is frozen)
    ladder = climb(frozen.game, planned, plan.seed)
    twin = twin_epsilon(frozen, planned, plan.seed)
    notes += _ended(planned, tracks)
    notes += _noise_free(frozen.game, planned)
    rounds = rounds_of(winner.left, winner.right, planned.view, frozen.game.pair)
    seconds = time.perf_counter() - started
    frozen = _completed(frozen, searched, planned)
    tried = searched.tried if searched else ()
    return Scouted(frozen, spent, _exceptions(winner), notes, ladder, twin, rounds, seconds, tried)


def _completed(frozen: Frozen, searched: Searched | None, planned: PlannedCase) -> Frozen:
    """The choice with its pair in full, counted among the planned ones, and its Renyi bet."""
    choice, claim = frozen.choice, planned.claim
    trials, alpha, bet = sum(planned.blocks), planned.shares.parameter, None
    if isinstance(claim, RenyiClaim) and alpha > 0:
        bet = renyi_bet(frozen.belief, claim, trials=trials, alpha=alpha)
    index = searched.origins[choice.pair] if searched else choice.pair
    played = pasted_pair(frozen.game.pair)
    simple = event_of(frozen.scorer)
    changes = {"pair": index, "played": played, "simple": simple, "renyi": bet}
    return replace(frozen, choice=msgspec.structs.replace(choice, **changes))


def _contract(case: Case, plan: Plan) -> tuple[tuple[Finding, ...], bool, int]:
    """Contract tests: findings, whether trials must be played singly, and trials spent."""
    planned = case.planned
    size = contract_size(planned.trials)
    game = Game(case.mechanism, case.pairs[0], planned.view)
    if repeats_its_answer(game, planned.name, plan.seed):
        raise MechanismError(
            "later runs repeat the answer of the first, with the noise that it drew, so trials are "
            "not independent. Clear or drop the cache between runs"
        )
    notes = []
    if not same_seed_same_view(game, planned.name, plan.seed, size):
        message = "two plays from the same generator state differ; draw all randomness from rng"
        notes.append(Finding.about(planned, "DP007", message))
    groups = [
        game.play(True, size, stream(plan.seed, planned.name, Phase.CONTRACT, Side.LEFT, block))
        for block in range(1, 9)
    ]
    singly = not independent(groups)
    if singly:
        message = "trials of one call depend on each other; each is played in a call of its own"
        notes.append(Finding.about(planned, "DP009", message))
    spent = 10 * size
    if plan.threats.get("seed"):
        found, trials = seed_findings(game, planned, plan.seed)
        notes, spent = [*notes, *found], spent + trials
    return tuple(notes), singly, spent


def _noise_free(game: Game, planned: PlannedCase) -> tuple[Finding, ...]:
    """What the pair does without noise, where the mechanism says how much noise it adds."""
    if capability(game.mechanism, "declared_scale") is None:
        return ()
    found = difference(game)
    message = found.complaint(planned.claim) if found else ""
    return (Finding.about(planned, "DP020", message),) if message else ()


def _ended(planned: PlannedCase, tracks: list[_Track]) -> tuple[Finding, ...]:
    """A finding when trials ended the process that played them."""
    views = [v for track in tracks for v in (track.left, track.right) if v is not None]
    forms = {str(form) for v in views for form in v.form}
    how = sorted(form.removeprefix("raised ") for form in forms if ENDED in form)
    if not how:
        return ()
    note = Finding.about(planned, "DP030", f"{', '.join(how)} in scouting trials")
    return (msgspec.structs.replace(note, reproduce=f"{note.reproduce} --isolate"),)


def _stages(planned: PlannedCase, pairs: int, spent: int) -> Iterator[tuple[int, int, int]]:
    """Stage, pairs kept, and trials per side and pair."""
    left = max(planned.scouting - spent, 4 * FEWEST_A_SIDE)
    kept = pairs_by_stage(pairs)
    sizes = [
        max(FEWEST_A_SIDE, int(left * share / (2 * alive)))
        for share, alive in zip(STAGES, kept, strict=True)
    ]
    cost = sum(2 * size * alive for size, alive in zip(sizes, kept, strict=True))
    for stage, (size, alive) in enumerate(zip(sizes, kept, strict=True)):
        yield stage, alive, max(_LEAST, size * left // cost) if cost > left else size


def _keep(tracks: list[_Track], alive: int) -> list[_Track]:
    """The most promising pairs; among those that are about as good, the mechanism's order."""
    best = max(_promise(track) for track in tracks)
    level = 0 if best[0] > 0 else 1

    def rank(track: _Track) -> float:
        promise = _promise(track)[level]
        return -math.inf if promise >= _ABOUT_AS_GOOD * best[level] else -promise

    return sorted(tracks, key=rank)[:alive]


def _promise(track: _Track) -> tuple[float, float]:
    return (track.best.forecast, track.best.strength) if track.best else (0.0, 0.0)


def _fit_all(case: Case, track: _Track, budget: Budget, seed: int, *, last: bool) -> None:
    """Fit the battery on one half of the views, freeze on the other, keep the best.

    Only the most promising attacks are fitted again at the next stage.
    """
    left, right = track.left, track.right
    if left is None or right is None:
        return
    halves = [
        (v.take(np.arange(0, len(v), 2)), v.take(np.arange(1, len(v), 2))) for v in (left, right)
    ]
    (fit_left, keep_left), (fit_right, keep_right) = halves
    found: list[Frozen] = []
    any_cheap = any(not a.slow and a.applies(track.game) for a in case.attacks)
    for position, attack in enumerate(case.attacks):
        if attack.name in track.dropped or not attack.applies(track.game):
            continue
        if attack.slow and not (last and has_room(found)) and any_cheap:
            continue
        rng = stream(seed, case.planned.name, Phase.FIT, Side.LABELS, position, track.index)
        if attack.learns:
            scorer = attack.fit(track.game, fit_left, fit_right, rng)
            kept = keep_left, keep_right
        else:
            scorer = attack.fit(track.game, left, right, rng)
            kept = left, right
        found.append(freeze(track.game, attack, scorer, *kept, budget, track.index))
    if not found:
        raise MechanismError(f"case {case.planned.name!r}: no attack of the battery applies")
    track.best = chosen(found, case.planned, last=last)
    ranked = sorted(found, key=lambda f: (f.forecast, f.strength), reverse=True)
    track.dropped |= {
        frozen.choice.attack for frozen in ranked[_KEPT_ATTACKS:] if frozen.growth < 0
    }


def _require_returns(track: _Track) -> None:
    if track.left is not None and track.right is not None and min(_raised(track)) == 1.0:
        said = track.game.complaint()
        why = f"{track.left.form[0]}{': ' if said else ''}{said}"
        raise MechanismError(f"no trial of either side returned: {why}")


def _inputs(case: Case) -> list[bytes]:
    return [snapshot(pair.side(left)) for pair in case.pairs for left in (True, False)]


def _require_inputs_kept(case: Case, given: list[bytes]) -> None:
    """Trials that write to their input are played on what earlier trials left behind."""
    if _inputs(case) != given:
        raise MechanismError(CHANGES_ITS_INPUT)


def _raised(track: _Track) -> tuple[float, float]:
    shares = [float(views.raised.mean()) if views else 0.0 for views in (track.left, track.right)]
    return shares[0], shares[1]


def _exceptions(track: _Track) -> tuple[float, float]:
    return round(_raised(track)[0], 6), round(_raised(track)[1], 6)
