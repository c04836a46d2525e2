"""Attacks on trajectories: features that know the differing round, and shadow runs."""

import pickle

import numpy as np
import pytest

from algorithms.bandits.conversion import BatchedLaplace
from algorithms.bandits.unnoised import UnnoisedExp3
from attacks.classifier import Logistic
from attacks.leaves import Silent
from attacks.shadow import Shadow
from attacks.trajectory import Alignment, Trajectory
from audit.attack import Game
from audit.pair import Pair
from audit.view import Views, collect


def played(game, n, seed):
    return [game.play(left, n, np.random.default_rng([seed, left])) for left in (True, False)]


def rate(scorer, views):
    """Share of (left, right) trials in the right order, ties counting half."""
    left, right = (np.sort(scorer(v)) for v in views)
    below = np.searchsorted(right, left, "left") + np.searchsorted(right, left, "right")
    return below.mean() / 2 / len(right)


def game_at(position, view="actions", rounds=6):
    sides = [np.zeros((rounds, 2)), np.zeros((rounds, 2))]
    sides[1][position] = 1.0
    pair = Pair(*({"losses": side} for side in sides))
    return Game(BatchedLaplace("leader", 1.0, rounds, 2), pair, view)


def test_features_do_not_depend_on_where_the_round_is():
    rng = np.random.default_rng(0)
    later = rng.integers(3, size=(40, 5))
    own = rng.integers(3, size=(40, 1))
    found = []
    for position in (0, 4):
        actions = np.concatenate([np.zeros((40, position)), own, later], axis=1)
        views = collect({"actions": actions}, 40)
        found.append(Alignment.of(game_at(position, rounds=6 + position), views)(views))
    # All but the features that compare with the past.
    same = np.all(found[0] == found[1], axis=0)
    assert found[0].shape == found[1].shape
    assert same.mean() > 0.7
    assert found[0][:, same].std(axis=0).max() > 0


def test_features_follow_the_arm_of_the_round():
    actions = np.array([[0, 1, 1, 1], [1, 0, 0, 0], [2, 2, 2, 2]])
    views = collect({"actions": np.repeat(actions, 10, axis=0)}, 30)
    rows = Alignment.of(game_at(0, rounds=4), views)(views)
    assert np.isfinite(rows).all()
    assert len(np.unique(rows, axis=0)) == 3


@pytest.mark.parametrize("view", ["actions_after", "actions_except"])
def test_a_hidden_round_is_not_asked_for(view):
    game = game_at(2, view)
    views = game.play(True, 30, np.random.default_rng(0))
    rows = Alignment.of(game, views)(views)
    assert rows.shape[0] == 30
    assert np.isfinite(rows).all()
    assert views["actions"].shape[1] == (3 if view.endswith("after") else 5)


def test_other_shapes_score_as_missing():
    game = game_at(0)
    views = game.play(True, 30, np.random.default_rng(0))
    align = Alignment.of(game, views)
    other = collect({"actions": np.zeros((5, 9))}, 5)
    assert np.isfinite(align(other)).all()
    assert align(Views(np.empty(4, dtype=object))).shape[0] == 4


def test_alignment_sees_what_raw_actions_hide():
    mechanism = UnnoisedExp3("losses-mixed", 60, 3, options={"eta": 0.1, "gamma": 0.1})
    game = Game(mechanism, mechanism.pairs()[0], "actions")
    scouted, fresh = played(game, 3000, 1), played(game, 3000, 2)
    rng = np.random.default_rng(0)
    assert Trajectory().applies(game)
    aligned = pickle.loads(pickle.dumps(Trajectory().fit(game, *scouted, rng)))
    raw = Logistic().fit(game, *scouted, rng)
    # The standard error of a rank statistic of 3,000 a side is below .0075: ten of them.
    assert rate(aligned, fresh) > 0.575 > rate(raw, fresh) + 0.02
    assert "round 0" in aligned.description
    assert aligned(Views(np.empty(0, dtype=object))).shape == (0,)


def test_nothing_is_found_where_nothing_differs():
    game = game_at(5)
    scouted, fresh = played(game, 2000, 1), played(game, 2000, 2)
    scorer = Trajectory().fit(game, *scouted, np.random.default_rng(0))
    # The last round's loss shows in no action: 5.5 standard errors of .0091, below 1e-7.
    assert rate(scorer, fresh) == pytest.approx(0.5, abs=0.05)


def test_few_trials_or_no_sequence_give_silence():
    game = game_at(0)
    few = played(game, 8, 0)
    assert isinstance(Trajectory().fit(game, *few, np.random.default_rng(0)), Silent)
    flat = [collect(np.zeros(60), 60)] * 2
    assert isinstance(Trajectory().fit(game, *flat, np.random.default_rng(0)), Silent)
    same = Pair({"losses": np.zeros((6, 2))}, {"losses": np.zeros((6, 2))})
    assert not Trajectory().applies(Game(game.mechanism, same, "actions"))


def test_shadow_runs_score_the_actions():
    mechanism = BatchedLaplace(
        "exp3n", 1.0, 8, 2, view="actions", options={"eta": 1.0, "gamma": 0.1}
    )
    game = Game(mechanism, mechanism.pairs()[0], "actions")
    attack = Shadow()
    assert attack.applies(game)
    assert not attack.applies(Game(mechanism, game.pair, "transcript"))
    views = played(game, 2000, 1)
    scorer = pickle.loads(pickle.dumps(attack.fit(game, *views, np.random.default_rng(0))))
    # The standard error is below .0092: more than eight of them above 1/2.
    assert rate(scorer, views) > 0.58
    some = views[0].take(np.arange(5))
    assert scorer(some) == pytest.approx(scorer(views[0])[:5], abs=1e-12)
    assert scorer(collect({"actions": np.zeros((3, 2))}, 3)).tolist() == [0.0] * 3
    flat = [collect(np.zeros(60), 60)] * 2
    assert isinstance(attack.fit(game, *flat, np.random.default_rng(0)), Silent)
