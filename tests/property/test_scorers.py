"""Every scorer scores a trial by its own view.

Blocks hold trials of one side, so a score that used the other trials of its block would know the
side, and no bound would hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from audit.attack import Attack, Game
from audit.claim import PureDp
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.registry import battery
from audit.view import Views


def number(data: float, rng: np.random.Generator) -> Any:
    return data + rng.laplace()


def vector(data: float, rng: np.random.Generator) -> Any:
    return np.round(data + rng.normal(size=4), 1)


def choice(data: float, rng: np.random.Generator) -> Any:
    return {"choice": int(rng.integers(3) + data), "odd": None if rng.random() < 0.3 else "text"}


def brittle(data: float, rng: np.random.Generator) -> Any:
    if rng.random() < 0.1 + 0.1 * data:
        raise ValueError("underflow")
    return [data] * int(rng.integers(1, 4))


@pytest.mark.parametrize("function", [number, vector, choice, brittle])
@pytest.mark.parametrize("attack", battery(None), ids=lambda attack: attack.name)
def test_scores_do_not_depend_on_the_rest_of_the_block(
    attack: Attack, function: Callable[..., Any]
) -> None:
    pair = Pair(0.0, 1.0)
    mechanism = FunctionMechanism(function, PureDp(epsilon=1.0), (pair,))
    game = Game(mechanism, pair, "output")
    if not attack.applies(game):
        pytest.skip("needs a likelihood")
    rng = np.random.default_rng(0)
    left, right = (game.play(side, 120, rng) for side in (True, False))
    scorer = attack.fit(game, left, right, rng)
    fresh = game.play(True, 40, rng)
    together = scorer(fresh)
    assert together.shape == (40,)
    backwards = scorer(fresh.take(np.arange(40)[::-1]))[::-1]
    alone = np.concatenate([scorer(fresh.take(np.array([i]))) for i in range(40)])
    assert backwards == pytest.approx(together, rel=1e-6, abs=1e-9, nan_ok=True)
    assert alone == pytest.approx(together, rel=1e-6, abs=1e-9, nan_ok=True)
    assert scorer(Views(np.empty(0, dtype=object))).shape == (0,)
