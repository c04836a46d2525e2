"""What an adversary reads off the prices of fake customers, by preset. Seeds are fixed.

Area under the ROC curve against 1/2 at four null standard errors: false alarm 3.2e-5 a test.
"""

import math

import numpy as np
import pytest

from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.policy_pairs import null_pair
from attacks.prices import Prices
from audit.attack import Game

PLAYS = 400
FOUR = 4 * math.sqrt((2 * PLAYS + 1) / (12 * PLAYS**2))


def fooled(preset, probes):
    return PrivatePricing(preset=preset, probes=probes, accounting="joint", allow_vacuous=True)


def area(policy, pair):
    game, rng = Game(policy, pair, "prices_after"), np.random.default_rng(0)
    views = [game.play(side, PLAYS, rng) for side in (True, False)]
    scorer = Prices().fit(game, *views, rng)
    left, right = (scorer(view)[:, None] for view in views)
    return np.mean(left > right.T) + np.mean(left == right.T) / 2


@pytest.mark.filterwarnings("ignore:PrivatePricing. this policy is vacuous")
@pytest.mark.parametrize(
    ("preset", "probes", "which", "typical"),
    [
        pytest.param("faint", "cycle", 2, 0.79, marks=pytest.mark.slow),
        ("lone", "cycle", 2, 0.70),
        ("lone", "cycle", 1, 0.62),
        ("timed", "null", 0, 0.75),
        ("timed", "null", 1, 0.62),
    ],
)
def test_prices_of_fakes_tell_the_customer(preset, probes, which, typical):
    policy = fooled(preset, probes)
    found = area(policy, policy.pairs()[which])
    assert found > 0.5 + FOUR
    assert abs(found - typical) < FOUR


@pytest.mark.filterwarnings("ignore:PrivatePricing. this policy is vacuous")
@pytest.mark.parametrize(("preset", "probes"), [("lone", "cycle"), ("timed", "null")])
def test_the_same_customer_twice_shows_nothing(preset, probes):
    """Two-sided at four standard errors: false alarm 6.3e-5."""
    policy = fooled(preset, probes)
    pair = null_pair(policy.public, policy.pairs()[0].left)
    assert abs(area(policy, pair) - 0.5) < FOUR
