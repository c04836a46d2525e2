"""Classifiers on the leaves: logistic regression and gradient boosting.

Why this is valid: the classifier is fitted on scouting trials and frozen; only its guesses on
fresh trials are counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attacks.leaves import Layout, Silent, hopeless, rows_of, stacked
from attacks.linear import Linear, logistic, ridge
from attacks.scalars import FEW, SEVERAL, Scalar, derived_scalars, promising
from attacks.trees import Trees, grown
from audit.attack import Game, Scorer
from audit.view import Floats, Views

_RICH = 40
_PRODUCTS = 8
_MANY = 200
_COLUMNS = 128
_LARGEST = 6.0
_HUGE = 1e30


@dataclass(frozen=True)
class Expansion:
    """Features of a row for linear models.

    Attributes:
        layout: Frozen leaves.
        scalars: Derived numbers to append.
        rich: Whether to add squares and magnitudes of the leaves (and products of few).
        scale: Centre and spread of the derived numbers, shape (2, number of them).
    """

    layout: Layout
    scalars: tuple[Scalar, ...]
    rich: bool
    scale: Floats

    def __call__(self, rows: Floats) -> Floats:
        """Features, shape (n, p), all finite."""
        units = self.layout.standard(rows)
        parts = [units, self.layout.missing(rows), self._derived(rows)]
        if self.rich:
            bounded = np.clip(units, -_LARGEST, _LARGEST)
            parts += [np.abs(bounded), bounded**2]
            parts += [_products(bounded)] if units.shape[1] <= _PRODUCTS else []
        if units.shape[1] <= SEVERAL:  # the log-likelihood ratio of heavy-tailed noise saturates
            parts.append(np.tanh(2 * units))
        return np.concatenate(parts, axis=1)

    def _derived(self, rows: Floats) -> Floats:
        if not self.scalars:
            return np.empty((len(rows), 0))
        values = np.stack([scalar(rows) for scalar in self.scalars], axis=1)
        with np.errstate(all="ignore"):
            units = (values - self.scale[0]) / self.scale[1]
        return np.asarray(np.clip(np.nan_to_num(units), -10 * _LARGEST, 10 * _LARGEST))


def _products(units: Floats) -> Floats:
    pairs = list(itertools.combinations(range(units.shape[1]), 2))
    if not pairs:
        return np.empty((len(units), 0))
    first, second = (list(side) for side in zip(*pairs, strict=True))
    return np.asarray(units[:, first] * units[:, second])


@dataclass(frozen=True)
class LinearScorer:
    """A linear function of the features of a view.

    Attributes:
        expansion: The features.
        model: Their weights.
        description: The event in words.
    """

    expansion: Expansion
    model: Linear
    description: str

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,): log odds of left."""
        if not len(views):
            return np.empty(0)
        return self.model(self.expansion(rows_of(views, self.expansion.layout.names)))


def _labels(rows: Floats, left: int) -> Floats:
    return (np.arange(len(rows)) < left).astype(float)


@dataclass(frozen=True)
class Logistic:
    """Logistic regression on leaves, their squares and magnitudes, products and aggregates.

    Views with many leaves: ridge regression on the leaves, which is the whitened difference of
    means and finds noise that cancels across coordinates.
    """

    name: str = "logistic"
    slow: bool = False
    learns: bool = True

    def applies(self, game: Game) -> bool:  # noqa: ARG002
        """Every view can be tried."""
        return True

    def fit(
        self,
        game: Game,  # noqa: ARG002
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scorer:
        """Fit the weights on both sides together."""
        names, rows, left = stacked(left_views, right_views)
        if reason := hopeless(names, rows, left):
            return Silent(reason)
        expansion = _expansion(rows, names, left)
        features, labels = expansion(rows), _labels(rows, left)
        many = features.shape[1] > _MANY
        model = ridge(features, labels) if many else logistic(features, labels)
        words = "whitened linear score" if many else "logistic regression"
        return LinearScorer(expansion, model, f"{words} on {_listed(names)}")


def _expansion(rows: Floats, names: tuple[str, ...], left: int) -> Expansion:
    layout = Layout.of(rows, names)
    kinds = {"difference"} | ({"rank"} if len(names) > FEW else set())
    scalars = tuple(s for s in derived_scalars(rows, left, layout) if s.kind not in kinds)
    if not scalars:
        return Expansion(layout, (), len(names) <= _RICH, np.empty((2, 0)))
    values = np.stack([scalar(rows) for scalar in scalars], axis=1)
    own = Layout.of(values, tuple(s.kind for s in scalars))
    return Expansion(layout, scalars, len(names) <= _RICH, np.stack([own.centre, own.spread]))


def _listed(names: Sequence[str], most: int = 3) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{names[0]}, ..., {names[-1]} ({len(names)} numbers)"


@dataclass(frozen=True)
class BoostedScorer:
    """Gradient boosted trees on the leaves and derived numbers.

    Attributes:
        names: Frozen leaves.
        columns: Indices of the leaves in use.
        scalars: Derived numbers in use.
        model: The fitted scikit-learn classifier.
        description: The event in words.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    scalars: tuple[Scalar, ...]
    model: Trees
    description: str

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,): log odds of left."""
        if not len(views):
            return np.empty(0)
        features = _tree_features(rows_of(views, self.names), self.columns, self.scalars)
        return self.model(features)


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting (scikit-learn's histogram trees) on leaves and derived numbers."""

    name: str = "boosting"
    slow: bool = True
    learns: bool = True

    def applies(self, game: Game) -> bool:  # noqa: ARG002
        """Every view can be tried."""
        return True

    def fit(
        self,
        game: Game,  # noqa: ARG002
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,
    ) -> Scorer:
        """Grow trees until a held-out tenth stops improving."""
        names, rows, left = stacked(left_views, right_views)
        if reason := hopeless(names, rows, left):
            return Silent(reason)
        if len(names) == 1:
            return Silent("one number: its tails and bins are the events")
        columns = tuple(int(i) for i in promising(rows, left, _COLUMNS))
        scalars = tuple(derived_scalars(rows, left, Layout.of(rows, names)))
        features = _tree_features(rows, columns, scalars)
        seed = int(rng.integers(2**31))
        model = grown(features, _labels(rows, left), seed, rounds=150, leaves=15, penalty=5.0)
        words = f"gradient boosting on {_listed(names)}"
        return BoostedScorer(names, columns, scalars, model, words)


def _tree_features(rows: Floats, columns: tuple[int, ...], scalars: tuple[Scalar, ...]) -> Floats:
    """Finite features; a missing number is smaller than all others (a tree can split it off)."""
    parts = [rows[:, list(columns)]] + [scalar(rows)[:, None] for scalar in scalars]
    bounded = np.clip(np.concatenate(parts, axis=1), -_HUGE, _HUGE)
    return np.asarray(np.nan_to_num(bounded, nan=-2 * _HUGE), dtype=float)
