"""Opt-in threats: run or not run in every report, and each finds its kind."""

import math
import time

import numpy as np
import pytest

import audit
from attacks.bits import last_bits
from audit import timing
from audit.attack import Game
from audit.mechanism import FunctionMechanism
from audit.memory import one
from audit.seeds import few_seeds
from audit.threats import THREATS, in_scope

CLAIM = audit.PureDp(epsilon=1.0)
PAIR = audit.Pair(0.0, 1.0)


def noisy(data, rng):
    return data + rng.laplace()


def examined(function, *, trials=2000, **settings):
    return audit.examine(function, claim=CLAIM, pairs=[PAIR], trials=trials, **settings)


def rules(result):
    return {finding.rule for finding in result.findings}


def test_threats_are_named():
    assert in_scope(["seed"]) == {"bits": False, "duration": False, "seed": True}
    with pytest.raises(audit.UsageError, match="expected one of bits, duration, seed"):
        examined(noisy, threats=["time"])


def test_bits_are_evidence_only_in_scope():
    """0 + Laplace has bits below 2^-53, 1 + Laplace has none. False alarm without them: 1e-3."""
    unseen = examined(noisy, trials=4000)
    seen = examined(noisy, trials=20_000, threats=["bits"])
    assert (unseen.verdict, seen.verdict) == ("unrefuted", "refuted")
    assert seen.choice.attack == "bits"


def test_last_bits_are_powers_of_two():
    found = last_bits(np.array([0.75, 0.25, -1.25, 0.5, 1 + 2**-52, 5e-324, 3.0]))
    assert found.tolist() == [-2, -2, -2, -1, -52, -1074, 0]
    assert np.isnan(last_bits(np.array([0.0, math.nan, math.inf]))).all()


class Clock:
    """A clock that only a mechanism moves: no load of the machine does."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Time as trials are told it, in place of the machine's."""
    found = Clock()
    monkeypatch.setattr(timing, "time", found)
    return found


def test_durations_are_part_of_the_view_only_in_scope(clock):
    """Three milliseconds of work on one side, on a clock that no other process can delay."""

    def slow_on_one_side(data, rng):
        clock.now += 0.003 * data + 1e-5 * rng.exponential()
        return float(rng.laplace())

    unseen = examined(slow_on_one_side, trials=200)
    assert unseen.verdict != "refuted"
    seen = examined(slow_on_one_side, trials=400, threats=["duration"])
    assert seen.verdict == "refuted"
    assert "duration" in seen.choice.event


def test_durations_are_real_ones_of_their_own_trials():
    """A sleep may last longer than it was asked to, never shorter."""
    slow = FunctionMechanism(lambda data, rng: time.sleep(data * 2e-3))
    streams = {side: np.random.default_rng(side) for side in (True, False)}
    inputs, sizes = {True: 1.0, False: 3.0}, {True: 5, False: 4}
    played = timing.play_timed(slow, inputs, sizes, streams, np.random.default_rng(0))
    for side, (views, seconds) in played.items():
        assert len(views) == len(seconds) == sizes[side]
        assert seconds.min() >= 0.99 * inputs[side] * 2e-3  # two clocks may differ a little


def test_equal_work_is_not_refuted_by_its_duration():
    """False alarm 1e-3, whatever the machine does: the sides are interleaved."""
    assert examined(noisy, trials=1500, threats=["duration"]).verdict != "refuted"


def test_a_threat_out_of_scope_changes_nothing():
    """Without durations, the evidence is a function of the seed."""
    plain, again = examined(noisy), examined(noisy)
    assert plain.counts == again.counts
    assert plain.choice == again.choice


def few(data, rng):
    own = np.random.default_rng(int(rng.integers(1000)))
    return data + own.laplace()


def drawn_from_a_table(data, rng):
    return {"sum": data + TABLE[int(rng.integers(len(TABLE)))], "kind": "noisy"}


TABLE = np.random.default_rng(5).laplace(size=500).tolist()
CALLS: list[int] = []


def slow_counter(data, rng):
    CALLS.append(1)
    return data + rng.laplace() + len(CALLS) // 40


@pytest.mark.parametrize("function", [few, drawn_from_a_table])
def test_few_seeds_are_found(function):
    """N = 500 trials from 500 or 1,000 seeds repeat 250 or 125 times: never fewer than 5."""
    assert "DP021" in rules(examined(function, trials=8000, threats=["seed"]))
    assert "DP021" not in rules(examined(function, trials=200))


def test_the_number_of_seeds_is_estimated():
    """Standard error of 125 repeats: 9 %. Five of them: false alarm 6e-7."""
    game = Game(FunctionMechanism(few), PAIR, "output")
    views = [one(game, np.random.default_rng([7, i])) for i in range(500)]
    assert 550 < few_seeds(views) < 1450


@pytest.mark.parametrize(
    "function",
    [
        noisy,
        lambda data, rng: data + int(rng.geometric(0.1)),
        lambda data, rng: (data + int(rng.geometric(0.1))) / 7,
        lambda data, rng: 0.1 * int(rng.integers(100)),
        lambda data, rng: [int(x) for x in rng.integers(3, size=3)],
    ],
    ids=["continuous", "counts", "sevenths", "price grid", "arms"],
)
def test_natural_repeats_are_no_few_seeds(function):
    assert "DP021" not in rules(examined(function, trials=4000, threats=["seed"]))


def test_state_between_trials_is_found():
    assert "DP022" in rules(examined(slow_counter, trials=400, threats=["seed"]))
    assert "DP022" not in rules(examined(noisy, trials=400, threats=["seed"]))


def test_every_threat_is_named_in_the_record(tmp_path):
    from tests.cli.console import GIVEN, run, target

    words = (target("noisy"), *GIVEN, "--threat", "seed", "--threat", "duration")
    outcome = run(*words, "--out", tmp_path / "out")
    record = audit.read_record(tmp_path / "out" / "record.json")
    assert record.plan.threats == {name: name != "bits" for name in THREATS}
    assert "--threat seed --threat duration" in record.plan.cases[0].reproduce
    assert "Threats run: duration, seed; not run: bits." in " ".join(outcome.out.split())
    assert "neither does this record, bit for bit" in " ".join(outcome.out.split())
