"""Numbers, curves, pictures and colours of the reports, against independent oracles."""

from __future__ import annotations

import math
import re
from importlib.resources import files

import msgspec
import numpy as np
import pytest
from scipy import stats

from audit.budget import divide
from audit.claim import ApproxDp, PureDp, ZeroConcentratedDp
from audit.planned import Shares
from audit.record import CaseResult
from audit.render import curves, wording
from audit.render import sentences as say
from audit.render.picture import Pictures, drawing
from audit.render.reach import shares
from audit.render.wording import ceiling, number
from tests.records import CLAIMS, one, record_of

CSS = (files("audit.render") / "templates" / "palette.css").read_text()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.94, "0.94"),
        (1.0, "1"),
        (14.43, "14.4"),
        (1e-5, "1e-5"),
        (0.001, "0.001"),
        (2.5e-7, "2.5e-7"),
        (0.0, "0"),
        (20.0, "20"),
        (1234.0, "1230"),
        (1.5e9, "1.5e9"),
        (-0.3, "-0.3"),
        (9.999, "10"),
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "–"),
    ],
)
def test_numbers(value, text) -> None:
    assert wording.number(value) == text


def test_bounds_are_rounded_towards_safety() -> None:
    rng = np.random.default_rng(0)
    for value in 10 ** rng.uniform(-6, 4, 500):
        assert float(wording.floor(value)) <= value <= float(wording.ceiling(value))
        assert float(wording.ceiling(value)) - float(wording.floor(value)) <= 0.011 * value


@pytest.mark.parametrize(
    ("certified", "claimed", "shown"),
    [
        (1.32, 1.0, ("1.32", "1")),
        (1.00034, 1.0, ("1.0003", "1")),
        (0.99996, 1.0, ("0.999", "1")),
        (0.8977, 0.89755, ("0.8977", "0.8976")),
        (1.0, 1.0, ("1", "1")),
        (1 + 1e-9, 1.0, ("1.000000001", "1")),
    ],
)
def test_order_of_bound_and_claim_stays_visible(certified, claimed, shown) -> None:
    assert wording.side_by_side(certified, claimed) == shown


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.5, "50 %"),
        (0.999, "99.9 %"),
        (1 - 2.5e-5, "99.9975 %"),
        (1 - 1e-3 / 3, "99.9667 %"),
        (1 - 1e-7, "99.99999 %"),
    ],
)
def test_confidence_keeps_its_nines(share, text) -> None:
    assert wording.percent(share) == text


def test_long_names_are_shortened_in_the_middle() -> None:
    short = wording.one_line("a" * 500 + "\n" + "b" * 500, 80)
    assert len(short) == 80
    assert short.startswith("aaa")
    assert short.endswith("bbb")


def test_refutation_by_the_parameter_alone_is_told_as_such() -> None:
    result = one("case", CLAIMS[2], "subject", "refuted")
    weak = msgspec.structs.replace(result, epsilon_lower=0.0, parameter_lower=0.31)
    sentence = say.verdict_sentence(weak)
    assert "0.31" in sentence
    assert "that kind of claim only" in sentence


def in_rho(verdict: str, **changes: object) -> CaseResult:
    """A result about 0.5-zCDP, confronted at an epsilon of about 3."""
    result = one("case", ZeroConcentratedDp(rho=0.5), "subject", verdict)
    return msgspec.structs.replace(result, **changes)


def test_what_is_certified_and_could_be_caught_of_a_rho_is_called_a_rho() -> None:
    result = in_rho("unrefuted", parameter_lower=0.41, parameter_caught=0.62)
    sentence = say.verdict_sentence(result)
    assert "certified rho 0.41 of the claimed 0.5" in sentence
    assert "a true rho of 0.62 or more with probability 0.8 (gaussian noise)" in sentence
    assert f"(revealing box, at delta {number(result.delta)})" in sentence
    assert say.caught(result) == "rho 0.62"
    assert "rho 0.62 (gaussian noise)" in say.could_have_caught(result)
    assert shares(result)["could have caught"] == pytest.approx(1.2)
    closer = msgspec.structs.replace(result, parameter_caught=0.55)
    assert shares(closer)["could have caught"] == pytest.approx(1.1)
    unknown = msgspec.structs.replace(result, parameter_caught=None)
    assert say.caught(unknown) == ceiling(say.smallest_caught(result)[1])


