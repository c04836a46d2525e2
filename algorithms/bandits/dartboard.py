"""The dartboard algorithm: private full-information experts by switching rarely.

Asi, Feldman, Koren and Talwar, "Private online prediction from experts: separations and faster
rates" (2023). The expert of the round is kept unless one of two independent coins says to switch:
one of chance p, thrown whatever happened, and one of chance ``1 - (1 - eta)^loss``. A switch draws
an expert from the multiplicative weights. At most Kb - 1 switches are made. No noise is added: the
privacy comes from the coins and from the slow weights. In the batched form the expert is kept for
B rounds and the loss is their mean.

Claim: the first coin after the differing round loses at most
``ln(1 + (1 - p) eta / p)``, and each later draw at most ``-2 ln(1 - eta)`` since the weight of an
expert and their sum both move by a factor within ``1 - eta``. The sum over Kb - 1 draws is
`worst_loss`, the exact supremum, which is at most the published ``eta / p + 16 T p eta``. With
``p = T^(-1/2)``, ``eta = p eps / 20`` and ``Kb = floor(4 T p)`` that is below eps. For delta > 0
the exact composition of these bounds at delta, `accounted_epsilon`, must be at most eps: with the
published rates it is far below. Whatever the rates, a claim that they do not keep is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from algorithms.bandits.dartboard_law import (
    MOST_STATES,
    TiltedChain,
    composed_epsilon,
    loss_profile,
)
from algorithms.bandits.release import (
    Array,
    Floats,
    loss_table,
    require_positive,
    require_view,
    require_whole,
)
from algorithms.bandits.utility import Measured
from audit.claim import AnyClaim, ApproxDp, PureDp
from audit.errors import UsageError
from audit.pair import Pair

SOURCE = "Asi, Feldman, Koren and Talwar, Private Online Prediction from Experts (2023)"
RATES = ("p", "eta", "budget", "batch")


@dataclass(frozen=True)
class Dartboard(Measured):
    """Limited switching among experts.

    Data are mappings with ``losses``, shape (T, d), in [0, 1].

    Attributes:
        epsilon: Promised epsilon.
        horizon: Number of rounds T.
        arms: Number of experts d.
        delta: Promised delta; 0 for the pure form, above for the batched one.
        view: The promised projection: ``transcript`` or ``actions``.
        rates: Any of ``p``, ``eta``, ``budget`` and ``batch`` in place of the standard ones.

    Raises:
        UsageError: For a parameter out of range, or rates that do not keep the claim.
    """

    epsilon: float
    horizon: int
    arms: int
    delta: float = 0.0
    view: str = "transcript"
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_whole(2, horizon=self.horizon, arms=self.arms)
        require_positive(epsilon=self.epsilon)
        require_view(self.view)
        if unknown := set(self.rates) - set(RATES):
            raise UsageError(f"dartboard: expected rates in {', '.join(RATES)}; got {unknown}")
        if not 0 <= self.delta < 1:
            raise UsageError(f"dartboard: expected 0 <= delta < 1, got delta={self.delta!r}")
        if not (0 <= self.p < 1 and 0 < self.eta < 1 and self.budget >= 1):
            raise UsageError(
                f"dartboard: expected 0 <= p < 1, 0 < eta < 1 and a budget >= 1, got p={self.p:g}, "
                f"eta={self.eta:g}, budget={self.budget}; play more rounds or give rates"
            )
        self.check_claim()

    def check_claim(self) -> None:
        """Refuse rates that do not keep the claim.

        Raises:
            UsageError: When the epsilon that they cost at delta exceeds the promised one.
        """
        cost = self.accounted_epsilon()
        if cost > self.epsilon * (1 + 1e-12):
            raise UsageError(
                f"dartboard: expected rates that cost at most epsilon={self.epsilon:g} at "
                f"delta={self.delta:g}, got {cost:g}; lower eta or the budget, or raise p"
            )

    @property
    def claim(self) -> AnyClaim:
        """Pure eps-DP, or (eps, delta)-DP, under replacement of one round's losses."""
        about = {"view": self.view, "relation": "replace-one", "source": SOURCE}
        if self.delta:
            return ApproxDp(epsilon=self.epsilon, delta=self.delta, **about)
        return PureDp(epsilon=self.epsilon, **about)

    @property
    def batch(self) -> int:
        """Rounds per step, B: 1 for the pure form."""
        if "batch" in self.rates:
            return int(self.rates["batch"])
        if not self.delta:
            return 1
        logs: float = math.log(1 / self.delta) ** 0.4 * math.log(self.arms) ** 0.6
        return max(1, math.ceil(logs * math.pow(self.horizon * self.epsilon**3, -0.2)))

    @property
    def steps(self) -> int:
        """Number of steps."""
        return -(-self.horizon // self.batch)

    @property
    def p(self) -> float:
        """Chance of the coin that is thrown whatever happened."""
        if "p" in self.rates:
            return self.rates["p"]
        if not self.delta:
            return 1 / math.sqrt(self.horizon)
        return float((self.batch / (self.horizon * math.log(1 / self.delta))) ** (1 / 3))

    @property
    def eta(self) -> float:
        """Learning rate."""
        usual = self.p * self.epsilon / 20
        if self.delta:
            usual = self.batch * self.p * self.epsilon / 40
        return self.rates.get("eta", usual)

    @property
    def budget(self) -> int:
        """Most draws, Kb, the first included."""
        return int(self.rates.get("budget", max(1, int(4 * self.horizon * self.p / self.batch))))

    def parts(self) -> tuple[float, float]:
        """Largest loss of the first coin after the differing round, and of each later draw."""
        kept = (1 - self.eta) ** (1 / self.batch)
        coin = math.log1p((1 - self.p) * (1 - kept) / self.p) if self.p else math.inf
        return coin, -2 * math.log(kept)

    def worst_loss(self) -> float:
        """Exact supremum of the privacy loss of the transcript over all neighbouring inputs."""
        coin, draw = self.parts()
        return coin + (self.budget - 1) * draw

    def accounted_epsilon(self) -> float:
        """Epsilon at `delta` by exact composition of what the coin and the draws can lose."""
        if not self.delta:
            return self.worst_loss()
        return composed_epsilon(*self.parts(), self.budget - 1, self.delta)

    def published_epsilon(self) -> float:
        """``eta / p + 16 T p eta``, or for delta > 0 the (eps, delta) formula without batches."""
        size = self.horizon * self.p * self.eta
        if not self.delta:
            return self.eta / self.p + 16 * size
        spread = math.sqrt(self.horizon * self.p * math.log(1 / self.delta))
        return 5 * self.eta / self.p + 100 * size * self.eta + 20 * self.eta * spread

    def pairs(self) -> tuple[Pair, ...]:
        """First step: expert 0 turns bad and expert 1 good, or the other way round."""
        found = []
        for others, label in ((0.0, "others turn bad"), (1.0, "others turn good")):
            sides = [np.zeros((self.horizon, self.arms)) for _ in range(2)]
            sides[0][0], sides[1][0] = others, 1 - others
            sides[0][0, :2], sides[1][0, :2] = (0.0, 1.0), (1.0, 0.0)
            left, right = ({"losses": side} for side in sides)
            found.append(Pair(left, right, label=label, relation="replace-one"))
        return tuple(found)

    def steps_losses(self, data: Any) -> Floats:
        """Mean loss of every expert in every step, clamped to [0, 1], shape (steps, d).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        losses = np.clip(loss_table(data, self.horizon, self.arms), 0.0, 1.0)
        starts = np.arange(0, self.horizon, self.batch)
        return np.asarray(np.add.reduceat(losses, starts, axis=0) / self.batch)

    def laws(self, data: Any) -> tuple[Floats, Floats]:
        """Law of a draw and chance of a switch by expert, for the steps 2, ...

        Returns:
            Two arrays of shape (steps - 1, d).
        """
        losses = self.steps_losses(data)[:-1]
        exponents = math.log1p(-self.eta) * np.cumsum(losses, axis=0)
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        switch = 1 - (1 - self.p) * (1 - self.eta) ** losses
        return weights / weights.sum(axis=1, keepdims=True), switch

    def counts(self, switched: Array, expert: Array, before: Array) -> Array:
        """Which steps use up budget: all draws. Shape (n,), boolean."""
        del expert, before
        return switched

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play `n` trials of the whole sequence.

        Args:
            data: Mapping with ``losses``, shape (T, d).
            n: Number of trials.
            rng: Source of the coins and draws.

        Returns:
            ``actions``, the experts, integers of shape (n, T), and ``switches``, whether a draw was
            made before each step but the first, shape (n, steps - 1).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        laws, chances = self.laws(data)
        actions = np.empty((self.steps, n), dtype=np.int32)
        switches = np.empty((self.steps - 1, n), dtype=np.int32)
        actions[0] = rng.integers(self.arms, size=n)
        used = np.ones(n, dtype=np.int32)
        for t, (law, chance) in enumerate(zip(laws, chances, strict=True)):
            before = actions[t]
            switches[t] = switched = (rng.random(n) < chance[before]) & (used < self.budget)
            drawn = np.searchsorted(np.cumsum(law)[:-1], rng.random(n), side="right")
            actions[t + 1] = np.where(switched, drawn, before)
            used += self.counts(switched, actions[t + 1], before)
        return self._emitted(actions, switches)

    def _emitted(self, experts: Array, switches: Array) -> dict[str, Array]:
        rounds = np.repeat(experts, self.batch, axis=0)[: self.horizon]
        return {"actions": rounds.T, "switches": switches.T}

    @property
    def tilted_run(self) -> Callable[..., tuple[dict[str, Array], Floats]] | None:
        """Transcripts from the law proportional to ``exp(tilt L) P_left``, and log weights.

        A function of the pair, the tilt, the number of trials and the generator; None when a loss
        may be infinite, or when the recursion would not fit into memory.
        """
        size = self.steps * min(self.budget, self.steps) * self.arms
        return self._tilted if self.p and size <= MOST_STATES else None

    def _tilted(
        self, pair: Pair, tilt: float, n: int, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Floats]:
        chain = TiltedChain(self.laws(pair.left), self.laws(pair.right), tilt, self.budget)
        emitted = self._emitted(*chain.draw(n, rng))
        return emitted, chain.log_mass - tilt * self.log_likelihood_ratio(emitted, pair)

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts, or of the actions alone; shape (n,)."""
        actions = np.asarray(views["actions"]).astype(np.intp)[:, :: self.batch]
        if "switches" in getattr(views, "columns", views):
            switches = np.asarray(views["switches"]) > 0
            left, right = (
                self._transcript(side, actions, switches) for side in (pair.left, pair.right)
            )
        else:
            left, right = (self._actions(side, actions) for side in (pair.left, pair.right))
        possible = (left > -np.inf) | (right > -np.inf)
        return np.subtract(left, right, out=np.zeros_like(left), where=possible)

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """All views."""
        return ("transcript", "output", "actions")

    def _transcript(self, data: Any, experts: Array, switches: Array) -> Floats:
        """Log-probability of experts (n, steps) and switches (n, steps - 1)."""
        total, used = np.zeros(len(experts)), np.ones(len(experts), dtype=np.int64)
        with np.errstate(divide="ignore"):
            for t, (law, chance) in enumerate(zip(*self.laws(data), strict=True)):
                before, now, switched = experts[:, t], experts[:, t + 1], switches[:, t]
                coin = np.where(switched, np.log(chance)[before], np.log1p(-chance)[before])
                total += np.where(used < self.budget, coin, 0.0)
                total += np.where(switched, np.log(law)[now], 0.0)
                used += self.counts(switched, now, before)
        return total

    def _actions(self, data: Any, experts: Array) -> Floats:
        """Log-probability of experts (n, steps) by a recursion over the draws used so far."""
        width = min(self.budget, self.steps)
        state = np.zeros((width, len(experts)))
        state[0], total = 1 / self.arms, np.zeros(len(experts))
        for t, (law, chance) in enumerate(zip(*self.laws(data), strict=True)):
            before, now = experts[:, t], experts[:, t + 1]
            stay = (before == now) * (1 - chance[before])
            moved = state[:-1] * (chance[before] * law[now])
            last = state[-1] * (before == now)
            state *= stay
            if width == self.budget:
                state[-1] = last
            state[1:] += moved
            size = state.sum(axis=0)
            with np.errstate(divide="ignore"):
                total += np.log(size)
            state /= np.where(size > 0, size, 1.0)
        return total

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Hockey-stick divergence of the transcripts, the larger direction; None for actions."""
        return self._transcript_profile if self.view == "transcript" else None

    def _transcript_profile(self, pair: Pair, epsilon: float) -> float:
        chains = self.laws(pair.left), self.laws(pair.right)
        both = (chains, chains[::-1])
        return max(loss_profile(*pairing, self.budget, epsilon) for pairing in both)

    def at(self, **sizes: Any) -> Dartboard:
        """The same mechanism with another ``horizon`` or ``epsilon``, at the standard rates."""
        return replace(self, rates={}, **sizes)

    def guarantee(self) -> float | None:
        """Regret against the best expert on losses in [0, 1], for the pure form, or None.

        ``eta T + ln d / eta + 2 T exp(-T p / 3)``, at the standard rates.
        """
        if self.delta or self.rates:
            return None
        late = 2 * self.horizon * math.exp(-self.horizon * self.p / 3)
        return self.eta * self.horizon + math.log(self.arms) / self.eta + late
