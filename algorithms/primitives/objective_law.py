"""Exact law of the minimiser that objective perturbation releases.

With ``G = grad`` and ``H = Hessian`` of the loss at theta (ridge included, w excluded), the map
from theta to ``w = -G(theta)`` is one to one, so inside the ball

    p(theta) = (2 pi nu^2)^(-d/2) exp(-||G||^2 / 2 nu^2) det H

(Chaudhuri, Monteleoni and Sarwate 2011, proof of Theorem 9). On the sphere ``||theta|| = R`` any
``w = -G - k theta/R`` with a multiplier ``k >= 0`` leads there; integrating k out gives the density
with respect to surface measure. With ``u = theta/R``, P an orthonormal basis of the tangent space,
``b = u^T G``, ``G_t = P^T G`` and lam_i the eigenvalues of ``P^T H P``:

    p(theta) = (2 pi nu^2)^(-d/2) exp(-||G_t||^2 / 2 nu^2)
               * int_0^inf exp(-(k + b)^2 / 2 nu^2) prod_i (lam_i + k/R) dk.

The sphere often carries most of the mass, so a likelihood ratio of the interior alone is wrong.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from algorithms.primitives.objective import Model

Floats = npt.NDArray[np.float64]

# Wide enough for views rounded to 2^-30 of their spread; inside, it has probability about 1e-6.
BOUNDARY = 1e-7
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def log_density(model: Model, theta: Floats, nu: float, radius: float = math.inf) -> Floats:
    """Log density of the minimiser, where it is: inside the ball or on its surface.

    Args:
        model: The loss, ridge included.
        theta: Released minimisers, shape (n, d).
        nu: Standard deviation of every entry of w.
        radius: R, ``inf`` when unconstrained.

    Returns:
        Shape (n,), in float64; with respect to volume inside and to surface on the sphere.
    """
    gradient, hessian = model.derivatives(theta)
    constant = -model.dimension * math.log(nu * math.sqrt(2 * math.pi))
    inside = -np.einsum("nd,nd->n", gradient, gradient) / (2 * nu**2)
    inside += np.linalg.slogdet(hessian)[1]
    if math.isfinite(radius):
        held = on_boundary(theta, radius)
        if held.any():
            inside[held] = _surface(theta[held], gradient[held], hessian[held], nu, radius)
    return np.asarray(inside + constant, dtype=float)


def on_boundary(theta: Floats, radius: float) -> npt.NDArray[np.bool_]:
    """Whether ``| ||theta|| - R | <= 1e-7 R``, shape (n,)."""
    norm = np.linalg.norm(theta, axis=-1)
    if math.isinf(radius):
        return np.zeros(norm.shape, dtype=bool)
    return np.asarray(np.abs(norm - radius) <= BOUNDARY * radius)


def _surface(theta: Floats, gradient: Floats, hessian: Floats, nu: float, radius: float) -> Floats:
    unit = theta / np.linalg.norm(theta, axis=1, keepdims=True)
    tangent = _tangent(unit)
    across = np.einsum("nij,ni->nj", tangent, gradient)
    inner = np.einsum("nia,nij,njb->nab", tangent, hessian, tangent)
    bends = np.linalg.eigvalsh(inner) if inner.shape[1] else np.empty((len(unit), 0))
    along = np.einsum("nd,nd->n", unit, gradient)
    exponent = -np.einsum("nj,nj->n", across, across) / (2 * nu**2)
    return np.asarray(exponent + _log_multipliers(along, bends, nu, radius))


def _tangent(unit: Floats) -> Floats:
    """Orthonormal bases of the spaces orthogonal to unit vectors: (n, d) to (n, d, d - 1)."""
    n, d = unit.shape
    frame = np.concatenate([unit[:, :, None], np.broadcast_to(np.eye(d), (n, d, d))], axis=2)
    return np.linalg.qr(frame)[0][:, :, 1:]


def _log_multipliers(along: Floats, bends: Floats, nu: float, radius: float) -> Floats:
    """Log of the integral over the multiplier k, by 64-point Gauss-Legendre quadrature.

    The range holds all but e^-40 of the mass: k in ``[max(0, -b - 12 nu), max(0, -b) + 12 nu]``,
    cut at ``40 nu^2 / b`` where the integrand decays like ``exp(-k b / nu^2)``.
    """
    low = np.maximum(0.0, -along - 12 * nu)
    high = np.maximum(0.0, -along) + 12 * nu
    with np.errstate(divide="ignore"):
        high = np.where(along > 0, np.minimum(high, 40 * nu**2 / np.maximum(along, 1e-300)), high)
    half = (high - low) / 2
    k = low[:, None] + half[:, None] * (1 + _NODES)
    log = -((k + along[:, None]) ** 2) / (2 * nu**2)
    log += np.sum(np.log(bends[:, None, :] + k[:, :, None] / radius), axis=2)
    top = log.max(axis=1)
    return np.asarray(top + np.log(np.exp(log - top[:, None]) @ _WEIGHTS * half))
