"""Noise-free runs: the exact loss of a pair, against closed forms. Nothing here is random."""

import math

import numpy as np
import pytest

import audit
from algorithms.broken.cases import CASES
from algorithms.calibration import Laplace
from algorithms.pricing.private_cov import PrivateCov
from audit.attack import Game
from audit.claim import gaussian_mu
from audit.exact import difference
from audit.mechanism import FunctionMechanism
from audit.noiseless import ChanceError, NoiselessGenerator


def game(function, left, right, *, batched=True):
    return Game(FunctionMechanism(function, batched=batched), audit.Pair(left, right), "output")


def known(name):
    case = CASES[name]
    return difference(Game(case.mechanism, case.pair, case.view))


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("C1", 1.0),
        ("C2", 2.0),
        ("C4", 2 * gaussian_mu(1.0, 1e-5)),
        ("C6", 10 * gaussian_mu(1.0, 1e-5)),
        ("C7", math.inf),
        ("C14", 1.0),
        ("C15", 64 / 6),
        ("C24", 2.0),
        ("C28", gaussian_mu(1.0, 1e-5)),
    ],
)
def test_the_loss_of_a_pair_is_exact(name, loss):
    found = known(name)
    assert found.loss == pytest.approx(loss, rel=1e-6)
    flagged = bool(found.complaint(CASES[name].claim))
    assert flagged == (CASES[name].must == "flag")


def test_tree_sums_have_exactly_their_mu():
    cov = PrivateCov(epsilon=1.0, delta=1e-5, claim_as="gaussian")
    found = difference(Game(cov, cov.pairs()[0], cov.claim.view))
    assert found.loss == pytest.approx(cov.claim.mu, rel=1e-5)
    assert not found.complaint(cov.claim)


def test_nothing_is_said_about_choices_exceptions_and_nonlinear_outputs():
    for name in ("C9", "C12", "C19", "C22", "C25"):
        assert known(name) is None
    assert difference(game(lambda d, n, rng: (d + rng.laplace(size=n)) ** 2, 0.0, 1.0)) is None
    assert difference(game(lambda d, n, rng: d + rng.laplace(size=n) > 0.5, 0.0, 1.0)) is None
    spare = game(lambda d, n, rng: d + rng.laplace(size=(n, 2)).sum(axis=1), 0.0, 1.0)
    assert difference(spare) is None  # the loss of a sum of two draws is another one


def test_functions_of_one_trial_work_too():
    found = difference(game(lambda d, rng: [sum(d) + rng.laplace(0, 2)], [1], [4], batched=False))
    assert found.loss == pytest.approx(1.5)
    assert found.change == pytest.approx(3)
    assert "1.5 scales of the laplace noise" in found.complaint(audit.PureDp(epsilon=1.0))
    assert not found.complaint(audit.PureDp(epsilon=1.5))
    assert not found.complaint(audit.GaussianDp(mu=0.1))  # says nothing about Laplace noise


def test_wrong_noise_is_a_finding_of_its_own_and_no_refutation():
    mild = Laplace(1.0, scale=0.98)
    result = audit.examine(mild, trials=400)
    assert result.verdict != "refuted"
    (note,) = [f for f in result.findings if f.rule == "DP020"]
    assert "1.02041 scales" in note.message
    assert "(declared scale 0.98)" in note.message
    assert not [f for f in audit.examine(Laplace(1.0), trials=400).findings if f.rule == "DP020"]


def test_the_contract_check_prints_what_runs_without_noise_say():
    from tests.cli.console import GIVEN, target
    from tests.cli.console import audit as command

    outcome = command("check", target("half_noise"), *GIVEN)
    assert outcome.code == 1
    (line,) = [x for x in outcome.out.splitlines() if "sensitivity" in x]
    assert line.startswith("FAIL")
    assert "by 2 scales of the laplace noise" in line
    assert command("check", target("noisy_block"), *GIVEN).code == 0


def test_draws_without_a_value_end_the_run():
    for name, words in (
        ("random", ()),
        ("gamma", (3.0, 2.0)),
        ("integers", (5,)),
        ("choice", (3,)),
    ):
        with pytest.raises(ChanceError, match=name):
            getattr(NoiselessGenerator(9), name)(*words)
    with pytest.raises(ChanceError, match="bit_generator"):
        _ = NoiselessGenerator(9).bit_generator


def test_additive_draws_are_at_their_place():
    quiet = NoiselessGenerator(9, np.array([0.0, 2.0]))
    assert quiet.laplace(1.0, 3.0) == 1.0
    assert quiet.normal(1.0, 3.0) == 7.0
    assert quiet.spawn(2) == [quiet, quiet]
    with pytest.raises(ChanceError, match="more than 9"):
        quiet.laplace(size=8)


def until_large(data, rng):
    while True:
        try:
            if (drawn := data + rng.laplace()) > 1:
                return drawn
        except Exception:
            continue


def until_lucky(data, rng):
    while rng.random() > 0.3:
        data += 1
    return data


@pytest.mark.parametrize("function", [until_large, until_lucky])
def test_loops_that_wait_for_a_draw_end_without_noise(function):
    mechanism = FunctionMechanism(function, audit.PureDp(epsilon=1.0))
    assert difference(Game(mechanism, audit.Pair(0.0, 0.5), "output")) is None
    domain = audit.Domain(bounds=(0, 1), distance=1)
    result = audit.examine(function, claim=audit.PureDp(epsilon=9.0), domain=domain, trials=400)
    assert result.verdict in ("unrefuted", "refuted", "blind")
