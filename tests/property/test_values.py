"""Claims, evidence, rounding and views over arbitrary values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from audit.claim import AnyClaim, ApproxDp, GaussianDp, PureDp
from audit.evidence import Evidence, tabulate
from audit.quantise import grid_of, round_scores
from audit.view import Raised, collect

CLAIMS: st.SearchStrategy[AnyClaim] = st.one_of(
    st.builds(PureDp, epsilon=st.floats(0.01, 20)),
    st.builds(ApproxDp, epsilon=st.floats(0.01, 20), delta=st.floats(0, 0.5)),
    st.builds(GaussianDp, mu=st.floats(0.02, 8)),
)
TABLES = st.dictionaries(
    st.integers(0, 12), hnp.arrays(np.int64, (2, 3), elements=st.integers(0, 100)), max_size=5
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.floats().map(np.float64),
    st.builds(Raised, st.text(max_size=4), st.text(max_size=4)),
)
OUTPUTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=6,
)


@given(CLAIMS, st.floats(0, 25), st.floats(0, 25))
def test_profiles_decrease_between_zero_and_one(claim: AnyClaim, e: float, f: float) -> None:
    low, high = sorted((e, f))
    assert 0 <= claim.delta_at(high) <= claim.delta_at(low) + 1e-15 <= 1 + 1e-15


@given(CLAIMS, st.floats(0, 1), st.floats(0, 10))
def test_no_point_of_the_curve_contradicts_the_profile(
    claim: AnyClaim, alarm: float, e: float
) -> None:
    miss = float(claim.miss_rate(alarm))
    assert 1 - miss <= math.exp(e) * alarm + claim.delta_at(e) + 1e-9


@given(CLAIMS, st.floats(1e-7, 0.9))
def test_epsilon_at_inverts_delta_at(claim: AnyClaim, delta: float) -> None:
    epsilon = claim.epsilon_at(delta)
    if math.isfinite(epsilon):
        assert claim.delta_at(epsilon) <= delta


@given(TABLES, TABLES, TABLES)
def test_evidence_is_a_commutative_monoid(
    a: dict[int, Any], b: dict[int, Any], c: dict[int, Any]
) -> None:
    one, two, three = (
        Evidence(3, {3 * block + i: t for block, t in tables.items()})
        for i, tables in enumerate((a, b, c))
    )
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Evidence(3) == one
    assert Evidence.from_rows(3, (one + two).to_rows()) == one + two
    assert (one + two).total.tolist() == (one.total + two.total).tolist()


@given(
    hnp.arrays(np.float64, st.integers(0, 20), elements=st.floats(width=64)),
    st.lists(st.floats(-1e6, 1e6), unique=True, max_size=6).map(sorted),
)
def test_tabulate_loses_no_score(scores: Any, edges: list[float]) -> None:
    counts = tabulate(scores, scores[:1], edges)
    assert counts.shape == (2, len(edges) + 1)
    assert counts.sum(axis=1).tolist() == [len(scores), len(scores[:1])]


@given(
    hnp.arrays(
        np.float64, (12, 2), elements=st.floats(-1e12, 1e12) | st.sampled_from([np.nan, np.inf])
    )
)
def test_rounding_is_idempotent_and_moves_no_value_by_more_than_half_a_step(values: Any) -> None:
    views = collect({"c": values}, 12)
    grid = grid_of(views)
    once = grid.apply(views)["c"]
    assert np.array_equal(grid.apply(grid.apply(views))["c"], once, equal_nan=True)
    known = np.isfinite(values)
    assert np.array_equal(np.isnan(once), np.isnan(values))
    steps = np.broadcast_to(grid.steps["c"], (12, 2))[known]
    assert np.all(np.abs(once[known] - values[known]) <= steps / 2)
    assert np.all(np.frexp(grid.steps["c"])[0] == 0.5)


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_rounded_scores_keep_their_order(score: float, largest: float) -> None:
    pair = round_scores(np.array([score, score + 1e-3 * max(1.0, largest)]), largest)
    assert pair[0] < pair[1]


@given(st.lists(OUTPUTS, min_size=1, max_size=5))
def test_the_view_of_a_trial_is_its_own(outputs: list[Any]) -> None:
    """Form and numbers of a trial do not depend on the other trials of its block."""
    together = collect(outputs, len(outputs))
    for row, output in enumerate(outputs):
        alone = collect([output], 1)
        assert together.form[row] == alone.form[0]
        own = together.matrix(alone.names)[row]
        assert np.array_equal(own, alone.matrix()[0], equal_nan=True)
        others = [name for name in together.names if name not in alone.names]
        assert np.all(np.isnan(together.matrix(others)[row])) or not others
