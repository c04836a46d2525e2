"""The rounding grid: powers of two, idempotent, exact under subtraction."""

from __future__ import annotations

import numpy as np
import pytest

from audit.quantise import Grid, grid_of, round_scores
from audit.view import Views, collect


def views_of(*columns: np.ndarray) -> Views:
    return collect({f"c{i}": column for i, column in enumerate(columns)}, len(columns[0]))


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 37.0, 1e9])
def test_steps_are_powers_of_two_near_2_to_minus_30_of_the_spread(scale: float) -> None:
    values = scale * np.random.default_rng(0).normal(size=1000)
    step = float(grid_of(views_of(values)).steps["c0"])
    assert np.frexp(step)[0] == 0.5
    spread = np.subtract(*np.percentile(values, [95, 5]))
    assert 2.0**-30 <= step / spread <= 2.0**-29


def test_a_large_offset_makes_the_step_coarser() -> None:
    values = 1e9 + 1e-6 * np.random.default_rng(0).normal(size=100)
    step = float(grid_of(views_of(values)).steps["c0"])
    assert step == pytest.approx(1e9 * 2.0**-44, rel=1.0)


def test_rounding_is_idempotent_and_differences_are_exact() -> None:
    rng = np.random.default_rng(1)
    views = views_of(rng.laplace(size=(500, 3)))
    grid = grid_of(views)
    once = grid.apply(views)
    assert np.array_equal(grid.apply(once)["c0"], once["c0"])
    steps = grid.steps["c0"].min()
    difference = once["c0"][:, 0] - once["c0"][:, 1]
    units = difference / steps
    assert np.array_equal(units, np.rint(units))
    assert np.array_equal(difference + once["c0"][:, 1], once["c0"][:, 0])


def test_rounding_removes_what_an_ulp_gives_away() -> None:
    """|y| - |y - 1| is -1, or 1, to the last place once y is on the grid."""
    y = np.random.default_rng(2).laplace(size=20_000)
    raw = np.concatenate([np.abs(y) - np.abs(y - 1), np.abs(y + 1) - np.abs(y)])
    outside = raw[np.abs(np.abs(raw) - 1) < 1e-9]
    assert len(np.unique(outside)) > 4
    views = views_of(np.concatenate([y, y + 1]))
    rounded = grid_of(views).apply(views)["c0"]
    score = np.abs(rounded) - np.abs(rounded - 1)
    assert set(score[np.abs(np.abs(score) - 1) < 1e-9]) == {-1.0, 1.0}


def test_nan_and_infinities_stay() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 1.25, -2.5])
    views = views_of(odd)
    assert np.array_equal(grid_of(views).apply(views)["c0"], odd, equal_nan=True)
    assert np.array_equal(round_scores(odd, 2.5), odd, equal_nan=True)


@pytest.mark.parametrize(
    "column", [np.full(9, np.nan), np.zeros(9), np.full(9, 3.7), np.full(9, np.inf)]
)
def test_degenerate_columns_have_a_finite_positive_step(column: np.ndarray) -> None:
    step = float(grid_of(views_of(column)).steps["c0"])
    assert 0 < step < 1


def test_small_integers_are_left_alone() -> None:
    values = np.arange(-1000, 1000)
    views = views_of(values)
    assert np.array_equal(grid_of(views).apply(views)["c0"], values)


def test_unseen_columns_and_shapes_use_the_default_step() -> None:
    y = np.array([0.1, 0.2 + 2.0**-40])
    for grid in (Grid({}), Grid({"c0": np.array([1.0, 1.0])})):
        assert np.array_equal(grid.apply(views_of(y))["c0"], np.rint(y * 2**30) / 2**30)


def test_scores_are_rounded_to_2_to_minus_30_of_the_largest() -> None:
    dust = 0.3 * (1 + 2.0**-50)
    assert round_scores(np.array([0.3]), 1.0) == round_scores(np.array([dust]), 1.0)
    assert round_scores(np.array([0.3]), 0.5) == round_scores(np.array([0.3]), 1.0)
    assert float(round_scores(np.array([300.1]), 512.0)[0]) % (512 * 2.0**-30) == 0


def test_the_largest_doubles_keep_their_differences() -> None:
    """Their range is no double; rounding to it would leave nothing of them."""
    views = views_of(np.array([-1.7e308, 1.7e308] * 2))
    kept = grid_of(views).apply(views)["c0"]
    assert kept == pytest.approx([-1.7e308, 1.7e308] * 2, rel=1e-8)
