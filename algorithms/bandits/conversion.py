"""The batched Laplace conversion: any bandit learner becomes pure differentially private.

Algorithm 1 of Asi, Raman and Talwar, "Faster Rates for Private Adversarial Bandits" (2025). The
learner plays each of its arms for a batch of ``tau = ceil(1 / eps)`` rounds and is then fed the
mean loss of the batch plus Laplace noise of scale ``R / (eps tau)``, R being the largest loss.
Rounds left over at the end play one more arm and feed nothing. With the learner `Htinf` the regret
is O(sqrt(KT / eps) + 1 / eps).

Claim: replacing the losses of one round changes the mean of one batch by at most ``R / tau``
(losses are clamped to [0, R] before they are averaged), and that mean leaves only through one
Laplace release of scale ``R / (eps tau)``; every batch has fresh noise and every round is in one
batch. Actions are drawn from the noisy feedback alone. So the whole transcript (actions and noisy
feedback) is eps-DP whatever the learner, and the actions are by post-processing. The transcript
attains eps: on the worst pair, losses 0 against R on all arms in one round, its privacy loss is
that of one Laplace pair at distance eps. This speaks of real-number noise, as the theorem does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.bandits.canaries import Canary, quantile, threshold
from algorithms.bandits.learners import Array, Exp3, Floats, Htinf, Leader, Learner, Setting
from audit.claim import PureDp
from audit.errors import UsageError
from audit.pair import Pair

LEARNERS: dict[str, Callable[..., Learner]] = {
    "htinf": Htinf,
    "exp3n": Exp3,
    "leader": Leader,
    "threshold": threshold,
    "quantile": quantile,
}
SOURCE = "Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (2025), Algorithm 1"
VIEWS = ("transcript", "actions")


@dataclass(frozen=True)
class BatchedLaplace:
    """A bandit learner made eps-DP by batching and Laplace noise.

    Data are mappings with ``losses``, shape (T, K): the loss of every arm in every round. The
    learner sees only those of the arms it plays.

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

    def __post_init__(self) -> None:
        _check_sizes(self)
        if self.view not in VIEWS:
            raise UsageError(f"bandit: expected a view in {', '.join(VIEWS)}, got {self.view!r}")
        self.new_learner()

    @property
    def claim(self) -> PureDp:
        """Pure eps-DP under replacement of one round's losses."""
        return PureDp(epsilon=self.epsilon, view=self.view, relation="replace-one", source=SOURCE)

    @property
    def batch(self) -> int:
        """Rounds per batch, tau."""
        # 1 / (1 / 49) is one ulp above 49: the slack keeps the batch at 49. Any tau is private.
        return max(1, math.ceil(1 / self.epsilon - 1e-9))

    @property
    def updates(self) -> int:
        """Number of full batches, J."""
        return self.horizon // self.batch

    @property
    def declared_scale(self) -> float:
        """Scale ``R / (eps tau)`` of the Laplace noise that the claim needs."""
        return self.bound / (self.epsilon * self.batch)

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise that is really added."""
        return self.declared_scale * self.noise_factor

    @property
    def likelihood_views(self) -> tuple[str, ...]:
        """Views whose likelihood ratio is exact: the actions only for a canary."""
        known = ("transcript", "output")
        return (*known, "actions") if isinstance(self.new_learner(), Canary) else known

    def noise_scaled(self, factor: float) -> BatchedLaplace:
        """The same mechanism with all its noise multiplied by `factor`, the claim unchanged."""
        return dataclasses.replace(self, noise_factor=self.noise_factor * factor)

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
        scale = self.declared_scale
        setting = Setting(self.arms, self.updates, scale, self.bound, self.batch)
        try:
            return make(setting, **self.options)
        except TypeError as error:
            raise UsageError(
                f"bandit: learner {self.learner!r} does not take the options "
                f"{dict(self.options)!r} ({error}); remove or rename them"
            ) from error

    def pairs(self) -> tuple[Pair, ...]:
        """The worst pair in the first batch, and one in a middle batch among unequal arms."""
        low = np.zeros((self.horizon, self.arms))
        uneven = low + self.bound * np.arange(self.arms) / self.arms
        middle = (self.updates - 1) // 2
        found = [self._pair(low, 0, "first batch")]
        if self.updates > 1:
            found.append(self._pair(uneven, middle * self.batch + self.batch - 1, "middle batch"))
        return tuple(found)

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play `n` trials of the whole sequence.

        Args:
            data: Mapping with ``losses``, shape (T, K).
            n: Number of trials.
            rng: Source of the noise and of the learner's draws.

        Returns:
            ``actions``, integers of shape (n, T), and ``noisy``, the noisy mean loss of every full
            batch, shape (n, J).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        means = self.means(data)
        released = self.noise(n, rng)
        learner = self.new_learner()
        learner.start(n, rng)
        arms = np.empty((self.updates + 1, n), dtype=np.int32)
        for j, mean in enumerate(means):
            arms[j] = arm = learner.act()
            exact = mean[arm]
            released[j] += exact
            learner.update(arm, self.feedback(exact, released[j]))
        arms[-1] = learner.act()
        left_over = self.horizon - self.updates * self.batch
        lengths = [self.batch] * self.updates + [left_over]
        return {"actions": np.repeat(arms, lengths, axis=0).T, "noisy": released.T}

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Fresh Laplace noise for every batch and trial, shape (J, n)."""
        return rng.laplace(0.0, self.noise_scale, (self.updates, n))

    def feedback(self, exact: Floats, noisy: Floats) -> Floats:
        """What the learner is fed after a batch, shape (n,): the noisy mean and nothing else."""
        del exact
        return noisy

    def clamped(self, losses: Floats) -> Floats:
        """Losses clamped to [0, R], before they are averaged."""
        return np.clip(losses, 0.0, self.bound)

    def means(self, data: Any) -> Floats:
        """Mean clamped loss of every arm in every full batch, shape (J, K).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        losses = np.asarray(data["losses"], dtype=float)
        if losses.shape != (self.horizon, self.arms) or np.isnan(losses).any():
            raise UsageError(
                f"bandit: expected losses of shape {(self.horizon, self.arms)} without NaN, got "
                f"shape {losses.shape}; one row per round, one column per arm"
            )
        used = self.clamped(losses)[: self.updates * self.batch]
        return np.asarray(used.reshape(self.updates, self.batch, self.arms).mean(axis=1))

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts, or of a canary's actions.

        Given equal pasts the actions have equal laws on both sides, so only the Laplace densities
        of the feedback of batches whose means differ are left.

        Args:
            views: Columns ``actions`` and ``noisy``; ``actions`` alone for a canary.
            pair: Two loss sequences.

        Returns:
            Shape (n,), natural logarithms.
        """
        left, right = self.means(pair.left), self.means(pair.right)
        actions = np.asarray(views["actions"]).astype(np.intp)
        if "noisy" not in getattr(views, "columns", views):
            return self._action_ratio(actions, left, right)
        ratio = np.zeros(len(actions))
        for j in np.flatnonzero(np.any(left != right, axis=1)):
            arm, noisy = actions[:, j * self.batch], np.asarray(views["noisy"])[:, j]
            ratio += np.abs(noisy - right[j, arm]) - np.abs(noisy - left[j, arm])
        return ratio / self.noise_scale

    @property
    def exact_profile(self) -> Callable[[Pair, float], float] | None:
        """Function of a pair and an epsilon >= 0: the exact hockey-stick divergence, or None.

        It holds for the promised view. There is none for the actions of a learner that is not a
        canary, whose law has no closed form.
        """
        if self.view == "transcript":
            return self._transcript_profile
        return self._action_profile if isinstance(self.new_learner(), Canary) else None

    def shift(self, pair: Pair) -> float:
        """How far the mean of the one differing batch moves, the same for all arms.

        Raises:
            UsageError: When several batches differ, or arms move by different amounts: then the
                divergence depends on the learner and has no closed form.
        """
        moves = np.abs(self.means(pair.left) - self.means(pair.right))
        batches = np.flatnonzero(moves.any(axis=1))
        if len(batches) > 1 or np.ptp(moves, axis=1).max() > 1e-12 * self.bound:
            raise UsageError(
                f"pair {pair.label!r}: an exact profile needs a change in one batch that is the "
                f"same for all arms; batches {batches.tolist()} differ. Use the likelihood ratio"
            )
        return float(moves.max())

    def _transcript_profile(self, pair: Pair, epsilon: float) -> float:
        return laplace_profile(self.shift(pair) / self.noise_scale, epsilon)

    def _action_profile(self, pair: Pair, epsilon: float) -> float:
        laws = self._canary_laws(self.means(pair.left), self.means(pair.right))
        grown = math.exp(epsilon) * laws[::-1]
        return float(np.maximum(laws - grown, 0.0).sum(axis=1).max())

    def _action_ratio(self, actions: Array, left: Floats, right: Floats) -> Floats:
        laws = self._canary_laws(left, right)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(laws[0] / laws[1])
        return np.asarray(ratio[actions[:, -1]])

    def _canary_laws(self, left: Floats, right: Floats) -> Floats:
        """Law of the last action on either side, shape (2, K)."""
        canary = self.new_learner()
        if not isinstance(canary, Canary):
            raise UsageError(
                f"bandit: the law of the actions of {self.learner!r} has no closed form; audit the "
                "transcript, or use the learner threshold or quantile"
            )
        if (canary.watched + 1) * self.batch == self.horizon:
            return np.tile(np.eye(self.arms)[0], (2, 1))
        where = (canary.watched, 0)
        return np.stack([canary.law(float(m[where]), self.noise_scale) for m in (left, right)])

    def _pair(self, losses: Floats, where: int, label: str) -> Pair:
        sides = [losses.copy(), losses.copy()]
        sides[0][where], sides[1][where] = 0.0, self.bound
        left, right = ({"losses": side} for side in sides)
        return Pair(left, right, label=label, relation=self.claim.relation)


