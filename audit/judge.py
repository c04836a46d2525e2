"""Judging: on which side of the claim's curve the evidence lies.

A pure function of plan, choice and counts. The error budget of a case is split in the plan: half
for the betting test, which may be looked at after every block, half for one fixed-size test of
all blocks. A claim with a parameter of its own has most of the budget for the test of that: of mu
when all blocks are in, of Renyi divergences after every block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from audit import bounds
from audit.claim import GaussianDp
from audit.dispersion import blocks_agree
from audit.evidence import Counts, Evidence
from audit.findings import disagreement, promise_broken, with_findings
from audit.measured import log_odds, log_odds_upper
from audit.power import could_have_caught, gaussian_reach, mu_reach, renyi_reach, smallest
from audit.ranksum import SMALLEST_ALPHA, rank_sum_mu
from audit.record import (
    CaseResult,
    Choice,
    Finding,
    Ladder,
    Plan,
    PlannedCase,
    Verdict,
    finite,
)
from audit.renyi import renyi_divergence, renyi_log_wealth
from audit.result import right_and_wrong
from audit.streams import case_key

TWINS = "noise-scaled twin"
PROFILE_DELTAS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


def crossing(planned: PlannedCase, choice: Choice, evidence: Evidence) -> int | None:
    """Number of leading blocks after which a betting test refutes the claim, if any."""
    prefixes = evidence.prefixes()
    if len(prefixes) == 0:
        return None
    wealth = bounds.log_wealth(prefixes, choice.posterior, [choice.epsilon], choice.delta)[0]
    over = set(np.flatnonzero(wealth >= -math.log(planned.shares.betting)).tolist())
    for block in sorted(over | _renyi_crossings(planned, choice, prefixes)):
        leading = prefixes[: block + 1]
        lower = _anytime(planned, choice, leading) if block in over else 0.0
        if refutes(planned, choice, lower, _renyi_parameter(planned, choice, leading)):
            return int(block) + 1
    return None


def _renyi_crossings(planned: PlannedCase, choice: Choice, prefixes: Counts) -> set[int]:
    """Blocks after which the bet against the claim's Renyi divergence has won enough."""
    wealth = _renyi_path(planned, choice, prefixes)
    if wealth is None:
        return set()
    return set(np.flatnonzero(wealth >= -math.log(planned.shares.renyi)).tolist())


def _renyi_path(
    planned: PlannedCase, choice: Choice, prefixes: Counts
) -> npt.NDArray[np.float64] | None:
    """Log-wealth of the bet against what the claim allows; None for other claims."""
    bet, claim = choice.renyi, planned.divergences
    if bet is None or claim is None:
        return None
    return renyi_log_wealth(prefixes, bet, claim.divergence_at(bet.order))


def judge(
    plan: Plan,
    planned: PlannedCase,
    choice: Choice,
    evidence: Evidence,
    *,
    exceptions: tuple[float, float] = (0.0, 0.0),
    scouting: int = 0,
    ladder: Ladder | None = None,
    twin: float | None = None,
    notes: tuple[Finding, ...] = (),
) -> CaseResult:
    """The result of a case from its evidence.

    Args:
        plan: The run's plan.
        planned: The case's plan.
        choice: What scouting froze.
        evidence: Counts by block; blocks beyond an early stop are ignored.
        exceptions: Share of scouting trials that raised, left and right.
        scouting: Scouting trials spent.
        ladder: White-box certificate, where there is one.
        twin: Smallest true epsilon of a noise-scaled twin that could have been caught; reported
            beside the generic families, which alone decide about blindness.
        notes: Findings from before the testimony.
    """
    stop = crossing(planned, choice, evidence) if plan.early_stop else None
    counted = evidence.prefix(stop) if stop else evidence
    lower, parameter, profile = _certify(planned, choice, counted, stopped=stop is not None)
    caught, own = reach(planned, choice.epsilon, choice.delta), parameter_reach(planned)
    estimate, upper = _estimate(
        plan, choice, counted.total, planned.alpha, stopped=stop is not None
    )
    verdict = _verdict(plan, planned, choice, counted.total, lower, parameter, caught, own)
    if twin is not None:
        # Nothing is easier to catch than the box; an estimate below it is noise.
        caught = {**caught, TWINS: max(twin, caught["revealing box"] or twin)}
    timed = plan.threats.get("duration", False)  # machines drift; the sides are interleaved
    if not timed and not blocks_agree(counted, choice.posterior):
        verdict, lower, parameter, profile = "error", 0.0, None, ()
        notes = (*notes, disagreement(planned))
    result = CaseResult(
        name=planned.name,
        role=planned.role,
        claim=planned.claim,
        view=planned.view,
        verdict=verdict,
        epsilon_lower=lower,
        delta=choice.delta,
        alpha=planned.alpha,
        estimate=estimate,
        estimate_upper=upper,
        parameter_lower=parameter,
        could_have_caught=caught,
        parameter_caught=own,
        profile=profile,
        stopped=stop is not None,
        trials=counted.trials,
        scouting=scouting,
        exceptions=exceptions,
        choice=choice,
        counts=counted.to_rows(),
        log_wealth=_wealth_path(planned, choice, counted),
        ladder=ladder,
    )
    return with_findings(result, planned, notes)


