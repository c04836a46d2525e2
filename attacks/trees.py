"""Gradient boosted trees as a function of features: seeded, on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from audit.threads import loaded, one_thread
from audit.view import Floats

_libraries = cache(loaded)  # asked for when scikit-learn has loaded its own


@dataclass(frozen=True)
class Trees:
    """Fitted scikit-learn trees.

    Attributes:
        model: The fitted classifier.
    """

    model: Any

    def __call__(self, features: Floats) -> Floats:
        """Scores, shape (n,): log odds of left."""
        with one_thread(_libraries()):
            return np.asarray(self.model.decision_function(features), dtype=float)


def grown(
    features: Floats, labels: Floats, seed: int, *, rounds: int, leaves: int, penalty: float
) -> Trees:
    """Grow trees until a held-out tenth stops improving.

    Args:
        features: Shape (n, k); NaN is allowed.
        labels: Shape (n,), 1 for left.
        seed: Seed of the split and of the trees.
        rounds: Trees at the most.
        leaves: Leaves of a tree at the most.
        penalty: Quadratic penalty on the value of a leaf.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=rounds,
        learning_rate=0.08,
        max_leaf_nodes=leaves,
        l2_regularization=penalty,
        early_stopping=True,
        n_iter_no_change=8,
        random_state=seed,
    )
    with one_thread(_libraries()):
        return Trees(model.fit(features, labels))
