"""Numbers that are no floats, inputs that a run writes to, and what a report says of both."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import audit
from audit.errors import UsageError
from audit.view import collect

PAIR = ([1, 0, 1], [1, 0, 0])


def examined(function, trials=2000):
    """The function of one trial against 1-DP on fresh inputs."""
    pair = audit.Pair(*(list(side) for side in PAIR))
    return audit.examine(function, claim=audit.PureDp(epsilon=1.0), pairs=[pair], trials=trials)


@pytest.mark.parametrize("kind", [Decimal, Fraction])
def test_a_leak_in_an_exact_number_is_refuted(kind):
    # true epsilon 3.3; certified above 1 by chance with probability at most 1e-3
    def halved(data, rng):
        return kind(float(sum(data) + rng.laplace(scale=0.3)))

    assert examined(halved).verdict == "refuted"


@pytest.mark.parametrize(
    ("number", "size", "rounded"),
    [
        (Decimal("0.5"), 0.5, False),
        (Fraction(1, 3), 1 / 3, True),
        (Decimal("0.1"), 0.1, True),
        (Fraction(-(10**400)), -np.inf, True),
        (Decimal("NaN"), np.nan, True),
        (Decimal("sNaN"), np.nan, True),
        (Decimal("-Infinity"), -np.inf, False),
    ],
)
def test_exact_numbers_have_a_size_and_say_what_a_float_loses(number, size, rounded):
    views = collect([number], 1)
    assert np.array_equal(views["value"], [size], equal_nan=True)
    assert ("value.exact" in views.columns) == rounded
    assert views.form[0] == type(number).__name__


def test_huge_negative_integers_keep_their_sign():
    assert collect([-(10**400)], 1)["value"][0] == -np.inf


def test_trials_that_write_to_their_input_give_no_verdict():
    # one fresh run keeps 1-DP exactly, but each trial starts from what the last one left behind
    def adds_in_place(data, rng):
        data[0] += rng.laplace()
        return sum(data)

    result = examined(adds_in_place)
    assert result.verdict == "error"
    assert "changed its input" in result.findings[-1].message


def test_a_failure_says_what_the_exception_says():
    def never(_data, _rng):
        raise RuntimeError("the table\nis empty")

    message = examined(never).findings[-1].message
    assert "raised RuntimeError: the table is empty" in message


def test_a_bound_a_hair_above_the_claim_does_not_read_as_equal_to_it():
    # two answers charged once; the e-process certifies 1 + 1e-9
    def twice(data, rng):
        return [sum(data) + rng.laplace(), sum(data) + rng.laplace()]

    result = examined(twice, trials=20_000)
    assert result.verdict == "refuted"
    (bound,) = re.findall(r"epsilon >= ([.\d]+) at", result.findings[-1].message)
    assert float(bound) > 1


def test_a_pair_of_another_relation_than_the_claim_is_refused():
    # a count may be public where records are replaced; a pair of other lengths proves nothing
    def length(data, _rng):
        return len(data)

    claim = audit.PureDp(epsilon=1.0, relation="replace-one")
    pair = audit.Pair([1, 1], [1], relation="add-remove")
    with pytest.raises(UsageError, match="about replace-one neighbours"):
        audit.examine(length, claim=claim, pairs=[pair])


def test_a_pair_of_more_records_than_the_claim_speaks_of_is_refused() -> None:
    pair = audit.Pair([1, 1, 1], [0, 0, 0], relation="replace-one", records=3)
    claim = audit.PureDp(epsilon=1.0, relation="replace-one")
    with pytest.raises(audit.UsageError, match="may differ in 3 records"):
        audit.examine(
            lambda data, rng: sum(data) + rng.laplace(), claim=claim, pairs=[pair], trials=400
        )
