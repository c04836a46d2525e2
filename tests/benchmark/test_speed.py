"""Every algorithm keeps its speed, as ratios measured in one run."""

import pytest

from tests.benchmark.speeds import ARMS, ROUNDS, N, best, converted, generator, guarded, measure

pytestmark = pytest.mark.benchmark


def player(mechanism, n, rng):
    data = mechanism.pairs()[-1].left
    return lambda: mechanism.run(data, n, rng)


@pytest.mark.parametrize("speed", list(guarded()), ids=lambda speed: speed.name)
def test_blocks_against_a_loop_and_their_own_draws(speed):
    found = measure(speed)
    print(f"\n{speed.name}: {found.gain:.0f}x a loop, {found.over_draws:.2f}x its draws", end="")
    assert found.gain >= speed.gain
    assert found.over_draws <= speed.draws


@pytest.mark.parametrize(("learner", "most"), [("htinf", 6), ("ftpl", 12)])
def test_learners_against_exp3(learner, most):
    rng = generator()
    plain, other = best(
        player(converted("exp3n"), N, rng), player(converted(learner), N, rng), rounds=15
    )
    print(f"\n{learner} / exp3n: {other / plain:.2f}", end="")
    assert other / plain <= most


@pytest.mark.parametrize("learner", ["exp3n", "htinf", "ftpl"])
def test_cost_is_linear_in_trials_and_rounds(learner):
    rng = generator()
    once, trials, rounds = best(
        player(converted(learner), N, rng),
        player(converted(learner), 4 * N, rng),
        player(converted(learner, 4 * ROUNDS), N, rng),
    )
    print(f"\n{learner}, {ARMS} arms: {trials / once:.2f}, {rounds / once:.2f}", end="")
    # Linear is 4; caches and other users of the machine may cost up to twice that.
    assert trials / once < 8
    assert rounds / once < 8
