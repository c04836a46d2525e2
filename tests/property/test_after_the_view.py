"""What is done with a view cannot tell more than the view: it looks at one trial at a time.

The exact profile of two laws over a few outputs is computed by enumeration before and after; the
same output stands in several rows, so that a step which looked at other rows would split it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from audit.evidence import tabulate
from audit.quantise import grid_of, round_scores
from audit.view import Views, collect, project
from tests.property.test_values import OUTPUTS

ODDS = np.exp([0.0, 0.3, 1.0, 3.0])


def profile(rows: list[Any], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Both hockey-stick divergences at some epsilons, after equal rows are put together."""
    where = {row: i for i, row in enumerate(dict.fromkeys(rows))}
    index = [where[row] for row in rows]
    p, q = (np.bincount(index, law, len(where)) for law in (left, right))
    return np.array([(np.maximum(a - t * b, 0).sum()) for a, b in ((p, q), (q, p)) for t in ODDS])


def rows_of(views: Views) -> list[Any]:
    """Each trial as something that can be compared."""
    return [(form, row.tobytes()) for form, row in zip(views.form, views.matrix(), strict=True)]


@given(st.lists(OUTPUTS, min_size=2, max_size=5), st.integers(0, 2**32 - 1))
def test_no_step_raises_the_exact_profile(outputs: list[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    atoms = rng.integers(0, len(outputs), 12)
    left, right = rng.dirichlet(np.full(12, 0.3), 2)
    before = profile(atoms.tolist(), left, right)
    views = collect([outputs[i] for i in atoms], 12)
    seen = [views, grid_of(views).apply(views)]
    seen += [project(views, name, ()) for name in list(views.columns)[:2]]
    for step in seen:
        assert np.all(profile(rows_of(step), left, right) <= before + 1e-12)
    with np.errstate(over="ignore", invalid="ignore"):  # any number will do as a score
        sums = np.nan_to_num(views.matrix().sum(axis=1), posinf=9, neginf=-9)
    scores = round_scores(sums, 9.0)
    bins = [int(tabulate([s], [], [-1.0, 0.0, 1.0])[0].argmax()) for s in scores]
    assert np.all(profile(bins, left, right) <= before + 1e-12)