def reach(planned: PlannedCase, epsilon: float, delta: float) -> dict[str, float | None]:
    """What a case could catch when its claim is confronted at a point of its profile."""
    trials = sum(planned.blocks)
    families = could_have_caught(epsilon, delta, trials, planned.shares.fixed)
    if isinstance(planned.claim, GaussianDp):
        families["gaussian noise"] = gaussian_reach(
            planned.claim.mu, delta, trials, planned.shares.parameter
        )
    return families


def parameter_reach(planned: PlannedCase) -> float | None:
    """Smallest parameter of a claim about Renyi divergences that could show as a violation."""
    claim, trials, shares = planned.divergences, sum(planned.blocks), planned.shares
    if claim is None:
        return None
    ways = {"by the bet": renyi_reach(claim, trials, shares.renyi)}
    if isinstance(claim, GaussianDp):
        ways["by counting"] = mu_reach(claim.mu, trials, shares.parameter)
    return smallest(ways)


def failed(planned: PlannedCase, message: str, notes: tuple[Finding, ...] = ()) -> CaseResult:
    """The result of a case that could not be played."""
    result = CaseResult(
        name=planned.name,
        role=planned.role,
        claim=planned.claim,
        view=planned.view,
        verdict="error",
        alpha=planned.alpha,
    )
    return with_findings(result, planned, (*notes, Finding.about(planned, "DP006", message)))


def fixed_epsilon(choice: Choice, total: Counts, alpha: float, delta: float, trials: int) -> float:
    """Certified epsilon at `delta` from all blocks, by the frozen fixed-size test."""
    if choice.test == "binomial":
        right, wrong = (int(side.sum()) for side in right_and_wrong(choice, total))
        return bounds.binomial_epsilon(right, wrong, alpha, delta=delta, trials=trials)
    posterior = np.asarray(choice.posterior)
    order = np.argsort(-np.abs(posterior - 0.5), kind="stable")
    left, right_side = total[0][order], total[1][order]
    says_left = posterior[order] > 0.5
    rights = np.where(says_left, left, right_side)
    wrongs = np.where(says_left, right_side, left)
    return bounds.ranked_epsilon(rights, wrongs, alpha, delta=delta, trials=trials)


def _certify(
    planned: PlannedCase, choice: Choice, evidence: Evidence, *, stopped: bool
) -> tuple[float, float | None, tuple[tuple[float, float], ...]]:
    anytime = _anytime(planned, choice, evidence.prefixes())
    parameter = _renyi_parameter(planned, choice, evidence.prefixes())
    if stopped:
        return anytime, parameter, ((choice.delta, anytime),)
    total, trials, shares = evidence.total, evidence.trials, planned.shares
    lower = max(anytime, fixed_epsilon(choice, total, shares.fixed, choice.delta, trials))
    others = [d for d in PROFILE_DELTAS if d != choice.delta]
    each = shares.profile / len(others)
    profile = {d: fixed_epsilon(choice, total, each, d, trials) for d in others}
    profile[choice.delta] = lower
    if isinstance(planned.claim, GaussianDp):
        by_rule = certified_mu(choice, total, shares.parameter, case_key(planned.name))
        parameter = max(by_rule, parameter or 0.0)
    return lower, parameter, tuple(sorted(profile.items()))


