"""EXP3 without noise: how much its randomness alone hides.

`UnnoisedExp3` plays EXP3 for gains or losses (Auer, Cesa-Bianchi, Freund and Schapire 2002), or its
mini-batch form, which plays every arm for tau rounds and is fed the mean (Tossou and Dimitrakakis,
"Achieving privacy in the adversarial multi-armed bandit" (2017)). No noise is added anywhere. The
actions are all there is, and their exact likelihood ratio comes from replaying both inputs along
them.

Claim: without batches, every action probability lies in ``[gamma / K, 1 - gamma + gamma / K]``, so
each of the T - 1 actions after the first loses at most ``ln((K (1 - gamma) + gamma) / gamma)``:
that holds for every input and is hopelessly loose. The published per-step claim (`quoted_epsilon`)
ignores that later importance weights differ too, which is harmless where feedback contracts, as
for gains, and false for losses. With batches of tau rounds and gains, one gain moves an exponent by
at most 1 / tau and J = T / tau actions follow: J / tau pure, and by advanced composition (Dwork,
Rothblum and Vadhan 2010) ``sqrt(2 J ln(1 / delta)) / tau + J (e^(1 / tau) - 1) / tau`` at delta.
That argument is the paper's, with the same gap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.bandits.exp3 import Exp3, Exp3Gains, exp3_losses
from algorithms.bandits.learners import Setting
from algorithms.bandits.release import (
    BLOCK,
    Array,
    Floats,
    loss_table,
    require_positive,
    require_whole,
)
from algorithms.bandits.utility import Measured
from audit.claim import AnyClaim, ApproxDp, PureDp
from audit.errors import UsageError
from audit.pair import Pair

SOURCE = "Tossou and Dimitrakakis, Achieving Privacy in the Adversarial Multi-Armed Bandit (2017)"
LEARNERS = {"gains": Exp3Gains, "losses": exp3_losses, "losses-mixed": Exp3}


@dataclass(frozen=True)
class UnnoisedExp3(Measured):
    """EXP3, or mini-batch EXP3, and nothing but its actions.

    Data are mappings with ``losses``, shape (T, K), in [0, 1]; gains are ``1 - loss``.

    Attributes:
        kind: ``gains``, ``losses`` (no exploration) or ``losses-mixed``.
        horizon: Number of rounds T.
        arms: Number of arms K.
        batch: Rounds per batch, tau.
        delta: Delta of the claim for batches; 0 for the pure one.
        options: Further keyword arguments of the learner.

    Raises:
        UsageError: For an unknown kind, an unknown option or a size out of range.
    """

    kind: str
    horizon: int
    arms: int
    batch: int = 1
    delta: float = 0.0
    options: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_whole(1, horizon=self.horizon, batch=self.batch)
        require_whole(2, arms=self.arms)
        if self.kind not in LEARNERS:
            raise UsageError(f"exp3: expected a kind in {', '.join(LEARNERS)}, got {self.kind!r}")
        if not 0 <= self.delta < 1:
            raise UsageError(f"exp3: expected 0 <= delta < 1, got delta={self.delta!r}")
        self.new_learner()

    @property
    def updates(self) -> int:
        """Number of full batches, J."""
        return self.horizon // self.batch

    @property
    def claim(self) -> AnyClaim | None:
        """What the module's docstring says; None for losses without exploration."""
        about = {"view": "actions", "relation": "replace-one", "source": SOURCE}
        if self.batch > 1 and self.kind == "gains":
            if self.delta:
                return ApproxDp(epsilon=self.batched_epsilon(), delta=self.delta, **about)
            return PureDp(epsilon=self.updates / self.batch, **about)
        largest = (self.horizon - 1) * self.largest_step
        if not 0 < largest < math.inf:
            return None
        return PureDp(epsilon=largest, **about)

    @property
    def largest_step(self) -> float:
        """``ln((K (1 - gamma) + gamma) / gamma)``: no action's log-ratio exceeds it."""
        gamma = self.new_learner().gamma
        return math.log(self.arms * (1 - gamma) / gamma + 1) if gamma else math.inf

    def quoted_epsilon(self) -> float:
        """``min(T, T ln((K (1 - gamma) + gamma) / gamma))``, as quoted for EXP3; not a theorem."""
        return self.horizon * min(1.0, self.largest_step)

    def batched_epsilon(self) -> float:
        """Epsilon at `delta` of the mini-batch form.

        Raises:
            UsageError: For delta = 0.
        """
        require_positive(delta=self.delta)
        step, draws = 1 / self.batch, self.updates
        return math.sqrt(2 * draws * math.log(1 / self.delta)) * step + draws * step * math.expm1(
            step
        )

    def new_learner(self) -> Exp3:
        """A fresh learner.

        Raises:
            UsageError: When it does not know an option.
        """
        setting = Setting(self.arms, self.updates, 0.0, 1.0, self.batch)
        try:
            return LEARNERS[self.kind](setting, **self.options)
        except TypeError as error:
            raise UsageError(
                f"exp3: {self.kind!r} does not take the options {dict(self.options)!r} ({error})"
            ) from error

    def pairs(self) -> tuple[Pair, ...]:
        """First round 1 against 0 on all arms, with the later losses that amplify it or do not."""
        found = []
        for later, label in ((0.0, "then gains"), (1.0, "then losses")):
            sides = [np.full((self.horizon, self.arms), later) for _ in range(2)]
            sides[0][0], sides[1][0] = 1.0, 0.0
            left, right = ({"losses": side} for side in sides)
            found.append(Pair(left, right, label=label, relation="replace-one"))
        return tuple(found)

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play `n` trials of the whole sequence.

        Args:
            data: Mapping with ``losses``, shape (T, K).
            n: Number of trials.
            rng: Source of the actions.

        Returns:
            ``actions``, integers of shape (n, T).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        means = self.means(data)
        sizes = [min(BLOCK, n - at) for at in range(0, n, BLOCK)] or [0]
        return {"actions": np.concatenate([self._play(means, size, rng) for size in sizes])}

    def _play(self, means: Floats, n: int, rng: np.random.Generator) -> Array:
        learner = self.new_learner()
        learner.start(n, rng)
        arms = np.empty((len(means) + 1, n), dtype=np.int32)
        for j, mean in enumerate(means):
            arms[j] = arm = learner.act()
            learner.update(arm, mean[arm])
        arms[-1] = learner.act()
        lengths = [self.batch] * self.updates + [self.horizon - self.updates * self.batch]
        return np.repeat(arms, lengths, axis=0).T

    def means(self, data: Any) -> Floats:
        """Mean loss of every arm in every full batch, clamped to [0, 1], shape (J, K).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        losses = np.clip(loss_table(data, self.horizon, self.arms), 0.0, 1.0)
        used = losses[: self.updates * self.batch]
        return np.asarray(used.reshape(self.updates, self.batch, self.arms).mean(axis=1))

    def log_probability(self, data: Any, actions: Array) -> Floats:
        """Exact log-probability of action sequences.

        Args:
            data: The input.
            actions: Integers of shape (n, T).

        Returns:
            Shape (n,); -inf where an estimate has left the range of doubles.
        """
        means = self.means(data)
        learner = self.new_learner()
        learner.start(len(actions), np.random.default_rng(0))
        total = np.zeros(len(actions))
        with np.errstate(all="ignore"):
            for j in range(-(-self.horizon // self.batch)):
                arm = actions[:, j * self.batch]
                total += learner.follow(arm)
                if j < self.updates:
                    learner.update(arm, means[j][arm])
        return total

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of the actions, shape (n,): both inputs replayed along them."""
        actions = np.asarray(views["actions"]).astype(np.intp)
        left, right = (self.log_probability(side, actions) for side in (pair.left, pair.right))
        return left - right

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """All views: the actions are all there is."""
        return ("transcript", "output", "actions")

    def guarantee(self) -> float | None:
        """Regret on losses in [0, 1] at the standard rates without batches, or None.

        ``2 sqrt((e - 1) K T ln K)`` for gains, ``sqrt(2 K T ln K)`` for losses without exploration.
        """
        if self.batch > 1 or self.options or self.kind == "losses-mixed":
            return None
        factor = 4 * (math.e - 1) if self.kind == "gains" else 2.0
        return math.sqrt(factor * self.arms * self.horizon * math.log(self.arms))
