"""Scores that are there already: stored events, and attacks that look at nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audit.attack import Game, Scorer
from audit.event import Event
from audit.view import Views


def event_of(scorer: Scorer) -> Event | None:
    """The score as data, where it is a simple event that says so, with finite numbers."""
    found = scorer if isinstance(scorer, Event) else getattr(scorer, "event", None)
    if not isinstance(found, Event):
        return None
    return found if np.isfinite([found.centre, found.spread, found.missing]).all() else None


@dataclass(frozen=True)
class Finished:
    """An attack that is a finished scorer, such as a stored event; there is nothing to fit.

    Attributes:
        name: Name for records.
        scorer: The scorer.
    """

    name: str
    scorer: Scorer
    slow: bool = False
    learns: bool = False

    def applies(self, game: Game) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def fit(
        self,
        game: Game,  # noqa: ARG002
        left_views: Views,  # noqa: ARG002
        right_views: Views,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """The scorer itself."""
        return self.scorer
