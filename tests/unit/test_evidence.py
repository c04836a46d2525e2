"""Evidence adds, once."""

from __future__ import annotations

import numpy as np
import pytest

from audit.errors import UsageError
from audit.evidence import Evidence, tabulate


def table(*cells: int) -> np.ndarray:
    return np.array(cells, dtype=np.int64).reshape(2, -1)


ONE = Evidence(2, {0: table(1, 2, 3, 4)})
TWO = Evidence(2, {1: table(5, 0, 0, 5)})
THREE = Evidence(2, {3: table(0, 1, 1, 0)})


def test_addition_is_a_commutative_monoid() -> None:
    nothing = Evidence(2)
    assert nothing + ONE == ONE + nothing == ONE
    assert ONE + TWO == TWO + ONE
    assert (ONE + TWO) + THREE == ONE + (TWO + THREE)
    assert (ONE + TWO).trials == ONE.trials + TWO.trials == 20


def test_no_block_counts_twice() -> None:
    with pytest.raises(UsageError, match="counted twice"):
        _ = ONE + Evidence(2, {0: table(1, 0, 0, 0)})


def test_other_bins_do_not_add() -> None:
    with pytest.raises(UsageError, match="bins"):
        _ = ONE + Evidence(3)


def test_prefixes_are_running_totals_up_to_the_first_gap() -> None:
    both = THREE + TWO + ONE
    assert both.prefixes().tolist() == [[[1, 2], [3, 4]], [[6, 2], [3, 9]]]
    assert both.prefix(1) == ONE
    assert both.prefix(2) == ONE + TWO
    assert len(THREE.prefixes()) == 0
    assert both.total.tolist() == [[6, 3], [4, 9]]


def test_rows_round_trip_and_skip_empty_bins() -> None:
    both = ONE + TWO + THREE
    assert Evidence.from_rows(2, both.to_rows()) == both
    assert Evidence(3, {0: table(0, 1, 0, 0, 2, 0)}).to_rows() == {"0": [[1, 1, 2]]}


@pytest.mark.parametrize("row", [[2, 1, 1], [-1, 1, 1], [0, -1, 1], [0, 1], [0, 1, 1, 1]])
def test_bad_rows_are_refused(row: list[int]) -> None:
    with pytest.raises(UsageError, match="block 7"):
        Evidence.from_rows(2, {"7": [row]})


def test_evidence_differs_from_other_things() -> None:
    assert ONE != TWO
    assert ONE != "evidence"


def test_tabulate_counts_every_score_once() -> None:
    edges = [-1.0, 0.0, 2.0]
    counts = tabulate([-5, -1, -0.5, 0, 1.9, 2, np.inf], [np.nan, -np.inf], edges)
    assert counts.tolist() == [[1, 2, 2, 2], [2, 0, 0, 0]]
    assert tabulate([], [], edges).tolist() == [[0] * 4] * 2
