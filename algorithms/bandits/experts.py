"""Private bandits with expert advice: one noisy release per batch or per round.

`BatchedExperts` is Corollary 8 of Asi, Raman and Talwar, "Faster Rates for Private Adversarial
Bandits" (2025): the conversion of HTINF with the N experts as its arms, best for N <= K. Every
batch picks one hidden expert, every round draws its arm from that expert's advice, and the noisy
mean loss of the batch is fed back as the loss of the expert.

`PerRoundExp4` is their Theorem 9: EXP4 (Auer, Cesa-Bianchi, Freund and Schapire 2002) fed with
every loss plus noise of scale ``R / eps``. Its rates are those of EXP3 for noisy losses with N
experts in the exponent, a reconstruction.

Claim: eps-DP by the argument of `algorithms.bandits.release`: the advice is public, hidden experts
and arms are drawn from it and from noisy feedback alone, and each round's loss enters one release
of sensitivity ``R / tau``. Attained on the pair whose losses in one round are 0 against R.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.bandits.advice import advised, checked_advice, softmax, varied_advice
from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.learners import draw
from algorithms.bandits.release import Array, Floats, LaplaceRelease, check_sizes
from audit.errors import UsageError
from audit.pair import Pair


@dataclass(frozen=True)
class BatchedExperts(BatchedLaplace):
    """A bandit learner over experts, made eps-DP by batching and Laplace noise.

    Data are mappings with ``losses``, shape (T, K), and the public ``advice``, shape (T, N, K).

    Attributes:
        learner: As in `BatchedLaplace`; its arms are the experts.
        epsilon: Promised epsilon, at least 1/T.
        horizon: Number of rounds T.
        arms: Number of arms K.
        view: The promised projection: ``transcript`` or ``actions``.
        options: Further keyword arguments of the base learner.
        bound: Largest loss R.
        noise_factor: Multiplies the noise but not the claim.
        experts: Number of experts N.
    """

    experts: int = 2
    source = "Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (2025), Cor. 8"

    def __post_init__(self) -> None:
        check_sizes(self, "experts")
        super().__post_init__()

    @property
    def choices(self) -> int:
        """The experts."""
        return self.experts

    def pairs(self) -> tuple[Pair, ...]:
        """Worst pairs in the first and in a middle batch, experts of different taste."""
        advice = varied_advice(self.horizon, self.experts, self.arms)
        low = np.zeros((self.horizon, self.arms))
        middle = (self.updates - 1) // 2 * self.batch
        pairs = [self.worst_pair(low, 0, "first batch", advice=advice)]
        if middle:
            uneven = low + self.bound * np.arange(self.arms) / self.arms
            pairs.append(self.worst_pair(uneven, middle, "middle batch", advice=advice))
        return tuple(pairs)

    def means(self, data: Any) -> Floats:
        """Clamped losses by batch, round of the batch and arm: shape (J, tau, K)."""
        used = self.losses(data)[: self.updates * self.batch]
        return used.reshape(self.updates, self.batch, self.arms)

    def exact_means(self, means: Floats, actions: Array, j: int) -> Floats:
        """Mean loss of the arms played in batch j, shape (n,)."""
        rounds = np.arange(self.batch)
        played = actions[:, j * self.batch : (j + 1) * self.batch]
        return np.asarray(means[j][rounds, played].mean(axis=1))

    def shift(self, pair: Pair) -> float:
        """How far the mean of the one differing batch moves, whatever was played."""
        left, right = self.means(pair.left), self.means(pair.right)
        moves = np.abs(left - right).reshape(-1, self.arms)
        rounds = np.flatnonzero(moves.any(axis=1))
        if len(rounds) > 1 or np.ptp(moves, axis=1).max(initial=0.0) > 1e-12 * self.bound:
            raise UsageError(
                f"pair {pair.label!r}: an exact profile needs a change in one round that is the "
                f"same for all arms; rounds {rounds.tolist()} differ. Use the likelihood ratio"
            )
        return float(moves.max(initial=0.0)) / self.batch

    def play(self, means: Floats, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play a block of trials that fits into the cache; columns with the trials last."""
        advice = checked_advice(data, self.horizon, self.experts, self.arms)
        noisy = self.noise(n, rng)
        learner = self.new_learner()
        learner.start(n, rng)
        actions = np.empty((self.horizon, n), dtype=np.int32)
        hidden = np.empty((len(self.lengths), n), dtype=np.int32)
        for j in range(len(hidden)):
            hidden[j] = expert = learner.act()
            first = j * self.batch
            for t in range(first, min(first + self.batch, self.horizon)):
                actions[t] = arm = advised(advice[t], expert, rng)
                if j < self.updates:
                    noisy[j] += means[j, t - first, arm] / self.batch
            if j < self.updates:
                learner.update(expert, noisy[j])
        return {"actions": actions, "noisy": noisy, "experts": hidden}

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """The transcript only."""
        return ("transcript", "output")

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Exact hockey-stick divergence of the transcripts; None for actions."""
        return self.transcript_profile if self.view == "transcript" else None

    @property
    def action_llr(self) -> None:
        """None: the filter plays arms, not experts."""
        return


@dataclass(frozen=True)
class PerRoundExp4(LaplaceRelease):
    """EXP4 fed with every loss plus Laplace noise of scale ``R / eps``.

    Data are mappings with ``losses``, shape (T, K), and the public ``advice``, shape (T, N, K).

    Attributes:
        epsilon: Promised epsilon.
        horizon: Number of rounds T.
        arms: Number of arms K.
        experts: Number of experts N.
        view: The promised projection: ``transcript`` or ``actions``.
        bound: Largest loss R.
        noise_factor: Multiplies the noise but not the claim.
        rates: ``eta`` and ``gamma`` in place of the standard ones, for losses divided by R.
    """

    epsilon: float
    horizon: int
    arms: int
    experts: int
    view: str = "transcript"
    bound: float = 1.0
    noise_factor: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    source = "Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (2025), Thm. 9"

    def __post_init__(self) -> None:
        check_sizes(self, "experts")

    @property
    def largest(self) -> float:
        """``M = 1 + ln(2 K T^2) / eps``: exceeded by a feedback only with chance 1 / (2 K T)."""
        return 1 + math.log(2 * self.arms * self.horizon**2) / self.epsilon

    @property
    def eta(self) -> float:
        """Learning rate ``sqrt(ln N / (K T)) / (2 M)``."""
        root = math.sqrt(math.log(max(2, self.experts)) / (self.arms * self.horizon))
        return self.rates.get("eta", root / (2 * self.largest))

    @property
    def gamma(self) -> float:
        """Exploration ``min(1/2, eta K M)``."""
        return self.rates.get("gamma", min(0.5, self.eta * self.arms * self.largest))

    def pairs(self) -> tuple[Pair, ...]:
        """Worst pairs in the first and in a middle round."""
        advice = varied_advice(self.horizon, self.experts, self.arms)
        low = np.zeros((self.horizon, self.arms))
        uneven = low + self.bound * np.arange(self.arms) / self.arms
        return (
            self.worst_pair(low, 0, "first round", advice=advice),
            self.worst_pair(uneven, (self.horizon - 1) // 2, "middle round", advice=advice),
        )

    def play(self, means: Floats, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play a block of trials that fits into the cache; columns with the trials last."""
        advice = checked_advice(data, self.horizon, self.experts, self.arms)
        noisy = self.noise(n, rng)
        actions = np.empty((self.horizon, n), dtype=np.int32)
        weights, trials = np.zeros((self.experts, n)), np.arange(n)
        for t, loss in enumerate(means):
            probs = self.mixed(advice[t].T @ softmax(weights))
            actions[t] = arm = draw(probs, rng)
            chance = probs[arm, trials]
            noisy[t] = self.observed(loss[arm], noisy[t], chance)
            weights -= self.eta * advice[t][:, arm] * self.estimate(noisy[t], chance)
        return {"actions": actions, "noisy": noisy}

    def mixed(self, probs: Floats) -> Floats:
        """Probabilities mixed with uniform exploration, shape (K, n)."""
        return (1 - self.gamma) * probs + self.gamma / self.arms

    def observed(self, loss: Floats, noise: Floats, chance: Floats) -> Floats:
        """What is released of a round, shape (n,): the loss of the arm plus noise."""
        del chance
        return loss + noise

    def estimate(self, released: Floats, chance: Floats) -> Floats:
        """Importance-weighted loss in units of R, shape (n,)."""
        return released / (self.bound * chance)

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Exact hockey-stick divergence of the transcripts; None for actions."""
        return self.transcript_profile if self.view == "transcript" else None

    def guarantee(self) -> float:
        """Regret on true losses in [0, R] against the best expert, for ``T >= K ln N``.

        ``R ((2 M + (2 + 4 / eps^2 + M) / (2 M)) sqrt(K T ln N) + 1)``.
        """
        size, root = self.largest, math.sqrt(self.arms * self.horizon * math.log(self.experts))
        slope = 2 * size + (2 + 4 / self.epsilon**2 + size) / (2 * size)
        return self.bound * (slope * root + 1)


def first_chances(mechanism: PerRoundExp4, data: Any) -> Floats:
    """Probabilities of the first round's arms, which do not depend on any loss, shape (K,)."""
    advice = checked_advice(data, mechanism.horizon, mechanism.experts, mechanism.arms)
    return np.asarray(mechanism.mixed(advice[0].mean(axis=0)[:, None])[:, 0])
