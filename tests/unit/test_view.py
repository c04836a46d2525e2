"""Views: whatever an implementation emits is kept, as numbers or as a form."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import Any

import numpy as np
import pytest

from audit.errors import MechanismError, UsageError
from audit.view import Raised, Views, category, collect, concatenate, project


@dataclasses.dataclass
class Point:
    x: float
    label: str


class Odd:
    """An object of no known kind."""


class Secretive:
    """An object whose own code raises when it is looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Tensor:
    """An object that holds an array, as those of other libraries do."""

    __slots__ = ("hidden",)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1.5, 2.5])


DAY = dt.datetime(2024, 5, 6, 7)  # noqa: DTZ001  (as code without time zones has them)

PAIRS: list[tuple[Any, Any]] = [  # two outputs that an adversary can tell apart
    (None, 0),
    (True, 1),
    (1, 1.0),
    (2**53 + 1, 2**53 + 2),
    (2**60, 2**60 + 1),
    (10**400, 10**400 + 1),
    (10**5000, -(10**5000)),
    (1 + 2j, 1 + 3j),
    (math.nan, 0.0),
    (math.inf, -math.inf),
    ("a", "b"),
    ("a", b"a"),
    ("", " "),
    (b"\x00", b"\x01"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({1: 0}, {"1": 0}),
    ([1, 2], [1, 2, 3]),
    ([[1], [2, 3]], [[1, 2], [3]]),
    ([1, 2], (1, 2)),
    ([], [[]]),
    ({1, 2}, {1, 3}),
    (frozenset({1}), {1}),
    (Point(1.0, "a"), Point(1.0, "b")),
    (Point(1.0, "a"), {"x": 1.0, "label": "a"}),
    (Raised("ValueError"), Raised("KeyError")),
    (Raised("ValueError", "row 3"), Raised("ValueError", "row 4")),
    (Raised("ValueError"), "ValueError"),
    (np.array([1.0, 2.0]), np.array([[1.0, 2.0]])),
    (np.array([1, 2]), np.array([1.0, 2.0])),
    (np.array([1, 2**60]), np.array([1, 2**60 + 1])),
    (np.int64(-(2**63)), np.int64(1 - 2**63)),
    (np.uint64(2**64 - 1), np.uint64(2**64 - 2)),
    (np.datetime64(10**18, "ns"), np.datetime64(10**18 + 1, "ns")),
    (np.array(["a", "b"]), np.array(["a", "c"])),
    (np.array([1.0, 2.0]), [1.0, 2.0]),
    (np.float64(1.0), 1.0),
    (range(3), range(4)),
    (np.float32(1.0), np.float64(1.0)),
    (np.array([1], dtype=np.int16), np.array([1])),
    (np.array([(1.0,)], dtype=[("a", float)]), np.array([(1.0,)], dtype=[("b", float)])),
    (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[0, 0])),
    (np.array(["2024-05"], dtype="M8[M]"), np.array(["2024-06"], dtype="M8[M]")),
    (DAY, DAY.replace(microsecond=1)),
    (DAY, DAY.replace(tzinfo=dt.UTC)),
    (DAY.date(), DAY),
    (DAY.time(), dt.time(8)),
    (dt.timedelta(1), dt.timedelta(2)),
    ({1.5: "a"}, {2.5: "a"}),
    ({"at 1.5": 1}, {"at 2.5": 1}),
    ({"a": 1}.values(), {"a": 2}.values()),
    (Secretive(), Odd()),
]


def same(views: Views, i: int, j: int) -> bool:
    rows = views.matrix()
    return bool(views.form[i] == views.form[j] and np.array_equal(rows[i], rows[j], equal_nan=True))


@pytest.mark.parametrize("pair", PAIRS, ids=[type(a).__name__ for a, _ in PAIRS])
def test_different_outputs_make_different_views(pair: tuple[Any, Any]) -> None:
    views = collect([pair[0], pair[1], pair[0]], 3)
    assert not same(views, 0, 1)
    assert same(views, 0, 2)


def test_one_exact_integer_is_kept_as_it_is() -> None:
    views = collect([2**53, -(2**53)], 2)
    assert views.matrix().ravel().tolist() == [2.0**53, -(2.0**53)]
    assert views.form.tolist() == ["int", "int"]


@pytest.mark.parametrize("value", [1.5, np.float64(1.5), 3, "text", None, [1.0, 2.0]])
@pytest.mark.parametrize("neighbour", [Raised("ValueError"), None, "text", [1]])
def test_the_view_of_a_trial_does_not_depend_on_its_neighbours(value: Any, neighbour: Any) -> None:
    """Blocks hold trials of one side: a form that shows the rest of the block shows the side."""
    alone, beside = collect([value], 1), collect([value, neighbour], 2)
    assert alone.form[0] == beside.form[0]
    assert np.array_equal(alone.matrix(), beside.matrix(alone.names)[:1], equal_nan=True)


