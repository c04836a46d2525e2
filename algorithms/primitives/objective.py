"""Objective perturbation: the exact minimiser of a regularised loss plus a random linear term.

``J(theta) = sum_s l(theta; phi_s, y_s) + (rho/2) ||theta||^2 + w^T theta`` with
``w ~ N(0, nu^2 I)``, over the whole space or the ball ``||theta|| <= R``. Privacy theorems
(Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012) speak of the exact
minimiser: a residual tau moves the log-likelihood ratio by up to ``Gamma tau / nu^2``, and an
early stop voids them. The solver is Newton's method, many trials at a time; each step minimises
the quadratic model over the ball (More and Sorensen 1983), so the constraint costs no outer loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from audit.errors import MechanismError

Floats = npt.NDArray[np.float64]

TOLERANCE = 1e-9
_STEPS = 100
_HALVINGS = 40


class Model(Protocol):
    """A loss at ``n`` parameters at once, ridge included."""

    @property
    def dimension(self) -> int:
        """Length d of theta."""

    def value(self, theta: Floats) -> Floats:
        """Loss, shape (n,)."""

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient (n, d) and Hessian (n, d, d)."""

    def take(self, rows: npt.NDArray[np.intp]) -> Model:
        """The loss of some of the trials."""


@dataclass(frozen=True)
class Tilted:
    """A loss with a linear term of its own for every trial.

    Attributes:
        model: The loss.
        tilt: w, shape (n, d).
    """

    model: Model
    tilt: Floats

    @property
    def dimension(self) -> int:
        """Length d of theta."""
        return self.model.dimension

    def value(self, theta: Floats) -> Floats:
        """``J``, shape (n,)."""
        return np.asarray(self.model.value(theta) + np.einsum("nd,nd->n", self.tilt, theta))

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient (n, d) and Hessian (n, d, d)."""
        gradient, hessian = self.model.derivatives(theta)
        return gradient + self.tilt, hessian

    def take(self, rows: npt.NDArray[np.intp]) -> Tilted:
        """Some of the trials."""
        return Tilted(self.model.take(rows), self.tilt[rows])


def minimise(
    model: Model,
    n: int,
    *,
    radius: float = math.inf,
    scale: float = 1.0,
    tolerance: float = TOLERANCE,
) -> Floats:
    """The minimiser of every trial's loss.

    Args:
        model: A strictly convex loss of `n` trials.
        n: Number of trials.
        radius: R; minimisers on the boundary have norm exactly R.
        scale: Size of the noise: the residual is at most ``tolerance max(scale, 1)``.
        tolerance: How exact the minimiser is.

    Returns:
        Shape (n, d).

    Raises:
        MechanismError: When some trial does not converge.
    """
    found = np.zeros((n, model.dimension))
    theta, rows, allowed = found.copy(), np.arange(n), tolerance * max(scale, 1.0)
    gradient, hessian = model.derivatives(theta)
    residual = _residual(theta, gradient, radius)
    for _ in range(_STEPS):
        open_ = np.flatnonzero(residual > allowed)
        if not open_.size:
            break
        if 2 * open_.size <= len(rows):
            found[rows] = theta
            rows, model, theta = rows[open_], model.take(open_), theta[open_]
            gradient, hessian, residual = gradient[open_], hessian[open_], residual[open_]
        target = quadratic_minimiser(hessian, theta, gradient, radius)
        slope = np.einsum("nd,nd->n", gradient, target - theta)
        before, start = residual, theta
        gradient, hessian = model.derivatives(target)
        theta, residual = target, _residual(target, gradient, radius)
        # Newton's step is kept when it brings the residual down; else the loss must go down.
        wild = np.flatnonzero((residual > before / 2) & (residual > allowed))
        if wild.size:
            theta[wild] = _shortened(model.take(wild), start[wild], target[wild], slope[wild])
            gradient, hessian = model.derivatives(theta)
            residual = _residual(theta, gradient, radius)
    else:
        raise MechanismError(f"objective perturbation: {open_.size} trials did not converge")
    found[rows] = theta
    return _snapped(found, radius)


def _shortened(model: Model, theta: Floats, target: Floats, slope: Floats) -> Floats:
    """Backtrack from `target` towards `theta` until the loss decreases (Armijo 1966)."""
    start, move, share = model.value(theta), target - theta, np.ones(len(theta))
    # Near the minimum the loss no longer tells points apart; there full steps are safe.
    dust = 1e-12 * (1 + np.abs(start))
    for _ in range(_HALVINGS):
        worse = model.value(theta + share[:, None] * move) > start + 1e-4 * share * slope + dust
        if not worse.any():
            break
        share[worse] /= 2
    return np.asarray(theta + share[:, None] * move)


def quadratic_minimiser(hessian: Floats, theta: Floats, gradient: Floats, radius: float) -> Floats:
    """Minimise ``g^T (z - theta) + (z - theta)^T H (z - theta) / 2`` over ``||z|| <= R``.

    Returns:
        Shape (n, d).
    """
    values, vectors = np.linalg.eigh(hessian)
    target = np.einsum("nij,nj->ni", hessian, theta) - gradient
    target = np.einsum("nij,ni->nj", vectors, target)
    shift = np.zeros(len(theta)) if math.isinf(radius) else _secular(values, target, radius)
    return np.asarray(np.einsum("nij,nj->ni", vectors, target / (values + shift[:, None])))


def _secular(values: Floats, target: Floats, radius: float) -> Floats:
    """``k >= 0`` with ``||target / (values + k)|| = R``, or 0 when 0 is inside already.

    Newton on ``1/||.|| - 1/R``, which is concave in k: from the left it converges monotonically.
    """
    shift = np.zeros(len(values))
    for _ in range(_STEPS):
        scaled = target / (values + shift[:, None])
        norm = np.linalg.norm(scaled, axis=1)
        outside = norm > radius * (1 + 1e-12)
        if not outside.any():
            break
        rate = np.einsum("ni,ni->n", scaled, scaled / (values + shift[:, None]))
        with np.errstate(divide="ignore", invalid="ignore"):
            step = norm**2 * (norm / radius - 1) / rate
        shift = np.where(outside, shift + step, shift)
    return shift


def _residual(theta: Floats, gradient: Floats, radius: float) -> Floats:
    """Norm of the gradient, without its part along an active constraint."""
    if math.isfinite(radius):
        held = np.linalg.norm(theta, axis=1) >= radius * (1 - 1e-9)
        pull = np.maximum(0.0, -np.einsum("nd,nd->n", gradient, theta)) / radius**2
        gradient = gradient + np.where(held, pull, 0.0)[:, None] * theta
    return np.asarray(np.linalg.norm(gradient, axis=1))


def _snapped(theta: Floats, radius: float) -> Floats:
    """Points within 1e-9 of the boundary put exactly on it."""
    if math.isinf(radius):
        return theta
    norm = np.linalg.norm(theta, axis=1)
    near = norm >= radius * (1 - 1e-9)
    theta[near] *= (radius / norm[near])[:, None]
    return theta
