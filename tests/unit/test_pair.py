"""Pairs: neighbours are checked when a pair is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from audit.errors import UsageError
from audit.pair import Pair, differing_positions


@dataclass
class Stream:
    losses: np.ndarray
    contexts: np.ndarray


TABLE = {"losses": np.zeros((4, 2)), "contexts": np.arange(4)}
MOVED = {"losses": np.array([[0, 0], [0, 0], [0, 1], [0, 0]]), "contexts": np.arange(4)}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (0.0, 1.0, None),
        ("abc", "abd", None),
        ([1, 2, 3], [1, 5, 3], (1,)),
        ([1, 2], [1, 2, 3], None),
        ([np.nan, 1], [np.nan, 2], (1,)),
        (np.zeros((3, 2)), np.array([[0, 0], [0, 1], [1, 0]]), (1, 2)),
        (TABLE, MOVED, (2,)),
        (Stream(**TABLE), Stream(**MOVED), (2,)),
        ({"a": [1, 2], "b": [1]}, {"a": [1, 3], "b": [1]}, None),
        ([{"x": 1}, {"x": 2}], [{"x": 1}, {"x": 3}], (1,)),
        ([[1, 2], [3]], [[1, 2], [3, 4]], (1,)),
    ],
)
def test_where_inputs_differ(left: Any, right: Any, expected: tuple[int, ...] | None) -> None:
    assert differing_positions(left, right) == expected


def test_position_is_the_first_difference_or_zero() -> None:
    assert Pair(TABLE, MOVED).position == 2
    assert Pair(0.0, 1.0).position == 0
    assert Pair([0, 0, 0], [0, 1, 1]).position == 1
    assert Pair([0, 0], [1, 1], differs=(1,)).position == 1


def test_sides() -> None:
    pair = Pair("l", "r")
    assert (pair.side(True), pair.side(False)) == ("l", "r")


def test_replace_one_accepts_one_change() -> None:
    assert Pair([1, 2, 3], [1, 2, 4], relation="replace-one").differs == (2,)
    assert Pair(TABLE, MOVED, relation="replace-one").differs == (2,)


@pytest.mark.parametrize(
    ("left", "right"),
    [([1, 2], [3, 4]), ([1, 2], [1, 2]), ([1], [1, 2]), (0.0, 1.0), ([], [])],
)
def test_replace_one_refuses_other_changes(left: Any, right: Any) -> None:
    with pytest.raises(UsageError, match="exactly one record"):
        Pair(left, right, relation="replace-one")


@pytest.mark.parametrize(
    ("left", "right"),
    [([1, 2], [1, 9, 2]), ([1, 9, 2], [1, 2]), ([], [1]), ([1, 1], [1, 1, 1]), ([1], [0, 1])],
)
def test_add_remove_accepts_one_record_more(left: Any, right: Any) -> None:
    assert Pair(left, right, relation="add-remove").relation == "add-remove"


@pytest.mark.parametrize(
    ("left", "right"),
    [([1, 2], [2, 1]), ([1, 2], [1, 2]), ([1, 2], [2, 3, 4]), ([1], [1, 2, 3]), (0.0, 1.0)],
)
def test_add_remove_refuses_other_changes(left: Any, right: Any) -> None:
    with pytest.raises(UsageError, match="exactly one record more"):
        Pair(left, right, relation="add-remove")


def test_unknown_relations_are_refused() -> None:
    with pytest.raises(UsageError, match="expected a relation"):
        Pair(0, 1, relation="neighbours")


class Opaque:
    """An input that no text can show."""


@pytest.mark.parametrize(
    ("left", "right", "alike"),
    [
        ([0, 1], [0, 1], True),
        (np.zeros(3), [0.0, 0.0, 0.0], True),
        ({"a": [1], "k": 1}, {"a": [1], "k": 2}, False),
        (0, 1, False),
        (Opaque(), Opaque(), False),
    ],
)
def test_equal_inputs_are_known(left, right, alike):
    assert Pair(left, right).alike == alike


def test_an_input_that_was_changed_in_place_is_equal_to_itself():
    data = Opaque()
    assert Pair(data, data).alike
