"""Likelihood ratio of the actions by the mechanism's own particle filter.

Where a mechanism knows no density of its actions but can run its policy on shadow feedback
(capability ``action_llr``), that estimate is the best score there is.

Why this is valid: the estimate is a function of a trial's own actions and of a seed frozen when the
attack is fitted. A rough one costs power only; it chooses guesses, fresh labels are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attacks.leaves import Silent
from audit.attack import Game, Scorer
from audit.mechanism import Mechanism, capability
from audit.pair import Pair
from audit.view import Floats, Views

_FEWEST, _MOST = 64, 512
_STEPS = 1200
_LARGEST = 700.0


@dataclass(frozen=True)
class ShadowScorer:
    """Estimated ln P_left/P_right of the actions.

    Attributes:
        mechanism: Whose policy it is.
        pair: Left and right input.
        width: Number of rounds that a trial must show.
        particles: Number of particles.
        seed: Seed of the particles.
        rowwise: False, since trials of a call share the stream of particles.
        description: The event in words.
    """

    mechanism: Mechanism
    pair: Pair
    width: int
    particles: int
    seed: int
    rowwise: bool = False
    description: str = "particle-filter log-likelihood ratio of the actions"

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,); 0 for trials that do not show all actions."""
        scores = np.zeros(len(views))
        actions = views.shaped("actions", (self.width,))
        shown = np.isfinite(actions).all(axis=1)
        if not shown.any():
            return scores
        estimate = capability(self.mechanism, "action_llr")
        rng = np.random.default_rng(self.seed)
        found = estimate({"actions": actions[shown]}, self.pair, rng, particles=self.particles)
        scores[shown] = np.clip(np.nan_to_num(found), -_LARGEST, _LARGEST)
        return scores


@dataclass(frozen=True)
class Shadow:
    """Score actions by shadow runs of the policy along them."""

    name: str = "shadow"
    slow: bool = True
    learns: bool = False

    def applies(self, game: Game) -> bool:
        """Whether the view is the actions and the mechanism has a filter for them."""
        return game.view == "actions" and capability(game.mechanism, "action_llr") is not None

    def fit(
        self,
        game: Game,
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,
    ) -> Scorer:
        """Nothing is learnt; the number of particles falls with the length of a trial."""
        columns = [views.columns.get("actions") for views in (left_views, right_views)]
        shown = [column for column in columns if column is not None and column.ndim == 2]
        if len(shown) < 2 or shown[0].shape[1:] != shown[1].shape[1:]:
            return Silent("the view holds no actions")
        width = shown[0].shape[1]
        particles = int(np.clip(_STEPS // max(1, width), _FEWEST, _MOST))
        seed = int(rng.integers(2**62))
        return ShadowScorer(game.mechanism, game.pair, width, particles, seed)
