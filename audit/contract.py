"""The executable contract of a mechanism: one short experiment per line of ``audit check``."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from audit.attack import Game
from audit.checks import (
    GROUPS,
    LEVEL,
    Check,
    batch_views,
    independent,
    same_seed_same_view,
    snapshot,
)
from audit.claim import AnyClaim
from audit.errors import MechanismError, UsageError
from audit.exact import difference
from audit.mechanism import FAILURES, Mechanism, capability, play, play_singly, plays_one
from audit.memory import repeats_its_answer
from audit.pair import Pair
from audit.streams import Phase, Side, stream
from audit.view import Floats, Views, concatenate, project, same_views

_CASE = "check"
_SIZE = 16
_SIZES = (1, 2, 5)
_BETWEEN, _LOOPED = GROUPS + 1, GROUPS + 2


@dataclass(frozen=True)
class Subject:
    """A mechanism with what its contract speaks of.

    Attributes:
        mechanism: The mechanism.
        pairs: Its neighbouring inputs.
        claim: Its claim.
        view: Audited projection; the claim's own when empty.
        seed: Root of the random streams.
    """

    mechanism: Mechanism
    pairs: Sequence[Pair]
    claim: AnyClaim
    view: str = ""
    seed: int = 0

    @property
    def pair(self) -> Pair:
        """A copy of the first pair, so that no check sees what another's runs did to it."""
        return copy.deepcopy(self.pairs[0])

    @property
    def game(self) -> Game:
        """The mechanism on its first pair, in the audited view."""
        return Game(self.mechanism, self.pair, self.view or self.claim.view)

    @cached_property
    def groups(self) -> list[Views]:
        """Views of a few calls of a few trials each, on the left input."""
        return batch_views(self.game, _CASE, self.seed, _SIZE)

    def rng(self, block: int, side: Side = Side.LEFT) -> np.random.Generator:
        """A stream of its own."""
        return stream(self.seed, _CASE, Phase.CONTRACT, side, block)


def check_mechanism(
    mechanism: Mechanism, pairs: Sequence[Pair], claim: AnyClaim, view: str = "", seed: int = 0
) -> list[Check]:
    """All checks of the contract, in order; stops at the first that makes the rest meaningless.

    A mechanism that keeps its contract fails with probability at most 2e-4: by independence or by
    the comparison of calls with single trials, 1e-4 each. The other checks are exact.

    Args:
        mechanism: The mechanism.
        pairs: Its neighbouring inputs.
        claim: Its claim.
        view: Audited projection; the claim's own when empty.
        seed: Root of the random streams.

    Raises:
        UsageError: For an unknown view, or an input that the mechanism refuses.
    """
    subject = Subject(mechanism, pairs, claim, view, seed)
    lines: list[Check] = []
    for name, check in CHECKS.items():
        lines.append(check(subject))
        if name in _NEEDED and not lines[-1].passed:
            break
    return lines


def _claim(subject: Subject) -> Check:
    """Whether the claim is a privacy profile that an audit can confront."""
    points = subject.claim.points()
    profile = [subject.claim.delta_at(e) for e in np.linspace(0, 10, 21)]
    falls = all(0 <= b <= a <= 1 for a, b in pairwise(profile))
    source = f" ({subject.claim.source})" if subject.claim.source else ""
    if points and falls:
        return Check("claim", True, f"{subject.claim}{source}")
    why = "no profile that falls from at most 1" if points else "too weak or strong to confront"
    return Check("claim", False, f"{subject.claim}{source}: {why}")


def _pairs(subject: Subject) -> Check:
    """Whether all pairs are different neighbours of the claim's relation."""
    relation = subject.claim.relation
    if not subject.pairs:
        return Check("pairs", False, "pairs() returned none")
    wrong = [
        p.label or f"differs at {p.position}"
        for p in subject.pairs
        if relation != "declared" and p.relation != relation
    ]
    if wrong:
        return Check("pairs", False, f"not declared {relation}: {', '.join(wrong)}")
    equal = [p.label for p in subject.pairs if snapshot(p.left) == snapshot(p.right)]
    if equal:
        return Check("pairs", False, f"both inputs are the same: {', '.join(equal)}")
    return Check("pairs", True, f"{len(subject.pairs)} neighbouring pairs, relation {relation}")


