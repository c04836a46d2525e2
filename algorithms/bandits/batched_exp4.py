"""Batched EXP4 with noise on every expert's estimated loss: (eps, delta)-DP for many experts.

Theorem 10 of Asi, Raman and Talwar, "Faster Rates for Private Adversarial Bandits" (2025), best for
N >= K and ``eps <= 1 / sqrt(T)``. Weights are frozen for a batch; at its end each expert's sum of
importance-weighted losses is released with Laplace noise of scale
``lambda = c sqrt(N) K R / (gamma eps)``. The constants ``c = sqrt(8 ln(1 / delta))``, tau, eta and
gamma are reconstructions.

Claim: one round's loss moves the sum of expert j by ``mu_j(I) |l - l'| / P(I) <= K R / gamma``, so
each of the N releases of its batch has a privacy loss of at most ``eps / (c sqrt(N))``; all other
batches depend on it through these releases alone, since the weights inside a batch are frozen. By
advanced composition over the N coordinates (Dwork, Rothblum and Vadhan 2010) the transcript is
(eps, delta)-DP, for ``eps <= sqrt(8 ln(1 / delta))`` with room to spare: `exact_profile` has the
curve itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.bandits.advice import checked_advice, softmax, standing_out, varied_advice
from algorithms.bandits.exp4_tilting import Tilting
from algorithms.bandits.learners import draw
from algorithms.bandits.release import Array, Floats, check_sizes, loss_table
from algorithms.bandits.utility import Measured
from algorithms.primitives.laplace import product_profile
from audit.claim import AnyClaim, ApproxDp
from audit.errors import UsageError
from audit.pair import Pair

SOURCE = "Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (2025), Thm. 10"
BLOCK = 2000


@dataclass(frozen=True)
class BatchedExp4(Measured):
    """EXP4 with frozen weights in a batch and one noisy release per expert and batch.

    Data are mappings with ``losses``, shape (T, K), and the public ``advice``, shape (T, N, K).

    Attributes:
        epsilon: Promised epsilon.
        delta: Promised delta.
        horizon: Number of rounds T.
        arms: Number of arms K.
        experts: Number of experts N.
        view: The promised projection: ``transcript`` or ``actions``.
        bound: Largest loss R; losses are clamped to [0, R].
        noise_factor: Multiplies the noise but not the claim: 1 is the algorithm.
        rates: Any of ``batch``, ``eta`` and ``gamma`` in place of the standard ones. All are
            private; the noise follows gamma.

    Raises:
        UsageError: For a parameter out of range, or when the standard gamma exceeds 1/2.
    """

    epsilon: float
    delta: float
    horizon: int
    arms: int
    experts: int
    view: str = "transcript"
    bound: float = 1.0
    noise_factor: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_sizes(self, "experts")
        if not 0 < self.delta < 1:
            raise UsageError(f"batched exp4: expected 0 < delta < 1, got delta={self.delta!r}")
        if unknown := set(self.rates) - {"batch", "eta", "gamma"}:
            raise UsageError(f"batched exp4: expected rates batch, eta, gamma; got {unknown}")
        if not (0 < self.gamma <= 0.5 and self.eta > 0 and 1 <= self.batch <= self.horizon):
            raise UsageError(
                f"batched exp4: expected 0 < gamma <= 1/2, eta > 0 and 1 <= batch <= T, got "
                f"gamma={self.gamma:g}, eta={self.eta:g}, batch={self.batch}; play more rounds or "
                "give rates={'batch': ..., 'eta': ..., 'gamma': ...}"
            )

    @property
    def claim(self) -> AnyClaim:
        """(eps, delta)-DP under replacement of one round's losses."""
        return ApproxDp(
            epsilon=self.epsilon,
            delta=self.delta,
            view=self.view,
            relation="replace-one",
            source=SOURCE,
        )

    @property
    def composition(self) -> float:
        """The constant ``c = sqrt(8 ln(1 / delta))``."""
        return math.sqrt(8 * math.log(1 / self.delta))

    @property
    def batch(self) -> int:
        """Rounds per batch, tau."""
        if "batch" in self.rates:
            return int(self.rates["batch"])
        c, experts = self.composition, self.experts
        size = c * c * experts * self.horizon / (2 * self.epsilon**2 * math.log(max(2, experts)))
        least = c * math.sqrt(experts) * math.log(experts * self.horizon**2) / self.epsilon
        return math.ceil(max(float(size ** (1 / 3)), least))

    @property
    def updates(self) -> int:
        """Number of full batches, J."""
        return self.horizon // self.batch

    @property
    def eta(self) -> float:
        """Learning rate ``sqrt(ln N / (T tau K)) / R``."""
        size = self.horizon * self.batch * self.arms
        usual = math.sqrt(math.log(max(2, self.experts)) / size) / self.bound
        return self.rates.get("eta", usual)

    @property
    def gamma(self) -> float:
        """Exploration ``2 eta tau K R``."""
        return self.rates.get("gamma", 2 * self.eta * self.batch * self.arms * self.bound)

    @property
    def declared_scale(self) -> float:
        """Scale ``c sqrt(N) K R / (gamma eps)`` of the noise that the claim needs."""
        width = self.arms * self.bound / self.gamma
        return self.composition * math.sqrt(self.experts) * width / self.epsilon

    @property
    def noise_scale(self) -> float:
        """Scale of the noise that is really added."""
        return self.declared_scale * self.noise_factor

    def noise_scaled(self, factor: float) -> BatchedExp4:
        """The same mechanism with all its noise multiplied by `factor`, the claim unchanged."""
        return dataclasses.replace(self, noise_factor=self.noise_factor * factor)

    def pairs(self) -> tuple[Pair, ...]:
        """0 against R in one round: when one expert has stood out before, and in the first round.

        The first pair is the worst: the arm that only the others advise is played with chance
        gamma / K, and then moves the sums of all of them by ``K R / gamma``.
        """
        shape = (self.horizon, self.experts, self.arms)
        losses = np.zeros((self.horizon, self.arms))
        losses[:, 1:] = self.bound
        found = []
        if self.updates > 1:
            where = (self.updates - 1) * self.batch
            found.append(self._pair(losses, where, standing_out(*shape), "one expert stands out"))
        found.append(self._pair(np.zeros_like(losses), 0, varied_advice(*shape), "first round"))
        return tuple(found)

    def _pair(self, losses: Floats, where: int, advice: Floats, label: str) -> Pair:
        sides = [losses.copy(), losses.copy()]
        sides[0][where], sides[1][where] = 0.0, self.bound
        left, right = ({"losses": side, "advice": advice} for side in sides)
        return Pair(left, right, label=label, relation="replace-one")

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play `n` trials of the whole sequence.

        Args:
            data: Mapping with ``losses``, shape (T, K), and ``advice``, shape (T, N, K).
            n: Number of trials.
            rng: Source of the noise and of the actions.

        Returns:
            ``actions``, integers of shape (n, T), and ``noisy``, the released estimates of every
            full batch and expert, shape (n, J, N).

        Raises:
            UsageError: When the losses or the advice have another shape.
        """
        losses, advice = self.inputs(data)
        sizes = [min(BLOCK, n - at) for at in range(0, n, BLOCK)] or [0]
        blocks = [self.play(losses, advice, size, rng) for size in sizes]
        actions, noisy = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return {"actions": actions, "noisy": noisy}

    def tilted_run(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Floats]:
        """Transcripts from a law near ``exp(tilt L) P_left``, and their exact log weights.

        The arm of the differing round is drawn with chances tilted by what the noise can make of
        each, and the noise of its batch is tilted given the arm. With one differing round this is
        the law itself, up to the share of the past.

        Args:
            pair: Two inputs with the same advice.
            tilt: The tilt.
            n: Number of trials.
            rng: Source of the noise and of the actions.

        Returns:
            As `run`, and ``ln dP_left/dTilted``, shape (n,).
        """
        (left, advice), (right, _) = self.inputs(pair.left), self.inputs(pair.right)
        tilting = Tilting(right - left, self.noise_scale, tilt, n, rng)
        actions, noisy = self.play(left, advice, n, rng, tilting)
        return {"actions": actions, "noisy": noisy}, tilting.log_weights

    def play(
        self,
        losses: Floats,
        advice: Floats,
        n: int,
        rng: np.random.Generator,
        tilting: Tilting | None = None,
    ) -> tuple[Array, Floats]:
        """Play a block of trials, tilted or not; actions (n, T) and releases (n, J, N)."""
        actions = np.empty((n, self.horizon), dtype=np.int32)
        released = rng.laplace(0.0, self.noise_scale, (self.updates, self.experts, n))
        exponents, trials = np.zeros((self.experts, n)), np.arange(n)
        for first in range(0, self.horizon, self.batch):
            sums, weights = np.zeros_like(exponents), softmax(exponents)
            for t in range(first, min(first + self.batch, self.horizon)):
                probs = self.mixed(advice[t].T @ self.inside(weights, exponents, sums))
                if tilting and tilting.differs(t) and t < self.updates * self.batch:
                    arm = tilting.draw(t, probs, advice[t])
                else:
                    arm = draw(probs, rng)
                actions[:, t] = arm
                sums += advice[t][:, arm] * (losses[t, arm] / probs[arm, trials])
            if (j := first // self.batch) < self.updates:
                if tilting:
                    tilting.noise(released[j])
                released[j] += sums
                exponents -= self.eta * released[j]
        return actions, released.transpose(2, 0, 1)

    def inside(self, weights: Floats, exponents: Floats, sums: Floats) -> Floats:
        """Weights inside a batch, shape (N, n): those of its beginning."""
        del exponents, sums
        return weights

    def mixed(self, probs: Floats) -> Floats:
        """Probabilities mixed with uniform exploration, shape (K, n)."""
        return (1 - self.gamma) * probs + self.gamma / self.arms

    def inputs(self, data: Any) -> tuple[Floats, Floats]:
        """Clamped losses (T, K) and advice (T, N, K).

        Raises:
            UsageError: When the losses or the advice have another shape.
        """
        losses = loss_table(data, self.horizon, self.arms)
        advice = checked_advice(data, self.horizon, self.experts, self.arms)
        return np.clip(losses, 0.0, self.bound), advice

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts.

        Args:
            views: Columns ``actions``, shape (n, T), and ``noisy``, shape (n, J, N).
            pair: Two inputs with the same advice.

        Returns:
            Shape (n,): the actions have equal laws given equal pasts, so only the Laplace
            densities of batches with a differing round are left.
        """
        (left, advice), (right, _) = self.inputs(pair.left), self.inputs(pair.right)
        actions = np.asarray(views["actions"]).astype(np.intp)
        noisy = np.asarray(views["noisy"])
        ratio = np.zeros(len(actions))
        rounds = np.flatnonzero(np.any(left != right, axis=1)) // self.batch
        for j in sorted({int(j) for j in rounds if j < self.updates}):
            before = -self.eta * noisy[:, :j].sum(axis=1).T
            here, there = (self._sums(x, advice, actions, before, j) for x in (left, right))
            ratio += (np.abs(noisy[:, j].T - there) - np.abs(noisy[:, j].T - here)).sum(axis=0)
        return ratio / self.noise_scale

    def _sums(
        self, losses: Floats, advice: Floats, actions: Array, exponents: Floats, j: int
    ) -> Floats:
        """Exact sums of batch j given the actions, shape (N, n)."""
        weights, trials = softmax(exponents), np.arange(len(actions))
        sums = np.zeros_like(exponents)
        for t in range(j * self.batch, (j + 1) * self.batch):
            arm = actions[:, t]
            chance = self.mixed(advice[t].T @ weights)[arm, trials]
            sums += advice[t][:, arm] * (losses[t, arm] / chance)
        return sums

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Hockey-stick divergence of transcripts, for pairs that differ in the first batch."""
        return self._transcript_profile if self.view == "transcript" else None

    def _transcript_profile(self, pair: Pair, epsilon: float) -> float:
        """Mean over the arm of the differing round of the curve of N Laplace pairs."""
        return math.fsum(
            chance * product_profile(distances, epsilon)
            for chance, distances in self.distances(pair)
        )

    def distances(self, pair: Pair) -> list[tuple[float, list[float]]]:
        """Chance of every arm in the differing round, and the N shifts in noise scales it causes.

        Raises:
            UsageError: When not exactly one round of the first batch differs: later ones depend on
                random weights, and there is no formula.
        """
        (left, advice), (right, _) = self.inputs(pair.left), self.inputs(pair.right)
        rounds = np.flatnonzero(np.any(left != right, axis=1))
        if len(rounds) != 1 or not (rounds[0] < self.batch and self.updates):
            raise UsageError(
                f"pair {pair.label!r}: an exact profile needs one differing round in the first "
                f"batch; rounds {rounds.tolist()} differ. Use the likelihood ratio"
            )
        t = int(rounds[0])
        chances = self.mixed(advice[t].mean(axis=0)[:, None])[:, 0]
        moves = np.abs(left[t] - right[t]) / (chances * self.noise_scale)
        return [(float(p), (advice[t][:, i] * moves[i]).tolist()) for i, p in enumerate(chances)]

    def guarantee(self) -> float:
        """Regret on true losses in [0, R] against the best expert, at the standard rates.

        ``ln N / eta + eta T (tau + 2 K + 2 lambda^2 / tau) + gamma T + 1``, in units of R.
        """
        eta, scale = self.eta * self.bound, self.declared_scale / self.bound
        spread = self.batch + 2 * self.arms + 2 * scale**2 / self.batch
        rounds = self.horizon * (eta * spread + self.gamma)
        return self.bound * (math.log(self.experts) / eta + rounds + 1)
