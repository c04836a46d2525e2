"""Public advice of experts: mixing it, following it, and inputs that carry it.

Advice of N experts on K arms over T rounds is an array of shape (T, N, K) whose rows are
probability vectors. It is public: neighbouring inputs have the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

_TOLERANCE = 1e-9


def checked_advice(data: Any, rounds: int, experts: int, arms: int) -> Floats:
    """The advice in the data, shape (T, N, K).

    Raises:
        UsageError: When it is missing, has another shape, or has rows that are no distributions.
    """
    advice = np.asarray(data.get("advice", np.nan), dtype=float)
    expected = (rounds, experts, arms)
    if advice.shape != expected:
        raise UsageError(
            f"experts: expected advice of shape {expected}, got {advice.shape}; give one "
            "distribution over arms per round and expert"
        )
    if not (advice.min() >= 0 and np.abs(advice.sum(axis=2) - 1).max() <= _TOLERANCE):
        raise UsageError("experts: expected rows of advice that are >= 0 and sum to 1; normalise")
    return advice


def varied_advice(rounds: int, experts: int, arms: int) -> Floats:
    """Deterministic advice in which every expert prefers another arm, half of its mass on it."""
    preferred = (np.arange(experts) + np.arange(rounds)[:, None]) % arms
    return np.asarray(0.5 * (np.arange(arms) == preferred[:, :, None]) + 0.5 / arms)


def standing_out(rounds: int, experts: int, arms: int) -> Floats:
    """Advice in which expert 0 insists on arm 0 and all others on arm 1."""
    row = np.zeros((experts, arms))
    row[0, 0] = 1.0
    row[1:, 1] = 1.0
    return np.tile(row, (rounds, 1, 1))


def advised(advice: Floats, expert: Array, rng: np.random.Generator) -> Array:
    """Draw an arm from each trial's expert.

    Args:
        advice: Of one round, shape (N, K).
        expert: Shape (n,).
        rng: Source of one uniform per trial.

    Returns:
        Arms, shape (n,).
    """
    uniform = rng.random(len(expert))
    arm = np.zeros(len(expert), dtype=np.intp)
    for below in np.cumsum(advice[:, :-1], axis=1).T:
        arm += uniform >= below[expert]
    return arm


def softmax(exponents: Floats) -> Floats:
    """Exponential weights of every column, summing to 1."""
    weights = np.exp(exponents - exponents.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))
