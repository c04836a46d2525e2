"""What prices can tell at best, beside what the price attack reads off them.

Prices are made of the releases, so nobody who sees prices can beat the likelihood ratio of all
releases; and prices show a release at refreshes only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from algorithms.pricing.guarantee import PairGuarantee
from algorithms.pricing.market import market_of
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.refresh_score import refresh_factor
from algorithms.pricing.transcript import path
from attacks.prices import Prices
from audit.attack import Game
from audit.pair import Pair

Floats = npt.NDArray[np.float64]

PRESETS = ("brief", "working", "faint", "lone")
PAIRS = {"customer replaced": 1, "outcome flipped": 2}


def fooled(preset: str, probes: str = "cycle") -> PrivatePricing:
    """A policy whose customers after the exploration are the adversary's."""
    return PrivatePricing(preset=preset, probes=probes, accounting="joint", allow_vacuous=True)


def limits(policy: PrivatePricing, pair: Pair, plays: int = 100) -> Floats:
    """Gaussian parameters of some plays, shape (2, plays): all releases, and those at refreshes.

    For a flipped outcome they are exact; for a replaced customer the estimator's part is the
    largest that its bound allows, its Jacobian left out. Of the determinant the second row has the
    sums at refreshes, not that it had not doubled before.
    """
    public, place = policy.public, pair.position
    markets = market_of(pair.left, public), market_of(pair.right, public)
    known = PairGuarantee(public, markets, place)
    recorder = PrivatePricing(policy.preset, view="transcript", allow_vacuous=True)
    views = recorder.run(pair.left, plays, np.random.default_rng(0))
    price = np.rint(views["explored"][:, place] * (public.prices - 1)).astype(int)
    nodes = len(path(place + 1, public.records))
    found = []
    for times, i in zip(views["times"].astype(int), price, strict=True):
        used = times[times > place + 1] - 1
        estimates = len(used) * known.steps[i] ** 2
        seen = refresh_factor(used) / nodes if used.size else 0.0
        squares = known.tree_squares[i] * np.array([1.0, seen]) + estimates
        found.append(np.sqrt(squares))
    return np.array(found).T


def area(mu: Floats) -> float:
    """Area under the ROC curve of Gaussian scores, averaged over plays."""
    return float(ndtr(mu / np.sqrt(2)).mean())


def attacked(policy: PrivatePricing, pair: Pair, plays: int) -> float:
    """Area under the ROC curve of the price attack, `plays` a side."""
    game, rng = Game(policy, pair, "prices_after"), np.random.default_rng(0)
    views = [game.play(side, plays, rng) for side in (True, False)]
    scorer = Prices().fit(game, *views, rng)
    left, right = (scorer(view)[:, None] for view in views)
    return float(np.mean(left > right.T) + np.mean(left == right.T) / 2)
