"""Evidence adds, once."""

from __future__ import annotations

import numpy as np
import pytest

from audit.errors import UsageError
from audit.evidence import LARGEST_COUNT, Evidence, tabulate


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


@pytest.mark.parametrize(
    "row",
    [
        *([2, 1, 1], [-1, 1, 1], [0, -1, 1], [0, 1], [0, 1, 1, 1]),
        *([0, LARGEST_COUNT + 1, 0], [0, 0, LARGEST_COUNT + 1]),
    ],
)
def test_bad_rows_are_refused(row: list[int]) -> None:
    with pytest.raises(UsageError, match="block 7"):
        Evidence.from_rows(2, {"7": [row]})


def test_the_largest_count_is_one() -> None:
    read = Evidence.from_rows(2, {"0": [[0, LARGEST_COUNT, LARGEST_COUNT]]})
    assert read.trials == 2 * LARGEST_COUNT


@pytest.mark.parametrize("block", ["", "x1", "-1", "1.0", "\N{SUPERSCRIPT TWO}", "1" * 10])
def test_blocks_go_by_their_number(block: str) -> None:
    with pytest.raises(UsageError, match=f"by their number, got {block!r}"):
        Evidence.from_rows(2, {block: []})
    assert list(Evidence.from_rows(2, {"9" * 9: []}).blocks) == [999_999_999]


def test_evidence_differs_from_other_things() -> None:
    assert ONE != TWO
    assert ONE != "evidence"


def test_tabulate_counts_every_score_once() -> None:
    edges = [-1.0, 0.0, 2.0]
    counts = tabulate([-5, -1, -0.5, 0, 1.9, 2, np.inf], [np.nan, -np.inf], edges)
    assert counts.tolist() == [[1, 2, 2, 2], [2, 0, 0, 0]]
    assert tabulate([], [], edges).tolist() == [[0] * 4] * 2


def test_counts_are_whole_numbers_whatever_they_are_made_from() -> None:
    read = Evidence.from_rows(2, {"0": [[1, 2, 3]], "4": []})
    tabulated = tabulate([0.0], [1.0], [0.5])
    for counts in (read.blocks[0], read.blocks[4], tabulated, Evidence(2).total, ONE.total):
        assert counts.dtype == np.int64
        assert counts.shape == (2, 2)
    assert Evidence(2).prefixes().shape == (0, 2, 2)
    assert Evidence(2).prefixes().dtype == np.int64


def test_blocks_are_kept_in_order_whatever_order_they_come_in() -> None:
    assert list((THREE + TWO + ONE).blocks) == [0, 1, 3]
    assert list(Evidence.from_rows(2, {"10": [], "9": [], "1": []}).blocks) == [1, 9, 10]
    assert list(Evidence(2, {2: table(0, 0, 0, 0), 1: table(0, 0, 0, 0)}).to_rows()) == ["1", "2"]
    backwards = Evidence(2, {1: TWO.blocks[1], 0: ONE.blocks[0]})
    assert backwards.prefixes().tolist() == (ONE + TWO).prefixes().tolist()


def test_what_is_wrong_with_evidence_is_said() -> None:
    with pytest.raises(UsageError, match=r"^evidence over 2 bins cannot be added to 3 bins$"):
        _ = ONE + Evidence(3)
    with pytest.raises(UsageError, match=r"^evidence: blocks \[0, 1\] would be counted twice$"):
        _ = (ONE + TWO) + (TWO + ONE)
    refused = r"block 7: expected \[bin < 2, left, right\] with .* 0 to \d+, got \[0, 1, -1\]$"
    with pytest.raises(UsageError, match=refused):
        Evidence.from_rows(2, {"7": [[0, 1, -1]]})
    with pytest.raises(UsageError, match=r"^evidence, block 7: expected every bin once$"):
        Evidence.from_rows(2, {"7": [[0, 1, 1], [0, 2, 2]]})
    assert Evidence.from_rows(2, {"7": [[0, 0, 0]]}).trials == 0
