"""Mistakes in the covariance seen by counting on the honest view, without the code's own density.

Each test has alpha .01: on a correct mechanism it would fail to hold with at most that probability.
"""

import numpy as np
import pytest

import audit
from algorithms.broken import pricing, pricing_cov
from algorithms.broken.pricing_bugs import documented


@pytest.mark.parametrize(
    ("twin", "position"), [(pricing.SharedNoise, 1), (pricing_cov.ExactBonus, 0)]
)
def test_noiseless_numbers_are_found_by_looking(twin, position):
    """P7: ``S_2 - S_1`` has no noise, replace the second record. P9: the bonus itself has none."""
    code = twin(records=3)
    pair = code.pair(np.array([1.0, 0.0]), np.array([0.0, 1.0]), "axis", position)
    found = audit.examine(code, pairs=(pair,), trials=2000, attacks=("leaf",), alpha=0.01)
    assert found.verdict == "refuted"
    assert "DP001" in {finding.rule for finding in found.findings}


@pytest.mark.slow
def test_redrawn_noise_is_found_by_learning_the_sums():
    """P2: fresh noise in every sum wears off in their average, whose weights can be learnt."""
    case = documented("P2", "exact")
    settings = {"trials": 60_000, "alpha": 0.01, "early_stop": False}
    found = audit.examine(case, attacks=("logistic",), **settings)
    assert found.verdict == "refuted"
    assert case.claim.mu < found.parameter_lower < case.code.mu(case.pairs()[0])
