"""Trajectories, aligned to the round in which the two inputs differ.

A sequential decision-maker shows one changed record in what it does *afterwards*, relative to what
it did *then*: whether it comes back to the arm it played, how long it stays, how the noisy feedback
moves. Raw one-hot actions show none of that to a linear model and little to trees; features
relative to the differing round and to its arm do.

Why this is valid: the features are a fixed function of a trial's view and of the public position of
the differing round; the model on them is fitted on scouting trials and frozen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from attacks.counting import halves
from attacks.leaves import FEWEST, Silent
from attacks.linear import logistic
from attacks.trees import Trees, grown
from audit.attack import Game, Scorer
from audit.view import Floats, Views

_MOST_ARMS = 12
_STEPS = 8
_CLIP = 1e4
_MOST_COLUMNS = 12


@dataclass(frozen=True)
class Alignment:
    """Where the differing round is in the columns of a view, and which columns hold arms.

    Attributes:
        position: Index of the differing round in the mechanism's rounds.
        rounds: Number of rounds of the longest column.
        view: ``after`` or ``except`` when the round itself is not shown, else empty.
        arms: Column name to its distinct values, for columns of few whole numbers.
        names: Columns in use, with the number of entries of a trial.
    """

    position: int
    rounds: int
    view: str
    arms: dict[str, tuple[float, ...]]
    names: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, game: Game, views: Views) -> Alignment:
        """The alignment for views like these."""
        columns = views.columns.items()
        names = {k: v.shape[1:] for k, v in columns if v.ndim in (2, 3) and v.size}
        rounds = max((shape[0] for shape in names.values()), default=0)
        which = game.view.rpartition("_")[2]
        arms = {name: values for name in names if (values := _few(views[name]))}
        hidden = which if which in ("after", "except") else ""
        return cls(game.pair.position, rounds, hidden, arms, names)

    def __call__(self, views: Views) -> Floats:
        """Features, shape (n, p), finite; 0 for trials of another shape."""
        parts: list[Floats] = []
        for name, shape in self.names.items():
            column = views.shaped(name, shape)
            tame = np.nan_to_num(column, nan=0.0, posinf=_CLIP, neginf=-_CLIP)
            for series in _series(np.clip(tame, -_CLIP, _CLIP)):
                parts += self._features(series, self.arms.get(name, ()))
        if not parts:
            return np.empty((len(views), 0))
        joined = np.stack(parts, axis=1)
        return np.clip(np.nan_to_num(joined, nan=0.0), -_CLIP, _CLIP)

    def _features(self, series: Floats, arms: tuple[float, ...]) -> list[Floats]:
        before, own, after = self._split(series)
        if not arms:
            return _of_numbers(before, own, after)
        return _of_arms(before, own, after, arms)

    def _split(self, series: Floats) -> tuple[Floats, Floats | None, Floats]:
        """What came before, at (if shown) and after the differing round."""
        width = series.shape[1]
        if self.view == "after":
            return series[:, :0], None, series
        at = min(self.position * width // max(1, self.rounds), width - 1)
        if self.view == "except":
            return series[:, :at], None, series[:, at:]
        return series[:, :at], series[:, at], series[:, at + 1 :]


def _few(column: Floats) -> tuple[float, ...]:
    """Distinct values of a column of few whole numbers; empty for any other."""
    if column.ndim != 2 or not np.isfinite(column).all():
        return ()
    values = np.unique(column)
    whole = len(values) <= _MOST_ARMS and bool(np.all(values == np.rint(values)))
    return tuple(values.tolist()) if whole else ()


def _series(column: Floats) -> Iterator[Floats]:
    """Series of shape (n, T) in a column: itself, or each of few coordinates, or their sum."""
    if column.ndim == 2:
        yield column
    elif column.shape[2] <= _MOST_COLUMNS:
        yield from np.moveaxis(column, 2, 0)
    else:
        yield column.sum(axis=2)


def _windows(width: int) -> list[slice]:
    """Dyadic windows 0, 1-2, 3-6, ... up to the width."""
    edges = [0]
    while edges[-1] < width:
        edges.append(min(width, 2 * edges[-1] + 1))
    return [slice(a, b) for a, b in pairwise(edges)]


def _of_arms(
    before: Floats, own: Floats | None, after: Floats, arms: tuple[float, ...]
) -> list[Floats]:
    """Arm of the round, returns to it step by step and by window, stays, moves, other arms."""
    found = [_share(after == arm) - _share(before == arm) for arm in arms[1:]]
    found += [
        (after[:, window] == arm).mean(axis=1)
        for window in _windows(after.shape[1])[:3]
        for arm in arms[1:]
    ]
    moves = (np.diff(after, axis=1) != 0).astype(float)
    found += [moves[:, window].mean(axis=1) for window in _windows(moves.shape[1])]
    if own is None:
        return found
    same = (after == own[:, None]).astype(float)
    returns = [same[:, window].mean(axis=1) for window in _windows(same.shape[1])]
    first = np.where(same.all(axis=1), same.shape[1], same.argmin(axis=1) if same.size else 0)
    which = [(own == arm).astype(float) for arm in arms[1:]]
    found += [*which, *same[:, :_STEPS].T, *returns, np.log1p(first)]
    found += [_share(same > 0) - _share(before == own[:, None])]
    return found + [pick * value for pick in which for value in returns]


def _of_numbers(before: Floats, own: Floats | None, after: Floats) -> list[Floats]:
    """The value of the round, the next ones, and means by window relative to the past."""
    level = before.mean(axis=1) if before.shape[1] else np.zeros(len(before))
    found = [*after[:, :_STEPS].T]
    found += [after[:, window].mean(axis=1) - level for window in _windows(after.shape[1])]
    if own is not None:
        found += [own, np.tanh(own), np.abs(own), own - level]
        found += [after[:, 0] - own] if after.shape[1] else []
    return found


def _share(hits: Any) -> Floats:
    return np.asarray(hits.mean(axis=1) if hits.shape[1] else np.zeros(len(hits)), dtype=float)


@dataclass(frozen=True)
class TrajectoryScorer:
    """A model on aligned features.

    Attributes:
        alignment: The features.
        model: Maps features of shape (n, p) to scores of shape (n,).
        description: The event in words.
    """

    alignment: Alignment
    model: Any
    description: str

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,): log odds of left."""
        if not len(views):
            return np.empty(0)
        return np.asarray(self.model(self.alignment(views)), dtype=float)


