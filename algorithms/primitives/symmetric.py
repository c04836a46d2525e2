"""Gaussian noise for a symmetric d x d statistic: four shapes in common use, exactly.

With Z a matrix of independent N(0, s^2) entries, an implementation may mirror the upper triangle
of Z (Dwork, Talwar, Thakurta and Zhang 2014, *Analyze Gauss*), release ``(Z + Z^T)/2`` or
``(Z + Z^T)/sqrt(2)``, or add Z itself. They look alike and differ in privacy: replacing phi by
phi' changes the statistic by ``M = phi phi^T - phi' phi'^T``, and the Gaussian parameter of one
release is ``||M||_O = sqrt(sum M_ij^2 / Var_ij)`` over the entries drawn independently.
For unit vectors ``||M||_F^2 <= 2``, which bounds ``||M||_O`` as stated with each shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class NoiseShape:
    """How a noise matrix is made from independent normals of standard deviation s.

    Attributes:
        diagonal: Standard deviation of a diagonal entry, in units of s.
        off_diagonal: Standard deviation of any other entry, in units of s.
        sensitivity: The largest ``s ||M||_O`` when one record of norm at most 1 is replaced.
        mirrored: Whether the noise is symmetric, so that its upper triangle says everything.
    """

    diagonal: float
    off_diagonal: float
    sensitivity: float
    mirrored: bool = True

    def entries(self, dimension: int) -> tuple[Indices, Indices]:
        """Row and column indices of the entries that are drawn, each of shape (D,)."""
        if self.mirrored:
            return np.triu_indices(dimension)
        rows, columns = np.indices((dimension, dimension))
        return rows.ravel(), columns.ravel()

    def scales(self, dimension: int) -> Floats:
        """Standard deviations of the drawn entries in units of s, shape (D,)."""
        rows, columns = self.entries(dimension)
        return np.where(rows == columns, self.diagonal, self.off_diagonal)

    def outer(self, features: Floats) -> Floats:
        """Entries of ``phi phi^T``: features of shape (..., d) give shape (..., D)."""
        rows, columns = self.entries(features.shape[-1])
        return features[..., rows] * features[..., columns]


SHAPES: dict[str, NoiseShape] = {
    # Attained by an axis pair e_i, e_j only: the diagonal of M counts twice in ||M||_F.
    "mirrored": NoiseShape(1.0, 1.0, math.sqrt(2)),
    # The next three are multiples of ||M||_F, attained by any orthonormal pair.
    "half-sum": NoiseShape(1.0, math.sqrt(0.5), math.sqrt(2)),
    "root-half-sum": NoiseShape(math.sqrt(2), 1.0, 1.0),
    "full": NoiseShape(1.0, 1.0, math.sqrt(2), mirrored=False),
}
