"""What a case could catch, in epsilon and in the claim's own parameter, and when it is blind."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from audit import judge
from audit.claim import AnyClaim, ApproxDp, GaussianDp, PureDp, RenyiDp, ZeroConcentratedDp
from audit.engine import run
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.plan import Request, Settings, make_plan
from audit.power import could_have_caught, gaussian_reach, mu_reach, renyi_reach, smallest
from audit.registry import battery
from tests.unit.test_judge import choice_for, evidence_of, planned_for


def test_seeing_enough_is_a_matter_of_the_factor() -> None:
    plan, _ = planned_for(PureDp(epsilon=1.0), blind_factor=2.0)
    assert judge.sees_enough(plan, 1.0, {"a": None, "b": 2.0})
    assert not judge.sees_enough(plan, 1.0, {"a": 2.001})
    assert not judge.sees_enough(plan, 1.0, {"a": None})
    assert judge.sees_enough(plan, 2.0, {"a": 3.9})


def test_a_case_that_could_have_been_confronted_elsewhere_is_not_blind() -> None:
    """The factor lies between what the worst and the best point of the curve can show."""
    plan, planned = planned_for(ZeroConcentratedDp(rho=0.5))
    points = planned.claim.points()
    least = [(smallest(judge.reach(planned, e, d)) or np.inf) / e for e, d in points]
    worst = int(np.argmax(least))
    plan = msgspec.structs.replace(plan, blind_factor=(min(least) + least[worst]) / 2)
    epsilon, delta = points[worst]
    choice = msgspec.structs.replace(choice_for(planned.claim), epsilon=epsilon, delta=delta)
    evidence = evidence_of(planned, 0.3)
    assert judge.judge(plan, planned, choice, evidence).verdict == "unrefuted"
    alone = planned_for(ApproxDp(epsilon=epsilon, delta=delta))[1]
    assert judge.judge(plan, alone, choice, evidence).verdict == "blind"


@pytest.mark.parametrize(
    ("trials", "verdict"), [(200, "blind"), (1_000, "blind"), (20_000, "unrefuted")]
)
def test_a_renyi_claim_is_seen_by_its_own_parameter(trials: int, verdict: str) -> None:
    """An epsilon is no measure of it: 30 times this claim lies below the epsilon it implies."""
    claim = RenyiDp(order=1.1, epsilon=0.1)
    plan, planned = planned_for(claim, trials=trials)
    result = judge.judge(plan, planned, choice_for(claim), evidence_of(planned, 0.1))
    assert set(result.could_have_caught.values()) == {None}
    assert result.parameter_caught == judge.parameter_reach(planned) > claim.epsilon
    assert result.verdict == verdict
    assert (result.parameter_caught <= 2 * claim.epsilon) == (verdict == "unrefuted")
    if verdict == "blind":
        blind = next(f.message for f in result.findings if f.rule == "DP004")
        assert f"Renyi epsilon {result.parameter_caught:.3g} at the least" in blind


@pytest.mark.parametrize("claim", [PureDp(epsilon=1.0), ApproxDp(epsilon=1.0, delta=1e-5)], ids=str)
def test_other_claims_are_not_caught_by_a_divergence(claim: AnyClaim) -> None:
    assert judge.parameter_reach(planned_for(claim)[1]) is None


@pytest.mark.parametrize("trials", [300, 20_000])
def test_mu_is_caught_by_counting_or_by_the_bet(trials: int) -> None:
    planned = planned_for(GaussianDp(mu=1.0), trials=trials)[1]
    testifying, shares = sum(planned.blocks), planned.shares
    by_count = mu_reach(1.0, testifying, shares.parameter)
    by_bet = renyi_reach(GaussianDp(mu=1.0), testifying, shares.renyi)
    assert by_count is not None
    assert by_bet is not None
    assert judge.parameter_reach(planned) == min(by_count, by_bet) > 1


def test_a_plan_without_a_share_for_the_bet_lays_none() -> None:
    claim = ZeroConcentratedDp(rho=0.5)
    mechanism = FunctionMechanism(gaussian, claim, (Pair(0.0, 1.0),), batched=True)
    request = Request("case", "case", mechanism, claim, battery(["leaf"]))
    plan, (case,) = make_plan([request], Settings(trials=400, alpha=0.05))
    shares = msgspec.structs.replace(case.planned.shares, renyi=0.0)
    planned = msgspec.structs.replace(case.planned, shares=shares)
    plan = msgspec.structs.replace(plan, cases=(planned,))
    result = run(plan, [replace(case, planned=planned)]).results[0]
    assert result.choice is not None
    assert result.choice.renyi is result.parameter_lower is result.parameter_caught is None
    assert result.verdict in ("unrefuted", "blind")


def gaussian(data: float, trials: int, rng: np.random.Generator) -> np.ndarray:
    return data + rng.normal(size=trials)


def test_a_gaussian_claim_may_be_caught_by_its_mu() -> None:
    _, planned = planned_for(GaussianDp(mu=1.0))
    families = judge.reach(planned, 2.0, 1e-3)
    trials, shares = sum(planned.blocks), planned.shares
    generic = could_have_caught(2.0, 1e-3, trials, shares.fixed)
    by_mu = gaussian_reach(1.0, 1e-3, trials, shares.parameter)
    assert families == {**generic, "gaussian noise": by_mu}
    assert by_mu != generic["gaussian noise"]
