"""Does a mechanism remember? A cache that outlives a call makes later trials repeat earlier ones.

A mechanism that answers a question once and repeats the answer may be private, but its trials say
nothing: the first drew the noise, and all others copy it. It looks exactly like a release without
noise. What tells them apart is that a fresh copy of it answers the last question differently.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import cloudpickle
import numpy as np

from audit.attack import Game
from audit.mechanism import FAILURES, outcome_of, plays_one
from audit.streams import Phase, Side, stream
from audit.view import Views, collect, project, same_views

_PLAYS = 4
_PATIENCE = 120.0
_CHILD = (
    "import sys, pickle\n"
    "sys.path[:0] = pickle.load(sys.stdin.buffer)\n"
    "game, case, seed, block = pickle.load(sys.stdin.buffer)\n"
    "from audit.memory import fingerprint, play\n"
    "sys.stdout.write('view ' + fingerprint(play(game, case, seed, block).views))\n"
)


@dataclass(frozen=True)
class Play:
    """One trial, and whether it drew random numbers."""

    views: Views
    drew: bool


def repeats_its_answer(game: Game, case: str, seed: int) -> bool:
    """Whether later plays only repeat what the first one drew.

    Where all plays give the same view, it is certain when only the first of them drew random
    numbers. Else a copy made before the first play answers the last question again, in a process
    of its own: without a cache the same generator state gives the same view there.

    Args:
        game: The game; its left input is played a few times.
        case: Name of the case.
        seed: Root of all random streams.
    """
    fresh = _packed((game, case, seed, _PLAYS - 1))
    first, *later = plays = [play(game, case, seed, block) for block in range(_PLAYS)]
    if not all(same_views(first.views, other.views) for other in later):
        return False
    if first.drew and not any(other.drew for other in later):
        return True
    there = _played_elsewhere(fresh)
    return bool(there) and there != fingerprint(plays[-1].views)


def play(game: Game, case: str, seed: int, block: int) -> Play:
    """A trial on the left input, on a stream of the contract tests."""
    rng = stream(seed, case, Phase.CONTRACT, Side.LABELS, block)
    before = _state(rng)
    views = one(game, rng)
    return Play(views, _state(rng) != before)


def fingerprint(views: Views) -> str:
    """What a view holds, in short."""
    body = repr((list(views.form), views.names)).encode() + views.matrix().tobytes()
    return hashlib.sha256(body).hexdigest()


def one(game: Game, rng: np.random.Generator, *, left: bool = True) -> Views:
    """One trial that draws from `rng` itself."""
    mechanism = game.mechanism
    if not plays_one(mechanism):
        return replace(game, grid=None).play(left, 1, rng)
    emitted = outcome_of(mechanism, game.pair.side(left), rng)
    return project(collect([emitted], 1), game.view, game.pair.differs or ())


def _state(rng: np.random.Generator) -> str:
    spawned = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return f"{spawned} {rng.bit_generator.state}"


def _packed(task: object) -> bytes:
    """What a fresh process needs; empty when it cannot be pickled."""
    try:
        path: bytes = cloudpickle.dumps([str(Path.cwd()), *sys.path])
        given: bytes = cloudpickle.dumps(task)
    except FAILURES:
        return b""
    return path + given


def _played_elsewhere(task: bytes) -> str:
    """Fingerprint of the view in a fresh process; empty when that cannot be found out."""
    if not task:
        return ""
    try:
        done = subprocess.run(  # noqa: S603  (this interpreter, this package)
            [sys.executable, "-c", _CHILD],
            input=task,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):  # no room for a process, or a slow one
        return ""
    return done.stdout.decode(errors="replace").rpartition("view ")[2].strip()
