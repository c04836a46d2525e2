"""Power against exact binomials and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from audit import bounds
from audit.power import could_have_caught, power_of_rule


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_power_of_a_rule_is_an_exact_binomial_tail(delta: float) -> None:
    trials, guesses, alpha = 400, 300, 0.01
    counts = np.arange(guesses + 1)
    refutes = [
        bounds.binomial_epsilon(int(v), int(guesses - v), alpha, delta=delta, trials=trials) > 1.0
        for v in counts
    ]
    expected = stats.binom.pmf(counts, guesses, 0.8)[refutes].sum()
    found = power_of_rule(0.8, guesses, 1.0, delta, trials, alpha)
    assert found == pytest.approx(expected, rel=1e-9)


def test_power_at_the_null_is_at_most_alpha() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        found = power_of_rule(float(special.expit(epsilon)), 5000, epsilon, 0.0, 5000, 0.01)
        assert 0 < found <= 0.01


def test_guesses_that_may_all_be_revealed_have_no_power() -> None:
    k, _ = bounds.revealed_allowance(1000, 0.01, 0.05)
    assert power_of_rule(1.0, k, 1.0, 0.01, 1000, 0.05) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_could_have_caught_falls_with_trials_and_stays_above_the_claim(delta: float) -> None:
    found = [could_have_caught(1.0, delta, n, 1e-3) for n in (1_000, 10_000, 100_000)]
    for family in found[0]:
        reach = [f[family] if f[family] is not None else np.inf for f in found]
        assert reach[0] > reach[1] > reach[2] > 1.0


def test_the_revealing_box_is_the_easiest_to_catch() -> None:
    for delta in (0.0, 1e-5):
        families = could_have_caught(1.0, delta, 20_000, 1e-3)
        assert len(families) == 2
        assert families["revealing box"] == min(families.values())  # type: ignore[type-var]


def test_power_at_what_could_have_been_caught_is_four_fifths() -> None:
    """Simulated with Laplace noise: 2,000 audits, standard error .009, false alarm 1e-5."""
    trials, alpha = 5_000, 0.01
    reach = could_have_caught(1.0, 0.0, trials, alpha)["laplace noise"]
    assert reach is not None
    rng = np.random.default_rng(3)
    y = rng.laplace(0.0, 1 / reach, (2_000, trials))
    right, wrong = (y <= 0).sum(axis=1), (y >= 1).sum(axis=1)
    refuted = [
        bounds.binomial_epsilon(int(v), int(w), alpha) > 1.0
        for v, w in zip(right, wrong, strict=True)
    ]
    assert np.mean(refuted) == pytest.approx(0.8, abs=0.05)


def test_nothing_could_have_been_caught_with_too_few_trials() -> None:
    assert set(could_have_caught(8.0, 0.0, 20, 1e-6).values()) == {None}
    assert set(could_have_caught(100.0, 0.0, 10**6, 0.05).values()) == {None}
