"""Mechanisms that remember are found by the contract, whatever they remember. No chance here."""

import subprocess
from unittest import mock

import numpy as np
import pytest

import audit
from audit.attack import Game
from audit.contract import check_mechanism
from audit.mechanism import FunctionMechanism
from audit.memory import repeats_its_answer

CLAIM = audit.PureDp(epsilon=1.0)
PAIR = audit.Pair(0.0, 1.0)


def whole_answer():
    kept = {}

    def remember(data, rng):
        if data not in kept:
            kept[data] = data + rng.laplace()
        return kept[data]

    return FunctionMechanism(remember, CLAIM, (PAIR,))


def noise_only():
    kept = []

    def remember(data, n, rng):
        if not kept:
            kept.append(rng.laplace())
        return [data + kept[0]] * n

    return FunctionMechanism(remember, CLAIM, (PAIR,), batched=True)


def drawn_in_vain():
    kept = {}

    def remember(data, rng):
        return kept.setdefault(data, data + rng.laplace())

    return FunctionMechanism(remember, CLAIM, (PAIR,))


@pytest.mark.parametrize("make", [whole_answer, noise_only, drawn_in_vain])
def test_a_cache_is_found_before_anything_testifies(make):
    result = audit.examine(make(), trials=200)
    assert result.verdict == "error"
    assert "repeat the answer" in result.findings[-1].message
    lines = check_mechanism(make(), (PAIR,), CLAIM)
    assert [line.name for line in lines if not line.passed] == ["memory"]


def test_a_cache_that_is_warm_already_is_found_in_a_fresh_process():
    from tests.data.targets import kept_answer

    kept_answer(0.0, np.random.default_rng(1))
    game = Game(FunctionMechanism(kept_answer), PAIR, "output")
    assert repeats_its_answer(game, "warm", 0)


@pytest.mark.parametrize(
    "error", [BlockingIOError(11, "no room"), subprocess.TimeoutExpired("python", 1)]
)
def test_where_no_fresh_process_can_tell_nothing_is_claimed(error, monkeypatch):
    from tests.data.targets import kept_answer

    kept_answer(0.0, np.random.default_rng(1))
    monkeypatch.setattr(subprocess, "run", mock.Mock(side_effect=error))
    game = Game(FunctionMechanism(kept_answer), PAIR, "output")
    assert not repeats_its_answer(game, "warm", 0)


@pytest.mark.parametrize(
    "function",
    [
        lambda data, rng: data,
        lambda data, rng: rng.laplace() * 0 + data,
        lambda data, rng: data + rng.laplace(),
        lambda data, rng: "low" if data + rng.laplace() < 50 else "high",
    ],
    ids=["exact", "draws in vain", "noisy", "nearly constant"],
)
def test_nothing_is_remembered_by_what_draws_anew_or_never(function):
    assert not repeats_its_answer(Game(FunctionMechanism(function), PAIR, "output"), "fresh", 0)


def test_a_release_without_noise_is_refuted_and_not_excused():
    assert audit.examine(lambda d, rng: d, claim=CLAIM, pairs=[PAIR], trials=400).verdict == (
        "refuted"
    )
