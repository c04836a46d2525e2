"""The batched Laplace conversion: any bandit learner becomes pure differentially private.

Algorithm 1 of Asi, Raman and Talwar, "Faster Rates for Private Adversarial Bandits" (2025). The
learner plays each of its arms for a batch of ``tau = ceil(1 / eps)`` rounds and is then fed the
mean loss of the batch plus Laplace noise of scale ``R / (eps tau)``, R being the largest loss.
Rounds left over at the end play one more arm and feed nothing. With the learner `Htinf` the regret
is O(sqrt(KT / eps) + 1 / eps).

Claim: the whole transcript (actions, noisy feedback and the learner's hidden draws) is eps-DP by
the argument of `algorithms.bandits.release`, whatever the learner, and the actions are by
post-processing. The transcript attains eps: on the worst pair, losses 0 against R on all arms in
one round, its privacy loss is that of one Laplace pair at distance eps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.bandits import actions as laws
from algorithms.bandits.canaries import quantile, threshold
from algorithms.bandits.exp3 import (
    Exp3,
    Exp3Gains,
    Exp3Skipping,
    exp3_local,
    exp3_losses,
    guarantee_noisy,
)
from algorithms.bandits.ftpl import Ftpl
from algorithms.bandits.ftrl import Htinf, Inf, guarantee_heavy, tsallis_inf
from algorithms.bandits.learners import Leader, Learner, Setting
from algorithms.bandits.release import (
    Array,
    Floats,
    LaplaceRelease,
    check_sizes,
    looked_up,
)
from audit.errors import UsageError
from audit.pair import Pair

LEARNERS: dict[str, Callable[..., Learner]] = {
    "htinf": Htinf,
    "exp3n": Exp3,
    "ftpl": Ftpl,
    "exp3-gains": Exp3Gains,
    "exp3-losses": exp3_losses,
    "exp3-local": exp3_local,
    "exp3-skipping": Exp3Skipping,
    "tsallis-inf": tsallis_inf,
    "inf": Inf,
    "leader": Leader,
    "threshold": threshold,
    "quantile": quantile,
}
SOURCE = "Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (2025), Algorithm 1"


@dataclass(frozen=True)
class BatchedLaplace(LaplaceRelease):
    """A bandit learner made eps-DP by batching and Laplace noise.

    Data are mappings with ``losses``, shape (T, K): the loss of every arm in every round; or, for
    an adaptive adversary, shape (T, K, K): by the arm of the round before, and by arm. The learner
    sees only the losses of the arms it plays.

    Attributes:
        learner: Name of a base learner (see `LEARNERS`), or a callable that makes one from a
            `Setting`.
        epsilon: Promised epsilon, at least 1/T.
        horizon: Number of rounds T.
        arms: Number of arms K.
        view: The promised projection: ``transcript`` or ``actions``.
        options: Further keyword arguments of the base learner.
        bound: Largest loss R; larger losses count as R, negative ones as 0.
        noise_factor: Multiplies the noise but not the claim: 1 is the algorithm.

    Raises:
        UsageError: For a parameter out of range, an unknown learner, or an option that the learner
            does not know.
    """

    learner: str | Callable[..., Learner]
    epsilon: float
    horizon: int
    arms: int
    view: str = "transcript"
    options: Mapping[str, Any] = field(default_factory=dict)
    bound: float = 1.0
    noise_factor: float = 1.0
    source = SOURCE

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.batch > self.horizon:
            raise UsageError(
                f"bandit: expected epsilon >= 1/horizon = {1 / self.horizon:g}, got "
                f"epsilon={self.epsilon!r}: one batch has {self.batch} rounds. Raise epsilon "
                f"or play at least {self.batch} rounds"
            )
        self.new_learner()

    @property
    def batch(self) -> int:
        """Rounds per batch, tau."""
        # 1 / (1 / 49) is one ulp above 49: the slack keeps the batch at 49. Any tau is private.
        return max(1, math.ceil(1 / self.epsilon - 1e-9))

    @property
    def choices(self) -> int:
        """Number of alternatives of the base learner: the arms."""
        return self.arms

    @property
    def setting(self) -> Setting:
        """What the base learner is told."""
        return Setting(self.choices, self.updates, self.declared_scale, self.bound, self.batch)

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """Views whose likelihood ratio is exact: the actions only where their law has a formula."""
        known = ("transcript", "output")
        return (*known, "actions") if laws.has_law(self) else known

    def new_learner(self) -> Learner:
        """A fresh base learner.

        Raises:
            UsageError: When there is none of that name, or it does not know an option.
        """
        make = LEARNERS.get(self.learner) if isinstance(self.learner, str) else self.learner
        if make is None:
            raise UsageError(
                f"bandit: expected a learner in {', '.join(LEARNERS)}, got {self.learner!r}"
            )
        try:
            return make(self.setting, **self.options)
        except TypeError as error:
            raise UsageError(
                f"bandit: learner {self.learner!r} does not take the options "
                f"{dict(self.options)!r} ({error}); remove or rename them"
            ) from error

    def pairs(self) -> tuple[Pair, ...]:
        """Worst pairs: in the first batch, in a middle one among unequal arms, and adaptive."""
        low = np.zeros((self.horizon, self.arms))
        found = [self.worst_pair(low, 0, "first batch")]
        if self.updates > 1:
            where = (self.updates - 1) // 2 * self.batch + self.batch - 1
            uneven = low + self.bound * np.arange(self.arms) / self.arms
            found.append(self.worst_pair(uneven, where, "middle batch"))
            staying = self.bound * np.tile(np.eye(self.arms), (self.horizon, 1, 1))
            found.append(self.worst_pair(staying, where, "adaptive: staying costs"))
        return tuple(found)

    def play(
        self,
        means: Floats,
        data: Any,  # noqa: ARG002
        n: int,
        rng: np.random.Generator,
    ) -> dict[str, Array]:
        """Play a block of trials that fits into the cache; columns with the trials last."""
        noisy = self.noise(n, rng)
        learner = self.new_learner()
        learner.start(n, rng)
        arms = np.empty((len(self.lengths), n), dtype=np.int32)
        drawn: dict[str, list[Array]] = {}
        for j, mean in enumerate(means):
            arms[j] = arm = learner.act()
            exact, row = looked_up(mean, arms[j - 1] if j else None, arm), noisy[j]
            row += exact
            shown = self.released(row)
            if shown is not row:
                row[:] = shown
            learner.update(arm, self.feedback(exact, row))
            for name, values in learner.hidden.items():
                drawn.setdefault(name, []).append(values)
        if len(arms) > self.updates:
            arms[-1] = learner.act()
        hidden = {name: np.stack(columns) for name, columns in drawn.items()}
        rounds = arms if self.batch == 1 else np.repeat(arms, self.lengths, axis=0)
        return {"actions": rounds, "noisy": noisy, **hidden}

    def released(self, noisy: Floats) -> Floats:
        """What is released of the noisy mean of a batch, shape (n,): all of it."""
        return noisy

    def feedback(self, exact: Floats, noisy: Floats) -> Floats:
        """What the learner is fed after a batch, shape (n,): the noisy mean and nothing else."""
        del exact
        return noisy

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts, or of actions whose law has a formula.

        Args:
            views: Columns ``actions`` and ``noisy``; or ``actions`` alone.
            pair: Two loss sequences.

        Returns:
            Shape (n,), natural logarithms.
        """
        if "noisy" in getattr(views, "columns", views):
            return super().log_likelihood_ratio(views, pair)
        return laws.ratio(self, np.asarray(views["actions"]).astype(np.intp), pair)

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Function of a pair and an epsilon >= 0: the exact hockey-stick divergence, or None.

        It holds for the promised view. There is none for actions whose law has no formula.
        """
        if self.view == "transcript":
            return self.transcript_profile
        return self._action_profile if laws.has_law(self) else None

    @property
    def action_llr(self) -> laws.ActionRatio | None:
        """Estimate of ln P_left / P_right of the actions alone, where no formula is known."""
        return None if laws.has_law(self) else laws.filtered_ratio(self)

    def guarantee(self) -> float | None:
        """Regret on true losses in [0, R] that the base learner's theory promises, or None.

        ``tau R~(J) + tau`` (in units of R) with R~ the regret of the learner over J updates under
        Laplace feedback. Known for ``htinf`` (its constant, 30, is a reconstruction) and ``exp3n``
        at their standard rates.
        """
        scaled = Setting(self.choices, self.updates, self.declared_scale / self.bound)
        known = {"htinf": guarantee_heavy, "exp3n": guarantee_noisy}
        if not isinstance(self.learner, str) or self.learner not in known or self.options:
            return None
        return self.bound * self.batch * (known[self.learner](scaled) + 1)

    def _action_profile(self, pair: Pair, epsilon: float) -> float:
        return laws.profile(self, pair, epsilon)
