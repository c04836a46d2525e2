"""What mechanisms say of themselves may be wrong, or raise: bad input or no verdict, no crash."""

import numpy as np
import pytest

import audit
from audit.canaries import game_of, play_once
from audit.engine import run
from audit.errors import MechanismError, UsageError
from audit.plan import Request, Settings, make_plan
from audit.registry import as_mechanism, battery


class Noisy:
    """A sound mechanism."""

    claim = audit.PureDp(epsilon=1.0)

    def pairs(self):
        return (audit.Pair(0.0, 1.0),)

    def run(self, data, n, rng):
        return data + rng.laplace(size=n)


class PairsRaise(Noisy):
    def pairs(self):
        raise KeyError("customers.csv")


class PairsOfNothing(Noisy):
    def pairs(self):
        return None


class ClaimInWords(Noisy):
    claim = "eps=1"


class ClaimRaises(Noisy):
    @property
    def claim(self):
        raise ValueError("no epsilon")


class DomainInWords(Noisy):
    domain = "numbers"


class BlockInWords(Noisy):
    smallest_block = "large"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (PairsRaise, "customers.csv"),
        (PairsOfNothing, r"audit\.Pair\(left, right\)"),
        (ClaimInWords, "got 'eps=1'"),
        (ClaimRaises, "no epsilon"),
        (DomainInWords, r"an audit\.Domain"),
        (BlockInWords, "a number of trials, got 'large'"),
    ],
)
def test_a_statement_that_cannot_be_read_is_bad_input(made, told):
    with pytest.raises(UsageError, match=told):
        audit.examine(made(), trials=200)


class RatioRaises(Noisy):
    def log_likelihood_ratio(self, views, pair):
        raise IndexError("no such row")


def test_a_capability_that_raises_ends_its_own_case_only():
    cases = [
        Request(
            name=name,
            target=name,
            mechanism=as_mechanism(made, name),
            claim=Noisy.claim,
            attacks=battery(),
        )
        for name, made in (("broken", RatioRaises), ("sound", Noisy))
    ]
    record = run(*make_plan(cases, Settings(trials=600)))
    broken, sound = record.results
    assert broken.verdict == "error"
    assert "IndexError in test_declared.py, line" in broken.findings[0].message
    assert "no such row" in broken.findings[0].message
    assert sound.verdict == "unrefuted"


def test_text_and_tuples_will_do():
    """False alarm 1e-3."""

    def noisy(data, rng):
        return data + rng.laplace()

    result = audit.examine(noisy, claim="eps=1", pairs=[(0.0, 1.0)], trials=400)
    assert result.claim == Noisy.claim
    assert result.verdict == "unrefuted"
    with pytest.raises(UsageError, match="got 3"):
        audit.examine(noisy, claim="eps=1", pairs=[3], trials=400)


class Canaries(Noisy):
    def canaries(self, m):
        if m > 10:
            raise ValueError("too many")
        return np.zeros(m), np.ones(m)

    def run(self, data, n, rng):
        return {"value": data + rng.laplace(size=(n, len(data)))}

    def canary_scores(self, views, left, right):
        raise KeyError("scores")


def test_canaries_that_raise_are_told():
    with pytest.raises(UsageError, match="too many"):
        game_of(Canaries(), 11, "case")
    game, rng = game_of(Canaries(), 10, "case"), np.random.default_rng(0)
    with pytest.raises(MechanismError, match="KeyError: 'scores'"):
        play_once(Canaries(), game, "output", np.ones(10, dtype=bool), rng)
