"""Pictures over time, the way from promise to proof, where evidence came from, notebooks."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from audit import bounds
from audit.render import notebook, origin, reach, strip, timeline
from audit.render import sentences as say
from tests.records import CLAIMS, NASTY, nasty, one, planned, rounds, sample
from tests.unit.test_render import Tree

RESULT = one("family/case", CLAIMS[0], "subject", "refuted")
PLANNED = planned(RESULT)


def points(svg: str, ink: str) -> np.ndarray:
    """Points of the first line in that ink, in the picture's units."""
    found = re.search(rf'<polyline points="([^"]*)" fill="none" stroke="var\(--{ink}\)"', svg)
    assert found is not None
    return np.array([place.split(",") for place in found[1].split()], dtype=float)


def test_certified_path_is_a_coarser_anytime_bound() -> None:
    prefixes, choice = RESULT.evidence.prefixes(), RESULT.choice
    assert choice is not None
    trials, reached = timeline.certified_path(RESULT, 5e-5)
    assert trials.tolist() == [0, *prefixes.sum(axis=(1, 2))]
    step = 1.02 * RESULT.epsilon_lower / 63
    for blocks, found in enumerate(reached[1:], start=1):
        exact = bounds.anytime_epsilon(
            prefixes[:blocks], choice.posterior, 5e-5, delta=0.0, confronted=choice.epsilon
        )
        assert exact - step - 0.011 * exact <= found <= 1.011 * exact + 1e-9
    assert (np.diff(reached) >= 0).all()
    assert reached[-1] > 0


def test_path_is_drawn_in_its_place() -> None:
    svg = timeline.growth(RESULT, PLANNED)
    _, reached = timeline.certified_path(RESULT, PLANNED.shares.betting)
    down = points(svg, "measured")[:, 1]
    claim = points(svg, "claim")[0, 1]
    zero = down[0]
    assert (zero - down) / (zero - claim) == pytest.approx(reached / 1.0, abs=0.01)


def test_no_path_without_evidence_or_for_one_run() -> None:
    failed = one("case", CLAIMS[0], "subject", "error")
    assert timeline.growth(failed, planned(failed)) == ""
    assert RESULT.choice is not None
    shared = msgspec.structs.replace(
        RESULT, choice=msgspec.structs.replace(RESULT.choice, test="one-run")
    )
    assert timeline.growth(shared, PLANNED) == ""


def test_sequence_and_leak_show_every_round_and_mark_the_differing_one() -> None:
    seen = rounds(np.random.default_rng(1))
    both, gaps = timeline.sequence(seen), timeline.leak(seen)
    assert len(points(both, "left")) == len(points(both, "right")) == 12
    across = points(both, "left")[:, 0]
    for svg in (both, gaps):
        assert points(svg, "axis")[0, 0] == pytest.approx(across[3], abs=0.11)
        assert "round 1<" in svg
        assert "round 12<" in svg
    tops = [float(y) for y in re.findall(r"L[\d.]+,([\d.]+)", gaps)]
    assert int(np.argmin(tops)) == 5
    level = points(gaps, "axis")  # the mark comes first, the noise after it
    assert len(level) == 2


def test_rounds_are_told_in_words() -> None:
    seen = rounds(np.random.default_rng(1))
    assert "Round 6 tells most" in timeline.told(seen)
    assert "1 round shown stands out" in timeline.told(seen)
    quiet = msgspec.structs.replace(seen, noise=0.5, in_order=False)
    assert "No single entry stands out" in timeline.told(quiet)


@pytest.mark.parametrize(
    ("view", "event", "words"),
    [
        ("prices_all", "guesses left when prices[6] > 0.61", "prices in round 7 > 0.61"),
        ("prices_after", "guesses left when prices[0] > 0.61", "prices in round 5 > 0.61"),
        ("prices_except", "guesses left when prices[3] > 0.61", "prices in round 5 > 0.61"),
        ("prices_after", "guesses left when prices[99] > 0.61", "prices[99] > 0.61"),
        ("transcript", "guesses left when nodes[6] > 0.61", "nodes[6] > 0.61"),
        ("transcript", "guesses left when prices[6][0] > 0.61", "prices[6][0] > 0.61"),
    ],
)
def test_events_name_rounds_of_the_input(view, event, words) -> None:
    assert RESULT.choice is not None
    choice = msgspec.structs.replace(RESULT.choice, event=event)
    result = msgspec.structs.replace(RESULT, view=view, choice=choice)
    assert origin.origin_sentence(PLANNED, result).endswith(f"guessed left when {words}.")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("guesses right when the form is None", "guessed right when the form is None."),
        ("left for the 7 highest of 20 canaries", "guessed left for the 7 highest of 20 canaries."),
        ("log odds of the bin of value", "guessed by the log odds of the bin of value."),
    ],
)
def test_events_of_all_kinds_make_a_sentence(event, words) -> None:
    assert RESULT.choice is not None
    choice = msgspec.structs.replace(RESULT.choice, event=event)
    result = msgspec.structs.replace(RESULT, choice=choice)
    assert origin.origin_sentence(PLANNED, result).endswith(words)


def test_an_attack_that_saw_nothing_says_so() -> None:
    assert RESULT.choice is not None
    choice = msgspec.structs.replace(
        RESULT.choice,
        event="no value repeats",
        guess=tuple(0 for _ in RESULT.choice.guess),
    )
    result = msgspec.structs.replace(RESULT, choice=choice)
    sentence = origin.origin_sentence(PLANNED, result)
    assert sentence.endswith("found nothing to guess by (no value repeats).")


def test_origin_names_pair_and_attack() -> None:
    sentence = origin.origin_sentence(PLANNED, RESULT)
    for word in ("count 0 or 1", "position 4", "likelihood", "log-likelihood ratio at least 0.37"):
        assert word in sentence


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_reach_is_in_multiples_of_the_claim(claim) -> None:
    result = one("case", claim, "subject", "refuted")
    found = reach.shares(result)
    if result.parameter_lower is None:
        assert found["certified"] == pytest.approx(1.32)
    assert found["could have caught"] == pytest.approx(1.2)
    svg = reach.reach(result)
    end = float(re.findall(r"M0 8H([\d.]+)", svg)[1])
    claimed = float(re.findall(r"M([\d.]+) 0V16", svg)[0])
    assert end > claimed
    assert reach.reach(one("case", claim, "subject", "error")) == ""


def test_axes_are_never_a_single_point() -> None:
    for values in ([], [None], [3.0, 3.0], [0.0], [1e200, -1e200]):
        for zero in (False, True):
            low, high = strip.span(values, zero=zero)
            assert low < high


def test_notebook_shows_verdict_picture_and_profile() -> None:
    piece = RESULT._repr_html_()
    assert say.verdict_sentence(RESULT) in piece
    assert piece.count("<svg") == 3
    assert "Certified epsilon" in piece
    assert "<script" not in piece
    assert ":root" not in piece
    assert piece == notebook.result_html(RESULT)
    assert "is private" not in piece


def test_notebook_shows_every_case_of_a_record() -> None:
    record = sample(10)
    piece = record._repr_html_()
    for result in record.results:
        assert f"<bdi>{result.name}</bdi>" in piece


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_strings_stay_text_in_a_notebook(text) -> None:
    shapes = [
        [Tree(piece._repr_html_()).shape for piece in (record, record.results[0])]
        for record in (nasty("plain"), nasty(text))
    ]
    assert shapes[0] == shapes[1]