def _runs(subject: Subject) -> Check:
    """Whether trials return."""
    pair = subject.pair
    views = [
        play(subject.mechanism, pair.side(left), _SIZES[-1], subject.rng(0, side))
        for left, side in ((True, Side.LEFT), (False, Side.RIGHT))
    ]
    raised = [str(form) for view in views for form in view.form[view.raised]]
    note = f", such as {raised[0].removeprefix('raised ')}" if raised else ""
    share = len(raised) / sum(len(view) for view in views)
    return Check("runs", share < 1, f"{share:.0%} of the trials raised{note}")


def _leading_axis(subject: Subject) -> Check:
    """Whether every call returns one entry per trial, whatever their number."""
    for n in _SIZES:
        play(subject.mechanism, subject.pair.left, n, subject.rng(0))
    return Check("leading axis", True, f"one entry per trial for {_SIZES} trials")


def _view(subject: Subject) -> Check:
    """Whether the mechanism emits the view that the claim is about."""
    views = play(subject.mechanism, subject.pair.left, _SIZES[-1], subject.rng(0))
    shown = project(views, subject.game.view, subject.pair.differs or ())
    kinds = len(set(shown.form.tolist()))
    if not shown.names and not kinds:
        return Check("view", False, f"{subject.game.view} shows nothing")
    return Check("view", True, f"{subject.game.view}: {len(shown.names)} leaves, {kinds} form(s)")


def _finite(subject: Subject) -> Check:
    """Whether numbers are finite, but for columns that the mechanism names in ``not_finite``."""
    declared = capability(subject.mechanism, "not_finite") or ()
    odd = sorted({name for views in subject.groups for name in _odd(views)} - set(declared))
    if odd:
        names = ", ".join(odd[:3])
        return Check("finite", False, f"infinite or NaN in {names}; declare them in not_finite")
    note = f", but for the declared {', '.join(declared)}" if declared else ""
    return Check("finite", True, f"all numbers finite{note}")


def _odd(views: Views) -> list[str]:
    return [n for n, c in views.columns.items() if not np.isfinite(c[~views.raised]).all()]


def _inputs_kept(subject: Subject) -> Check:
    """Whether a run leaves its input as it was."""
    game = subject.game
    before = snapshot(game.pair.left), snapshot(game.pair.right)
    for left in (True, False):
        game.play(left, _SIZES[-1], subject.rng(_BETWEEN))
    same = before == (snapshot(game.pair.left), snapshot(game.pair.right))
    return Check("inputs kept", same, "unchanged" if same else "run changed its input")


def _seeding(subject: Subject) -> Check:
    """Whether the same generator state gives the same view."""
    seeded = same_seed_same_view(subject.game, _CASE, subject.seed, 8)
    return Check("seeding", seeded, "same seed, same view" if seeded else "draws elsewhere")


def _no_state(subject: Subject) -> Check:
    """Whether a run on the other input leaves nothing behind."""
    first = subject.game.play(True, 8, subject.rng(0))
    subject.game.play(False, 8, subject.rng(_BETWEEN, Side.RIGHT))
    same = same_views(first, subject.game.play(True, 8, subject.rng(0)))
    note = "nothing is left of a run" if same else "a run changes the next one, or draws elsewhere"
    return Check("hidden state", same, note)


def _memory(subject: Subject) -> Check:
    """Whether later runs draw anew instead of repeating the first answer.

    It comes before all other runs: a cache shows while it fills.
    """
    try:
        remembers = repeats_its_answer(subject.game, _CASE, subject.seed)
    except UsageError:
        raise
    except (MechanismError, *FAILURES):  # the next lines say what is wrong
        return Check("memory", True, "cannot be played")
    note = "later runs repeat the first answer" if remembers else "no answer kept"
    return Check("memory", not remembers, note)


def _sensitivity(subject: Subject) -> Check:
    """An exact statement about runs without noise; nothing where nothing exact can be said."""
    found = difference(subject.game)
    if found is None:
        return Check("sensitivity", True, "nothing exact can be said about runs without noise")
    complaint = found.complaint(subject.claim)
    return Check("sensitivity", not complaint, complaint or str(found))


