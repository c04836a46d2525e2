"""Do trials of one call look independent? Small tables with known answers."""

import numpy as np
import pytest

from audit.checks import GROUPS, independent
from audit.view import collect

SIZE = 4


def calls(rows):
    """One view per call, from rows of shape (GROUPS * SIZE, p)."""
    return [collect({"x": part}, SIZE) for part in np.split(rows, GROUPS)]


def test_a_number_that_is_nearly_always_the_same_raises_no_alarm():
    """Four of five exceptions in one call: by chance once in 900, among thousands of numbers."""
    rows = np.random.default_rng(0).random((GROUPS * SIZE, 3000))
    rows[:, 0] = 1.0
    rows[12, 0] = 0.92
    rows[16:20, 0] = 0.92, 0.82, 0.66, 0.55
    assert independent(calls(rows))


@pytest.mark.parametrize("kind", ["normal", "bit"])
def test_a_draw_that_a_call_shares_is_heard(kind):
    """False alarms of the second half have probability 1e-4; the seed is fixed."""
    rng = np.random.default_rng(0)
    count = 3 if kind == "normal" else 12
    draw = rng.normal if kind == "normal" else lambda size: rng.integers(2, size=size)
    rows = np.repeat(draw(size=(GROUPS, count)).astype(float), SIZE, axis=0)
    assert not independent(calls(rows))
    assert independent(calls(draw(size=rows.shape).astype(float)))
