"""Customers from a user's file: what is read, what is refused, and the pairs made of them."""

import itertools
import json
import math

import numpy as np
import pytest

from audit.errors import UsageError
from audit.pair import Pair
from audit.table import Table, customer_pairs, read_table, scaled

GOOD = "age,income,fee,bought\n20,10,1.5,1\n70, 30 ,0.5,0\n100,0,3,1\n"
BOUNDS = {"age": (0, 100), "income": (0, 40), "fee": (0, 3), "bought": (0, 1)}
ROLES = {"context": ["age", "income"], "outcome": "bought", "price": "fee", "bounds": BOUNDS}


def read(tmp_path, text, **changes):
    path = tmp_path / "shop.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, **{**ROLES, **changes})


def without(name):
    return {column: interval for column, interval in BOUNDS.items() if column != name}


def test_columns_are_scaled_by_the_public_bounds(tmp_path):
    table = read(tmp_path, GOOD)
    expected = np.array([[0.2, 0.25], [0.7, 0.75], [1, 0]]) / math.sqrt(2)
    np.testing.assert_allclose(table.contexts, expected)
    np.testing.assert_allclose(table.prices, [0.5, 1 / 6, 1])
    np.testing.assert_allclose(table.outcomes, [1, 0, 1])
    assert len(table) == 3
    assert table.priced
    assert len(table.first(2)) == 2


def test_lower_bounds_count_too(tmp_path):
    bounds = {**BOUNDS, "age": (-100, 100), "fee": (-1, 3)}
    table = read(tmp_path, GOOD, bounds=bounds)
    np.testing.assert_allclose(table.contexts[:, 0] * math.sqrt(2), [0.6, 0.85, 1])
    np.testing.assert_allclose(table.prices, [0.625, 0.375, 1])


def test_no_price_column_means_the_highest_price(tmp_path):
    table = read(tmp_path, GOOD, price=None, bounds=without("fee"))
    np.testing.assert_array_equal(table.prices, 1)
    np.testing.assert_allclose(table.outcomes, [1, 0, 1])
    assert not table.priced


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD + "\n\n",
        GOOD.rstrip("\n"),
        GOOD.replace("age", " age ").replace("20,", '"20",'),
    ],
    ids=["byte order mark", "windows", "trailing blank lines", "no last newline", "quotes"],
)
def test_harmless_variants(tmp_path, text):
    np.testing.assert_array_equal(read(tmp_path, text).contexts, read(tmp_path, GOOD).contexts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "row 1: expected a header.*"),
        ("\n" + GOOD, "row 1: expected a header.*"),
        ("age,income,fee,bought\n", "expected customers below the header, got none"),
        (GOOD.replace("income", "wage"), "row 1: no column 'income'; there are age, wage"),
        (GOOD.replace(",", ";"), "row 1: no column 'age'.*Separate the columns by commas"),
        (GOOD.replace("income", "age"), "row 1: column 'age' appears 2 times. Rename"),
        (GOOD.replace("70", "old"), "row 3, column 'age'.*finite number, got 'old'. Correct"),
        (GOOD.replace("70", "1_0"), "row 3, column 'age'.*finite number, got '1_0'"),
        (GOOD.replace("70", "  "), "row 3, column 'age'.*got a blank. Fill"),
        (GOOD.replace("0.5", "nan"), "row 3, column 'fee'.*finite number, got 'nan'"),
        (GOOD.replace("0.5", "inf"), "row 3, column 'fee'.*finite number, got 'inf'"),
        (GOOD.replace("0.5", "4"), r"row 3, column 'fee': 4 is outside.*\(0, 3\).*declare wider"),
        (GOOD.replace("0.5", "-1"), "row 3, column 'fee': -1 is outside"),
        (GOOD + "1,2,3\n", "row 5: expected 4 cells as in the header, got 3"),
        (GOOD + "\n1,2,3,1,5\n", "row 6: expected 4 cells as in the header, got 5"),
        (GOOD + '"1,2,3', "row 5: not valid CSV.*Close its quotes"),
        (GOOD.encode() + b"1,2,3,\xe9\n", "expected UTF-8 text, got byte 0xe9. Save"),
        (GOOD.encode("utf-16"), "expected UTF-8 text, got byte 0xff. Save"),
    ],
)
def test_a_bad_file_is_refused_with_place_and_remedy(tmp_path, text, words):
    with pytest.raises(UsageError, match=words) as raised:
        read(tmp_path, text)
    assert str(tmp_path / "shop.csv") in str(raised.value)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.csv: cannot be read: no such file.*Check"):
        read_table(tmp_path / "nowhere.csv", **ROLES)
    with pytest.raises(UsageError, match="cannot be read: is a directory"):
        read_table(str(tmp_path), **ROLES)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bounds": without("age")}, "no public bounds for column 'age'. Declare them"),
        ({"bounds": {**BOUNDS, "agee": (0, 1)}}, "bounds for 'agee'.*Correct the name"),
        ({"bounds": {**BOUNDS, "age": (5, 5)}}, "column 'age': expected finite low < high"),
        ({"bounds": {**BOUNDS, "age": (0, math.inf)}}, "column 'age': expected finite"),
        ({"context": []}, "at least one context column"),
        ({"context": ["age", "fee", "income"]}, "column 'fee' is given two roles"),
    ],
)
def test_bad_roles_and_bounds(tmp_path, changes, words):
    with pytest.raises(UsageError, match=words):
        read(tmp_path, GOOD, **changes)


