"""Random streams: different addresses, different draws; what testifies is drawn only once."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from audit.engine import run
from audit.plan import Request, Settings, make_plan
from audit.registry import battery, resolve
from audit.streams import Phase, Side, stream

ADDRESSES = st.tuples(
    st.text(max_size=6),
    st.sampled_from(Phase),
    st.sampled_from(Side),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)


def first_draws(root: int, address: tuple) -> tuple[int, ...]:
    case, phase, side, block, pair = address
    return tuple(stream(root, case, phase, side, block, pair).integers(2**62, size=2).tolist())


@given(st.integers(0, 2**128 - 1), ADDRESSES, ADDRESSES)
def test_different_addresses_draw_differently(root, one, other) -> None:
    """A false alarm needs a collision of 32 bits of a hash, or of 124 bits of draws."""
    assert (first_draws(root, one) == first_draws(root, other)) == (one == other)
    assert first_draws(root, one) != first_draws(root + 1, one)


@given(st.integers(0, 2**64), ADDRESSES, st.integers(1, 5))
def test_generators_of_trials_are_no_streams_of_their_own(root, address, children) -> None:
    case, phase, side, block, pair = address
    parent = stream(root, case, phase, side, block, pair)
    draws = {tuple(rng.integers(2**62, size=2).tolist()) for rng in parent.spawn(children)}
    assert len(draws) == children
    assert first_draws(root, address) not in draws


def test_what_testifies_is_drawn_once_and_apart_from_what_scouts() -> None:
    names = ("broken/laplace-half-noise", "calibration/laplace", "calibration/noisy-max")
    requests = []
    for name in names:
        mechanism = resolve(name)
        requests.append(Request(name, name, mechanism, mechanism.claim, battery(None)))
    plan, cases = make_plan(requests, Settings(trials=2_000, early_stop=False, threats=("seed",)))
    used: Counter[tuple[int, ...]] = Counter()
    real = np.random.SeedSequence

    def spy(root, *, spawn_key):
        used[spawn_key] += 1
        return real(root, spawn_key=spawn_key)

    with mock.patch.object(np.random, "SeedSequence", spy):
        run(plan, cases)
    fresh = [Phase.TESTIFY, Phase.CERTIFY, Phase.CALIBRATE, Phase.ORDER]
    again = [key for key, times in used.items() if key[1] in fresh and times > 1]
    assert again == []
    phases = {Phase(key[1]) for key in used}
    assert {Phase.SCOUT, Phase.TESTIFY, Phase.SEED} <= phases
    blocks = sum(len(case.blocks) for case in plan.cases)
    assert sum(key[1] == Phase.TESTIFY for key in used) == 3 * blocks  # two sides and the labels
