"""Summaries per round: against scipy, at projections, for odd columns, and within their noise."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy import stats

import audit
from algorithms.catalogue import CATALOGUE
from audit.pair import Pair
from audit.sequences import MOST_ROUNDS, Rounds, rounds_of
from audit.view import Views, project

PAIR = Pair({"outcomes": [0, 1, 1, 0, 1, 1]}, {"outcomes": [0, 1, 0, 0, 1, 1]})


def views(**columns) -> Views:
    n = len(next(iter(columns.values())))
    return Views(np.full(n, "same", dtype=object), {k: np.asarray(v) for k, v in columns.items()})


def test_numbers_of_a_round_against_scipy() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(300, 6)), rng.normal(loc=[0, 0, 0, 1, 0.5, 0], size=(400, 6))
    (found,) = rounds_of(views(prices=left), views(prices=right), "prices_all", PAIR)
    assert (found.column, found.own, found.in_order) == ("prices", (2,), True)
    assert (found.rounds, found.total, found.trials) == (tuple(range(6)), 6, (300, 400))
    wanted = [stats.ks_2samp(left[:, i], right[:, i]).statistic for i in range(6)]
    assert found.gap == pytest.approx(wanted, abs=1e-4)
    assert found.lines == ("mean", "lower tenth", "upper tenth")
    assert found.left[0] == pytest.approx(left.mean(axis=0), rel=1e-3)
    tenths = np.quantile(right, [0.1, 0.9], axis=0, method="inverted_cdf")
    assert np.array(found.right[1:]) == pytest.approx(tenths, rel=1e-3)


def test_actions_become_shares() -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(0, 2, (500, 6)), rng.integers(0, 4, (500, 6))
    (coins,) = rounds_of(views(actions=left), views(actions=left), "actions", PAIR)
    assert coins.lines == ("share of 1",)
    assert coins.left[0] == pytest.approx(left.mean(axis=0), abs=1e-4)
    assert max(coins.gap) == 0
    (dice,) = rounds_of(views(actions=left), views(actions=right), "actions", PAIR)
    assert len(dice.lines) == 2
    for name, line in zip(dice.lines, dice.right, strict=True):
        value = int(name.removeprefix("share of "))
        assert line == pytest.approx((right == value).mean(axis=0), abs=1e-4)


@pytest.mark.parametrize(
    ("view", "kept"),
    [
        ("prices_all", (0, 1, 2, 3, 4, 5)),
        ("prices_except", (0, 1, 3, 4, 5)),
        ("prices_after", (3, 4, 5)),
    ],
)
def test_rounds_keep_their_numbers_in_a_projection(view, kept) -> None:
    whole = views(prices=np.random.default_rng(3).normal(size=(50, 6)))
    seen = project(whole, view, PAIR.differs or ())
    (found,) = rounds_of(seen, seen, view, PAIR)
    assert (found.rounds, found.own, found.total) == (kept, (2,), 6)


def test_long_sequences_keep_the_rounds_that_tell() -> None:
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=(2, 500, 1500))
    right[:, 777] += 2
    long = Pair(np.zeros(1500), np.eye(1, 1500, 700)[0])
    (found,) = rounds_of(views(prices=left), views(prices=right), "prices_all", long)
    assert len(found.rounds) == MOST_ROUNDS
    assert (found.total, found.own) == (1500, (700,))
    assert found.rounds[int(np.argmax(found.gap))] == 777
    assert len(msgspec.json.encode(found)) < 6_000


def test_decisions_come_first_and_the_loudest_column_second() -> None:
    rng = np.random.default_rng(5)
    left, right = (
        views(nodes=rng.normal(loc=[[0, 0], [0, c], [0, 0]], size=(400, 3, 2)), prices=prices)
        for c, prices in ((0, rng.normal(size=(400, 6))), (1, rng.normal(size=(400, 6))))
    )
    decisions, loudest = rounds_of(left, right, "transcript", PAIR)
    assert (decisions.column, decisions.in_order) == ("prices", True)
    assert (loudest.column, loudest.in_order, loudest.own) == ("nodes, entry 2", False, ())
    assert int(np.argmax(loudest.gap)) == 1


@pytest.mark.parametrize(
    "column",
    [
        np.full((20, 6), np.nan),
        np.full((20, 6), np.inf),
        np.where(np.eye(20, 6) > 0, np.nan, 1e300),
        np.zeros((20, 6)),
    ],
)
@pytest.mark.filterwarnings("error")
def test_odd_numbers_give_a_summary_without_warning(column) -> None:
    (found,) = rounds_of(views(prices=column), views(prices=column), "prices_all", PAIR)
    assert max(found.gap) == 0
    assert "NaN" not in msgspec.json.encode(found).decode()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Rounds) == found


@pytest.mark.parametrize("shape", [(20,), (20, 1), (0, 6)])
def test_no_sequence_no_summary(shape) -> None:
    assert rounds_of(views(value=np.zeros(shape)), views(value=np.zeros(shape)), "x", PAIR) == ()
    assert rounds_of(None, None, "x", PAIR) == ()


def test_equal_sides_stay_below_the_noise() -> None:
    # At most 1 % of honest summaries exceed it: 5 or more of 60 with probability below 4e-4.
    rng = np.random.default_rng(6)
    above = 0
    for _ in range(60):
        sides = [views(prices=rng.normal(size=(n, 6))) for n in (200, 200)]
        (found,) = rounds_of(*sides, "prices_all", PAIR)
        above += max(found.gap) > found.noise
    assert stats.binom.sf(4, 60, 0.01) < 4e-4
    assert above < 5


def test_a_run_puts_them_into_its_result() -> None:
    result = audit.examine(CATALOGUE["broken/bandit-raw-loss"].build(), trials=2_000, seed=0)
    (found,) = result.rounds
    assert (found.column, found.own) == ("actions", (0,))
    assert max(found.gap) > found.noise
