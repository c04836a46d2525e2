"""The direction in which a pair moves the output, whitened by the noise that was seen.

Switching the noise off shows which numbers differ between the two inputs, and by how much
(`audit.exact`); scouting shows how the noise of the numbers hangs together. Where noise is added,
the weights that tell the sides apart best are the inverse covariance times the difference (Fisher
1936). Nothing about the difference has to be learnt, so a leak that is spread thinly over many
numbers is found with a tenth of the trials that a classifier needs.

Why this is valid: the weights are frozen on scouting trials; only guesses on fresh ones are
counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attacks.leaves import Layout, Silent, hopeless, rows_of, some, stacked
from audit.attack import Game, Scorer
from audit.exact import without_noise
from audit.view import Floats, Views

_MOST = 1000
_MOST_DRAWS = 20_000
_MOST_ROWS = 20_000
_LEAST_RIDGE = 1e-9


@dataclass(frozen=True)
class ShiftScorer:
    """A linear score of the leaves.

    Attributes:
        layout: Frozen leaves.
        weights: Shape (d,).
        description: The event in words.
    """

    layout: Layout
    weights: Floats
    description: str

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,)."""
        rows = rows_of(views, self.layout.names)
        return np.asarray(self.layout.standard(rows) @ self.weights, dtype=float)


@dataclass(frozen=True)
class Shift:
    """Fisher's discriminant, its difference of means known from runs without noise."""

    name: str = "shift"
    slow: bool = True
    learns: bool = True

    def applies(self, game: Game) -> bool:  # noqa: ARG002
        """Every view can be tried."""
        return True

    def fit(
        self,
        game: Game,
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Whiten the difference without noise by the covariance of the scouted views."""
        names, rows, left = stacked(left_views, right_views)
        if reason := hopeless(names, rows, left):
            return Silent(reason)
        if len(names) > _MOST:
            return Silent(f"more than {_MOST:,} numbers")
        quiet = without_noise(game, _MOST_DRAWS)
        if quiet is None:
            return Silent("some draw has no value without noise")
        layout = Layout.of(rows, names)
        one, other = (layout.standard(rows_of(views, names))[0] for views in quiet)
        if not np.any(one != other):
            return Silent("no number differs without noise")
        weights = _whitened(layout.standard(rows), left, one - other)
        what = "a number" if len(names) == 1 else f"{len(names)} numbers"
        words = f"place of {what} along the difference without noise"
        return ShiftScorer(layout, weights, words)


def _whitened(units: Floats, left: int, change: Floats) -> Floats:
    """``(C + ridge)^-1 change`` with C the covariance within the sides; shape (d,)."""
    sides = [side - side.mean(axis=0) for side in (units[:left], units[left:])]
    within = some(np.concatenate(sides), _MOST_ROWS)
    covariance = within.T @ within / len(within)
    # Little data about many numbers: the more so, the less is taken from their covariance.
    ridge = _LEAST_RIDGE + (len(change) / len(within)) ** 2
    return np.asarray(np.linalg.solve(covariance + ridge * np.eye(len(change)), change))
