"""Attacks: adversaries that look at views and say left or right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from audit.errors import MechanismError, UsageError
from audit.mechanism import FAILURES, Mechanism, play, play_singly
from audit.outcome import plain, raised
from audit.pair import Pair
from audit.quantise import Grid
from audit.timing import COLUMN as DURATION
from audit.timing import Clock, play_timed
from audit.view import Floats, Views, project

_LONGEST_COMPLAINT = 200


@dataclass(frozen=True)
class Game:
    """One frozen distinguishing game.

    Attributes:
        mechanism: What is played.
        pair: On which two inputs.
        view: What the adversary sees of it.
        grid: Rounding of the views; None while it is being found, or with the ``bits`` threat on.
        singly: Play every trial in a call of its own.
        timed: Add the duration of every trial, for the ``duration`` threat.
        clock: Scouted durations that others are compared with; None while they are being found.
    """

    mechanism: Mechanism
    pair: Pair
    view: str
    grid: Grid | None = None
    singly: bool = False
    timed: bool = False
    clock: Clock | None = None

    def play(self, left: bool, n: int, rng: np.random.Generator) -> Views:
        """Views of `n` independent trials on one side."""
        if self.timed:
            return self.play_sides({left: n, not left: 0}, {left: rng, not left: rng}, rng)[left]
        player = play_singly if self.singly else play
        views = player(self.mechanism, self.pair.side(left), n, rng)
        if n == 0:
            return views
        return self._seen(views)

    def play_sides(
        self,
        sizes: Mapping[bool, int],
        streams: Mapping[bool, np.random.Generator],
        order: np.random.Generator,
    ) -> dict[bool, Views]:
        """Views of both sides: in the order of `sizes`, or interleaved when trials are timed."""
        if not self.timed:
            return {side: self.play(side, n, streams[side]) for side, n in sizes.items()}
        inputs = {side: self.pair.side(side) for side in (True, False)}
        played = play_timed(self.mechanism, inputs, sizes, streams, order)
        return {side: self._seen(*played[side]) for side in sizes}

    def complaint(self) -> str:
        """What an exception on the left input says; empty when none is raised this time."""
        try:
            self.mechanism.run(self.pair.left, 1, np.random.default_rng(0))
        except (*FAILURES, UsageError, MechanismError) as error:
            return " ".join(plain(raised(error).message).split())[:_LONGEST_COMPLAINT]
        return ""

    def _seen(self, views: Views, seconds: Floats | None = None) -> Views:
        """What the adversary sees of all that was emitted."""
        if not len(views):
            return views
        seen = project(views, self.view, self.pair.differs or ())
        if seconds is not None:
            seen = Views(seen.form, {**seen.columns, DURATION: seconds})
            seen = self.clock.apply(seen) if self.clock else seen
        return self.rounded(seen)

    def rounded(self, views: Views) -> Views:
        """Views on the rounding grid, when there is one."""
        return self.grid.apply(views) if self.grid else views


class Scorer(Protocol):
    """A fitted attack: a pure, picklable function of views.

    A scorer may state ``log_odds = True`` when its scores are exact log-likelihood ratios, and
    must state ``rowwise = False`` when a score may change with the other trials of the call.

    Attributes:
        description: The event in words, for reports.
    """

    @property
    def description(self) -> str:
        """The event in words, for reports."""

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,): the larger, the more the view looks like the left input."""


class Attack(Protocol):
    """How to choose a scorer from scouted views.

    Why a wrong attack is harmless: the score is only a score. A bad one costs power; validity
    rests on fresh labels alone (see `audit.bounds`).

    Attributes:
        name: Catalogue name.
        slow: Whether it is fitted only when the cheap attacks leave room.
        learns: Whether fitting looks at the views; then the bins need views of their own.
    """

    @property
    def name(self) -> str:
        """Catalogue name."""

    @property
    def slow(self) -> bool:
        """Whether fitting is expensive."""

    @property
    def learns(self) -> bool:
        """Whether fitting looks at the views."""

    def applies(self, game: Game) -> bool:
        """Whether this attack can look at this game at all."""

    def fit(
        self, game: Game, left_views: Views, right_views: Views, rng: np.random.Generator
    ) -> Scorer:
        """Learn a scorer from scouting trials of both sides."""


def labelled(left_views: Views, right_views: Views) -> tuple[Views, Any]:
    """Both sides as one block and the labels (1 = left), shape (n,)."""
    from audit.view import concatenate

    labels = np.concatenate([np.ones(len(left_views)), np.zeros(len(right_views))])
    return concatenate(left_views, right_views), labels
