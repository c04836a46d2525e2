"""What a trial shows depends on it alone, never on the other trials of its side.

A form or a number that changed with its neighbours would tell of groups of trials, and a bound
would certify a multiple of the true epsilon: a function that keeps epsilon 1 was refuted at 1.33
when odd shapes renamed the numbers of a whole block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from attacks.likelihood import RatioScorer
from audit.mechanism import FunctionMechanism, play, play_each, play_singly
from audit.pair import Pair
from audit.view import Raised, Views, collect, joined, project


@dataclass(frozen=True)
class Emits:
    """A mechanism that emits blocks, of which every call makes its own kind."""

    one: Callable[[int, np.random.Generator], Any]
    claim: Any = None

    def pairs(self) -> tuple[Pair, ...]:
        return ()

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        if rng.random() < 0.2:
            raise ValueError(f"sum is {rng.random():.3f}")
        return self.one(n, rng)


def ragged(data: Any, rng: np.random.Generator) -> Any:
    if rng.random() < 0.2:
        raise ValueError(f"sum is {rng.random():.3f}")
    return {"x": np.zeros(2 if rng.random() < 0.3 else 1), "y": rng.random()}


def block(n: int, rng: np.random.Generator) -> Any:
    width = 2 if rng.random() < 0.3 else 1
    return {"x": np.full((n, width), rng.random()), "y": rng.random(n)}


def listed(n: int, rng: np.random.Generator) -> Any:
    return [{"x": np.zeros(2 if rng.random() < 0.3 else 1)} for _ in range(n)]


def mixed(n: int, rng: np.random.Generator) -> Any:
    return rng.random((n, 3)) if rng.random() < 0.5 else [None] * n


MECHANISMS = [
    FunctionMechanism(ragged),
    FunctionMechanism(lambda data, n, rng: block(n, rng), batched=True),
    Emits(block),
    Emits(listed),
    Emits(mixed),
]


def shown(views: Views, row: int) -> tuple[str, dict[str, float]]:
    """Form and numbers of one trial."""
    numbers = dict(zip(views.names, views.matrix()[row].tolist(), strict=True))
    return str(views.form[row]), {k: v for k, v in numbers.items() if v == v}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_trial_looks_the_same_beside_others_and_alone(mechanism: Any) -> None:
    together = play_singly(mechanism, 0, 40, np.random.default_rng(1))
    alone = [play_each(mechanism, 0, [rng]) for rng in np.random.default_rng(1).spawn(40)]
    assert [shown(together, i) for i in range(40)] == [shown(one, 0) for one in alone]
    assert len({str(form) for form in together.form}) > 1


def test_a_function_of_one_trial_looks_the_same_once_it_has_raised() -> None:
    mechanism = FunctionMechanism(ragged)
    usual, singly = (
        player(mechanism, 0, 40, np.random.default_rng(1)) for player in (play, play_singly)
    )
    assert [shown(usual, i) for i in range(40)] == [shown(singly, i) for i in range(40)]


def test_columns_keep_their_shape_beside_trials_that_raised() -> None:
    views = play_singly(
        Emits(lambda n, rng: {"x": np.ones((n, 3))}), 0, 40, np.random.default_rng(1)
    )
    assert 0 < views.raised.sum() < 40
    assert views["x"].shape == (40, 3)
    assert np.array_equal(np.isnan(views["x"]).all(axis=1), views.raised)
    assert project(views, "x_after", (0,))["x"].shape == (40, 2)


def test_joined_parts_keep_every_leaf_under_its_name() -> None:
    one = Views(np.array(["a"], dtype=object), {"x": np.array([[1.0, 2.0]])})
    other = Views(np.array(["b"], dtype=object), {"x": np.array([[3.0]]), "x[1]": np.array([4.0])})
    both = joined([one, other])
    assert both.names == ("x[0]", "x[1]")
    assert both.matrix().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert both.shaped("x", (2,)).tolist() == both.matrix().tolist()
    assert both.shaped("z", (2,)).shape == (2, 2)


@dataclass(frozen=True)
class Density:
    """Knows the ratio of its column x."""

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Any:
        return views["x"].sum(axis=1)


def test_an_odd_neighbour_does_not_change_an_exact_ratio() -> None:
    usual = collect({"x": np.array([[1.0, 2.0], [0.5, 0.5]])}, 2)
    odd = collect({"x": np.array([[9.0]])}, 1)
    raised = collect([Raised("ValueError", "12")], 1)
    forms = frozenset(map(str, usual.form))
    mechanism: Any = Density()
    scorer = RatioScorer(mechanism, Pair(0, 1), "output", {"x": (2,)}, forms, "ratio")
    assert scorer(joined([usual, odd, raised])).tolist() == [3.0, 1.0, 0.0, 0.0]
