"""Mistakes in the covariance seen by counting on the honest view, without the code's own density.

Each test has alpha .01: on a correct mechanism it would fail to hold with at most that probability.
"""

import numpy as np
import pytest

import audit
from algorithms.broken import pricing, pricing_cov
from algorithms.broken.pricing_bugs import documented
from algorithms.pricing.private_cov import PrivateCov


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


@pytest.mark.filterwarnings("ignore:the classical Gaussian formula")
@pytest.mark.parametrize(("calibration", "trials"), [("exact", 12_000), ("loose", 60_000)])
def test_redrawn_noise_is_found_where_the_pair_moves_the_sums(calibration, trials):
    """P2: fresh noise in every sum wears off in their average, in a direction that is known.

    Loose constants keep it within the published claim (epsilon .56 of 1), not within the mu that
    the declared noise gives. A bound above the real mu has probability .01 as well.
    """
    case = documented("P2", calibration)
    found = audit.examine(case, trials=trials, alpha=0.01, attacks=("shift",), early_stop=False)
    assert found.verdict == "refuted"
    assert case.claim.mu < found.parameter_lower < case.code.mu(case.pairs()[0])


def test_the_shift_says_nothing_against_kept_noise():
    """The same audit of the correct tree; refuted with probability .01."""
    tree = PrivateCov(claim_as="gaussian", calibration="basic")
    found = audit.examine(tree, trials=60_000, alpha=0.01, attacks=("shift",), early_stop=False)
    assert found.verdict == "unrefuted"
    assert 0.5 * tree.claim.mu < found.parameter_lower <= tree.claim.mu
