"""Does a mechanism remember? A cache that outlives a call makes later trials repeat earlier ones.

A mechanism that answers a question once and repeats the answer may be private, but its trials say
nothing: the first drew the noise, and all others copy it. It looks exactly like a release without
noise. What tells them apart is that the first play drew random numbers.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import cloudpickle
import numpy as np

from audit.attack import Game
from audit.mechanism import FAILURES, FunctionMechanism
from audit.streams import Phase, Side, stream
from audit.view import Views, collect, project

_PLAYS = 3
_PATIENCE = 120.0
_CHILD = (
    "import sys, pickle\n"
    "sys.path[:0] = pickle.load(sys.stdin.buffer)\n"
    "game = pickle.load(sys.stdin.buffer)\n"
    "from audit.memory import plays_of\n"
    "sys.exit(10 + plays_of(game, 'memory', 0, 1)[0].drew)\n"
)


@dataclass(frozen=True)
class Play:
    """One trial, and whether it drew random numbers."""

    views: Views
    drew: bool


def repeats_its_answer(game: Game, case: str, seed: int) -> bool:
    """Whether a first play draws its noise and later ones, without drawing, repeat its answer.

    When not even the first play drew anything, it may not have been the first in this process; so
    the mechanism is played once more in a process of its own.

    Args:
        game: The game; its left input is played three times.
        case: Name of the case.
        seed: Root of all random streams.
    """
    plays = plays_of(game, case, seed, _PLAYS)
    first, *later = plays
    if any(play.drew for play in later) or not all(same(first.views, p.views) for p in later):
        return False
    return first.drew or _draws_elsewhere(game)


def plays_of(game: Game, case: str, seed: int, count: int) -> list[Play]:
    """Trials on the left input, with a stream each."""
    return [
        _play(game, stream(seed, case, Phase.CONTRACT, Side.LABELS, block))
        for block in range(count)
    ]


def _play(game: Game, rng: np.random.Generator) -> Play:
    before = _state(rng)
    views = one(game, rng)
    return Play(views, _state(rng) != before)


def one(game: Game, rng: np.random.Generator, *, left: bool = True) -> Views:
    """One trial that draws from `rng` itself."""
    mechanism = game.mechanism
    if not isinstance(mechanism, FunctionMechanism) or mechanism.batched:
        return replace(game, grid=None).play(left, 1, rng)
    try:
        emitted = mechanism.function(game.pair.side(left), rng)
    except FAILURES as error:
        emitted = error
    return project(collect([emitted], 1), game.view, game.pair.differs or ())


def _state(rng: np.random.Generator) -> str:
    spawned = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return f"{spawned} {rng.bit_generator.state}"


def same(one: Views, other: Views) -> bool:
    """Whether two views are the same to the last bit."""
    alike = one.names == other.names and bool(np.all(one.form == other.form))
    return alike and bool(np.array_equal(one.matrix(), other.matrix(), equal_nan=True))


def _draws_elsewhere(game: Game) -> bool:
    """Whether the first play of a fresh process draws; False when that cannot be found out."""
    try:
        given = cloudpickle.dumps([str(Path.cwd()), *sys.path]) + cloudpickle.dumps(game)
        done = subprocess.run(  # noqa: S603  (this interpreter, this package)
            [sys.executable, "-c", _CHILD],
            input=given,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (*FAILURES, subprocess.SubprocessError):
        return False
    return done.returncode == 11
