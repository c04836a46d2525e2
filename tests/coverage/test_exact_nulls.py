"""Levels by enumeration, where the null is small enough to write all its outcomes down.

Nothing here is simulated but the rank test's own null law, so no test has a false alarm unless it
says so.
"""

from __future__ import annotations

import itertools
import math
import sys
from functools import cache

import numpy as np
import pytest
from scipy import special, stats

import audit
from algorithms.calibration import Gaussian, Laplace
from audit import streams
from audit.budget import divide
from audit.certificate import calibration_log_wealth, certified_epsilon
from audit.claim import AnyClaim, ApproxDp, GaussianDp, PureDp, RenyiDp, ZeroConcentratedDp
from audit.engine import play_blocks
from audit.measured import _anytime_upper
from audit.mechanism import FunctionMechanism
from audit.onerun_judge import one_run_shares
from audit.plan import Request, Settings, make_plan
from audit.ranksum import rank_sum_mu
from audit.registry import battery, proposer
from audit.scout import scout_case
from audit.streams import Phase, Side

CLAIMS: tuple[AnyClaim, ...] = (
    PureDp(epsilon=1.0),
    ApproxDp(epsilon=1.0, delta=1e-5),
    GaussianDp(mu=1.0),
    ZeroConcentratedDp(rho=0.5),
    RenyiDp(order=8.0, epsilon=1.0),
)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("alpha", [0.3, 1e-3, 1e-9])
def test_no_claim_spends_more_than_its_alpha(claim: AnyClaim, alpha: float) -> None:
    shares = [divide(alpha, claim, white_box=known) for known in (True, False)]
    shares.append(one_run_shares(claim, alpha))
    for share in shares:
        parts = (
            share.betting, share.fixed, share.profile,
            share.parameter, share.renyi, share.certificate, share.calibration,
        )  # fmt: skip
        assert min(parts) >= 0
        assert math.fsum(parts) <= alpha * (1 + 1e-12)
    assert (shares[0].parameter > 0) == isinstance(claim, GaussianDp)
    assert (shares[0].renyi > 0) == (claim.parameter is not None)


def test_certificates_on_the_revealing_box() -> None:
    """Only infinite losses, Bin(runs, delta) many, speak against the truth."""
    epsilon, alpha, found = 1.0, 0.05, []
    for runs, delta in ((50, 1e-5), (50, 0.1), (200, 1e-2), (1_000, 1e-2)):
        exceeding = [
            number
            for number in range(min(runs, 60) + 1)
            if certified_epsilon(
                [math.inf] * number + [epsilon] * (runs - number), np.zeros(runs), alpha, delta
            )
            > epsilon * (1 + 1e-9)
        ]
        found.append(float(stats.binom.sf(min(exceeding) - 1, runs, delta)))
        assert exceeding == list(range(min(exceeding), min(runs, 60) + 1))
    assert max(found) <= alpha
    assert max(found) > 1e-3


def test_a_loss_is_a_bound_by_itself_but_for_its_rounding() -> None:
    """L = epsilon has probability 1/2 on Laplace noise: no last digit may refute the truth."""
    for epsilon in (0.1, 1.0, 7.3):
        wrong = epsilon * (1 + 4 * np.finfo(float).eps)
        assert certified_epsilon([wrong], [0.0], 0.05, 0.0) < epsilon
        assert certified_epsilon([wrong], [0.0], 0.05, 0.0) > epsilon - 1e-8
    assert certified_epsilon([math.inf, math.nan], [0.0, 0.0], 0.05, 0.0) > 59.9


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_calibration_over_all_labels(scale: float) -> None:
    """2^9 labels of nine losses: P(largest wealth >= 1/alpha) <= alpha."""
    losses, alpha, excess = scale * np.array([1, -2, 0.5, 3, -1, 0, 2, -0.3, 1.5]), 0.8, 0.0
    sure = special.expit(losses)
    for labels in itertools.product([0.0, 1.0], repeat=9):
        left = np.array(labels)
        chance = float(np.prod(np.where(left == 1, sure, 1 - sure)))
        excess += chance * (calibration_log_wealth(losses, left) >= -math.log(alpha))
    assert 0 < excess <= alpha


