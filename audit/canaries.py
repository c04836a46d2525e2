"""One run of a mechanism on many canaries.

A mechanism takes part by two capabilities. ``canaries(m)`` returns two public inputs, left and
right, of equally many records that differ in m of them: the canaries. ``canary_scores(views, left,
right)`` looks at the view of one run on a mixture of both and returns a score for every canary,
shape (m,): the larger, the more it looks like the left record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from audit.errors import MechanismError, UsageError
from audit.mechanism import Mechanism, capability, play
from audit.pair import differing_positions
from audit.quantise import BITS, Grid, round_scores
from audit.streams import Phase, Side, stream
from audit.view import Floats, Views, project

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Game:
    """Two inputs of which one run gets a mixture.

    Attributes:
        left: Holds the left record of every canary.
        right: Holds the right record of every canary.
        positions: Where the canaries are.
    """

    left: Any
    right: Any
    positions: tuple[int, ...]

    def mixed(self, left: Bits) -> Any:
        """The input in which every canary holds the record that its coin chose."""
        takes_right = np.array(self.positions)[~left]
        return _mixture(self.left, self.right, takes_right)


def coins(seed: int, name: str, canaries: int) -> Bits:
    """A fair coin for every canary: True for *left*."""
    return stream(seed, name, Phase.TESTIFY, Side.LABELS, 0).random(canaries) < 0.5


def game_of(mechanism: Mechanism, canaries: int, name: str) -> Game:
    """The game that a mechanism offers for one run.

    Raises:
        UsageError: When it offers none, or not with as many canaries.
    """
    offered = capability(mechanism, "canaries")
    if offered is None or capability(mechanism, "canary_scores") is None:
        raise UsageError(
            f"case {name!r}: expected a mechanism with canaries(m) -> (left, right) and "
            "canary_scores(views, left, right), which --one-run needs; it has not. Audit it with "
            "many runs, or add both"
        )
    try:
        left, right = offered(canaries)
    except Exception as error:  # noqa: BLE001  (user code)
        raise UsageError(
            f"case {name!r}: expected canaries({canaries}) to return two inputs; it ended in "
            f"{type(error).__name__}: {error}"
        ) from None
    positions = differing_positions(left, right)
    if positions is None or len(positions) != canaries:
        found = "no common leading axis" if positions is None else f"{len(positions)}"
        raise UsageError(
            f"case {name!r}: expected canaries({canaries}) to return two inputs of equally many "
            f"records that differ in {canaries} of them, got {found}"
        )
    return Game(left, right, positions)


def play_once(
    mechanism: Mechanism, game: Game, view: str, left: Bits, rng: np.random.Generator
) -> Floats:
    """One run on a mixed input, and the score of every canary.

    Why the scores may testify: they are computed from the view and the two public inputs alone.
    Rounding the view to 30 bits of its own magnitude is part of the attack.

    Returns:
        Shape (m,), rounded.

    Raises:
        MechanismError: When the run raises, or the scores have another shape.
        UsageError: For a view that depends on the position of the record.
    """
    if view.endswith(("_except", "_after")):
        raise UsageError(
            f"view {view!r}: expected one that is the same for all canaries, such as 'transcript' "
            "or 'actions'; audit this one with many runs"
        )
    views = play(mechanism, game.mixed(left), 1, rng)
    if views.raised[0]:
        raise MechanismError(f"the one run ended in an exception: {views.form[0]}")
    return _scores(mechanism, game, project(views, view, game.positions[:1]))


def _scores(mechanism: Mechanism, game: Game, views: Views) -> Floats:
    score = capability(mechanism, "canary_scores")
    grid = Grid({name: _own_step(column[0]) for name, column in views.columns.items()})
    try:
        scores = np.asarray(score(grid.apply(views), game.left, game.right), dtype=float)
    except Exception as error:  # noqa: BLE001  (user code)
        raise MechanismError(f"canary_scores ended in {type(error).__name__}: {error}") from None
    if scores.shape != (len(game.positions),) or np.isnan(scores).any():
        raise MechanismError(
            f"canary_scores returned shape {scores.shape}, expected one number for each of the "
            f"{len(game.positions)} canaries"
        )
    return rounded_scores(scores)


def _own_step(values: Floats) -> Floats:
    """Steps of 30 bits below the magnitude of every number."""
    _, exponents = np.frexp(np.where(np.isfinite(values), values, 1.0))
    return np.asarray(np.exp2(exponents - BITS), dtype=float)


def rounded_scores(scores: Floats) -> Floats:
    """Scores on a grid of 30 bits below the largest, so that no ulp decides a rank."""
    scale = float(np.max(np.abs(scores), initial=0.0))
    return round_scores(scores / scale, 1.0) if scale > 0 else scores


def record_of(data: Any, position: int) -> Any:
    """One record of an input."""
    if isinstance(data, Mapping):
        return {name: column[position] for name, column in data.items()}
    return data[position]


def _mixture(left: Any, right: Any, rows: npt.NDArray[np.int64]) -> Any:
    if isinstance(left, Mapping):
        return {name: _mixture(left[name], right[name], rows) for name in left}
    if isinstance(left, np.ndarray):
        mixed = left.copy()
        mixed[rows] = np.asarray(right)[rows]
        return mixed
    chosen = list(left)
    for row in rows.tolist():
        chosen[row] = right[row]
    return chosen
