"""The guarantee travels with the function."""

import functools

import numpy as np
import pytest

import audit
from audit.errors import UsageError
from audit.promise import promise_of
from audit.registry import as_mechanism


@audit.claims("eps=1,delta=1e-6", pairs=[([0.0], [1.0])], relation="replace-one", view="output")
def noisy(data, n, rng):
    return sum(data) + rng.laplace(size=n)


def test_claim_pairs_and_source_are_found():
    made = as_mechanism(noisy, "noisy")
    assert str(made.claim) == "(1, 1e-06)-DP"
    assert made.claim.source == "tests.unit.test_promise:noisy"
    assert made.claim.relation == "replace-one"
    (pair,) = made.pairs()
    assert (pair.left, pair.right, pair.relation) == ([0.0], [1.0], "replace-one")
    assert noisy([0.0], 2, np.random.default_rng(0)).shape == (2,), "the function is what it was"


def test_examine_needs_nothing_else():
    """Deterministic; over seeds, refuted with probability at most alpha = 0.001."""
    result = audit.examine(noisy, trials=400)
    assert result.verdict == "unrefuted"
    assert result.claim.source == "tests.unit.test_promise:noisy"


def test_it_goes_through_wraps_and_partial():
    @functools.wraps(noisy)
    def wrapped(data, n, rng):
        return noisy(data, n, rng)

    assert promise_of(wrapped) is promise_of(noisy)
    assert promise_of(functools.partial(noisy)) is promise_of(noisy)
    assert promise_of(lambda data, rng: 0) is None


def test_on_a_policy_class_the_view_names_the_column():
    @audit.claims(audit.PureDp(epsilon=2.0), view="prices_after", unit="user")
    class Policy:
        def act(self):
            return 1.0

        def observe(self, outcome):
            pass

    made = as_mechanism(Policy, "policy")
    assert (made.column, made.claim.view, made.claim.unit) == ("prices", "prices_after", "user")


def test_another_claim_given_beside_it_is_audited_too(tmp_path):
    from audit.cases import Asked, requests_for
    from audit.config import CaseConfig

    config = CaseConfig(target="tests.unit.test_promise:noisy", claim="eps=3")
    made, notes = requests_for(Asked(config, "--claim"))
    assert [str(request.claim) for request in made] == ["3-DP", "(1, 1e-06)-DP"]
    assert [note.rule for note in notes] == ["DP003"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("eps=one",), "expected name=number"),
        (("eps=1",), "int"),
    ],
)
def test_misuse_is_told(arguments, message):
    with pytest.raises(UsageError, match=message):
        audit.claims(*arguments)(3)


def test_inputs_are_checked_to_be_neighbours():
    with pytest.raises(UsageError, match="replace-one"):
        audit.claims("eps=1", pairs=[([0, 0], [1, 1])], relation="replace-one")
    with pytest.raises(UsageError, match=r"\(left, right\)"):
        audit.claims("eps=1", pairs=[3])
