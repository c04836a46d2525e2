"""Mechanisms played once on many canaries, and the records that come of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from algorithms.calibration.local import PerRecord
from algorithms.pricing.cov_canaries import CovCanaries
from audit import onerun
from audit.canaries import coins, game_of, play_once
from audit.claim import PureDp
from audit.errors import UsageError
from audit.once import Once
from audit.onerun_judge import one_run_shares
from audit.onerun_power import plan_one_run
from audit.pair import Pair
from audit.plan import Request, Settings
from audit.record import read_record, write_record
from audit.registry import catalogue
from audit.render import FORMATS, render
from audit.view import Views
from tests.coverage.onerun import right_guesses


def test_design_asks_for_what_can_be_caught():
    claim, alpha = PureDp(epsilon=1.0), 0.05
    design = plan_one_run(claim, 1_000, one_run_shares(claim, alpha))
    assert design.reach < 1.4
    rng, caught = np.random.default_rng(0), 0
    game = PerRecord(options={"epsilon": 1.0, "scale": 1 / design.caught["laplace noise"]})
    for _ in range(200):
        caught += certified(game, design, rng, alpha) > 1
    # binomial with 200 draws: below 0.68 with probability 1e-4 if the forecast is right
    assert caught / 200 > 0.68
    assert plan_one_run(claim, 10, one_run_shares(claim, 1e-3)).reach == math.inf


def certified(mechanism, design, rng, alpha):
    left = rng.random(design.canaries) < 0.5
    offered = game_of(mechanism, design.canaries, "test")
    scores = play_once(mechanism, offered, "output", left, rng)
    right = right_guesses(scores, left, design.guesses)
    return onerun.one_run_epsilon(right, design.guesses, design.canaries, alpha)


@pytest.mark.parametrize("guesses", [1, 2, 3, 4, 5])
def test_extremes_are_guessed_and_ties_go_by_position(guesses):
    scores = np.array([3.0, 1.0, 1.0, 1.0, 2.0])
    upwards = [1, 2, 3, 4, 0]
    high = np.isin(np.arange(5), upwards[5 - (guesses + 1) // 2 :])
    assert right_guesses(scores, high, guesses) == guesses
    assert right_guesses(scores, ~high, guesses) == 0


def request(mechanism, name="case", **changes):
    values = {"target": name, "mechanism": mechanism, "claim": mechanism.claim, "attacks": ()}
    return Request(name=name, **{**values, **changes})


def audited(mechanism, canaries=1_000, alpha=0.05, **changes):
    settings = Settings(alpha=alpha, seed=changes.pop("seed", 1))
    once = Once.plan([request(mechanism, **changes)], settings, canaries)
    return once.play()


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "randomised-response"])
def test_an_honest_mechanism_is_not_refuted_and_half_the_noise_is(kind):
    """False alarm at most .05 a kind with a fixed seed; power above .99."""
    options = {"epsilon": 1.0} | ({"curve": "gaussian"} if kind == "gaussian" else {})
    honest = PerRecord(kind, options)
    assert audited(honest).results[0].verdict != "refuted"
    broken = honest.noise_scaled(0.2)
    result = audited(broken).results[0]
    assert result.verdict == "refuted"
    assert result.evidence.trials == 1_000
    assert result.findings[0].rule == "DP001"


def test_record_of_one_run_is_like_any_other(tmp_path):
    record = audited(PerRecord())
    write_record(record, tmp_path / "record.json")
    again = read_record(tmp_path / "record.json")
    assert again.results == record.results
    assert audited(PerRecord()).digest() == record.digest()
    assert audited(PerRecord(), seed=2).digest() != record.digest()
    for name in FORMATS:
        assert render(again, name)
    assert "1,000 canaries of one run" in " ".join(render(again, "text").split())


def test_few_canaries_are_blind_and_say_so():
    record = audited(PerRecord(), canaries=10, alpha=1e-3)
    assert record.results[0].verdict == "blind"
    assert record.summary.exit_code == 3
    assert "limited power" in record.results[0].findings[0].message


def test_the_error_budget_is_shared_by_the_cases():
    names = ("one", "two", "three")
    once = Once.plan([request(PerRecord(), n) for n in names], Settings(alpha=0.03), 100)
    assert [case.planned.alpha for case in once.cases] == pytest.approx([0.01] * 3)
    assert "cost: one mechanism run per case" in once.describe()


def test_relation_and_view_must_fit_canaries():
    claim = PureDp(epsilon=1.0, relation="add-remove")
    with pytest.raises(UsageError, match=r"replace one record.*add.*claim replace-one"):
        audited(PerRecord(), claim=claim)
    with pytest.raises(UsageError, match="same for all canaries"):
        audited(PerRecord(), view="value_after")
    with pytest.raises(UsageError, match=r"--canaries >= 1"):
        audited(PerRecord(), canaries=0)


def test_a_mechanism_without_canaries_is_told_what_to_add():
    with pytest.raises(UsageError, match=r"canaries\(m\).*canary_scores.*add both"):
        audited(catalogue()["calibration/laplace"].build())


@dataclass(frozen=True)
class Listed:
    """Records in a list of mappings' columns, and a run that may fail."""

    broken: bool = False
    claim = PureDp(epsilon=1.0)

    def pairs(self):
        return ()

    def run(self, data, n, rng):
        if self.broken:
            raise ValueError("no")
        values = np.array(data["bids"]) * np.array(data["weights"])
        return {"seen": values + rng.laplace(size=(n, len(values)))}

    def canaries(self, m):
        return {"bids": [0.0] * m, "weights": [1.0] * m}, {"bids": [1.0] * m, "weights": [1.0] * m}

    def canary_scores(self, views, left, right):
        return -views["seen"][0]


