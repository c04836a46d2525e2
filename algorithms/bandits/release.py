"""What all bandit mechanisms that feed noisy losses to a learner have in common.

A mean loss of ``tau`` rounds leaves only with Laplace noise of scale ``R / (eps tau)``; everything
else is drawn from what has left. This base class holds the noise, its exact likelihood ratio and
its exact privacy curve; the mechanisms say who learns and what is played.

Claim: replacing the losses of one round changes one mean by at most ``R / tau`` (losses are clamped
to [0, R] before they are averaged), every mean has fresh noise and every round is in one mean. So
the whole transcript is eps-DP whatever the learner, and the actions are by post-processing. This
holds against adaptive adversaries too, whose losses may depend on earlier actions: given equal
actions all losses but those of one round coincide. It speaks of real-number noise.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from algorithms.bandits.utility import Measured
from algorithms.primitives.laplace import laplace_profile
from audit.claim import PureDp
from audit.errors import UsageError
from audit.pair import Pair

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

VIEWS = ("transcript", "actions")
BLOCK = 4000


class LaplaceRelease(Measured):
    """A sequential mechanism whose only access to the losses is a Laplace release per batch.

    Subclasses are frozen dataclasses with these fields, and play the game in ``run``.

    Attributes:
        epsilon: Promised epsilon.
        horizon: Number of rounds T.
        arms: Number of arms K.
        view: The promised projection: ``transcript`` or ``actions``.
        bound: Largest loss R; larger losses count as R, negative ones as 0.
        noise_factor: Multiplies the noise but not the claim: 1 is the algorithm.
    """

    epsilon: float
    horizon: int
    arms: int
    view: str
    bound: float
    noise_factor: float
    source = ""

    @property
    def claim(self) -> PureDp:
        """Pure eps-DP under replacement of one round's losses."""
        return PureDp(
            epsilon=self.epsilon, view=self.view, relation="replace-one", source=self.source
        )

    @property
    def batch(self) -> int:
        """Rounds per release, tau."""
        return 1

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
    def lengths(self) -> list[int]:
        """Rounds of every stretch with one choice of the learner: the batches, then the rest."""
        rest = self.horizon - self.updates * self.batch
        return [self.batch] * self.updates + [rest] * (rest > 0)

    def noise_scaled(self, factor: float) -> Self:
        """The same mechanism with all its noise multiplied by `factor`, the claim unchanged."""
        changed = {"noise_factor": self.noise_factor * factor}
        return dataclasses.replace(self, **changed)  # type: ignore[type-var]

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play `n` trials of the whole sequence.

        Args:
            data: Mapping with ``losses``, shape (T, K) (or more columns, see the class).
            n: Number of trials.
            rng: Source of the noise and of the learner's draws.

        Returns:
            ``actions``, integers of shape (n, T); ``noisy``, the noisy mean loss of every full
            batch, shape (n, J); and whatever else the learner draws that its state depends on.

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        tables = self.means(data)
        sizes = [min(BLOCK, n - at) for at in range(0, n, BLOCK)] or [0]
        blocks = [self.play(tables, data, size, rng) for size in sizes]
        if len(blocks) == 1:
            return {name: column.T for name, column in blocks[0].items()}
        return {k: np.concatenate([block[k] for block in blocks], axis=1).T for k in blocks[0]}

    def play(self, means: Floats, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play a block of trials that fits into the cache; columns with the trials last."""
        raise NotImplementedError

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Fresh Laplace noise for every batch and trial, shape (J, n)."""
        return rng.laplace(0.0, self.noise_scale, (self.updates, n))

    def clamped(self, losses: Floats) -> Floats:
        """Losses clamped to [0, R], before they are averaged."""
        return np.clip(losses, 0.0, self.bound)

    def losses(self, data: Any) -> Floats:
        """The clamped losses, shape (T, K), or (T, K, K) of an adaptive adversary.

        The entry ``[t, a, b]`` of an adaptive adversary's table is the loss of arm b in round t
        when the round before played arm a (in the first round: when a is 0).

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        losses = np.asarray(data["losses"], dtype=float)
        shape = (self.horizon, self.arms)
        if losses.shape not in (shape, (*shape, self.arms)) or np.isnan(losses).any():
            raise UsageError(
                f"bandit: expected losses of shape {shape} (or {(*shape, self.arms)}) without NaN, "
                f"got shape {losses.shape}; one row per round, one column per arm"
            )
        return self.clamped(losses)

    def means(self, data: Any) -> Floats:
        """Mean clamped loss in every full batch of every arm.

        Returns:
            Shape (J, K), or (J, K, K) for an adaptive adversary: by the arm of the batch before,
            and by the arm of the batch.

        Raises:
            UsageError: When the losses have another shape or are not all numbers.
        """
        losses = self.losses(data)
        used = losses[: self.updates * self.batch]
        table = used.reshape(self.updates, self.batch, *losses.shape[1:])
        if losses.ndim == 3:
            later = np.diagonal(table[:, 1:].sum(axis=1), axis1=1, axis2=2)
            return np.asarray((table[:, 0] + later[:, None]) / self.batch)
        return np.asarray(table.mean(axis=1))

    def exact_means(self, means: Floats, actions: Array, j: int) -> Floats:
        """Mean loss of batch j given the actions: what the noise was added to.

        Args:
            means: As returned by `means`.
            actions: Integers of shape (n, T).
            j: The batch.

        Returns:
            Shape (n,).
        """
        first = j * self.batch
        return looked_up(means[j], actions[:, first - 1] if j else None, actions[:, first])

    def log_likelihood_ratio(self, views: Any, pair: Pair) -> Floats:
        """Exact ln P_left / P_right of transcripts.

        Given equal pasts the actions have equal laws on both sides, so only the Laplace densities
        of the feedback of batches whose means differ are left.

        Args:
            views: Columns ``actions`` and ``noisy``.
            pair: Two loss sequences.

        Returns:
            Shape (n,), natural logarithms.
        """
        left, right = self.means(pair.left), self.means(pair.right)
        actions = np.asarray(views["actions"]).astype(np.intp)
        ratio = np.zeros(len(actions))
        for j in differing(left, right):
            noisy = np.asarray(views["noisy"])[:, j]
            ratio += np.abs(noisy - self.exact_means(right, actions, j))
            ratio -= np.abs(noisy - self.exact_means(left, actions, j))
        return ratio / self.noise_scale

    def shift(self, pair: Pair) -> float:
        """How far the mean of the one differing batch moves, the same for all arms.

        Raises:
            UsageError: When several batches differ, or arms move by different amounts: then the
                divergence depends on the learner and has no closed form.
        """
        left, right = self.means(pair.left), self.means(pair.right)
        moves = np.abs(left - right).reshape(len(left), -1)
        batches = differing(left, right)
        if len(batches) > 1 or np.ptp(moves, axis=1).max(initial=0.0) > 1e-12 * self.bound:
            raise UsageError(
                f"pair {pair.label!r}: an exact profile needs a change in one batch that is the "
                f"same for all arms; batches {batches.tolist()} differ. Use the likelihood ratio"
            )
        return float(moves.max(initial=0.0))

    def transcript_profile(self, pair: Pair, epsilon: float) -> float:
        """Exact hockey-stick divergence of the transcripts: that of one Laplace pair."""
        return laplace_profile(self.shift(pair) / self.noise_scale, epsilon)

    def worst_pair(self, losses: Floats, where: int, label: str, **public: Any) -> Pair:
        """The pair whose losses in round `where` are 0 against R on all arms.

        Args:
            losses: Of all rounds, shape (T, K) or (T, K, K).
            where: The differing round.
            label: A short name.
            **public: Further columns, the same on both sides.
        """
        sides = [losses.copy(), losses.copy()]
        sides[0][where], sides[1][where] = 0.0, self.bound
        left, right = ({"losses": side, **public} for side in sides)
        return Pair(left, right, label=label, relation=self.claim.relation)


def looked_up(mean: Floats, before: Array | None, arm: Array) -> Floats:
    """Mean loss of the arms played, shape (n,), from one row of ``means``.

    Args:
        mean: Shape (K,), or (K, K) for an adaptive adversary.
        before: Arms of the batch before, shape (n,); None in the first batch.
        arm: Arms of this batch, shape (n,).
    """
    if mean.ndim == 1:
        return np.asarray(mean[arm])
    return np.asarray(mean[0 if before is None else before, arm])


def differing(left: Floats, right: Floats) -> Array:
    """Indices along the leading axis at which two arrays differ."""
    return np.flatnonzero(np.any((left != right).reshape(len(left), -1), axis=1))


def check_sizes(mechanism: Any, *whole: str) -> None:
    """Refuse sizes, rates and views out of range.

    Args:
        mechanism: With fields epsilon, horizon, arms, view, bound and noise_factor.
        *whole: Names of further fields that must be whole numbers >= 1.

    Raises:
        UsageError: Saying what was expected and what came.
    """
    require_whole(1, **{name: getattr(mechanism, name) for name in ("horizon", *whole)})
    require_whole(2, arms=mechanism.arms)
    require_positive(
        epsilon=mechanism.epsilon, bound=mechanism.bound, noise_factor=mechanism.noise_factor
    )
    require_view(mechanism.view)


def require_whole(least: int, **values: Any) -> None:
    """Refuse values that are not whole numbers of at least `least`.

    Raises:
        UsageError: Naming the value.
    """
    for name, value in values.items():
        if not (isinstance(value, int) and value >= least):
            raise UsageError(f"bandit: expected a whole number {name} >= {least}, got {value!r}")


def require_positive(**values: float) -> None:
    """Refuse values that are not finite and positive.

    Raises:
        UsageError: Naming the value.
    """
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"bandit: expected a finite {name} > 0, got {name}={value!r}")


def require_view(view: str) -> None:
    """Refuse an unknown view.

    Raises:
        UsageError: Naming the known ones.
    """
    if view not in VIEWS:
        raise UsageError(f"bandit: expected a view in {', '.join(VIEWS)}, got {view!r}")


def loss_table(data: Any, rounds: int, arms: int) -> Floats:
    """The losses in the data, shape (T, K), as they came.

    Raises:
        UsageError: When they have another shape or are not all numbers.
    """
    losses = np.asarray(data["losses"], dtype=float)
    if losses.shape != (rounds, arms) or np.isnan(losses).any():
        raise UsageError(
            f"bandit: expected losses of shape {(rounds, arms)} without NaN, got shape "
            f"{losses.shape}; one row per round, one column per arm"
        )
    return losses