def laplace_profile(distance: float, epsilon: float) -> float:
    """Hockey-stick divergence of two Laplace laws of scale 1 at `distance`: symmetric.

    ``1 - exp((epsilon - distance) / 2)`` up to `distance`, then 0 (Balle, Barthe and Gaboardi,
    "Privacy amplification by subsampling" (2018)).
    """
    return -math.expm1((epsilon - distance) / 2) if epsilon < distance else 0.0


def _check_sizes(mechanism: BatchedLaplace) -> None:
    whole = isinstance(mechanism.horizon, int) and isinstance(mechanism.arms, int)
    if not (whole and mechanism.horizon >= 1 and mechanism.arms >= 2):
        raise UsageError(
            "bandit: expected whole numbers horizon >= 1 and arms >= 2, got "
            f"horizon={mechanism.horizon!r}, arms={mechanism.arms!r}"
        )
    for name in ("epsilon", "bound", "noise_factor"):
        value = getattr(mechanism, name)
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"bandit: expected a finite {name} > 0, got {name}={value!r}")
    if mechanism.batch > mechanism.horizon:
        raise UsageError(
            f"bandit: expected epsilon >= 1/horizon = {1 / mechanism.horizon:g}, got "
            f"epsilon={mechanism.epsilon!r}: one batch has {mechanism.batch} rounds. Raise epsilon "
            f"or play at least {mechanism.batch} rounds"
        )