def test_inputs_may_be_lists_in_mappings():
    assert audited(Listed()).results[0].verdict == "unrefuted"


def test_a_run_that_raises_is_an_error():
    record = audited(Listed(broken=True))
    assert record.results[0].verdict == "error"
    assert record.summary.exit_code == 3
    assert "the one run ended in an exception" in record.results[0].findings[0].message


def test_wrong_canaries_are_refused():
    class Same(Listed):
        def canaries(self, m):
            return (super().canaries(m)[0],) * 2

    with pytest.raises(UsageError, match="differ in 50 of them, got 0"):
        audited(Same(), canaries=50)


def test_mixture_takes_every_record_whole():
    offered = game_of(CovCanaries(records=20, dimension=3), 5, "test")
    left = np.array([True, False, True, False, False])
    mixed = offered.mixed(left)["features"]
    np.testing.assert_array_equal(mixed[[0, 8]], offered.left["features"][[0, 8]])
    np.testing.assert_array_equal(mixed[[4, 12, 16]], offered.right["features"][[4, 12, 16]])
    np.testing.assert_array_equal(np.delete(mixed, offered.positions, axis=0), 0)


def test_scores_of_a_lone_tree_canary_are_its_likelihood_ratio():
    mechanism = CovCanaries(records=7, epsilon=4.0, delta=1e-3)
    left, right = mechanism.canaries(1)
    emitted = mechanism.run(left, 1, np.random.default_rng(0))
    views = Views(np.full(1, "", dtype=object), emitted)
    exact = mechanism.log_likelihood_ratio(views, Pair(left, right))
    np.testing.assert_allclose(mechanism.canary_scores(views, left, right), exact, rtol=1e-9)


def test_tree_canaries_far_apart_lose_little():
    clarity = {
        gap: CovCanaries(records=32 * gap, epsilon=4.0, delta=1e-5).clarity(32).mean()
        for gap in (1, 16)
    }
    assert clarity[1] < 0.85 < 0.89 < clarity[16] < 1


def test_per_record_density():
    """E_right[L] against the closed form for Laplace, 5 standard errors: false alarm 6e-7."""
    mechanism = PerRecord(records=3)
    pair = mechanism.pairs()[0]
    rng = np.random.default_rng(0)
    views = Views(np.full(20_000, ""), mechanism.run(pair.right, 20_000, rng))
    ratios = np.exp(mechanism.log_likelihood_ratio(views, pair))
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / math.sqrt(20_000)
    assert mechanism.exact_profile(pair, 0.5) == pytest.approx(-math.expm1(-0.25))
    with pytest.raises(UsageError, match="expected a kind in laplace"):
        PerRecord("normal")


def test_scores_of_unlike_records_agree_with_like_ones():
    mechanism, rng = PerRecord(), np.random.default_rng(0)
    left, right = mechanism.canaries(4)
    views = Views(np.full(1, ""), mechanism.run(left, 1, rng))
    whole = mechanism.canary_scores(views, left, right)
    other = right.copy()
    other[3] = 0.5
    np.testing.assert_allclose(mechanism.canary_scores(views, left, other)[:3], whole[:3])


def test_coins_are_fair_and_addressed():
    """10,000 coins within 5 standard deviations: false alarm 6e-7."""
    tossed = coins(3, "case", 10_000)
    assert abs(tossed.mean() - 0.5) < 0.025
    np.testing.assert_array_equal(tossed, coins(3, "case", 10_000))
    assert (tossed != coins(3, "other", 10_000)).any()
