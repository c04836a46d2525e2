from decorated import noisy

import audit  # run as test_contract.py


@audit.parametrize_with_checks([noisy])
def test_contract(mechanism, check):
    check(mechanism)