def test_missing_becomes_zero_and_the_rest_is_clipped():
    table = scaled(
        np.array([[np.nan], [30.0]]),
        np.array([-1.0, np.nan]),
        np.array([0.0, 2.0]),
        np.array([[0, 20], [0, 1], [0, 1]]),
    )
    np.testing.assert_array_equal(table.contexts, [[0], [1]])
    np.testing.assert_array_equal(table.prices, [0, 0])
    np.testing.assert_array_equal(table.outcomes, [0, 1])


@pytest.mark.parametrize("position", [0, 2])
def test_pairs_replace_one_customer_by_the_worst_and_by_a_real_one(tmp_path, position):
    table = read(tmp_path, GOOD)
    worst, real = customer_pairs(table, position=position)
    for pair in (worst, real):
        assert isinstance(pair, Pair)
        assert pair.relation == "replace-one"
        assert pair.differs == (position,)
        np.testing.assert_array_equal(pair.left["contexts"], table.contexts)
        json.dumps({name: column.tolist() for name, column in pair.right.items()})
    rows = np.column_stack(list(table.to_data().values()))
    other = int(np.argmax(np.linalg.norm(rows - rows[position], axis=1)))
    np.testing.assert_array_equal(real.right["contexts"][position], table.contexts[other])
    assert f"customer {position + 1} replaced by customer {other + 1}" == real.label
    corners = np.array(list(itertools.product((0, 1), repeat=4))) / [2**0.5, 2**0.5, 1, 1]
    farthest = corners[np.argmax(np.linalg.norm(corners - rows[position], axis=1))]
    found = [worst.right["contexts"][position], worst.right["prices"][position]]
    np.testing.assert_allclose(np.hstack(found), farthest[:3])
    assert worst.right["outcomes"][position] == farthest[3]


def test_a_price_that_was_not_recorded_is_never_changed(tmp_path):
    table = read(tmp_path, GOOD, price=None, bounds=without("fee"))
    for pair in customer_pairs(table):
        np.testing.assert_array_equal(pair.right["prices"], 1)


def test_the_distance_decides():
    table = Table(np.array([[0.5], [0.6], [0.9]]), np.array([0.2, 0.9, 0.2]), np.zeros(3))

    def price_only(one, others):
        return np.abs(others[:, 1] - one[1])

    worst, real = customer_pairs(table, distance=price_only)
    assert worst.right["prices"][0] == 1
    assert real.label == "customer 1 replaced by customer 2"


def test_equal_customers_make_no_real_pair():
    table = Table(np.full((3, 1), 0.5), np.ones(3), np.ones(3))
    (only,) = customer_pairs(table)
    assert "worst" in only.label
    with pytest.raises(UsageError, match="no customer within the bounds differs"):
        customer_pairs(table, distance=lambda one, others: np.zeros(len(others)) * one[0])


@pytest.mark.parametrize(("count", "position"), [(1, 0), (3, 3), (3, -1)])
def test_too_few_customers_or_a_bad_position(count, position):
    table = Table(np.full((count, 1), 0.5), np.ones(count), np.ones(count))
    with pytest.raises(UsageError, match="at least two customers and a position among them"):
        customer_pairs(table, position=position)
