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
post-processing. The same noise is (eps', delta)-DP with a smaller eps': nearer Laplace laws are a
post-processing of farther ones, so the product of N H pairs at distance ``R / scale`` dominates,
and its exact curve gives eps' at any delta.
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
from algorithms.bandits.utility import Measured
from algorithms.primitives import tree
from algorithms.primitives.laplace import (
    log_tilted_mass,
    product_epsilon,
    product_profile,
    tilted_laplace,
)
from audit.claim import AnyClaim, ApproxDp, PureDp
from audit.errors import UsageError
from audit.pair import Pair

SOURCE = "Agarwal and Singh, The Price of Differential Privacy for Online Learning (2017)"


@dataclass(frozen=True)
class FtrlTree(Measured):
    """Exponential weights on tree-aggregated losses of N experts.

    Data are mappings with ``losses``, shape (T, N).

    Attributes:
        epsilon: Promised pure epsilon, which sets the noise.
        horizon: Number of rounds T, at least 2.
        arms: Number of experts N.
        view: The promised projection: ``transcript`` or ``actions``.
        bound: Largest loss R; losses are clamped to [0, R].
        eta: Learning rate; ``sqrt(ln N / T) / R`` when omitted.
        noise_factor: Multiplies the noise but not the claim: 1 is the algorithm.
        delta: Delta at which the claim is stated, with the epsilon that the noise has there; 0 for
            the pure claim.

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
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self)
        if not 0 <= self.delta < 1:
            raise UsageError(f"tree: expected 0 <= delta < 1, got delta={self.delta!r}")

    @property
    def claim(self) -> AnyClaim:
        """Pure eps-DP under replacement of one round's losses, or what it implies at `delta`."""
        about = {"view": self.view, "relation": "replace-one", "source": SOURCE}
        if self.delta:
            return ApproxDp(epsilon=self.accounted_epsilon(), delta=self.delta, **about)
        return PureDp(epsilon=self.epsilon, **about)

    def accounted_epsilon(self) -> float:
        """Epsilon at `delta` of the declared noise, on the worst pair of inputs."""
        if not self.delta:
            return self.epsilon
        pairs = self.arms * self.height
        return product_epsilon([self.epsilon / pairs] * pairs, self.delta)

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
        return self.follow(nodes, rng)

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Floats]:
        """Transcripts from the law proportional to ``exp(tilt L) P_left``, and log weights.

        Args:
            pair: Two inputs.
            tilt: The tilt.
            n: Number of trials.
            rng: Source of the noise and of the actions.

        Returns:
            As `run`, and ``ln dP_left/dTilted``, shape (n,).
        """
        left, right = self.exact_nodes(pair.left), self.exact_nodes(pair.right)
        shifts = (right - left) / self.noise_scale
        noise = tilted_laplace(np.broadcast_to(shifts, (n, *shifts.shape)), tilt, rng)
        emitted = self.follow(left + self.noise_scale * noise, rng)
        losses = self.log_likelihood_ratio(emitted, pair)
        return emitted, log_tilted_mass(shifts, tilt).sum() - tilt * losses

    def follow(self, nodes: Floats, rng: np.random.Generator) -> dict[str, Array]:
        """What is played, and emitted, when the noisy nodes are these, shape (n, T - 1, N)."""
        n = len(nodes)
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
