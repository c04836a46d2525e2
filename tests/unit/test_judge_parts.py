"""The parts of judging, each against what it says, at ties and boundaries."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy import special, stats

from audit import bounds, findings, judge
from audit.claim import ApproxDp, GaussianDp, PureDp
from audit.evidence import Evidence
from audit.findings import Finding
from audit.measured import log_odds, log_odds_upper
from audit.power import could_have_caught
from audit.ranksum import SMALLEST_ALPHA, rank_sum_mu
from audit.record import CaseResult, Choice, Ladder
from audit.result import right_and_wrong
from audit.streams import case_key
from tests.unit.test_judge import POSTERIOR, choice_for, evidence_of, planned_for

TOTAL = np.array([[3, 9, 40, 21, 30], [33, 20, 41, 8, 2]])
FEW_TIES = np.array([[3, 9, 10, 41, 60], [63, 40, 11, 8, 2]])


def ranked(choice: Choice, **changes: object) -> Choice:
    return msgspec.structs.replace(choice, **changes)


def test_the_ranked_test_walks_from_the_surest_bin() -> None:
    choice = choice_for(PureDp(epsilon=1.0), "ranked")
    found = judge.fixed_epsilon(choice, TOTAL, 0.05, 0.0, 207)
    # .02 and .98 are equally sure, the lower bin first; .5 guesses right
    rights, wrongs = [33, 30, 20, 21, 41], [3, 2, 9, 8, 40]
    assert found == bounds.ranked_epsilon(rights, wrongs, 0.05, delta=0.0, trials=207) > 0.5
    lean = ranked(choice, posterior=(0.9, 0.4, 0.5, 0.3, 0.2))
    rights, wrongs = [3, 2, 8, 20, 41], [33, 30, 21, 9, 40]
    certified = bounds.ranked_epsilon(rights, wrongs, 0.05, delta=0.0, trials=207)
    assert judge.fixed_epsilon(lean, TOTAL, 0.05, 0.0, 207) == certified
    with_delta = judge.fixed_epsilon(choice, TOTAL, 0.05, 1e-2, 207)
    assert 0 <= with_delta < found


def test_bins_that_are_equally_sure_are_walked_in_their_order() -> None:
    bins = 48
    choice = ranked(
        choice_for(GaussianDp(mu=1.0), "ranked"),
        posterior=(0.6, 0.9) * (bins // 2),
        guess=(1,) * bins,
        edges=tuple(range(bins - 1)),
        ranks=True,
    )
    total = np.random.default_rng(3).integers(0, 40, size=(2, bins))
    total[0, :9] += 40
    surest = [*range(1, bins, 2), *range(0, bins, 2)]
    trials, rights, wrongs = int(total.sum()), total[0, surest], total[1, surest]
    found = judge.fixed_epsilon(choice, total, 0.05, 0.0, trials)
    assert found == bounds.ranked_epsilon(rights, wrongs, 0.05, delta=0.0, trials=trials) > 0
    upwards = [*range(0, bins, 2), *range(1, bins, 2)]
    expected = rank_sum_mu(total[0, upwards], total[1, upwards], 0.05, 5)
    assert judge.certified_mu(choice, total, 0.05, 5) == expected


def test_binomial_counts_all_trials_for_delta() -> None:
    choice = choice_for(ApproxDp(epsilon=1.0, delta=1e-2))
    few, many = (judge.fixed_epsilon(choice, TOTAL, 0.05, 1e-2, n) for n in (207, 2_000))
    assert many < few < judge.fixed_epsilon(choice, TOTAL, 0.05, 0.0, 207)
    assert few == bounds.binomial_epsilon(104, 22, 0.05, delta=1e-2, trials=207)


def test_mu_by_guesses_counts_a_tie_as_wrong() -> None:
    claim = GaussianDp(mu=1.0)
    choice = choice_for(claim)
    expected = bounds.gaussian_mu_lower(41 + 60 + 63 + 40, 247, 0.05)
    assert judge.certified_mu(choice, FEW_TIES, 0.05, 1) == expected > 0


def test_mu_by_ranks_where_scouting_said_so() -> None:
    choice = ranked(choice_for(GaussianDp(mu=1.0)), ranks=True)
    by_ranks = judge.certified_mu(choice, TOTAL, 0.05, 5)
    assert by_ranks == rank_sum_mu(TOTAL[0], TOTAL[1], 0.05, 5) > 0.5
    other = ranked(choice, posterior=(0.9, 0.2, 0.5, 0.8, 0.1))
    order = [4, 1, 2, 3, 0]
    expected = rank_sum_mu(TOTAL[0][order], TOTAL[1][order], 0.05, 5)
    assert judge.certified_mu(other, TOTAL, 0.05, 5) == expected
    least = judge.certified_mu(choice, FEW_TIES, SMALLEST_ALPHA, 5)
    by_guesses = [bounds.gaussian_mu_lower(204, 247, a * SMALLEST_ALPHA) for a in (1, 0.5)]
    assert least == rank_sum_mu(FEW_TIES[0], FEW_TIES[1], SMALLEST_ALPHA, 5) != by_guesses[0]
    assert judge.certified_mu(choice, FEW_TIES, SMALLEST_ALPHA / 2, 5) == by_guesses[1] > 0


def test_a_gaussian_case_takes_mu_from_ranks_with_its_own_share_and_seed() -> None:
    plan, planned = planned_for(GaussianDp(mu=2.0))
    choice = ranked(choice_for(planned.claim), ranks=True)
    evidence = evidence_of(planned, 0.5, abstain=0.0)
    result = judge.judge(plan, planned, choice, evidence)
    total, seed = evidence.total, case_key(planned.name)
    assert result.parameter_lower == rank_sum_mu(total[0], total[1], planned.shares.parameter, seed)


def test_the_profile_shares_its_alpha_over_the_other_deltas() -> None:
    plan, planned = planned_for(ApproxDp(epsilon=1.0, delta=1e-4))
    choice, evidence = choice_for(planned.claim), evidence_of(planned, 0.9)
    result = judge.judge(plan, planned, choice, evidence)
    profile = dict(result.profile)
    assert [d for d, _ in result.profile] == sorted(judge.PROFILE_DELTAS)
    assert profile[result.delta] == result.epsilon_lower
    assert (result.delta, result.parameter_lower) == (1e-4, None)
    for delta in (0.0, 1e-6, 1e-5, 1e-3, 1e-2):
        share = planned.shares.profile / 5
        expected = judge.fixed_epsilon(choice, evidence.total, share, delta, evidence.trials)
        assert profile[delta] == expected


@pytest.mark.parametrize("early", [True, False])
def test_all_that_a_result_says(early: bool) -> None:
    """Every field, from the plan, the choice and the counts."""
    plan, planned = planned_for(PureDp(epsilon=1.0), early_stop=early)
    choice, evidence = choice_for(planned.claim), evidence_of(planned, 0.8)
    note = Finding.about(planned, "DP007", "a note")
    result = judge.judge(
        plan, planned, choice, evidence, exceptions=(0.25, 0.0), scouting=1_000, twin=9.0,
        notes=(note,),
    )  # fmt: skip
    assert (result.name, result.role, result.view) == (planned.name, planned.role, planned.view)
    assert (result.claim, result.alpha) == (planned.claim, planned.alpha)
    assert (result.delta, result.choice, result.trials) == (0.0, choice, 3_000)
    assert (result.scouting, result.stopped, result.ladder) == (1_000, False, None)
    assert result.exceptions == (0.25, 0.0)
    assert result.counts == evidence.to_rows()
    assert [f.rule for f in result.findings] == ["DP007", "DP006"]
    assert result.could_have_caught == {
        **could_have_caught(1.0, 0.0, 3_000, planned.shares.fixed),
        judge.TWINS: 9.0,
    }
    right, wrong = (int(x.sum()) for x in right_and_wrong(choice, evidence.total))
    assert result.estimate == pytest.approx(np.log((right + 0.5) / (wrong + 0.5)))
    share = planned.alpha / 2 if early else planned.alpha
    limit = bounds.clopper_pearson_upper(right, right + wrong, share)
    assert result.estimate_upper == pytest.approx(special.logit(limit))
    assert len(result.log_wealth) == len(planned.blocks)
    path = bounds.log_wealth(evidence.prefixes(), POSTERIOR, [1.0], 0.0)[0]
    assert result.log_wealth == pytest.approx(tuple(path), abs=6e-7)
    assert all(w == round(w, 6) for w in result.log_wealth)


def test_a_twin_is_never_easier_to_catch_than_the_box() -> None:
    plan, planned = planned_for(PureDp(epsilon=1.0))
    choice, evidence = choice_for(planned.claim), evidence_of(planned, 0.8)
    caught = judge.judge(plan, planned, choice, evidence, twin=0.1).could_have_caught
    assert caught[judge.TWINS] == caught["revealing box"]
    assert judge.TWINS not in judge.judge(plan, planned, choice, evidence).could_have_caught


def test_a_rule_that_never_guesses_has_no_estimate() -> None:
    plan, planned = planned_for(PureDp(epsilon=1.0))
    mute = ranked(choice_for(planned.claim), guess=(0,) * 5, posterior=(0.5,) * 5)
    result = judge.judge(plan, planned, mute, evidence_of(planned, 0.8))
    assert (result.verdict, result.estimate, result.estimate_upper) == ("blind", 0.0, None)
    leaning = ranked(mute, posterior=(0.4, 0.5, 0.5, 0.5, 0.6), test="ranked")
    assert judge.judge(plan, planned, leaning, evidence_of(planned, 0.8)).verdict == "unrefuted"


def test_no_blocks_no_crossing_and_no_path() -> None:
    plan, planned = planned_for(PureDp(epsilon=1.0))
    choice = choice_for(planned.claim)
    assert judge.crossing(planned, choice, Evidence(5)) is None
    result = judge.judge(plan, planned, choice, Evidence(5))
    assert (result.log_wealth, result.epsilon_lower, result.trials) == ((), 0.0, 0)


def test_blocks_that_disagree_take_the_verdict_back_unless_trials_are_timed() -> None:
    plan, planned = planned_for(PureDp(epsilon=1.0), early_stop=False)
    choice = choice_for(planned.claim)
    blocks = {}
    for i, size in enumerate(planned.blocks):
        half = size // 2
        lean = (half, 0) if i % 2 else (0, half)
        blocks[i] = np.array([[lean[0], 0, 0, 0, lean[1]], [lean[0], 0, 0, 0, lean[1]]])
    result = judge.judge(plan, planned, choice, Evidence(5, blocks))
    assert (result.verdict, result.epsilon_lower, result.profile) == ("error", 0.0, ())
    assert result.parameter_lower is None
    assert [f.rule for f in result.findings] == ["DP009"]
    timed = msgspec.structs.replace(plan, threats={"duration": True})
    assert judge.judge(timed, planned, choice, Evidence(5, blocks)).verdict != "error"
    unnamed = msgspec.structs.replace(plan, threats={})
    assert judge.judge(unnamed, planned, choice, Evidence(5, blocks)).verdict == "error"


def test_a_failed_case_says_what_was_planned() -> None:
    _, planned = planned_for(ApproxDp(epsilon=1.0, delta=1e-4))
    note = Finding.about(planned, "DP007", "a note")
    result = judge.failed(planned, "no trial returned", (note,))
    assert (result.name, result.role, result.view) == (planned.name, planned.role, planned.view)
    assert (result.claim, result.verdict, result.alpha) == (planned.claim, "error", planned.alpha)
    last = result.findings[-1]
    assert [f.rule for f in result.findings] == ["DP007", "DP006"]
    assert (last.case, last.message, last.reproduce) == (
        planned.name,
        "no trial returned",
        planned.reproduce,
    )
    assert [f.rule for f in judge.failed(planned, "no").findings] == ["DP006"]


def test_what_counts_as_a_refutation() -> None:
    _, planned = planned_for(GaussianDp(mu=1.0))
    choice = ranked(choice_for(planned.claim), epsilon=2.0)
    assert not judge.refutes(planned, choice, 2.0, 1.0)
    assert judge.refutes(planned, choice, np.nextafter(2.0, 3), 1.0)
    assert judge.refutes(planned, choice, 2.0, np.nextafter(1.0, 2))
    assert not judge.refutes(planned, choice, 0.0, None)
    _, pure = planned_for(PureDp(epsilon=2.0))
    assert not judge.refutes(pure, choice, 2.0, 99.0)


def test_the_verdict_of_small_audits_keeps_its_level_by_enumeration() -> None:
    """Two blocks of 7 told trials at the boundary of eps = 1: P(refuted) <= alpha, exactly.

    Betting, early stopping, the fixed test and their combination in one probability.
    """
    plan, planned = planned_for(PureDp(epsilon=1.0))
    alpha = 0.9
    shares = msgspec.structs.replace(planned.shares, betting=alpha / 2, fixed=alpha / 2)
    planned = msgspec.structs.replace(planned, blocks=(7, 7), shares=shares, alpha=alpha)
    choice = ranked(choice_for(planned.claim), posterior=(0.15, 0.85), guess=(-1, 1), edges=(0.0,))
    sure, refuted = float(special.expit(1.0)), 0.0
    chance = stats.binom.pmf(np.arange(8), 7, sure)
    for first in range(8):
        for second in range(8):
            blocks = {
                i: np.array([[0, right], [0, 7 - right]]) for i, right in enumerate((first, second))
            }
            result = judge.judge(plan, planned, choice, Evidence(2, blocks))
            refuted += chance[first] * chance[second] * (result.verdict == "refuted")
    assert 0.2 < refuted <= alpha


def test_one_block_is_enough_to_stop() -> None:
    _, planned = planned_for(PureDp(epsilon=0.5))
    block = np.array([[0, 0, 0, 10, 90], [90, 10, 0, 0, 0]])
    choice = choice_for(planned.claim)
    assert judge.crossing(planned, choice, Evidence(5, {0: block})) == 1
    assert len(judge._wealth_path(planned, choice, Evidence(5, {0: block}))) == 1
    assert judge.crossing(planned, choice, Evidence(5, {0: block, 1: block})) == 1
    assert judge.crossing(planned, choice, Evidence(5, {0: block[::-1], 1: 9 * block})) == 2


def test_limits_after_a_stop_hold_at_any_time() -> None:
    plan, planned = planned_for(PureDp(epsilon=0.5))
    choice = choice_for(planned.claim)
    result = judge.judge(plan, planned, choice, evidence_of(planned, 2.0))
    assert result.stopped
    right, wrong = (int(x.sum()) for x in right_and_wrong(choice, result.evidence.total))
    upper = log_odds_upper(right, wrong, planned.alpha, early_stop=True, stopped=True)
    assert (
        result.estimate_upper
        == upper
        != log_odds_upper(right, wrong, planned.alpha, early_stop=True, stopped=False)
    )
    assert (result.scouting, result.exceptions) == (0, (0.0, 0.0))


@pytest.mark.parametrize(("right", "wrong"), [(1, 0), (4, 4), (5, 3)])
def test_few_guesses_have_an_estimate(right: int, wrong: int) -> None:
    plan, planned = planned_for(PureDp(epsilon=1.0), early_stop=False)
    total = np.array([[0, 0, 3, 0, right], [0, 0, 3, 0, wrong]])
    found = judge._estimate(plan, choice_for(planned.claim), total, 0.05, stopped=False)
    upper = log_odds_upper(right, wrong, 0.05, early_stop=False, stopped=False)
    assert found == (log_odds(right, wrong), upper if np.isfinite(upper) else None)


def test_a_forecast_that_is_not_kept_makes_a_case_blind() -> None:
    plan, planned = planned_for(PureDp(epsilon=1.0))
    choice, evidence = choice_for(planned.claim), evidence_of(planned, 0.0)
    assert judge.judge(plan, planned, choice, evidence).verdict == "unrefuted"
    hopeful = ranked(choice, forecast=0.9)
    assert judge.judge(plan, planned, hopeful, evidence).verdict == "blind"
    kept = evidence_of(planned, 0.9)
    assert judge.judge(plan, planned, hopeful, kept).verdict == "unrefuted"


def test_few_guesses_break_no_promise() -> None:
    """52 % right for an expected .6: trials of one law do that in 100 guesses, not in 1,000."""
    choice = ranked(choice_for(PureDp(epsilon=1.0)), forecast=0.6)
    for scale, broken in ((1, False), (10, True)):
        total = scale * np.array([[24, 0, 0, 0, 26], [26, 0, 0, 0, 24]])
        assert findings.promise_broken(choice, 0.07, total) is broken
    assert not findings.promise_broken(choice, 0.2, total)


def test_a_ladder_goes_into_the_result() -> None:
    plan, planned = planned_for(PureDp(epsilon=1.0))
    ladder = Ladder(
        delta=0.0, theorem=1.0, accountant=1.0, certificate=0.9, runs=10, tilted=False,
        calibration_log_wealth=0.0, calibrated=True,
    )  # fmt: skip
    evidence = evidence_of(planned, 0.8)
    result = judge.judge(plan, planned, choice_for(planned.claim), evidence, ladder=ladder)
    assert result.ladder == ladder


def test_a_result_survives_json() -> None:
    plan, planned = planned_for(GaussianDp(mu=1.0))
    result = judge.judge(plan, planned, choice_for(planned.claim), evidence_of(planned, 0.9))
    assert msgspec.json.decode(msgspec.json.encode(result), type=CaseResult) == result