def test_a_refutation_by_a_point_is_told_in_epsilon() -> None:
    result = in_rho("refuted", parameter_lower=0.2)
    assert "rho" not in say.certified(result)
    assert "epsilon of the output view is at least" in say.verdict_sentence(result)
    neither = msgspec.structs.replace(result, epsilon_lower=0.1)
    assert "rho of at least" not in say.verdict_sentence(neither)
    assert "does not keep" in say.verdict_sentence(neither)


def test_what_a_null_test_heard_is_named() -> None:
    heard = one("case", ZeroConcentratedDp(rho=0.5), "null", "unrefuted")
    for lower, rho, words in ((0.25, 0.1, "epsilon 0.25"), (0.0, 0.1, "rho 0.1"), (0.0, 0.0, "0")):
        result = msgspec.structs.replace(heard, epsilon_lower=lower, parameter_lower=rho)
        assert f"on the same input twice certified {words}." in say.verdict_sentence(result)
        assert result.silent == (words == "0")


@pytest.mark.parametrize(("claim", "share"), [(CLAIMS[0], 0.5), (CLAIMS[2], 0.3)], ids=str)
def test_the_drawn_bet_refutes_with_its_own_share_of_alpha(claim, share) -> None:
    record = record_of([one("case", claim, "subject", "refuted")])
    shares = divide(1e-3, claim, white_box=False)
    planned = msgspec.structs.replace(record.plan.cases[0], shares=shares)
    target = curves.wealth_target(planned, record.results[0])
    assert math.exp(-target) == pytest.approx(share * 1e-3)
    broke = msgspec.structs.replace(planned, shares=Shares(betting=0.0, fixed=0.0))
    assert curves.wealth_target(broke, record.results[0]) == 0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_plotted_claim_is_the_claim(claim) -> None:
    result = one("case", claim, "subject", "refuted")
    with drawing():
        svg = Pictures().trade_off(result)
    x, y = path_of(svg, "stroke: var(--claim)")
    assert np.interp(0.0, x, y) == pytest.approx(claim.miss_rate(0.0), abs=0.002)
    grid = np.linspace(0, 1, 101)
    assert np.interp(grid, x, y) == pytest.approx(claim.miss_rate(grid), abs=0.006)


def test_plotted_points_are_the_error_rates() -> None:
    result = one("case", CLAIMS[0], "subject", "refuted")
    with drawing():
        svg = Pictures().trade_off(result)
    alarm, miss = curves.error_rates(result)
    x, y = path_of(svg, "stroke: var(--measured)")
    assert x == pytest.approx(alarm, abs=0.001)
    assert y == pytest.approx(miss, abs=0.001)


def path_of(svg: str, style: str) -> tuple[np.ndarray, np.ndarray]:
    """Data coordinates of the first path in that style; the frame gives the scale."""
    frame = re.search(r'<path d="M (\S+) (\S+) L (\S+) (\S+) " [^>]*--grid[^>]*>', svg)
    across = re.findall(r'<path d="M (\S+) (\S+) L (\S+) (\S+) " [^>]*--grid[^>]*>', svg)[1]
    assert frame is not None
    left, bottom, _, top = (float(v) for v in frame.groups())
    right = float(across[2])
    path = next(
        d for d, look in re.findall(r'<path d="([^"]*)" style="([^"]*)"', svg) if style in look
    )
    points = np.array(re.findall(r"[ML] (\S+) (\S+)", path), dtype=float)
    return (points[:, 0] - left) / (right - left), (points[:, 1] - bottom) / (top - bottom)


