"""Tilted laws, their weights and normalisers, and the dartboard's curve: against other oracles."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from algorithms.bandits.batched_exp4 import BatchedExp4
from algorithms.bandits.dartboard import Dartboard
from algorithms.bandits.dartboard_law import composed_epsilon, loss_profile
from algorithms.bandits.ftrl_tree import FtrlTree
from algorithms.broken.bandits_experts import CountedMoves, NoFakeSwitch
from algorithms.primitives.laplace import log_tilted_mass, tilted_laplace
from audit.certificate import accountant_epsilon
from audit.errors import UsageError
from audit.pair import Pair

RATES = {"p": 0.25, "eta": 0.1, "budget": 3}
MECHANISMS = {
    "tree": FtrlTree(2.0, 9, 2),
    "exp4": BatchedExp4(1.0, 1e-3, 12, 2, 3, rates={"batch": 6, "eta": 1.0, "gamma": 0.4}),
    "dartboard": Dartboard(0.7, 6, 3, rates=RATES),
}


def swapped(pair):
    return Pair(pair.right, pair.left, pair.label, "declared", pair.differs)


def tilted_density(shift, tilt):
    def density(x):
        return 0.5 * math.exp(-abs(x) + tilt * (abs(x - shift) - abs(x)))

    return density


@pytest.mark.parametrize(("shift", "tilt"), [(0.3, 2.0), (-1.5, 5.0), (2.0, 0.0), (0.7, -0.3)])
def test_tilted_noise_follows_its_density(shift, tilt):
    density, kinks = tilted_density(shift, tilt), sorted({0.0, shift})
    edges = [-40.0, *kinks, 40.0]
    total = sum(integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(edges))
    assert log_tilted_mass(shift, tilt) == pytest.approx(math.log(total), abs=1e-9)
    drawn = tilted_laplace(np.full(4000, shift), tilt, np.random.default_rng(1))

    def below(x):
        cut = [a for a in edges if a < x] + [x]
        return sum(integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(cut)) / total

    thinned = np.sort(drawn)[::40]
    empirical = np.arange(0, 4000, 40) / 4000
    # Dvoretzky-Kiefer-Wolfowitz: .06 off among 4,000 has probability 2 exp(-28.8) < 1e-12.
    assert np.abs(np.array([below(x) for x in thinned]) - empirical).max() < 0.06


def test_extreme_tilts_stay_finite():
    drawn = tilted_laplace(
        np.array([[0.0, 1.0, -1.0, 50.0]] * 500), 3000.0, np.random.default_rng(0)
    )
    assert np.isfinite(drawn).all()
    assert np.all(drawn[:, 1] < 0.1)
    assert np.all(drawn[:, 2] > -0.1)
    assert log_tilted_mass(0.0, 3000.0) == pytest.approx(0.0, abs=1e-12)
    still = tilted_laplace(np.zeros(4000), 9.0, np.random.default_rng(2))
    assert stats.kstest(still, "laplace").pvalue > 1e-6


@pytest.mark.parametrize("tilt", [0.0, 1.5])
@pytest.mark.parametrize("name", MECHANISMS)
def test_weights_turn_tilted_runs_back(name, tilt):
    mechanism = MECHANISMS[name]
    for pair in (mechanism.pairs()[-1], swapped(mechanism.pairs()[-1])):
        emitted, log_weights = mechanism.tilted_run(pair, tilt, 20_000, np.random.default_rng(3))
        plain = mechanism.run(pair.left, 20_000, np.random.default_rng(4))
        assert {k: v.shape for k, v in emitted.items()} == {k: v.shape for k, v in plain.items()}
        weights = np.exp(log_weights)
        losses = mechanism.log_likelihood_ratio(emitted, pair)
        kept, scored = np.exp(-losses), mechanism.log_likelihood_ratio(plain, pair)
        seen, usual = emitted["actions"][:, -1] == 0, plain["actions"][:, -1] == 0
        # Six standard errors each: below 1e-8 by the normal approximation.
        for found, expected in (
            (weights, 1.0),
            (weights * kept, 1.0),
            (weights * seen, usual.mean()),
            (weights * losses, scored.mean()),
        ):
            spread = (found.std() + scored.std() + 0.5) / math.sqrt(20_000)
            assert abs(found.mean() - expected) < 6 * spread


def test_tilting_makes_large_losses_common():
    for mechanism in MECHANISMS.values():
        pair = mechanism.pairs()[-1]
        means = [
            mechanism.log_likelihood_ratio(
                mechanism.tilted_run(pair, tilt, 2000, np.random.default_rng(5))[0], pair
            ).mean()
            for tilt in (0.0, 5.0, 50.0)
        ]
        assert means[0] < means[1] < means[2]


def transcript_laws(mechanism, pair):
    """Probabilities of all transcripts on both sides, by enumeration."""
    steps, arms = mechanism.steps, mechanism.arms
    experts = np.array(list(itertools.product(range(arms), repeat=steps)))
    switches = np.array(list(itertools.product([0, 1], repeat=steps - 1)), dtype=bool)
    laws = []
    for side in (pair.left, pair.right):
        found = []
        for path, coins in itertools.product(experts, switches):
            chance, used = 1 / arms, 1
            for t, (law, flip) in enumerate(zip(*mechanism.laws(side), strict=True)):
                head = flip[path[t]] if used < mechanism.budget else 0.0
                stay = (1 - head) * (path[t] == path[t + 1])
                chance *= head * law[path[t + 1]] if coins[t] else stay
                used += coins[t]
            found.append(chance)
        laws.append(np.array(found))
    return laws


@pytest.mark.parametrize("rates", [RATES, {"p": 0.4, "eta": 0.3, "budget": 9}])
def test_dartboard_curve_agrees_with_enumeration(rates):
    mechanism = Dartboard(7.0, 4, 3, rates=rates)
    for pair in mechanism.pairs():
        left, right = transcript_laws(mechanism, pair)
        assert left.sum() == pytest.approx(1.0)
        for epsilon in (0.0, 0.05, 0.2, 0.4, 1.0):
            grown = math.exp(epsilon)
            exact = max(
                np.maximum(left - grown * right, 0).sum(),
                np.maximum(right - grown * left, 0).sum(),
            )
            found = mechanism.exact_profile(pair, epsilon)
            assert exact - 1e-12 <= found <= exact + 2e-5


def test_dartboard_curve_knows_infinite_losses_and_its_limits():
    twin = NoFakeSwitch(1.0, 4, 2, rates={"eta": 0.3, "budget": 3})
    pair = twin.pairs()[0]
    left, right = transcript_laws(twin, pair)
    exact = max(left[right == 0].sum(), right[left == 0].sum())
    assert twin.exact_profile(pair, 50.0) == pytest.approx(exact, abs=1e-9)
    assert twin.tilted_run is None
    laws = Dartboard(1.0, 10_000, 10).laws({"losses": np.zeros((10_000, 10))})
    with pytest.raises(UsageError, match="takes too long"):
        loss_profile(laws, laws, 400, 0.1)
    assert Dartboard(1.0, 10_000, 10).tilted_run is None
    counted = CountedMoves(0.63, 30, 2, rates={"p": 0.5, "eta": 0.2, "budget": 2})
    assert counted.exact_profile is None
    assert counted.tilted_run is None
    assert Dartboard(0.7, 6, 3, rates=RATES, view="actions").exact_profile is None


def test_composition_agrees_with_randomised_responses():
    # 3 draws of .2 and a coin of .5: 16 outcomes, enumerated.
    losses = [0.5, 0.2, 0.2, 0.2]
    epsilon, delta = composed_epsilon(0.5, 0.2, 3, 0.02), 0.0
    for signs in itertools.product([1, -1], repeat=4):
        p = math.prod(1 / (1 + math.exp(-s * x)) for s, x in zip(signs, losses, strict=True))
        total = sum(s * x for s, x in zip(signs, losses, strict=True))
        delta += p * max(0.0, -math.expm1(epsilon - total))
    assert delta == pytest.approx(0.02, abs=1e-9)
    assert composed_epsilon(0.5, 0.2, 3, 1e-12) == pytest.approx(1.1, abs=1e-6)
    assert composed_epsilon(0.1, 0.0, 0, 0.5) == 0.0
    assert composed_epsilon(math.inf, 0.1, 3, 0.1) == math.inf


def test_approximate_claims_are_accounted_for():
    tree = FtrlTree(4.0, 64, 4, delta=1e-5)
    assert tree.claim.delta == 1e-5
    found = accountant_epsilon(tree, tree.pairs()[:1], 1e-5)
    assert tree.claim.epsilon == pytest.approx(found, rel=1e-9)
    assert tree.claim.epsilon < FtrlTree(4.0, 64, 4).claim.epsilon == 4.0
    rates = {"p": 0.4, "eta": 0.03, "budget": 30, "batch": 1}
    board = Dartboard(1.2, 60, 3, delta=1e-5, rates=rates)
    assert accountant_epsilon(board, board.pairs(), 1e-5) < board.accounted_epsilon() < 1.2
    assert board.accounted_epsilon() < board.worst_loss()
    with pytest.raises(UsageError, match=r"cost at most epsilon=1\.1 at delta=1e-05"):
        Dartboard(1.1, 60, 3, delta=1e-5, rates=rates)
    with pytest.raises(UsageError, match="0 <= delta < 1"):
        FtrlTree(1.0, 8, 2, delta=1.0)
