"""Exact differential mode: what a pair does to the output when the noise is switched off.

Both inputs are played without noise. Where the view is a linear function of the noise, a unit of
every single draw is switched on in turn; the shift of the noise that turns one output into the
other is then known exactly, and with it the privacy loss that the code has on this pair. It takes
one run per draw and finds a wrong sensitivity, one draw for several numbers, and noise that does
not reach some number, without any statistics. It is a statement about noise-free runs of the code
on one pair, and no refutation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from audit.attack import Game
from audit.claim import AnyClaim, GaussianDp, PureDp, gaussian_mu
from audit.mechanism import FAILURES, Mechanism, capability, plays_one
from audit.noiseless import ChanceError, NoiselessGenerator, Quiet
from audit.view import Floats, Views, collect, project

_MOST_DRAWS = 200
_TOLERANCE = 1e-6
_SLACK = 1e-6
_NORMS = {"laplace": 1, "normal": 2}


@dataclass(frozen=True)
class Difference:
    """What a pair does to the output without noise.

    Attributes:
        family: Law of the noise: ``laplace`` or ``normal``.
        loss: Norm of the smallest shift of the draws, each in units of its scale, that turns one
            output into the other: L1 for Laplace noise, where it is the largest privacy loss on
            this pair, and L2 for Gaussian noise, where it is mu. Infinite when no shift does.
        change: Largest change of a number of the output.
        declared: The scale that the mechanism says it uses; None when it says nothing.
    """

    family: str
    loss: float
    change: float
    declared: float | None = None

    def __str__(self) -> str:
        size = f"{self.loss:.6g}" if math.isfinite(self.loss) else "infinitely many"
        return (
            f"without noise a number of the output changes by {self.change:.6g}, and all of it by "
            f"{size} scales of the {self.family} noise (L{_NORMS[self.family]} norm)"
        )

    def complaint(self, claim: AnyClaim) -> str:
        """Why this is more than the claim allows; empty when it is not, or says nothing."""
        allowed = _allowed(claim, self.family)
        if allowed is None or self.loss <= allowed * (1 + _SLACK):
            return ""
        stated = f" (declared scale {self.declared:.6g})" if self.declared else ""
        return f"{self}; {claim} allows {allowed:.6g}{stated}"


def _allowed(claim: AnyClaim, family: str) -> float | None:
    """Largest loss that the claim allows, in scales of the noise."""
    if isinstance(claim, PureDp):
        return claim.epsilon if family == "laplace" else None
    if family != "normal":
        return None
    if isinstance(claim, GaussianDp):
        return claim.mu
    epsilon, delta = claim.points()[0]
    return gaussian_mu(epsilon, delta) if delta > 0 else None


def difference(game: Game, most: int = _MOST_DRAWS) -> Difference | None:
    """What the pair of a game does to the output without noise.

    Args:
        game: The game.
        most: Give up at more draws than that.

    Returns:
        None where nothing exact can be said: draws that are not additive, of several laws, or more
        than `most`; an output that is not linear in them, or raises; Laplace draws that the
        output does not determine.
    """
    try:
        with np.errstate(all="ignore"):
            return _difference(game, most)
    except (ChanceError, *FAILURES):
        return None


def without_noise(game: Game, most: int = _MOST_DRAWS) -> tuple[Views, Views] | None:
    """What one play of the left and one of the right input show without noise.

    Args:
        game: The game.
        most: Give up at more draws than that.

    Returns:
        None where a draw has no value without noise, or a play raises.
    """
    try:
        with np.errstate(all="ignore"):
            left, right = (_quiet(game, side, most) for side in (True, False))
    except (ChanceError, *FAILURES):
        return None
    return (left.views, right.views) if left and right else None


def quiet_play(mechanism: Mechanism, data: Any, most: int, offsets: Floats | None = None) -> Quiet:
    """One play without noise, in this process.

    Args:
        mechanism: What is played.
        data: Its input.
        most: Give up at more draws than that.
        offsets: Multiples of its scale that each draw gets; 0 beyond their end.

    Raises:
        ChanceError: For a draw that has no value without noise, or one too many.
    """
    rng, played = NoiselessGenerator(most, offsets), cast(Any, mechanism)
    emitted = [played.function(data, rng)] if plays_one(mechanism) else played.run(data, 1, rng)
    return Quiet(collect(emitted, 1), tuple(family for family, _ in rng.drawn))


def _quiet(game: Game, left: bool, most: int, offsets: Floats | None = None) -> Quiet | None:
    """One play as the adversary sees it; None where it has no value in the target's own process."""
    play = capability(game.mechanism, "quiet_play") or partial(quiet_play, game.mechanism)
    found: Quiet | None = play(game.pair.side(left), most, offsets)
    if found is None:
        return None
    return Quiet(project(found.views, game.view, game.pair.differs or ()), found.families)


def _difference(game: Game, most: int) -> Difference | None:
    quiet = _quiet(game, True, most)
    left, right = _values(quiet), _values(_quiet(game, False, most))
    if quiet is None or left is None or right is None or len(left) != len(right):
        return None
    family = quiet.families[0] if len(set(quiet.families)) == 1 else ""
    if family not in _NORMS:
        return None
    response = _response(game, left, len(quiet.families))
    loss = None if response is None else _shift(response, right - left, family)
    if response is None or loss is None:
        return None
    declared = capability(game.mechanism, "declared_scale")
    stated = float(declared) if isinstance(declared, int | float) else None
    change = float(np.abs(right - left).max(initial=0.0))
    return Difference(family, loss, change, stated)


def _response(game: Game, quiet: Floats, draws: int) -> Floats | None:
    """Change of every number per unit of every draw, shape (d, draws); None if not linear."""
    columns = []
    for unit in np.eye(draws):
        moved = _values(_quiet(game, True, draws, unit))
        if moved is None or len(moved) != len(quiet):
            return None
        columns.append(moved - quiet)
    response = np.stack(columns, axis=1)
    direction = np.random.default_rng(0).normal(size=draws)
    linear = all(_moves_along(game, quiet, response, far * direction) for far in (3.0, 1e4))
    return response if linear else None


def _moves_along(game: Game, quiet: Floats, response: Floats, offsets: Floats) -> bool:
    moved = _values(_quiet(game, True, len(offsets), offsets))
    if moved is None or len(moved) != len(quiet):
        return False
    size = max(1.0, float(np.abs(moved).max(initial=0.0)))
    return bool(np.allclose(moved, quiet + response @ offsets, rtol=1e-7, atol=1e-9 * size))


def _shift(response: Floats, change: Floats, family: str) -> float | None:
    """Norm of the smallest shift of the draws that explains a change; None if it is not unique."""
    found, _, rank, _ = np.linalg.lstsq(response, change, rcond=None)
    if family == "laplace" and rank < response.shape[1]:
        return None
    left_over = np.abs(response @ found - change).max(initial=0.0)
    if left_over > _TOLERANCE * max(1.0, float(np.abs(change).max(initial=0.0))):
        return math.inf
    return float(np.linalg.norm(found, _NORMS[family]))


def _values(quiet: Quiet | None) -> Floats | None:
    """All numbers of one run; None when some are missing or the form holds more than numbers."""
    row = np.empty(0) if quiet is None else quiet.views.matrix()[0]
    return row if len(row) and np.isfinite(row).all() else None
