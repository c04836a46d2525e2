"""The bet against Renyi divergences: never favourable at the null, and tight on Gaussians."""

from __future__ import annotations

import math
import warnings
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import audit
from audit.budget import divide
from audit.claim import GaussianDp, RenyiClaim, RenyiDp, ZeroConcentratedDp
from audit.judge import certified_mu
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.power import renyi_reach
from audit.renyi import (
    LARGEST_DIVERGENCE,
    Belief,
    RenyiBet,
    _payoffs,
    gaussian_growth,
    renyi_bet,
    renyi_divergence,
    renyi_log_wealth,
)
from audit.streams import case_key

ALPHA = 0.05
shares = st.lists(st.floats(1e-3, 1.0), min_size=4, max_size=4)
bets = st.builds(
    RenyiBet,
    order=st.floats(1.001, 64),
    left=st.booleans(),
    posterior=st.lists(st.floats(1e-4, 1 - 1e-4), min_size=4, max_size=4).map(tuple),
    shrink=st.floats(0.1, 1),
    cap=st.floats(0.1, 1e3),
    anchor=st.floats(1e-300, 1e300),
    balance=st.floats(0, 10),
    stake=st.floats(0, 0.999),
)


def divergence_of(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Renyi divergence of two laws over a few bins."""
    return float(special.logsumexp(order * np.log(p) - (order - 1) * np.log(q)) / (order - 1))


def laws(left: list[float], right: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(left) / sum(left), np.array(right) / sum(right)


def bet_on(posterior: Any, **fields: Any) -> RenyiBet:
    return RenyiBet(posterior=tuple(posterior), shrink=1.0, **fields)


def belief(left: np.ndarray, right: np.ndarray, posterior: np.ndarray) -> Belief:
    return Belief(np.stack([left, right]), posterior, posterior)


def gaussian_cells(mu: float, bins: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left law, right law and posterior of N(mu/2, 1) and N(-mu/2, 1) in cells."""
    cuts = np.linspace(-4 - mu / 2, 4 + mu / 2, bins - 1)
    left, right = (
        np.diff(np.concatenate([[0.0], special.ndtr(cuts - shift), [1.0]]))
        for shift in (mu / 2, -mu / 2)
    )
    return left, right, np.clip(left / (left + right), 1e-4, 1 - 1e-4)


@given(shares, shares, bets)
def test_no_bet_wins_on_average_against_a_divergence_that_is_kept(
    left: list[float], right: list[float], bet: RenyiBet
) -> None:
    one, other = laws(left, right)
    first, second = (one, other) if bet.left else (other, one)
    payoffs = _payoffs(bet, divergence_of(first, second, bet.order))
    mean = float((payoffs * np.stack([one, other])).sum()) / 2
    assert mean <= 1e-12
    assert payoffs.min() >= -bet.stake * (1 + 1e-12)


@given(bets, st.floats(0, 50), st.floats(0, 50))
def test_payoffs_fall_as_the_null_grows(bet: RenyiBet, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert (_payoffs(bet, low) >= _payoffs(bet, high)).all()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("order", [1.1, 2.0, 5.0])
def test_the_inequality_is_met_exactly_by_the_likelihood_ratio(order: float, left: bool) -> None:
    """So the test above could fail: at a divergence a hair smaller the bet wins."""
    one, other, posterior = gaussian_cells(1.0)
    first, second = (one, other) if left else (other, one)
    anchor = float((first**order * second ** (1 - order)).sum())
    bet = bet_on(posterior, order=order, left=left, cap=1e3, anchor=anchor, balance=1.0, stake=0.5)
    divergence = divergence_of(first, second, order)
    law, won = np.stack([one, other]) / 2, []
    for null in (divergence, divergence - 1e-3):
        payoffs = _payoffs(bet, null)
        won.append(float((payoffs * law).sum() / (np.abs(payoffs) * law).sum()))
    assert won[0] == pytest.approx(0.0, abs=1e-9)
    assert won[1] > 1e-5


def test_wealth_by_hand() -> None:
    bet = bet_on([0.8, 0.2], order=2.0, left=True, cap=3.0, anchor=4.0, balance=0.5, stake=0.8)
    # Ratios 4 (capped to 3) and 1/4; the other side's powers 9/4 and 1/64, the first side's
    # their roots; the worst of all is a right trial in the first bin.
    worst = 9 / 4 + 0.5 - 0.5
    left = np.array([2 * math.exp(-0.25) * 1.5 - 1, 2 * math.exp(-0.25) / 8 - 1]) * 0.8 / worst
    right = np.array([-worst, -(1 / 64 + 0.5 - 0.5)]) * 0.8 / worst
    prefixes = np.array([[[1, 0], [0, 2]], [[3, 1], [1, 2]]])
    expected = [
        math.log1p(left[0]) + 2 * math.log1p(right[1]),
        3 * math.log1p(left[0]) + math.log1p(left[1]) + math.log1p(right[0])
        + 2 * math.log1p(right[1]),
    ]  # fmt: skip
    found = renyi_log_wealth(prefixes, bet, 0.5)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    "claim",
    [
        ZeroConcentratedDp(rho=0.5),
        ZeroConcentratedDp(rho=0.01),
        RenyiDp(order=2.0, epsilon=0.5),
        GaussianDp(mu=1.0),
    ],
    ids=str,
)
def test_what_is_certified_lies_between_the_claim_and_the_truth(claim: RenyiClaim) -> None:
    """Expected counts of a Gaussian whose divergences are twice the claimed ones."""
    mu = math.sqrt(4 * claim.divergence_at(2.0) / 2)
    truth = claim.parameter_at(2.0, 2 * claim.divergence_at(2.0))
    left, right, posterior = gaussian_cells(mu)
    bet = renyi_bet(belief(left, right, posterior), claim, trials=10_000, alpha=ALPHA)
    counts = np.rint(np.stack([left, right]) * 50_000).astype(np.int64)[None]
    found = claim.parameter_at(bet.order, renyi_divergence(counts, bet, ALPHA))
    assert claim.parameter < found < truth
    at_claim = renyi_log_wealth(counts, bet, claim.divergence_at(bet.order))
    assert at_claim[0] >= -math.log(ALPHA)
    assert bet.order <= claim.largest_order


def test_an_early_look_counts_and_no_look_certifies_nothing() -> None:
    left, right, posterior = gaussian_cells(3.0)
    claim = ZeroConcentratedDp(rho=0.5)
    bet = renyi_bet(belief(left, right, posterior), claim, trials=1_000, alpha=ALPHA)
    first = np.rint(np.stack([left, right]) * 500).astype(np.int64)
    spoiled = first + 500 * np.eye(2, len(left), dtype=np.int64)[::-1]
    alone = renyi_divergence(first[None], bet, ALPHA)
    assert alone > 0.5 * bet.order
    assert renyi_divergence(np.stack([first, spoiled]), bet, ALPHA) == alone
    assert renyi_divergence(first[None][:0], bet, ALPHA) == 0
    assert renyi_divergence(first[None], bet, 0.0) == 0


def test_a_kept_claim_is_bet_against_in_part() -> None:
    """Nothing could be won against all of it, and a bet without a stake would certify nothing."""
    left, right, posterior = gaussian_cells(1.0)
    claim = ZeroConcentratedDp(rho=0.5)
    bet = renyi_bet(belief(left, right, posterior), claim, trials=10_000, alpha=ALPHA)
    counts = np.rint(np.stack([left, right]) * 5_000).astype(np.int64)[None]
    found = claim.parameter_at(bet.order, renyi_divergence(counts, bet, ALPHA))
    assert bet.stake > 0.1
    assert 0.4 < found < 0.5


@pytest.mark.parametrize("rho", [1e-300, 1e-6, 1.0, 1e9])
@pytest.mark.parametrize("posterior", [[0.5], [1e-4, 1 - 1e-4], [1e-300, 0.5, 1 - 1e-12]])
def test_no_claim_and_no_posterior_are_too_extreme(rho: float, posterior: list[float]) -> None:
    evenly = np.ones(len(posterior))
    expected = belief(evenly, evenly, np.array(posterior))
    counts = np.full((1, 2, len(posterior)), 2**40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for claim in (ZeroConcentratedDp(rho=rho), RenyiDp(order=1 + 1e-9, epsilon=rho)):
            bet = renyi_bet(expected, claim, trials=10**9, alpha=1e-12)
            msgspec.convert(msgspec.to_builtins(bet), RenyiBet)
            found = renyi_divergence(counts, bet, 1e-12)
            assert 0 <= found <= LARGEST_DIVERGENCE


def test_a_larger_violation_grows_faster_and_none_does_not_grow() -> None:
    claim = ZeroConcentratedDp(rho=0.5)
    means = [gaussian_growth(mu, claim).mean for mu in (1.0, 1.1, 1.3, 2.0, 60.0)]
    assert means[0] == pytest.approx(0.0, abs=1e-9)
    assert np.all(np.diff(means[:4]) > 0)
    assert means[4] > means[2]
    assert gaussian_growth(1.3, claim).refutes(2_000, 0.025, 0.8)
    assert not gaussian_growth(1.3, claim).refutes(200, 0.025, 0.8)


def gaussian_sum(mu: float, claim: RenyiClaim) -> FunctionMechanism:
    def batched(data: list[float], trials: int, rng: np.random.Generator) -> np.ndarray:
        return sum(data) + rng.normal(size=trials)

    return FunctionMechanism(batched, claim, (Pair([0.0], [mu]),), batched=True)


@pytest.mark.parametrize(
    ("mu", "claim"),
    [
        (1.3, ZeroConcentratedDp(rho=0.5)),
        (1.3, RenyiDp(order=2.0, epsilon=1.0)),
        (1.3, GaussianDp(mu=1.0)),
    ],
    ids=["zCDP", "Renyi", "Gaussian"],
)
def test_two_thirds_too_much_is_refuted(mu: float, claim: RenyiClaim) -> None:
    """As (epsilon, delta) it was not with 20,000. Found in 120 of 120 audits; seeds are fixed."""
    for seed in range(3):
        result = audit.examine(gaussian_sum(mu, claim), trials=20_000, alpha=ALPHA, seed=seed)
        assert result.verdict == "refuted"
        assert result.parameter_lower is not None
        assert result.stopped
        truth = claim.parameter_at(2.0, GaussianDp(mu=mu).divergence_at(2.0))
        assert claim.parameter < result.parameter_lower < truth
        reason = next(f.message for f in result.findings if f.rule == "DP001")
        assert f"{claim.symbol} >= " in reason


def test_mu_is_the_larger_of_the_fixed_test_and_the_bet() -> None:
    """Each has its own share of alpha."""
    claim = GaussianDp(mu=1.0)
    result = audit.examine(gaussian_sum(1.0, claim), trials=8_000, alpha=ALPHA, seed=3)
    shares = divide(ALPHA, claim, white_box=False)
    assert result.choice is not None
    bet, evidence = result.choice.renyi, result.evidence
    assert bet is not None
    divergence = renyi_divergence(evidence.prefixes(), bet, shares.renyi)
    by_bet = claim.parameter_at(bet.order, divergence)
    by_rule = certified_mu(result.choice, evidence.total, shares.parameter, case_key(result.name))
    assert min(by_bet, by_rule) > 0.5
    assert result.parameter_lower == max(by_bet, by_rule)


def test_a_kept_claim_is_certified_in_part_and_shown_with_its_parameter() -> None:
    """Wrong with probability 0.05 at most; the seed is fixed."""
    claim = ZeroConcentratedDp(rho=0.5)
    result = audit.examine(gaussian_sum(1.0, claim), trials=8_000, alpha=ALPHA, seed=1)
    assert result.verdict == "unrefuted"
    assert result.parameter_lower is not None
    assert 0.2 < result.parameter_lower <= 0.5
    assert "rho 0." in result._repr_html_()
    assert result.choice is not None
    assert result.choice.renyi is not None
    bet, prefixes = result.choice.renyi, result.evidence.prefixes()
    wealth = renyi_log_wealth(prefixes, bet, claim.divergence_at(bet.order))
    assert result.log_wealth == pytest.approx(wealth.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    "claim",
    [ZeroConcentratedDp(rho=0.02), RenyiDp(order=1.1, epsilon=0.1), RenyiDp(order=8.0, epsilon=1)],
    ids=str,
)
def test_what_a_bet_can_catch_is_told_in_the_claims_own_terms(claim: RenyiClaim) -> None:
    found = [renyi_reach(claim, trials, 5e-4) for trials in (750, 15_000, 1_000_000)]
    small, middle, large = (reach or math.inf for reach in found)
    assert claim.parameter < large < middle < small < math.inf
    assert renyi_reach(claim, 10, 5e-4) is None
    order = min(claim.largest_order, 10.0)
    mu = math.sqrt(2 * middle * claim.divergence_at(order) / claim.parameter / order)
    assert gaussian_growth(mu, claim).refutes(15_000, 5e-4, 0.8)
    assert not gaussian_growth(0.97 * mu, claim).refutes(15_000, 5e-4, 0.8)
