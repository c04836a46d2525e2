"""The price attack: invert the prices that other customers saw, then look at one customer.

A mechanism that knows how its prices come about offers ``price_score(views, pair)``; this attack
calls it. It applies to views of prices only.

Why this is valid: the score is only a score; nothing is fitted on labels.

Power, as the area under the ROC curve for a flipped outcome in a market of 300 customers with one
refresh after 200 of them (400 plays a side, standard error .02): .85 with estimator noise .3 a
coordinate, .55 with 3, .5 with 12 and more, as working policies have. Fake customers whose norms
spread from .6 to 1 raise .85 to .86; with tiny contexts, with one constant context, or with
contexts that leave out the replaced customer's direction it is .5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audit.attack import Game, Scorer
from audit.mechanism import Mechanism, capability
from audit.pair import Pair
from audit.view import Floats, Views

_LARGEST = 700.0


@dataclass(frozen=True)
class PriceScorer:
    """Score of a view of prices.

    Attributes:
        mechanism: Whose prices they are.
        pair: Left and right input.
        shape: Shape of one trial's prices.
        description: The event in words.
    """

    mechanism: Mechanism
    pair: Pair
    shape: tuple[int, ...]
    description: str = "gradient score at the estimate that explains the prices"

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,); 0 for trials without prices of the scouted shape."""
        if not len(views):
            return np.empty(0)
        seen = Views(views.form, {"prices": views.shaped("prices", self.shape)})
        with np.errstate(all="ignore"):
            score = capability(self.mechanism, "price_score")(seen, self.pair)
        finite = np.nan_to_num(np.asarray(score, dtype=float))
        return np.asarray(np.clip(finite, -_LARGEST, _LARGEST), dtype=float)


@dataclass(frozen=True)
class Prices:
    """Price inversion followed by a gradient score."""

    name: str = "prices"
    slow: bool = False
    learns: bool = False

    def applies(self, game: Game) -> bool:
        """Whether the mechanism can score a view of its prices, and this is one."""
        known = capability(game.mechanism, "price_score") is not None
        return known and game.view.startswith("prices")

    def fit(
        self,
        game: Game,
        left_views: Views,
        right_views: Views,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Nothing is learnt: the inversion is the mechanism's own."""
        return PriceScorer(game.mechanism, game.pair, left_views["prices"].shape[1:])
