"""Jointly private linear contextual bandit: a noisy Gram tree, Gaussian or Wishart.

Shariff and Sheffet (2018), *Differentially Private Contextual Linear Bandits*, Algorithm 1 with
the noise of Section 4. Each round offers K arms with contexts x; the arm with the largest
optimistic reward is played and ``z z^T`` with ``z = (x; y)`` enters a binary tree. Actions are
functions of the released Gram matrices and the round's own contexts.

Claim
-----
``||z||^2 <= L^2 + B^2``, and a record enters at most m nodes. *Gaussian*: every node carries
``(Z + Z^T)/sqrt(2)`` with ``s = 4 sqrt(m) (L^2 + B^2) ln(4/delta) / eps``; the worst record is
exactly ``eps/(4 ln(4/delta))``-Gaussian DP, far below what the theorem spends. *Wishart*: every
node carries ``W((L^2 + B^2) I, k)`` with k large enough by Theorem 4.1 of Sheffet (2019, *Old
techniques in differentially private linear regression*) under advanced composition. Both keep the
released matrices positive definite after a public shift, which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.pricing.transcript import path
from algorithms.primitives import tree
from algorithms.primitives.accounting import gaussian_profile
from audit.claim import ApproxDp
from audit.errors import UsageError
from audit.pair import Pair
from audit.view import Views

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SOURCE = "Shariff and Sheffet (2018), NeurIPS, Algorithm 1"


@dataclass(frozen=True)
class PrivateLinUcb:
    """LinUCB on a noisy Gram tree (Shariff and Sheffet 2018).

    Data are a mapping with ``contexts``, shape (rounds, arms, dimension), rows of norm at most
    `length`, and ``rewards``, shape (rounds, arms), clipped to [-bound, bound].

    Attributes:
        rounds: T.
        arms: K.
        dimension: d.
        epsilon: Budget.
        delta: Budget.
        noise: ``gaussian`` or ``wishart``.
        bonus: Weight of the uncertainty.
        length: L.
        bound: B.
        failure: alpha, probability that the shift is too small, which costs regret only.
        view: ``transcript``, ``actions`` or a projection of the actions.
        noise_factor: Multiplies all noise and leaves the claim as it is (not with ``wishart``,
            whose noise has no scale of its own).

    Raises:
        UsageError: For a parameter out of its range.
    """

    rounds: int = 16
    arms: int = 2
    dimension: int = 2
    epsilon: float = 1.0
    delta: float = 1e-6
    noise: str = "gaussian"
    bonus: float = 1.0
    length: float = 1.0
    bound: float = 1.0
    failure: float = 0.05
    view: str = "transcript"
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rounds", "arms", "dimension"):
            _require(getattr(self, name) >= 1, f"{name} >= 1", **{name: getattr(self, name)})
        for name in ("epsilon", "length", "bound", "noise_factor"):
            value = getattr(self, name)
            _require(0 < value < math.inf, f"a finite {name} > 0", **{name: value})
        _require(0 < self.delta < 1, "0 < delta < 1", delta=self.delta)
        _require(self.noise in ("gaussian", "wishart"), "gaussian or wishart", noise=self.noise)
        scaled = self.noise == "gaussian" or self.noise_factor == 1
        _require(scaled, "noise_factor 1 with wishart", noise_factor=self.noise_factor)
        known = self.view in ("transcript", "actions_except", "actions_after")
        _require(known, "transcript, actions_except or actions_after", view=self.view)

    @property
    def claim(self) -> ApproxDp:
        """(epsilon, delta) for replacing one round's contexts and rewards."""
        return ApproxDp(
            epsilon=self.epsilon,
            delta=self.delta,
            view=self.view,
            relation="replace-one",
            source=f"{SOURCE}, {self.noise} noise",
        )

    @property
    def levels(self) -> int:
        """``m = ceil(log2 T) + 1``, the levels that the theorem pays for."""
        return (self.rounds - 1).bit_length() + 1

    @property
    def size(self) -> float:
        """``L^2 + B^2``, the bound on ``||z||^2``."""
        return self.length**2 + self.bound**2

    @property
    def declared_scale(self) -> float:
        """S of the Gaussian noise, or ``sqrt(L^2 + B^2)`` of the Wishart columns."""
        if self.noise == "wishart":
            return math.sqrt(self.size)
        log = math.log(4 / self.delta)
        return 4 * math.sqrt(self.levels) * self.size * log / self.epsilon

    @property
    def freedom(self) -> int:
        """Degrees of freedom k of a node's Wishart matrix."""
        logs = math.log(8 * self.levels / self.delta) * math.log(2 / self.delta)
        return self.dimension + 1 + math.ceil(224 * self.levels * logs / self.epsilon**2)

    def shift(self, released: int) -> float:
        """Multiple of the identity that the optimiser adds to a Gram matrix, a public constant.

        Args:
            released: Records in the matrix; a sum of fewer Wishart nodes must lose less.
        """
        root = math.sqrt(self.dimension)
        if self.noise == "gaussian":
            spread = math.sqrt(2 * self.levels) * self.declared_scale * self.noise_factor
            return 2 * spread * (4 * root + 2 * math.log(2 * self.rounds / self.failure))
        if not released:
            return self.size
        tail = math.sqrt(2 * math.log(8 * self.rounds / self.failure))
        mass = math.sqrt(released.bit_count() * self.freedom)
        return -self.size * ((mass - root - tail) ** 2 - 4 * mass * (root + tail))

    def noise_scaled(self, factor: float) -> PrivateLinUcb:
        """The same mechanism and claim with all Gaussian noise multiplied by `factor`."""
        return replace(self, noise_factor=self.noise_factor * factor)

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """The likelihood ratio is that of the released matrices."""
        return ("transcript", "output") if self.view == "transcript" else ()

    def pairs(self) -> Sequence[Pair]:
        """The first round's arms and rewards replaced by orthogonal or opposite ones."""
        first, last = np.eye(self.dimension)[[0, -1]] * self.length
        return (
            self.pair((first, self.bound), (last, -self.bound), "arms replaced"),
            self.pair((first, self.bound), (first, -self.bound), "rewards flipped"),
        )

    def pair(self, left: tuple[Floats, float], right: tuple[Floats, float], label: str) -> Pair:
        """Neighbours whose first round offers one context and reward on every arm."""
        turn = np.arange(self.rounds)[:, None] + np.arange(self.arms)
        sides = []
        for context, reward in (left, right):
            contexts = np.eye(self.dimension)[turn % self.dimension] * self.length
            rewards = np.where(turn % 2, self.bound / 2, -self.bound / 2)
            contexts[0], rewards[0] = context, reward
            sides.append({"contexts": contexts, "rewards": rewards})
        return Pair(sides[0], sides[1], label=label, relation="replace-one")

    def run(self, data: Mapping[str, Any], n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Play `n` times.

        Returns:
            ``sums``, shape (n, T - 1, (d + 1)(d + 2)/2), the released upper triangles; or
            ``actions``, shape (n, T).
        """
        noise = self._noise(n, rng)
        actions, sums = self._play(data, n, lambda exact, t: exact + noise[:, t])
        return {"sums": sums} if self.view == "transcript" else {"actions": actions}

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ``ln P_left/P_right`` of the released matrices, shape (n,)."""
        released = views["sums"]
        left, right = (self._exact(data, released) for data in (pair.left, pair.right))
        return self._path_ratio(released, left, right, pair.position)

    def exact_profile(self, pair: Pair, epsilon: float) -> float:
        """Hockey-stick divergence of the released matrices, `mu`-GDP (Gaussian noise only).

        Raises:
            UsageError: With Wishart noise, or when only actions are in view.
        """
        _require(self.view == "transcript", "view transcript for a profile", view=self.view)
        return gaussian_profile(self.mu(pair), epsilon)

    def mu(self, pair: Pair) -> float:
        """Gaussian parameter of a pair: exact where the round offers the same on every arm.

        Otherwise an upper bound: the arms that the past may choose are taken at their worst.

        Raises:
            UsageError: With Wishart noise.
        """
        _require(self.noise == "gaussian", "gaussian noise for a profile", noise=self.noise)
        left, right = (self._offered(data, pair.position) for data in (pair.left, pair.right))
        moves = ((left[:, None] - right) ** 2 / self._variance).sum(axis=2)
        return math.sqrt(len(path(pair.position + 1, self.rounds - 1)) * float(moves.max()))

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Floats], Floats]:
        """Releases in which large losses are common, and their log importance weights.

        From the replaced round on all sums are moved by `tilt` times what its first arm adds on
        the left side and not on the right one.
        """
        noise, place = self._noise(n, rng), pair.position
        left, right = (self._offered(data, place)[0] for data in (pair.left, pair.right))
        move = np.zeros((1, *noise.shape[1:]))
        move[:, place:] = tilt * (left - right)
        released = self._play(pair.left, n, lambda exact, t: exact + noise[:, t] + move[:, t])[1]
        exact = self._exact(pair.left, released)
        return {"sums": released}, self._path_ratio(released, exact, exact + move, place)

    def _exact(self, data: Mapping[str, Any], released: Floats) -> Floats:
        """Sums without noise behind released ones, which say what was played; (n, T - 1, D)."""
        actions = self._play(data, len(released), lambda _, t: released[:, t])[0]
        return np.cumsum(self._entries(data, actions), axis=1)

    def _offered(self, data: Mapping[str, Any], place: int) -> Floats:
        """``z z^T`` of every arm of a round, shape (K, D)."""
        contexts, rewards = self._checked(data)
        return _triangle(contexts[place], rewards[place])

    def _path_ratio(self, released: Floats, left: Floats, right: Floats, place: int) -> Floats:
        """Log density ratio of released sums for two sums without noise, shape (n,)."""
        ratio = np.zeros(len(released))
        for node in path(place + 1, self.rounds - 1):
            index = np.array([node - 1])
            values = (tree.node_values(sums, index)[:, 0] for sums in (released, left, right))
            ratio += self._node_ratio(*values)
        return ratio

    def _node_ratio(self, seen: Floats, left: Floats, right: Floats) -> Floats:
        if self.noise == "wishart":
            return self._log_wishart(seen - left) - self._log_wishart(seen - right)
        weight = (left - right) / self._variance
        return np.asarray(np.sum((seen - (left + right) / 2) * weight, axis=1))

    @property
    def _variance(self) -> Floats:
        """Of the Gaussian noise of a node's entries, shape (D,)."""
        rows, columns = np.triu_indices(self.dimension + 1)
        return (self.declared_scale * self.noise_factor) ** 2 * np.where(rows == columns, 2.0, 1.0)

    def _log_wishart(self, entries: Floats) -> Floats:
        """Log density up to a constant; -inf where the matrix is not positive definite."""
        whole = self._symmetric(entries)
        sign, log = np.linalg.slogdet(whole)
        positive = (sign > 0) & (np.linalg.eigvalsh(whole)[:, 0] > 0)
        power = (self.freedom - self.dimension - 2) / 2
        trace = np.trace(whole, axis1=1, axis2=2) / (2 * self.size)
        return np.where(positive, power * log - trace, -np.inf)

    def _noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Noise of every released sum, shape (n, T - 1, D)."""
        side, count = self.dimension + 1, max(self.rounds - 1, 1)
        rows, columns = np.triu_indices(side)
        draws = rng.standard_normal((n, count, len(rows)))
        if self.noise == "gaussian":
            spread = np.where(rows == columns, math.sqrt(2), 1.0)
            draws *= spread * self.declared_scale * self.noise_factor
            return tree.prefix_sums(draws)
        # Bartlett (1933): W = A A^T, A lower triangular with chi on the diagonal.
        factor = np.zeros((n, count, side, side))
        factor[:, :, columns, rows] = draws
        diagonal = np.arange(side)
        chi = rng.chisquare(self.freedom - diagonal, (n, count, side))
        factor[:, :, diagonal, diagonal] = np.sqrt(chi)
        whole = self.size * factor @ factor.swapaxes(2, 3)
        return tree.prefix_sums(np.ascontiguousarray(whole[:, :, rows, columns]))

    def _play(self, data: Mapping[str, Any], n: int, release: Any) -> tuple[Integers, Floats]:
        """Actions (n, T) and released sums (n, T - 1, D) under a rule that releases them."""
        contexts, rewards = self._checked(data)
        side = self.dimension + 1
        width = side * (side + 1) // 2
        actions = np.zeros((n, self.rounds), dtype=np.int64)
        exact, sums = np.zeros((n, width)), np.empty((n, self.rounds - 1, width))
        seen = np.zeros((n, width))
        for t in range(self.rounds):
            actions[:, t] = self._choose(contexts[t], seen, self.shift(t))
            if t < self.rounds - 1:
                chosen = actions[:, t]
                exact += _triangle(contexts[t][chosen], rewards[t][chosen])
                seen = sums[:, t] = release(exact, t)
        return actions, sums

    def _choose(self, contexts: Floats, entries: Floats, shift: float) -> Integers:
        """Optimistic arm of every trial: ``argmax x^T theta + b ||x||_{V^-1}``."""
        d = self.dimension
        whole = self._symmetric(entries) + shift * np.eye(d + 1)
        values, vectors = np.linalg.eigh(whole[:, :d, :d])
        # A shift that failed is repaired by flooring, which is post-processing.
        inverse = 1 / np.maximum(values, 1e-6 * self.size)
        along = np.einsum("nij,ki->nkj", vectors, contexts)
        target = np.einsum("nij,ni->nj", vectors, whole[:, :d, d]) * inverse
        width = np.sqrt(np.einsum("nkj,nj->nk", along**2, inverse))
        score = np.einsum("nkj,nj->nk", along, target) + self.bonus * width
        return np.asarray(score.argmax(axis=1), dtype=np.int64)

    def _entries(self, data: Mapping[str, Any], actions: Integers) -> Floats:
        contexts, rewards = self._checked(data)
        rounds = np.arange(self.rounds - 1)
        chosen = actions[:, :-1]
        return _triangle(contexts[rounds, chosen], rewards[rounds, chosen])

    def _symmetric(self, entries: Floats) -> Floats:
        rows, columns = np.triu_indices(self.dimension + 1)
        whole = np.empty((len(entries), self.dimension + 1, self.dimension + 1))
        whole[:, rows, columns] = whole[:, columns, rows] = entries
        return whole

    def _checked(self, data: Mapping[str, Any]) -> tuple[Floats, Floats]:
        contexts = np.asarray(data["contexts"], dtype=float)
        rewards = np.clip(np.asarray(data["rewards"], dtype=float), -self.bound, self.bound)
        shape = (self.rounds, self.arms, self.dimension)
        if contexts.shape != shape or rewards.shape != shape[:2]:
            raise UsageError(
                f"PrivateLinUcb: expected contexts {shape} and rewards {shape[:2]}, got "
                f"{contexts.shape} and {rewards.shape}. Set the parameters to those of the data"
            )
        longest = float(np.linalg.norm(contexts, axis=2).max())
        _require(longest <= self.length * (1 + 1e-12), f"norms <= {self.length:g}", norm=longest)
        return contexts, rewards


def _triangle(contexts: Floats, rewards: Floats) -> Floats:
    z = np.concatenate([contexts, rewards[..., None]], axis=-1)
    rows, columns = np.triu_indices(z.shape[-1])
    return np.asarray(z[..., rows] * z[..., columns], dtype=float)


def _require(met: bool, expected: str, **got: object) -> None:
    if not met:
        name, value = next(iter(got.items()))
        raise UsageError(f"PrivateLinUcb: expected {expected}, got {name}={value!r}")