@dataclass(frozen=True)
class Trajectory:
    """Logistic regression or boosted trees on features aligned to the differing round.

    The one with the smaller loss on a held-out half is fitted to all scouting trials.
    """

    name: str = "trajectory"
    slow: bool = True
    learns: bool = True

    def applies(self, game: Game) -> bool:
        """Whether it is known where the inputs differ."""
        return bool(game.pair.differs)

    def fit(
        self,
        game: Game,
        left_views: Views,
        right_views: Views,
        rng: np.random.Generator,
    ) -> Scorer:
        """Choose and fit the model."""
        if min(len(left_views), len(right_views)) < 4 * FEWEST:
            return Silent(f"fewer than {4 * FEWEST} scouting trials on a side")
        alignment = Alignment.of(game, left_views)
        features = np.concatenate([alignment(left_views), alignment(right_views)])
        if not features.shape[1]:
            return Silent("the view holds no sequence")
        labels = np.concatenate([np.ones(len(left_views)), np.zeros(len(right_views))])
        model, words = _chosen(features, labels, int(rng.integers(2**31)))
        where = f"rounds around round {game.pair.position}"
        return TrajectoryScorer(alignment, model, f"{words} on {where} ({features.shape[1]})")


def _chosen(features: Floats, labels: Floats, seed: int) -> tuple[Any, str]:
    even, odd = halves(len(labels))
    linear = logistic(features[even], labels[even])
    trees = _grown(features[even], labels[even], seed)
    losses = [_loss(model(features[odd]), labels[odd]) for model in (linear, trees)]
    if losses[0] <= losses[1]:
        return logistic(features, labels), "logistic regression"
    return _grown(features, labels, seed), "gradient boosting"


def _loss(scores: Floats, labels: Floats) -> float:
    return float(np.mean(np.logaddexp(0.0, np.where(labels > 0, -scores, scores))))


def _grown(features: Floats, labels: Floats, seed: int) -> Trees:
    return grown(features, labels, seed, rounds=120, leaves=8, penalty=10.0)