def test_the_numbers_of_a_large_trial_do_not_depend_on_its_neighbours() -> None:
    """A cap on a call would let the names of one trial crowd out those of the next."""
    large = list(range(9_000))
    other = {f"k{i}": i for i in range(5_000)}
    alone, beside = collect([large], 1), collect([other, large], 2)
    for name in alone.names:
        assert beside[name][1] == alone[name][0]
    assert len(alone.names) == 8192 + 2
    assert alone["rest.len"][0] >= 9_000 - 8192


def test_what_differs_far_behind_is_seen() -> None:
    large = list(range(9_000))
    views = collect([large, [*large[:-1], -1], large], 3)
    assert views["rest"][0] == views["rest"][2] != views["rest"][1]


def test_names_that_are_drawn_anew_are_refused() -> None:
    outputs = [{f"{trial}-{i}": i for i in range(5_000)} for trial in range(4)]
    with pytest.raises(MechanismError, match=r"differently named numbers.*sorted list"):
        collect(outputs, 4)


def test_times_and_keys_with_fractions_are_numbers() -> None:
    """Noise in them is noise in a number, not a text that never repeats."""
    outputs = [{"at": DAY + dt.timedelta(seconds=s), s + 0.25: "sold"} for s in (0, 1, 2)]
    views = collect(outputs, 3)
    assert len(set(views.form)) == 1
    assert np.diff(views["value['at']"]).tolist() == [1, 1]
    assert views["value.key 1"].tolist() == [0.25, 1.25, 2.25]


def test_what_an_object_offers_as_an_array_is_seen() -> None:
    assert collect([Tensor()], 1)["value.array[1]"].tolist() == [2.5]


def test_what_a_dataframe_says_about_its_values_is_seen() -> None:
    pandas = pytest.importorskip("pandas")
    tagged, named = pandas.Series([1.0]), pandas.Series([1.0], name="n=3")
    tagged.attrs["exact"] = 3
    assert not same(collect([pandas.Series([1.0]), tagged], 2), 0, 1)
    assert not same(collect([pandas.Series([1.0]), named], 2), 0, 1)
    wide = [pandas.DataFrame({f"c{i}": [0.0] for i in range(100)}) for _ in range(2)]
    wide[1] = wide[1].rename(columns={"c50": "other"})  # pandas prints both alike
    assert not same(collect(wide, 2), 0, 1)


def test_a_mask_is_seen_in_blocks_too() -> None:
    block = np.ma.array([1.0, 2.0], mask=[False, True])
    assert not same(collect(block, 2), 0, 1)
    with pytest.raises(MechanismError, match="'a' is MaskedArray"):
        collect({"a": block}, 2)


def test_columns_of_one_name_are_refused() -> None:
    with pytest.raises(MechanismError, match="two columns"):
        collect({1: np.zeros(2), "1": np.ones(2)}, 2)


def test_objects_without_a_value_of_their_own_look_alike() -> None:
    views = collect([Odd(), Odd()], 2)
    assert same(views, 0, 1)
    assert views.form[0] == "object Odd"


def test_sets_have_no_order() -> None:
    assert same(collect([{"a", "b", "c"}, {"c", "a", "b"}], 2), 0, 1)


def test_pandas_values_kinds_and_index_are_seen() -> None:
    pandas = pytest.importorskip("pandas")
    outputs = [
        pandas.Series([1.0, 2.0]),
        pandas.Series([1.0, 3.0]),
        pandas.Series([1.0, 2.0], index=[5, 6]),
        pandas.Series([1, 2]),
        pandas.DataFrame({"a": [1.0, 2.0]}),
    ]
    views = collect(outputs, len(outputs))
    assert not any(same(views, 0, i) for i in range(1, len(outputs)))


def test_arrays_and_mappings_of_arrays_become_columns() -> None:
    views = collect({"a": np.arange(6).reshape(3, 2), "z": np.array([1j, 2j, 3j])}, 3)
    assert views.names == ("a[0]", "a[1]", "z.real", "z.imag")
    assert views["z.imag"].tolist() == [1, 2, 3]
    assert views.form[0] == "a:i[2];z:c[]"
    assert collect(np.array([True, False]), 2).form[0] == "value:b[]"


@pytest.mark.parametrize("n", [2, 4])
def test_a_wrong_leading_axis_is_an_error_that_says_so(n: int) -> None:
    for emitted in (np.zeros(3), {"a": np.zeros((3, 2))}, [1, 2, 3]):
        with pytest.raises(MechanismError, match=f"leading axis of {n}"):
            collect(emitted, n)
    with pytest.raises(MechanismError, match="shape"):
        collect(collect(np.zeros(3), 3), n)
    with pytest.raises(MechanismError, match="float"):
        collect(1.0, n)


def test_missing_leaves_are_nan() -> None:
    views = collect([{"a": 1.0}, {"b": 2.0}], 2)
    assert views.matrix(("value['a']", "value['b']", "value['c']")).tolist()[0][0] == 1.0
    assert np.isnan(views.matrix(("value['a']", "value['b']", "value['c']"))[0, 1:]).all()