def _independence(subject: Subject) -> Check:
    """Whether the trials of one call are independent."""
    apart = independent(subject.groups)
    note = "trials independent" if apart else "trials of one call share draws"
    return Check("independence", apart, note)


def _batch(subject: Subject) -> Check:
    """Whether trials of a call follow the law of trials played one by one."""
    if plays_one(subject.mechanism):
        return Check("batch", True, "one call per trial")
    pair = subject.pair
    single = play_singly(subject.mechanism, pair.left, GROUPS * _SIZE, subject.rng(_LOOPED))
    shown = project(single, subject.game.view, pair.differs or ())
    same = same_law(subject.groups, shown)
    note = "a call of many trials is like as many calls of one"
    return Check("batch", same, note if same else f"not so: {note}")


def same_law(groups: Sequence[Views], single: Views) -> bool:
    """Whether every leaf looks alike in two samples of equal size.

    Two-sample Kolmogorov-Smirnov distances of all leaves and of the form, at a level of 1e-4 in
    all. Why this is valid: with n trials each, P(distance > d) <= e exp(-n d^2) for every law (Wei
    and Dudley 2012, Theorem 1), and ties only make distances smaller; leaves share the level.
    """
    pooled = groups[0]
    for group in groups[1:]:
        pooled = concatenate(pooled, group)
    rows = _with_form(concatenate(pooled, single))
    n, leaves = len(single), rows.shape[1]
    allowed = math.sqrt(math.log(math.e * leaves / LEVEL) / n)
    return bool(np.all(_distances(rows, n) <= allowed))


def _with_form(views: Views) -> Floats:
    codes = np.unique(views.form.astype(str), return_inverse=True)[1]
    numbers = np.nan_to_num(views.matrix(), nan=-1.5e300, posinf=1e300, neginf=-1e300)
    return np.column_stack([numbers, codes])


def _distances(rows: Floats, n: int) -> Floats:
    """Kolmogorov-Smirnov distance per column between the first and the last `n` rows."""
    order = rows.argsort(axis=0, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=0)
    steps = np.where(order < n, 1.0, -1.0).cumsum(axis=0) / n
    ends = np.vstack([ordered[1:] != ordered[:-1], np.ones((1, rows.shape[1]), dtype=bool)])
    return np.asarray(np.where(ends, np.abs(steps), 0.0).max(axis=0))


def _picklable(subject: Subject) -> Check:
    """Whether the mechanism can be sent to a worker process, and plays the same there."""
    import cloudpickle

    try:
        sent = cloudpickle.loads(cloudpickle.dumps(subject.mechanism))
        play(sent, subject.pair.left, 1, subject.rng(0))
    except Exception as error:  # noqa: BLE001  (whatever breaks is the finding)
        return Check("picklable", False, f"runs in one process only: {error}")
    return Check("picklable", True, "can run in worker processes")


def _guarded(name: str, check: Callable[[Subject], Check]) -> Callable[[Subject], Check]:
    """A check whose failure to finish is its finding; bad input stays bad input."""

    def guarded(subject: Subject) -> Check:
        try:
            return check(subject)
        except UsageError:
            raise
        except (MechanismError, *FAILURES) as error:
            return Check(name, False, f"{type(error).__name__}: {error}")

    return guarded


_ALL: Mapping[str, Any] = {
    "claim": _claim,
    "pairs": _pairs,
    "memory": _memory,
    "runs": _runs,
    "leading axis": _leading_axis,
    "view": _view,
    "finite": _finite,
    "inputs kept": _inputs_kept,
    "seeding": _seeding,
    "hidden state": _no_state,
    "independence": _independence,
    "batch": _batch,
    "sensitivity": _sensitivity,
    "picklable": _picklable,
}
_NEEDED = ("claim", "pairs", "runs", "leading axis", "view")
CHECKS: Mapping[str, Callable[[Subject], Check]] = {
    name: _guarded(name, check) for name, check in _ALL.items()
}
"""The contract: name to experiment, in order."""
