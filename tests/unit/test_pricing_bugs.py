"""Known mistakes by number, their documentation beside them, and the committed tables."""

import math
import re

import numpy as np
import pytest

from algorithms.broken.pricing_bugs import BUGS, AsDocumented, broken, documented
from audit.errors import UsageError
from audit.view import collect
from tests.tables import price_limits
from tests.tables import pricing as tables

GAUSSIAN = [number for number, bug in BUGS.items() if bug.paper is not None]


def test_every_mistake_has_a_number():
    numbers = {int(re.match(r"P(\d+)", name)[1]) for name in BUGS}
    assert numbers == set(range(1, 21)) - {19}
    assert "broken/policy-own-price" in tables.VIEWS


@pytest.mark.filterwarnings("ignore:the classical Gaussian formula")
@pytest.mark.parametrize("number", GAUSSIAN)
def test_code_is_worse_than_its_documentation(number):
    for calibration in BUGS[number].calibrations:
        case = documented(number, calibration)
        pair = case.pairs()[0]
        assert case.claim.mu == case.paper.mu(pair) < 0.25
        assert case.code.mu(pair) > 1.1 * case.claim.mu
        assert case.claim.delta_at(1.0) <= 1e-6 * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore:the classical Gaussian formula")
def test_documented_twins_run_the_code_and_score_by_either_density():
    case = documented("P1", "loose")
    suspicious = AsDocumented(case.code, case.paper, "code")
    pair = case.pairs()[0]
    out = case.run(pair.left, 6, np.random.default_rng(0))
    again = case.code.run(pair.left, 6, np.random.default_rng(0))
    np.testing.assert_array_equal(out["sums"], again["sums"])
    views = collect(out, 6)
    np.testing.assert_allclose(
        2 * case.log_likelihood_ratio(views, pair), suspicious.log_likelihood_ratio(views, pair)
    )
    assert case.declared_scale == pytest.approx(math.sqrt(2) * case.code.declared_scale)
    assert case.exact_profile(pair, 0.1) == pytest.approx(case.claim.delta_at(0.1))


@pytest.mark.parametrize(("density", "who"), [("paper", "paper"), ("code", "code")])
def test_certificates_of_documented_twins_play_the_algorithm_they_speak_of(density, who):
    case = documented("P1", "exact", density)
    pair = case.pairs()[0]
    emitted, weights = case.tilted_run(pair, 1.0, 5, np.random.default_rng(1))
    alone, own = getattr(case, who).tilted_run(pair, 1.0, 5, np.random.default_rng(1))
    np.testing.assert_array_equal(emitted["sums"], alone["sums"])
    np.testing.assert_array_equal(weights, own)
    plain, nothing = documented("P20", "exact").tilted_run(
        documented("P20", "exact").pairs()[0], 1.0, 5, np.random.default_rng(1)
    )
    assert plain["theta"].shape == (5, 6)
    assert not nothing.any()


def test_softmax_is_corrected_by_its_noise():
    case = documented("P20", "exact")
    pair = case.pairs()[0]
    assert case.code.mu(pair) == pytest.approx(math.sqrt(2) * case.paper.mu(pair))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: broken("P99"), "expected one of P1"),
        (lambda: broken("P16", "loose"), "expected one of exact"),
        (lambda: documented("P15"), "no documented density"),
        (lambda: AsDocumented(None, None, "mine"), "density paper or code"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_the_committed_tables_are_those_of_the_generator():
    text = tables.TARGET.read_text()
    for table in tables.tables():
        body = text.split(f"## {table.title}\n")[1].split("\n## ")[0]
        rows = [line.strip("| \n").split(" | ") for line in body.splitlines() if line[:1] == "|"]
        assert rows[0] == list(table.head)
        keys = [tuple(row[: len(own)]) for row, (own, _) in zip(rows[2:], table.rows, strict=True)]
        assert keys == [own for own, _ in table.rows]
        assert all(len(line.split("|")) == len(table.head) + 2 for line in _lines(body))


def _lines(body):
    return [line for line in body.splitlines() if line[:1] == "|"]


def test_every_mistake_in_the_committed_table_is_caught():
    text = tables.TARGET.read_text().split("## Known mistakes")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:2] == "| "]
    for row in rows[2:]:
        assert re.search(r"DP0(01|12|13|14)", row[6] + row[8]), row


def test_nobody_reads_more_off_prices_than_is_in_the_releases():
    """Areas of the committed table; above its limit by four standard errors with 3.2e-5 a row."""
    text = tables.TARGET.read_text().split("## What prices can tell at best")[1]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:2] == "| "][2:]
    assert len(rows) == len(price_limits.PRESETS) * len(price_limits.PAIRS)
    for row in rows:
        everything, refreshes, found = (float(row[i]) for i in (4, 6, 7))
        assert refreshes <= everything
        assert found <= everything + 0.08, row


@pytest.mark.filterwarnings("ignore:PrivatePricing. this policy is vacuous")
def test_limits_are_those_of_the_releases():
    policy = price_limits.fooled("lone")
    replaced, flipped = (policy.pairs()[i] for i in price_limits.PAIRS.values())
    everything, refreshes = price_limits.limits(policy, flipped, 20)
    np.testing.assert_array_equal(everything, refreshes)
    # One call, features of norm between 1/sqrt(2) and 1, noise 1.
    assert np.all((everything == 0) | (everything >= math.sqrt(0.5)))
    assert everything.max() <= 1
    everything, refreshes = price_limits.limits(policy, replaced, 20)
    assert np.all(refreshes < everything)
    assert price_limits.area(np.zeros(3)) == pytest.approx(0.5)
