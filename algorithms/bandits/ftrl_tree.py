"""Follow the regularised leader on noisy prefix sums: private full-information experts.

Agarwal and Singh, "The price of differential privacy for online learning" (2017). In every round
all N losses become known. The prefix sums of the losses come from the binary tree of
`algorithms.primitives.tree`, whose nodes carry Laplace noise; the next distribution minimises
``eta <x, L> + sum x ln x`` on the simplex, which is ``softmax(-eta L)``, and an expert is drawn
from it. The default rate is a reconstruction.

Claim: prefixes of 1, ..., T - 1 rounds are read, and a round is in at most
``H = floor(log2(T - 1)) + 1`` of their nodes (the first round is in H of them). Replacing its
losses moves each of these nodes by at most N R in the 1-norm, so noise of scale ``N R H / eps`` on
every coordinate makes all nodes together eps-DP, exactly; distributions and experts are a
post-processing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.bandits.advice import softmax
from algorithms.bandits.learners import draw
from algorithms.bandits.release import Array, Floats, check_sizes, loss_table
from algorithms.primitives import tree
from algorithms.primitives.laplace import product_profile
from audit.claim import PureDp
from audit.pair import Pair

SOURCE = "Agarwal and Singh, The Price of Differential Privacy for Online Learning (2017)"


@dataclass(frozen=True)
class FtrlTree:
    """Exponential weights on tree-aggregated losses of N experts.

    Data are mappings with ``losses``, shape (T, N).

    Attributes:
        epsilon: Promised epsilon.
        horizon: Number of rounds T, at least 2.
        arms: Number of experts N.
        view: The promised projection: ``transcript`` or ``actions``.
        bound: Largest loss R; losses are clamped to [0, R].
        eta: Learning rate; ``sqrt(ln N / T) / R`` when omitted.
        noise_factor: Multiplies the noise but not the claim: 1 is the algorithm.

    Raises:
        UsageError: For a parameter out of range.
    """

    epsilon: float
    horizon: int
    arms: int
    view: str = "transcript"
    bound: float = 1.0
    eta: float | None = None
    noise_factor: float = 1.0

    def __post_init__(self) -> None:
        check_sizes(self)

    @property
    def claim(self) -> PureDp:
        """Pure eps-DP under replacement of one round's losses."""
        return PureDp(epsilon=self.epsilon, view=self.view, relation="replace-one", source=SOURCE)

    @property
    def nodes(self) -> int:
        """Number of nodes: one for each of the prefixes 1, ..., T - 1."""
        return self.horizon - 1

    @property
    def height(self) -> int:
        """Most nodes that one round is in, H."""
        return tree.levels(self.nodes)

    @property
    def declared_scale(self) -> float:
        """Scale ``N R H / eps`` of the Laplace noise that the claim needs."""
        return self.arms * self.bound * self.height / self.epsilon

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise that is really added."""
        return self.declared_scale * self.noise_factor

    def noise_scaled(self, factor: float) -> FtrlTree:
        """The same mechanism with all its noise multiplied by `factor`, the claim unchanged."""
        return dataclasses.replace(self, noise_factor=self.noise_factor * factor)

    @property
    def rate(self) -> float:
        """Learning rate eta."""
        usual = math.sqrt(math.log(self.arms) / self.horizon) / self.bound
        return usual if self.eta is None else self.eta

    def pairs(self) -> tuple[Pair, ...]:
        """Losses 0 against R on all experts in the first round, and in one that few nodes see."""
        found = []
        for where, label in ((0, "first round"), (self.nodes // 2, "middle round")):
            sides = [np.zeros((self.horizon, self.arms)) for _ in range(2)]
            sides[1][where] = self.bound
            left, right = ({"losses": side} for side in sides)
            found.append(Pair(left, right, label=label, relation="replace-one"))
        return tuple(found)

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play `n` trials of the whole sequence.

        Args:
            data: Mapping with ``losses``, shape (T, N).
            n: Number of trials.
            rng: Source of the noise and of the actions.

        Returns:
            ``actions``, the experts drawn, integers of shape (n, T), and ``nodes``, the noisy
            partial sums, shape (n, T - 1, N).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        nodes = rng.laplace(0.0, self.noise_scale, (n, self.nodes, self.arms))
        nodes += self.exact_nodes(data)
        sums = tree.prefix_sums(nodes.copy())
        actions = np.empty((n, self.horizon), dtype=np.int32)
        actions[:, 0] = rng.integers(self.arms, size=n)
        for t in range(1, self.horizon):
            actions[:, t] = draw(softmax(-self.rate * sums[:, t - 1].T), rng)
        return {"actions": actions, "nodes": nodes}

    def exact_nodes(self, data: Any) -> Floats:
        """Sums of the losses that each node covers, shape (T - 1, N).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        losses = np.clip(loss_table(data, self.horizon, self.arms), 0.0, self.bound)
        ends = range(1, self.horizon)
        return np.stack([losses[end - (end & -end) : end].sum(axis=0) for end in ends])

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts, shape (n,): only nodes depend on the input."""
        left, right = self.exact_nodes(pair.left), self.exact_nodes(pair.right)
        which = np.flatnonzero(np.any(left != right, axis=1))
        nodes = np.asarray(views["nodes"])[:, which]
        ratio = np.abs(nodes - right[which]) - np.abs(nodes - left[which])
        return np.asarray(ratio.sum(axis=(1, 2)) / self.noise_scale)

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Hockey-stick divergence of the transcripts; None for actions."""
        return self._transcript_profile if self.view == "transcript" else None

    def _transcript_profile(self, pair: Pair, epsilon: float) -> float:
        """That of one Laplace pair per coordinate of a node that differs."""
        moves = np.abs(self.exact_nodes(pair.left) - self.exact_nodes(pair.right))
        return product_profile((moves / self.noise_scale).ravel().tolist(), epsilon)


def touched(where: int, prefixes: int) -> int:
    """Number of nodes of the prefixes 1, ..., `prefixes` that contain round `where` (1-based)."""
    count = 0
    while where <= prefixes:
        count += 1
        where += where & -where
    return count