def certified_mu(choice: Choice, total: Counts, alpha: float, seed: int) -> float:
    """Certified mu by the frozen test; by counting when alpha is too small to simulate ranks."""
    if not choice.ranks or alpha < SMALLEST_ALPHA:
        right = _accuracy(choice, total)
        return bounds.gaussian_mu_lower(right, int(total.sum()), alpha)
    order = np.argsort(choice.posterior, kind="stable")
    return rank_sum_mu(total[0][order], total[1][order], alpha, seed)


def _renyi_parameter(planned: PlannedCase, choice: Choice, prefixes: Counts) -> float | None:
    """Certified parameter of a claim about Renyi divergences; None for other claims."""
    bet, claim = choice.renyi, planned.divergences
    if bet is None or claim is None:
        return None
    divergence = renyi_divergence(prefixes, bet, planned.shares.renyi)
    return claim.parameter_at(bet.order, divergence)


def _anytime(planned: PlannedCase, choice: Choice, prefixes: Counts) -> float:
    return bounds.anytime_epsilon(
        prefixes,
        choice.posterior,
        planned.shares.betting,
        delta=choice.delta,
        confronted=choice.epsilon,
    )


def _accuracy(choice: Choice, total: Counts) -> int:
    posterior = np.asarray(choice.posterior)
    return int(total[0][posterior > 0.5].sum() + total[1][posterior < 0.5].sum())


def _estimate(
    plan: Plan, choice: Choice, total: Counts, alpha: float, *, stopped: bool
) -> tuple[float, float | None]:
    right, wrong = (int(side.sum()) for side in right_and_wrong(choice, total))
    if right + wrong == 0:
        return 0.0, None
    upper = log_odds_upper(right, wrong, alpha, early_stop=plan.early_stop, stopped=stopped)
    return log_odds(right, wrong), finite(upper)


def _verdict(
    plan: Plan,
    planned: PlannedCase,
    choice: Choice,
    total: Counts,
    lower: float,
    parameter: float | None,
    caught: dict[str, float | None],
    own: float | None,
) -> Verdict:
    if refutes(planned, choice, lower, parameter):
        return "refuted"
    if not any(choice.guess) and set(choice.posterior) == {0.5}:
        return "blind"  # the frozen rule cannot tell anything apart, so it could not fail
    claimed = planned.claim.parameter
    by_bet = own is not None and claimed is not None and own <= plan.blind_factor * claimed
    seeing = by_bet or _sees_enough_somewhere(plan, planned, choice, caught)
    kept = not promise_broken(choice, lower, total)
    return "unrefuted" if kept and seeing else "blind"


def refutes(planned: PlannedCase, choice: Choice, lower: float, parameter: float | None) -> bool:
    """Whether a certified epsilon, or a certified parameter of its own, exceeds the claim."""
    claimed = planned.claim.parameter
    above = claimed is not None and parameter is not None and parameter > claimed
    return lower > choice.epsilon or above


def sees_enough(plan: Plan, epsilon: float, caught: Mapping[str, float | None]) -> bool:
    """Whether a violation of the size that matters could have shown at a confronted epsilon."""
    least = smallest(caught)
    return least is not None and least <= plan.blind_factor * epsilon


def _sees_enough_somewhere(
    plan: Plan, planned: PlannedCase, choice: Choice, caught: dict[str, float | None]
) -> bool:
    """Whether, at some point of the claim, a violation of the size that matters could show."""
    if sees_enough(plan, choice.epsilon, caught):
        return True
    points = [point for point in planned.claim.points() if point[0] != choice.epsilon]
    return any(sees_enough(plan, e, reach(planned, e, d)) for e, d in points)


def _wealth_path(planned: PlannedCase, choice: Choice, evidence: Evidence) -> tuple[float, ...]:
    prefixes = evidence.prefixes()
    if len(prefixes) == 0:
        return ()
    path = _renyi_path(planned, choice, prefixes)
    if path is None:
        path = bounds.log_wealth(prefixes, choice.posterior, [choice.epsilon], choice.delta)[0]
    return tuple(round(float(w), 6) for w in path)
