"""Membership inference by shadow models: a likelihood ratio between two fitted laws.

The scouting trials are the shadow models of the likelihood ratio attack (LiRA; Carlini, Chien,
Nasr, Song, Terzis and Tramer 2022): each side's views get a multivariate Gaussian law.

Why this is valid: the laws are fitted on scouting trials and frozen; a wrong law costs power only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from attacks.counting import halves
from attacks.leaves import Layout, Silent, hopeless, rows_of, stacked
from attacks.linear import ridge
from audit.attack import Game, Scorer
from audit.view import Floats, Views

_DIRECT = 200
_QUADRATIC = 64
_COMPONENTS = 30
_SHRINKAGES = (1e-6, 1e-3, 0.05, 0.5)
_CLIP = 1e3


@dataclass(frozen=True)
class Law:
    """A Gaussian law, whitened.

    Attributes:
        mean: Shape (d,).
        root: Shape (d, d); ``(x - mean) @ root`` has unit covariance.
        volume: Log determinant of `root`.
    """

    mean: Floats
    root: Floats
    volume: float

    def __call__(self, points: Floats) -> Floats:
        """Log density up to a common constant, shape (n,), of points of shape (n, d)."""
        white = (points - self.mean) @ self.root
        return np.asarray(self.volume - 0.5 * np.einsum("ij,ij->i", white, white))


@dataclass(frozen=True)
class LawScorer:
    """Log-likelihood ratio of two Gaussian laws.

    Attributes:
        layout: Frozen leaves.
        basis: Projection of the standardised leaves, shape (d, k); None to use them all.
        left: Law of the left views.
        right: Law of the right views.
        description: The event in words.
    """

    layout: Layout
    basis: Floats | None
    left: Law
    right: Law
    description: str

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,)."""
        points = _points(rows_of(views, self.layout.names), self.layout, self.basis)
        return self.left(points) - self.right(points)


@dataclass(frozen=True)
class Membership:
    """Gaussian shadow-model likelihood ratio, the laws chosen on held-out shadow trials.

    One covariance for both sides gives a linear score, one for each a quadratic one; the shrinkage
    towards the diagonal is chosen with them. Beyond 200 leaves the views are first projected onto
    honest directions (found on one half of the trials, fitted on the other).
    """

    name: str = "membership"
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
        rng: np.random.Generator,
    ) -> Scorer:
        """Fit the law of each side."""
        names, rows, left = stacked(left_views, right_views)
        if reason := hopeless(names, rows, left):
            return Silent(reason)
        sides = [rows[:left], rows[left:]]
        layout, basis = Layout.of(rows, names), None
        if len(names) > _DIRECT:
            train = [side[halves(len(side))[0]] for side in sides]
            basis = _basis([_points(side, layout, None) for side in train], rng)
            sides = [side[halves(len(side))[1]] for side in sides]
        first, second, quadratic = _laws([_points(side, layout, basis) for side in sides])
        shape = "quadratic" if quadratic else "linear"
        words = f"shadow-model likelihood ratio ({shape}) on {len(names)} numbers"
        return LawScorer(layout, basis, first, second, words)


def _points(rows: Floats, layout: Layout, basis: Floats | None) -> Floats:
    units = np.clip(layout.standard(rows), -_CLIP, _CLIP)
    return units if basis is None else units @ basis


def _basis(sides: list[Floats], rng: np.random.Generator) -> Floats:
    """Directions worth keeping: mean difference, whitened mean difference, principal axes."""
    both = np.concatenate(sides)
    labels = (np.arange(len(both)) < len(sides[0])).astype(float)
    model = ridge(both, labels)
    mean = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    noise = rng.normal(size=(both.shape[1], _COMPONENTS))
    axes = both.T @ (both @ noise)
    columns = np.column_stack([mean, model.weights / model.spread, axes])
    columns /= np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    return np.asarray(np.linalg.qr(columns)[0])


def _laws(sides: list[Floats]) -> tuple[Law, Law, bool]:
    """Both laws and whether they have covariances of their own."""
    train = [side[halves(len(side))[0]] for side in sides]
    test = [side[halves(len(side))[1]] for side in sides]
    kinds = (False, True) if sides[0].shape[1] <= _QUADRATIC else (False,)
    choices = [(own, shrinkage) for own in kinds for shrinkage in _SHRINKAGES]
    losses = [_loss(_fitted(train, *choice), test) for choice in choices]
    own, shrinkage = choices[int(np.argmin(losses))]
    left, right = _fitted(sides, own, shrinkage)
    return left, right, own


def _loss(laws: Iterable[Law], sides: list[Floats]) -> float:
    left, right = laws
    wrong = [right(sides[0]) - left(sides[0]), left(sides[1]) - right(sides[1])]
    return float(np.mean(np.logaddexp(0.0, np.concatenate(wrong))))


def _fitted(sides: list[Floats], own: bool, shrinkage: float) -> tuple[Law, Law]:
    means = [side.mean(axis=0) for side in sides]
    spreads = [_covariance(side - mean) for side, mean in zip(sides, means, strict=True)]
    if not own:
        spreads = [(spreads[0] + spreads[1]) / 2] * 2
    left, right = (_law(m, s, shrinkage) for m, s in zip(means, spreads, strict=True))
    return left, right


def _covariance(deviations: Floats) -> Floats:
    return np.asarray(deviations.T @ deviations / max(1, len(deviations)))


def _law(mean: Floats, covariance: Floats, shrinkage: float) -> Law:
    average = float(np.trace(covariance)) / len(mean) or 1.0
    values, vectors = np.linalg.eigh(covariance)
    values = (1 - shrinkage) * np.maximum(values, 0.0) + shrinkage * average
    volume = -0.5 * float(np.sum(np.log(values)))
    return Law(mean, vectors / np.sqrt(values), volume if math.isfinite(volume) else 0.0)
