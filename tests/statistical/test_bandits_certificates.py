"""Algorithm certificates of the bandits with many releases: nearly all of the exact curve.

At delta 1e-5 from 1,000 runs, both directions together, as an audit takes them. A certificate
exceeds the exact epsilon with probability at most 2.5e-5 here.
"""

import numpy as np
import pytest

import audit
from algorithms.catalogue import CATALOGUE
from audit.attack import Game
from audit.bounds import binomial_epsilon
from audit.certificate import accountant_epsilon, climb
from audit.plan import Request, Settings, make_plan

DELTA = 1e-5
NAMES = ("ftrl-tree-approx", "batched-exp4-approx", "dartboard-approx")
RELEASES = ("ftrl-tree", "ftrl-tree-approx", "dartboard", "dartboard-approx", "batched-exp4-approx")


def climbed(name, seed):
    mechanism = CATALOGUE[f"bandits/{name}"].build()
    pair = mechanism.pairs()[0]
    request = Request(name, name, mechanism, mechanism.claim, ())
    planned = make_plan([request], Settings())[1][0].planned
    return climb(Game(mechanism, pair, mechanism.claim.view), planned, seed)


def check(ladder):
    assert ladder.delta == DELTA
    assert ladder.runs == 1000
    assert ladder.tilted
    assert ladder.calibrated
    assert ladder.theorem >= ladder.accountant * (1 - 1e-9)
    assert 0.95 * ladder.accountant <= ladder.certificate <= ladder.accountant


@pytest.mark.parametrize("name", NAMES)
def test_certificate_is_near_the_exact_curve(name):
    check(climbed(name, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_certificates_are_near_and_never_above_over_many_seeds(name):
    # 60 certificates in all: one above the curve by chance has probability below 2e-3.
    for seed in range(1, 21):
        check(climbed(name, seed))


def oracle(mechanism, pair, trials, alpha, blocks):
    """Expected bound of an auditor who knows the likelihood ratio and its best threshold.

    The threshold is chosen on half of the runs and valued on the other, and the other way round:
    else luck would raise it.
    """
    rng, delta = np.random.default_rng(7), getattr(mechanism.claim, "delta", 0.0)

    def played(left):
        blocks_of = (mechanism.run(pair.side(left), 100_000, rng) for _ in range(blocks))
        return np.concatenate([mechanism.log_likelihood_ratio(b, pair) for b in blocks_of])

    def value(part, cut):
        told = np.abs(part) >= cut
        shares = np.mean(told & (part > 0)), np.mean(told & (part < 0))
        counts = [share * trials for share in shares]
        return binomial_epsilon(*counts, alpha, delta=delta, trials=trials)

    scores = np.round(np.stack([played(True), -played(False)]), 9)
    halves = scores[:, ::2], scores[:, 1::2]
    found = []
    for choosing, valuing in (halves, halves[::-1]):
        cuts = np.unique(np.quantile(np.abs(choosing), 1 - np.geomspace(2e-3, 1, 60)))
        found.append(value(valuing, max(cuts, key=lambda cut: value(choosing, cut))))
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_counting_comes_near_the_best_that_counting_could(name):
    """A small leak at delta > 0 needs many plays and audits: its bounds spread by a seventh."""
    mechanism = CATALOGUE[f"bandits/{name}"].build()
    small = name == "batched-exp4-approx"
    trials, blocks, seeds = (100_000, 8, 15) if small else (200_000, 1, 3)
    aim = max(oracle(mechanism, pair, trials, 1e-3, blocks) for pair in mechanism.pairs())
    found = [
        audit.examine(mechanism, trials=trials, seed=seed, attacks=["likelihood"]).epsilon_lower
        for seed in range(seeds)
    ]
    exact = accountant_epsilon(mechanism, mechanism.pairs(), getattr(mechanism.claim, "delta", 0))
    assert max(found) <= exact
    # Medians were measured at .87 of the oracle's bound and above; the seeds are fixed.
    assert np.median(found) >= 0.85 * aim
