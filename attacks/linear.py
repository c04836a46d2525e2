"""Linear models with numpy alone: logistic regression, and ridge regression for many features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from attacks.counting import halves
from audit.view import Array, Floats

_STEPS = 12
_FLAT = 1e-7
_RIDGES = (100.0, 1.0, 1e-3)
_SHRINKAGES = (1e-4, 1e-2, 1.0)
_LARGEST = 50.0
_CLOSE = 1e-4
_LEAP = 20.0
_VISIBLE = (0.0, 2.0, 3.3)
_EXCLUDED = 1e9
_MOST_STEPS = 40
_NEARLY = 1e-8


@dataclass(frozen=True)
class Linear:
    """A linear score of standardised features.

    Attributes:
        centre: Mean of every feature, shape (p,).
        spread: Standard deviation of every feature, shape (p,).
        weights: Shape (p,).
        intercept: Added to every score.
    """

    centre: Floats
    spread: Floats
    weights: Floats
    intercept: float = 0.0

    def __call__(self, features: Floats) -> Floats:
        """Scores, shape (n,), of features of shape (n, p)."""
        weights = self.weights / self.spread
        return np.asarray(features @ weights + (self.intercept - self.centre @ weights))


def logistic(features: Floats, labels: Array) -> Linear:
    """Logistic regression by Newton's method.

    The ridge, and whether only features that differ visibly between the sides are used (a leak
    sits in few of them), are chosen on a held-out half.

    Args:
        features: Shape (n, p), finite; for p up to a few hundred.
        labels: Shape (n,), 1 = left.
    """
    centre, spread, units = _standardised(features)
    design = np.concatenate([units, np.ones((len(units), 1))], axis=1)
    even, odd = halves(len(labels))
    fits = []
    for visible in _VISIBLE[:2]:
        weights = np.zeros(design.shape[1])
        for size in _RIDGES:
            weights = _newton(design[even], labels[even], size, visible, weights)
            fits.append((_loss(design[odd] @ weights, labels[odd]), size, visible, weights))
    _, size, visible, weights = min(fits, key=lambda fit: fit[0])
    weights = _newton(design, labels, 2 * size, visible, weights)
    return Linear(centre, spread, weights[:-1], float(weights[-1]))


def _visible(units: Array, labels: Array, least: float) -> npt.NDArray[np.bool_]:
    """Which features differ between the sides by at least this many standard errors."""
    target = (labels - labels.mean()) / (labels.std() or 1.0)
    return np.asarray(np.abs(units.T @ target.astype(units.dtype)) >= least * np.sqrt(len(labels)))


def _standardised(features: Floats) -> tuple[Floats, Floats, Floats]:
    centre, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 1e-12 * (1 + np.abs(centre)), spread, 1.0)
    units = (features - centre) / spread
    return centre, spread, np.clip(units, -_LARGEST, _LARGEST)


def _newton(design: Floats, labels: Array, size: float, visible: float, weights: Floats) -> Floats:
    penalty = np.where(_visible(design, labels, visible), size, _EXCLUDED)
    penalty[-1] = 1e-6
    for _ in range(_STEPS):
        chance = special.expit(design @ weights)
        slope = design.T @ (chance - labels) + penalty * weights
        curve = (design.T * (chance * (1 - chance) + _FLAT)) @ design + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        step *= min(1.0, _LEAP / (np.abs(design @ step).max() + 1e-12))
        weights = weights - step
        if np.abs(step).max() < _CLOSE:
            break
    return weights


def _loss(scores: Floats, labels: Array) -> float:
    return float(np.mean(np.logaddexp(0.0, np.where(labels > 0, -scores, scores))))


def ridge(features: Floats, labels: Array) -> Linear:
    """Whitened difference of means by conjugate gradients: ridge regression on the labels.

    For thousands of features: only products with the feature matrix are needed. The ridge, and
    how visible a feature must be to be used, are chosen by the held-out correlation.

    Args:
        features: Shape (n, p), finite.
        labels: Shape (n,), 1 = left.
    """
    centre, spread, units = _standardised(features)
    single = units.astype(np.float32)
    target = (labels - labels.mean()).astype(np.float32)
    even, odd = halves(len(labels))
    train, test = single[even], single[odd]
    choices = [(visible, size) for visible in _VISIBLE for size in _SHRINKAGES]
    held = [_correlation(test @ _solve(train, target[even], *c), target[odd]) for c in choices]
    best = choices[int(np.argmax(held))]
    return Linear(centre, spread, _solve(single, target, *best).astype(float))


def _correlation(scores: Array, target: Array) -> float:
    spread = float(scores.std() * target.std())
    return float(np.mean((scores - scores.mean()) * target)) / (spread or 1.0)


def _solve(units: Array, target: Array, visible: float, shrinkage: float) -> Array:
    """Conjugate gradients on (X'X/n + shrinkage I) w = X'y/n over the visible features."""
    weights = np.zeros(units.shape[1], dtype=np.float32)
    chosen = _visible(units, target, visible)
    if visible:
        units = units[:, chosen]
    n = len(units)
    residual = units.T @ target / n
    found, direction = np.zeros_like(residual), residual.copy()
    size = first = float(residual @ residual)
    for _ in range(_MOST_STEPS):
        if size <= _NEARLY * first:
            break
        image = units.T @ (units @ direction) / n + shrinkage * direction
        pace = size / float(direction @ image)
        found += pace * direction
        residual -= pace * image
        size, before = float(residual @ residual), size
        direction = residual + size / before * direction
    weights[chosen] = found
    return weights