def test_concatenation_keeps_columns_of_either_side() -> None:
    first, second = collect([1.0, 2.0], 2), collect(["a"], 1)
    both = concatenate(first, second)
    assert len(both) == 3
    assert both.names == ("value", "value.len")
    assert np.isnan(both["value.len"][:2]).all()
    plain = concatenate(first, first)
    assert plain["value"].tolist() == [1.0, 2.0, 1.0, 2.0]


def test_take_keeps_rows() -> None:
    views = collect({"a": np.arange(6).reshape(3, 2)}, 3).take(np.array([2, 0]))
    assert views["a"].tolist() == [[4, 5], [0, 1]]
    assert len(views) == 2


PRICES = collect({"prices": np.arange(8.0).reshape(2, 4), "noise": np.zeros((2, 3))}, 2)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("prices", [0, 1, 2, 3]),
        ("prices_all", [0, 1, 2, 3]),
        ("prices_except", [0, 2, 3]),
        ("prices_after", [2, 3]),
    ],
)
def test_projections(view: str, expected: list[float]) -> None:
    shown = project(PRICES, view, (1,))
    assert list(shown.columns) == ["prices"]
    assert shown["prices"][0].tolist() == expected


@pytest.mark.parametrize("view", ["output", "transcript"])
def test_the_whole_view(view: str) -> None:
    assert project(PRICES, view, (1,)) is PRICES


@pytest.mark.parametrize("view", ["price", "prices_before", "secret_all", ""])
def test_unknown_views_are_refused(view: str) -> None:
    with pytest.raises(UsageError, match="expected 'output'"):
        project(PRICES, view, (0,))


def test_a_column_may_have_an_underscore_in_its_name() -> None:
    views = collect({"list_all": np.zeros((2, 3))}, 2)
    assert project(views, "list_all", (1,))["list_all"].shape == (2, 3)
    assert project(views, "list_all_after", (1,))["list_all"].shape == (2, 1)


def test_a_block_in_which_all_trials_raised_still_has_a_view() -> None:
    views = collect([Raised("ValueError")] * 2, 2)
    assert project(views, "prices_all", (0,)).form.tolist() == ["raised ValueError"] * 2


def test_categories_are_stable_numbers() -> None:
    assert category("left") == category("left") != category("right")
    assert category("left") == float(int(category("left"))) < 2**48


def test_numbers_in_texts_are_leaves() -> None:
    views = collect(["price 1.50 of -2e3", "price 1.75 of -2e3", "no price"], 3)
    assert views["value.number[0]"][:2].tolist() == [1.5, 1.75]
    assert views["value.number[1]"][:2].tolist() == [-2000.0, -2000.0]
    assert views["value.words"][0] == views["value.words"][1] == category("price # of #")
    assert np.isnan(views["value.number[0]"][2])
    assert views["value"][0] != views["value"][1]


def test_numbers_in_messages_of_exceptions_are_leaves() -> None:
    views = collect([Raised("ValueError", "sum is 12.5"), Raised("ValueError", "no sum")], 2)
    assert views["value.message.number[0]"][0] == 12.5


class Slotted:
    __slots__ = ("noisy",)

    def __init__(self, noisy: float) -> None:
        self.noisy = noisy


class Kept:
    """An object that holds a number, a text, an object, itself and a method."""

    def __init__(self, total: float) -> None:
        self.total, self.inner, self.me = total, Slotted(total + 1), self
        self.method = self.__repr__


def test_attributes_of_objects_are_leaves() -> None:
    views = collect([Kept(1.0), Kept(2.5)], 2)
    assert views["value.total"].tolist() == [1.0, 2.5]
    assert views["value.inner.noisy"].tolist() == [2.0, 3.5]
    assert (
        views.form[0] == "object Kept{inner:object Slotted{noisy:float},me:Kept again,total:float}"
    )
    assert views.form[0] == views.form[1]


def test_a_list_that_holds_itself_ends() -> None:
    endless: list[object] = [1.0]
    endless.append(endless)
    assert collect([endless], 1)["value[0]"].tolist() == [1.0]


def test_a_column_of_single_numbers_is_a_view_of_its_own():
    views = collect({"value": np.array([1.0, 2.0]), "other": np.zeros(2)}, 2)
    for name in ("value", "value_all"):
        assert list(project(views, name, ()).columns) == ["value"]
    with pytest.raises(UsageError, match="without rounds to leave out; audit 'value'"):
        project(views, "value_after", ())


@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_integers_that_a_float_rounds_keep_their_low_bits_in_blocks(value):
    """Whatever else is in the block: a small number in it has no such bits."""
    views = collect({"ids": np.array([[value, 7], [value + 1, 7], [0, 7]])}, 3)
    low = project(views, "ids_all", (0,))["ids:low"]
    assert low[0, 0] != low[1, 0]
    assert np.isnan(low[:, 1]).all()
    assert np.isnan(low[2]).all()
    assert "ids:low" not in collect({"ids": np.array([[7, 2**53]])}, 1).columns