def test_error_rates_against_a_loop_over_trials() -> None:
    result = one("case", CLAIMS[0], "subject", "refuted")
    assert result.choice is not None
    trials = [
        (result.choice.posterior[b], side)
        for rows in result.counts.values()
        for b, left, right in rows
        for side, times in (("left", left), ("right", right))
        for _ in range(times)
    ]
    sides = [side for _, side in trials]
    alarm, miss = curves.error_rates(result)
    measured = set(zip(alarm.round(12), miss.round(12), strict=True))
    for threshold in sorted(set(result.choice.posterior)):
        says_left = [side for score, side in trials if score >= threshold]
        false_alarm = says_left.count("right") / sides.count("right")
        missed = 1 - says_left.count("left") / sides.count("left")
        assert (round(false_alarm, 12), round(missed, 12)) in measured


@pytest.mark.parametrize("hits", [0, 1, 7, 29, 30])
def test_interval_is_clopper_and_pearsons(hits) -> None:
    wanted = stats.binomtest(hits, 30).proportion_ci(0.99, method="exact")
    assert curves.interval(hits, 30, 0.01) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_interval_covers_exactly() -> None:
    # Enumeration over all outcomes: no chance of a false alarm.
    bounds = np.array([curves.interval(k, 40, 0.1) for k in range(41)])
    for truth in np.linspace(0.01, 0.99, 99):
        inside = (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
        assert stats.binom.pmf(np.arange(41), 40, truth)[inside].sum() >= 0.9


def test_boxes_surround_both_rules_and_vanish_after_an_early_stop() -> None:
    result = one("case", CLAIMS[0], "subject", "refuted")
    assert result.choice is not None
    total = result.evidence.total
    boxes = curves.confidence_boxes(result)
    guess = np.array(result.choice.guess)
    for box, says_left in zip(boxes, (guess > 0, guess >= 0), strict=True):
        assert box.alarm[0] < total[1, says_left].sum() / total[1].sum() < box.alarm[1]
        assert box.miss[0] < total[0, ~says_left].sum() / total[0].sum() < box.miss[1]
    assert curves.confidence_boxes(msgspec.structs.replace(result, stopped=True)) == []


def test_evidence_rows_keep_every_trial() -> None:
    result = one("case", CLAIMS[0], "subject", "refuted")
    assert sum(row.left + row.right for row in curves.rows(result)) == result.trials


@pytest.mark.parametrize("claim", [PureDp(epsilon=150.0), ApproxDp(epsilon=1e-6, delta=0.5)])
def test_extreme_claims_have_a_curve(claim) -> None:
    alarm, miss = curves.claim_curve(claim)
    assert (np.diff(alarm) >= 0).all()
    assert (np.diff(miss) <= 0).all()


def test_pictures_have_a_title_and_neither_ids_nor_fixed_colours() -> None:
    result = one("case", CLAIMS[2], "control", "refuted")
    with drawing():
        pictures = Pictures()
        drawn = [pictures.trade_off(result), pictures.wealth(result, 5.0)]
    for svg in drawn:
        assert svg.startswith('<svg role="img" aria-label="')
        assert "<title>" in svg
        assert " id=" not in svg
        assert not re.search(r"#[0-9a-f]{3,6}", svg)
        assert len(svg) < 8000


def palettes() -> dict[str, dict[str, str]]:
    roots = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)
    found = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", root)) for root in roots]
    return dict(zip(("light", "dark", "print"), found, strict=True))


def contrast(one_colour: str, other: str) -> float:
    """Contrast ratio of the Web Content Accessibility Guidelines 2.1."""
    lights = sorted((luminance(one_colour), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_text_contrasts_with_its_ground(mode) -> None:
    colours = palettes()[mode]
    pairs = [(text, ground) for text in ("ink", "soft", "link") for ground in ("paper", "card")]
    pairs += [(mark, f"{mark}-tint") for mark in ("refuted", "unrefuted", "blind", "error")]
    pairs += [("caught-mark", "caught-tint"), ("ink", "code"), ("axis", "card"), ("blind", "paper")]
    for text, ground in pairs:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_lines_contrast_with_the_picture(mode) -> None:
    colours = palettes()[mode]
    for line in ("claim", "measured", "box", "certified", "caught"):
        for ground in ("card", "forbidden"):
            assert contrast(colours[line], colours[ground]) >= 3, (line, ground)
