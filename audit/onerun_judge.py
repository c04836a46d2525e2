"""One-run cases: from scores and coins to the result of a case.

The result is one like any other. Its evidence counts canaries by the rank of their score, *left*
and *right* being what their coins chose; its trials are canaries, which share a run and are not
independent; and only tests that allow for that have been applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

from audit import bounds
from audit.canary_bets import posterior_epsilon
from audit.claim import AnyClaim, GaussianDp
from audit.evidence import Counts, Evidence, tabulate
from audit.findings import refutation
from audit.judge import refutes, sees_enough
from audit.onerun import one_run_epsilon, one_run_mu
from audit.onerun_power import Design
from audit.plan import Settings
from audit.power import smallest
from audit.quantise import BITS
from audit.record import (
    CaseResult,
    Choice,
    Finding,
    PairSummary,
    Plan,
    PlannedCase,
    Shares,
    Test,
    Verdict,
)
from audit.result import right_and_wrong
from audit.threats import in_scope
from audit.view import Floats

Bits = npt.NDArray[np.bool_]

_BINS_A_SIDE = 8
_MU_SHARE = 0.8


@dataclass(frozen=True)
class Testimony:
    """What one run, a file or four counts say: a choice made without the coins, and counts.

    Attributes:
        choice: The decision rule.
        counts: Canaries per coin and bin, shape (2, bins).
        epsilon: Certified epsilon, where it is no function of the counts.
    """

    choice: Choice
    counts: Counts
    epsilon: float | None = None


def one_run_shares(claim: AnyClaim, alpha: float) -> Shares:
    """The error budget of a case without a betting test."""
    parameter = _MU_SHARE * alpha if isinstance(claim, GaussianDp) else 0.0
    return Shares(betting=0.0, fixed=alpha - parameter, parameter=parameter)


def one_run_plan(cases: tuple[PlannedCase, ...], settings: Settings) -> Plan:
    """The plan of a run whose cases are one-run cases; only alpha and seed are taken over."""
    return Plan(
        seed=settings.seed,
        alpha=settings.alpha,
        trials=max(case.trials for case in cases),
        early_stop=False,
        blind_factor=settings.blind_factor,
        threats=in_scope(()),
        rounding_bits=BITS,
        cases=cases,
    )


def testify(design: Design, scores: Floats, left: Bits, attack: str) -> Testimony:
    """Guess the extremes and count: *left* for the highest scores, *right* for the lowest.

    Half of the guesses go to each end, an odd one to the highest. Ties go by position, so no coin
    may have had a part in the order: rows of a file are shuffled first.

    Args:
        design: What was fixed in advance.
        scores: One per canary, shape (m,), computed without the coins.
        left: Their coins, shape (m,).
        attack: Where the scores come from.
    """
    m, low = design.canaries, design.guesses // 2
    high = design.guesses - low
    ranks = np.empty(m)
    ranks[np.argsort(scores, kind="stable")] = np.arange(m)
    edges = _rank_edges(m, low, high)
    starts = np.append(0.0, edges)
    middles = (starts + np.append(edges, m)) / 2
    choice = Choice(
        pair=0,
        attack=attack,
        event=(
            f"left for the {high} highest and right for the {low} lowest of {m} canaries; scores "
            "below are ranks"
        ),
        edges=tuple(edges.tolist()),
        posterior=tuple(special.expit(design.epsilon * (2 * middles / m - 1)).tolist()),
        guess=tuple(np.where(starts >= m - high, 1, np.where(starts < low, -1, 0)).tolist()),
        epsilon=design.epsilon,
        delta=design.delta,
        test=design.test,
    )
    return Testimony(choice, tabulate(ranks[left], ranks[~left], edges))


def _rank_edges(canaries: int, low: int, high: int) -> Floats:
    """Bins that never mix guessed and other ranks."""
    below = np.linspace(0, low, _BINS_A_SIDE + 1).astype(int)
    above = np.linspace(canaries - high, canaries, _BINS_A_SIDE + 1).astype(int)
    edges = np.unique(np.concatenate([below, above]))
    return edges[(edges > 0) & (edges < canaries)].astype(float)


def testify_from_counts(design: Design, table: tuple[int, int, int, int], test: Test) -> Testimony:
    """Testimony of plain counts.

    Args:
        design: What was fixed in advance.
        table: True and false positives, true and false negatives; *positive* guesses left.
        test: The test that they are judged by.
    """
    hits, false_alarms, rejections, misses = table
    sure = float(special.expit(design.epsilon))
    choice = Choice(
        pair=0,
        attack="counts",
        event="left and right as counted",
        edges=(-0.5, 0.5),
        posterior=(1 - sure, 0.5, sure),
        guess=(-1, 0, 1),
        epsilon=design.epsilon,
        delta=design.delta,
        test=test,
    )
    counts = np.array([[misses, 0, hits], [rejections, 0, false_alarms]], dtype=np.int64)
    return Testimony(choice, counts)


def testify_by_posterior(design: Design, posterior: Floats, left: Bits, alpha: float) -> Testimony:
    """Testimony of a posterior for every canary, against a pure claim.

    Args:
        design: What was fixed in advance.
        posterior: P(left) given the output and the coins of the rows before, shape (m,).
        left: The coins, shape (m,).
        alpha: Level.
    """
    edges = np.linspace(0, 1, 2 * _BINS_A_SIDE + 1)[1:-1]
    middles = (np.arange(2 * _BINS_A_SIDE) + 0.5) / (2 * _BINS_A_SIDE)
    choice = Choice(
        pair=0,
        attack="posterior file",
        event="left for a posterior above one half; scores below are posteriors",
        edges=tuple(edges.tolist()),
        posterior=tuple(middles.tolist()),
        guess=tuple(np.where(middles > 0.5, 1, -1).tolist()),
        epsilon=design.epsilon,
        delta=design.delta,
        test="e-value",
    )
    certified = posterior_epsilon(posterior, left, alpha, design.epsilon)
    return Testimony(choice, tabulate(posterior[left], posterior[~left], edges), certified)


def judge_canaries(
    plan: Plan, planned: PlannedCase, said: Testimony, caught: Mapping[str, float | None]
) -> CaseResult:
    """The result of a one-run case: a function of its plan and testimony.

    Args:
        plan: The run's plan.
        planned: The case's plan; its trials are the canaries.
        said: The testimony.
        caught: Smallest true epsilon that would have been refuted, per family.
    """
    right, wrong = (int(side.sum()) for side in right_and_wrong(said.choice, said.counts))
    lower = _epsilon(planned, said, right, wrong)
    parameter = _parameter(planned, said.choice, right, right + wrong)
    result = CaseResult(
        name=planned.name,
        role=planned.role,
        claim=planned.claim,
        view=planned.view,
        verdict=_verdict(plan, planned, said.choice, lower, parameter, caught),
        epsilon_lower=lower,
        delta=said.choice.delta,
        alpha=planned.alpha,
        estimate=max(0.0, float(special.logit((right + 0.5) / (right + wrong + 1)))),
        parameter_lower=parameter,
        could_have_caught=dict(caught),
        profile=((said.choice.delta, lower),),
        trials=planned.trials,
        choice=said.choice,
        counts=Evidence(len(said.choice.posterior), {0: said.counts}).to_rows(),
    )
    return msgspec.structs.replace(result, findings=_findings(result, planned))


def _epsilon(planned: PlannedCase, said: Testimony, right: int, wrong: int) -> float:
    choice, alpha, canaries = said.choice, planned.shares.fixed, planned.trials
    if said.epsilon is not None:
        return said.epsilon
    if choice.test == "binomial":
        return bounds.binomial_epsilon(right, wrong, alpha, delta=choice.delta, trials=canaries)
    return one_run_epsilon(
        right, right + wrong, canaries, alpha, delta=choice.delta, test=choice.test
    )


def _parameter(planned: PlannedCase, choice: Choice, right: int, guesses: int) -> float | None:
    if not isinstance(planned.claim, GaussianDp):
        return None
    if choice.test == "binomial":
        return bounds.gaussian_mu_lower(right, planned.trials, planned.shares.parameter)
    return one_run_mu(right, guesses, planned.trials, planned.shares.parameter)


def _verdict(
    plan: Plan,
    planned: PlannedCase,
    choice: Choice,
    lower: float,
    parameter: float | None,
    caught: Mapping[str, float | None],
) -> Verdict:
    if refutes(planned, choice, lower, parameter):
        return "refuted"
    return "unrefuted" if sees_enough(plan, choice.epsilon, caught) else "blind"


def _findings(result: CaseResult, planned: PlannedCase) -> tuple[Finding, ...]:
    found = []
    if result.verdict == "refuted":
        found.append(("DP001", refutation(result, planned)))
    elif result.role == "control":
        found.append(("DP005", f"known to be broken, but {result.verdict}: use more canaries"))
    elif result.verdict == "blind":
        found.append(("DP004", _blindness(result, planned)))
    return tuple(Finding.about(planned, rule, message) for rule, message in found)


def _blindness(result: CaseResult, planned: PlannedCase) -> str:
    best = smallest(result.could_have_caught)
    reach = "no epsilon up to 60" if best is None else f"epsilon {best:.3g} at the least"
    return (
        f"limited power: with {planned.trials} canaries {reach} would have been caught with "
        f"probability 0.8; the claim is {result.claim}. Use more canaries, or many runs"
    )


def canary_pair(label: str, relation: str, left: str = "", right: str = "") -> PairSummary:
    """How the canaries of a case were placed, as a reader needs it."""
    return PairSummary(label=label, relation=relation, position=0, left=left, right=right)
