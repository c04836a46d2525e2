"""The tree-summed covariance as a game for one run: canaries among the customers.

Claim: that of `PrivateCov`, whose law this is; only the inputs differ.

Canaries interfere: a node of the tree holds the sum of all records below it. The scores take the
other canaries as noise of known size, so that canaries far apart lose little and neighbours lose
much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.pricing.private_cov import PrivateCov
from audit.errors import UsageError
from audit.view import Floats, Views

Data = Mapping[str, Any]


@dataclass(frozen=True)
class CovCanaries(PrivateCov):
    """`PrivateCov` with canaries at even distances."""

    def canaries(self, m: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Two tables in which `m` evenly spaced records are the first or the second axis vector.

        Raises:
            UsageError: For more canaries than records.
        """
        if not 1 <= m <= self.records:
            raise UsageError(
                f"CovCanaries: expected at most {self.records} canaries, one a record, got {m}; "
                "raise records"
            )
        left, right = np.zeros((2, self.records, self.dimension))
        where = (np.arange(m) * self.records) // m
        left[where, 0], right[where, 1] = 1.0, 1.0
        return {"features": left}, {"features": right}

    def canary_scores(self, views: Views, left: Data, right: Data) -> Floats:
        """Log-likelihood ratio of every canary, the other coins taken as Gaussian; shape (m,).

        With coins s = +-1 the nodes are ``A s`` plus white noise. Minimum-variance estimates of s
        with prior variance 1 have covariance ``C = (A'A + 1)^-1``; leaving out the prior of coin
        i itself gives the ratio ``2 E[s_i] / C_ii``.
        """
        moves, where, spread = self._moves(left, right)
        everything = np.arange(self.records)
        middle = np.cumsum((self._outer(left) + self._outer(right)) / 2, axis=0)
        nodes = self._independent((views["sums"] - middle)[:1], everything)[0] / spread
        gram, seen = self._normal_equations(moves, where, nodes)
        covariance = np.linalg.inv(gram + np.eye(len(where)))
        return np.asarray(2 * (covariance @ seen) / np.diagonal(covariance), dtype=float)

    def clarity(self, m: int) -> Floats:
        """How much of its mu each of `m` canaries keeps beside the others, in (0, 1]; shape (m,).

        The mu of a canary whose neighbours' coins are unknown, over that of one alone.
        """
        moves, where, _ = self._moves(*self.canaries(m))
        gram, _ = self._normal_equations(moves, where, np.zeros((self.records, moves.shape[1])))
        left = 1 / np.diagonal(np.linalg.inv(gram + np.eye(m))) - 1
        return np.asarray(np.sqrt(left / np.diagonal(gram)), dtype=float)

    def _moves(self, left: Data, right: Data) -> tuple[Floats, Any, Floats]:
        """Half the whitened change of each canary, their positions, the noise per entry."""
        spread = np.sqrt(self._variance())
        moves = (self._outer(left) - self._outer(right)) / 2 / spread
        where = np.flatnonzero(np.any(moves != 0, axis=1))
        return moves[where], where, spread

    def _normal_equations(self, moves: Floats, where: Any, nodes: Floats) -> tuple[Floats, Floats]:
        """``A'A``, shape (m, m), and ``A'`` applied to whitened nodes, shape (m,)."""
        columns = np.zeros((len(where), self.records, 1))
        columns[np.arange(len(where)), where, 0] = 1.0
        member = self._independent(np.cumsum(columns, axis=1), np.arange(self.records))[:, :, 0]
        gram = (member @ member.T) * (moves @ moves.T)
        return gram, np.einsum("cn,nd,cd->c", member, nodes, moves)