def test_limits_of_what_was_measured_over_all_outcomes() -> None:
    """The limit is below the truth at any of ten looks with probability at most alpha."""
    alpha, looks = 0.3, 10
    upper = cache(lambda right, n: _anytime_upper(right, n, alpha))
    for p in (0.3, 0.6, 0.9):
        missed = 0.0
        for outcome in itertools.product([0, 1], repeat=looks):
            right = np.cumsum(outcome).tolist()
            chance = p ** right[-1] * (1 - p) ** (looks - right[-1])
            missed += chance * any(upper(right[n - 1], n) < p for n in range(1, looks + 1))
        assert missed <= alpha
    assert missed > 0


def _ordered(pairs: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Single trials in an order with so many (left above right) pairs."""
    above = [pairs // side + (i < pairs % side) for i in range(side)]
    order = sorted([(place - 0.5, 1) for place in range(1, side + 1)] + [(a, 0) for a in above])
    left = np.array([1 if kind == 0 else 0 for _, kind in order])
    return left, 1 - left


def test_ranks_of_equal_sides_over_all_orders() -> None:
    """mu = 0, six trials a side: the law of U is exact, the test's own null law has ten seeds.

    The average level over seeds has a standard error of about .012: false alarm below 1e-4.
    """
    side, alpha, seeds = 6, 0.2, range(10)
    law = np.zeros(side * side + 1)
    for places in itertools.combinations(range(2 * side), side):
        law[sum(place - i for i, place in enumerate(places))] += 1
    law /= law.sum()
    levels = []
    for seed in seeds:
        low, high = -1, side * side + 1
        while high - low > 1:
            middle = (low + high) // 2
            certifies = rank_sum_mu(*_ordered(middle, side), alpha, seed) > 0
            low, high = (low, middle) if certifies else (middle, high)
        levels.append(float(law[high:].sum()))
    assert 0.02 < np.mean(levels) <= alpha + 0.05


def test_orders_have_the_pairs_they_are_asked_for() -> None:
    for pairs in range(37):
        left, right = _ordered(pairs, 6)
        assert (left.sum(), right.sum()) == (6, 6)
        assert int((left * np.cumsum(right)).sum()) == pairs


def searched() -> Request:
    def noisy_sum(data: list[float], rng: np.random.Generator) -> float:
        return sum(data) + rng.laplace()

    claim = PureDp(epsilon=1.0, relation="replace-one")
    domain = audit.Domain(bounds=(0.0, 1.0), sizes=(3, 3))
    target = FunctionMechanism(noisy_sum, claim)
    return Request(
        "search", "search", target, claim, battery(["leaf"]), domain=domain, proposer=proposer()
    )


def known(mechanism: Laplace | Gaussian) -> Request:
    return Request("known", "known", mechanism, mechanism.claim, battery(["likelihood", "leaf"]))


@pytest.mark.parametrize(
    "request_",
    [known(Laplace(1.0)), known(Gaussian(1.0, 1e-5)), searched()],
    ids=["pure", "gdp", "search"],
)
def test_nothing_that_chooses_also_testifies(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search, contract, scouting, certificates and twins, against the blocks that count.

    None of them draws from a stream that testifies, and no block from one that chose.
    """
    used: list[tuple[int, int, int, int, int]] = []
    real = streams.stream

    def recording(
        root: int, case: str, phase: Phase, side: Side, block: int, pair: int = 0
    ) -> np.random.Generator:
        used.append((root, int(phase), int(side), block, pair))
        return real(root, case, phase, side, block, pair)

    for module in list(sys.modules.values()):
        if getattr(module, "stream", None) is real:
            monkeypatch.setattr(module, "stream", recording)
    plan, cases = make_plan([request_], Settings(trials=800, alpha=0.05))
    scouted = scout_case(cases[0], plan)
    chose, sizes = set(used), cases[0].planned.blocks
    used.clear()
    play_blocks(0, scouted.frozen, request_.name, plan.seed, range(len(sizes)), sizes)
    testified = set(used)
    assert len(testified) == len(used) == 4 * len(sizes)
    assert {phase for _, phase, *_ in testified} == {Phase.TESTIFY, Phase.ORDER}
    assert Phase.TESTIFY not in {phase for _, phase, *_ in chose}
    assert not chose & testified
    assert Phase.SCOUT in {phase for _, phase, *_ in chose}
    assert (Phase.SEARCH in {phase for _, phase, *_ in chose}) == (request_.domain is not None)
