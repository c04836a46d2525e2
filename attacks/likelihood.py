"""The exact log-likelihood ratio, where the mechanism knows its own density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audit.attack import Game, Scorer
from audit.mechanism import Mechanism, capability
from audit.pair import Pair
from audit.view import Floats, Views

_LARGEST = 700.0


@dataclass(frozen=True)
class RatioScorer:
    """Exact ln P_left/P_right of a view.

    Attributes:
        mechanism: Whose density it is.
        pair: Left and right input.
        view: Name of the view.
        shapes: Columns that the density was written for, name to shape of one trial.
        forms: Forms of the scouted views.
        description: The event in words.
        log_odds: Scores are log-odds as they stand.
    """

    mechanism: Mechanism
    pair: Pair
    view: str
    shapes: dict[str, tuple[int, ...]]
    forms: frozenset[str]
    description: str
    log_odds: bool = True

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,); 0 for trials of another form, whose density is not known."""
        if not len(views):
            return np.empty(0)
        seen = Views(views.form, {k: views.shaped(k, shape) for k, shape in self.shapes.items()})
        with np.errstate(all="ignore"):
            ratio = capability(self.mechanism, "log_likelihood_ratio", self.view)
            scores = np.asarray(ratio(seen, self.pair), dtype=float)
        known = np.array([form in self.forms for form in views.form])
        scores = np.clip(np.nan_to_num(scores, nan=0.0), -_LARGEST, _LARGEST)
        return np.where(known, scores, 0.0)


def _shapes(views: Views) -> dict[str, tuple[int, ...]]:
    return {name: column.shape[1:] for name, column in views.columns.items()}


@dataclass(frozen=True)
class Likelihood:
    """Score by the exact likelihood ratio: by Neyman and Pearson (1933) no attack beats it."""

    name: str = "likelihood"
    slow: bool = False
    learns: bool = False

    def applies(self, game: Game) -> bool:
        """Whether the mechanism knows the likelihood ratio of this view."""
        return capability(game.mechanism, "log_likelihood_ratio", game.view) is not None

    def fit(
        self,
        game: Game,
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Nothing is learnt: the density is the mechanism's own."""
        forms = frozenset(left_views.form.tolist()) | frozenset(right_views.form.tolist())
        words = f"exact log-likelihood ratio of the {game.view}"
        return RatioScorer(game.mechanism, game.pair, game.view, _shapes(left_views), forms, words)
