"""What testifies: the best forecast, or a bet on few trials that give everything away."""

import numpy as np
import pytest

import audit

CLAIM = audit.PureDp(epsilon=1.0)
PAIRS = [audit.Pair(0.0, 1.0)]


def sometimes_raw(data, n, rng):
    return np.where(rng.random(n) < 0.02, data, data + rng.laplace(size=n))


@pytest.mark.parametrize("seed", range(3))
def test_a_few_trials_that_give_everything_away_are_what_is_bet_on(seed):
    """Of all thresholds, one certifies .9 of the claim; of exact values, 2 % refute it.

    Power on fixed seeds, no false alarm to state.
    """
    result = audit.examine(
        sometimes_raw, claim=CLAIM, pairs=PAIRS, batched=True, trials=20_000, seed=seed
    )
    assert result.verdict == "refuted"
    assert result.choice.attack == "atoms"


def test_without_such_trials_the_best_forecast_testifies():
    """False alarm 1e-3. What is certified is a matter of power, on a fixed seed."""

    def noisy(data, n, rng):
        return data + rng.laplace(size=n)

    result = audit.examine(noisy, claim=CLAIM, pairs=PAIRS, batched=True, trials=20_000)
    assert result.verdict == "unrefuted"
    assert result.epsilon_lower > 0.85
