"""Each attack finds its kind of leak, measured on fresh trials against an exact oracle.

The advantage of a score is P(score >= t | left) - P(score >= t | right) on fresh trials, t (and the
direction) chosen on other fresh trials: unbiased, and its standard error is below
sqrt(1/2/TEST) = .0050. The oracle is the total variation distance.
"""

import importlib

import numpy as np
import pytest
from scipy.stats import beta, norm

import audit
from attacks.atoms import Atoms
from attacks.catalogue import CATALOGUE
from attacks.counting import lower_log_odds
from attacks.events import Leaf
from attacks.membership import Membership
from audit.attack import Game
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.quantise import grid_of
from audit.view import concatenate

FIT, CHOOSE, TEST = 3_000, 10_000, 20_000
ERROR = np.sqrt(1 / 2 / TEST)
SURE = 5 * ERROR  # one-sided false alarms: 2.9e-7 each


def build(name):
    module, _, attribute = CATALOGUE[name].partition(":")
    return getattr(importlib.import_module(module), attribute)()


class Bout:
    """A game with scouting trials and two fresh sets of trials on both sides."""

    def __init__(self, run, left, right, seed, fit=FIT, choose=CHOOSE, test=TEST):
        rng = np.random.default_rng(seed)
        game = Game(FunctionMechanism(run, batched=True), Pair(left, right), "output")
        scouted = [game.play(side, fit, rng) for side in (True, False)]
        grid = grid_of(concatenate(*scouted))
        self.scouted = [grid.apply(views) for views in scouted]
        self.game = Game(game.mechanism, game.pair, "output", grid)
        self.chosen = [self.game.play(side, choose, rng) for side in (True, False)]
        self.fresh = [self.game.play(side, test, rng) for side in (True, False)]

    def scores(self, attack):
        self.scorer = attack.fit(self.game, *self.scouted, np.random.default_rng(1))
        return [[self.scorer(v) for v in views] for views in (self.chosen, self.fresh)]

    def advantage(self, attack):
        chosen, fresh = self.scores(attack)
        at = np.unique(np.concatenate(chosen))
        gap = [share(chosen[0], at) - share(chosen[1], at)]
        best = int(np.argmax(np.abs(gap[0])))
        sign = np.sign(gap[0][best])
        edge = at[best : best + 1]
        return float(sign * (share(fresh[0], edge) - share(fresh[1], edge))[0])

    def certified(self, attack, alpha):
        """Epsilon certified by one frozen tail event, false alarm `alpha` (Clopper-Pearson)."""
        chosen, fresh = self.scores(attack)
        at = np.unique(np.quantile(np.concatenate(chosen), np.linspace(0, 1, 400), method="lower"))
        options = []
        for guess_left in (True, False):
            for sign in (1, -1):
                count = [tail(side, sign, at) for side in chosen]
                gains = lower_log_odds(count[1 - guess_left], count[int(guess_left)])
                best = int(np.argmax(gains))
                options.append((gains[best], guess_left, sign, at[best : best + 1]))
        _, guess_left, sign, edge = max(options, key=lambda option: option[0])
        count = [float(tail(side, sign, edge)[0]) for side in fresh]
        right, wrong = count[1 - guess_left], count[int(guess_left)]
        low = beta.ppf(alpha, right, wrong + 1) if right else 0.0
        return max(0.0, float(np.log(low / (1 - low)))) if 0 < low < 1 else 0.0


def share(scores, at):
    return tail(scores, 1, at) / len(scores)


def tail(scores, sign, at):
    """How many scores are at least (at most, for sign -1) each of `at`."""
    ordered = np.sort(scores)
    if sign > 0:
        return len(scores) - np.searchsorted(ordered, at, "left")
    return np.searchsorted(ordered, at, "right")


def laplace(data, n, rng):
    return data + rng.laplace(size=n)


def shared(data, n, rng):
    return np.asarray(data) + rng.laplace(size=(n, 1))


def cancelling(data, n, rng):
    noise = 20 * rng.laplace(size=n)
    return np.stack([noise + data + 0.3 * rng.laplace(size=n), -noise, rng.laplace(size=n)], axis=1)


def only_the_sum(data, n, rng):
    noise = rng.normal(size=(n, 10))
    return noise - noise.mean(axis=1, keepdims=True) + (data + rng.normal(size=(n, 1))) / 10


def normals(data, n, rng):
    return np.asarray(data) + rng.normal(size=(n, len(data)))


def bits(data, n, rng):
    return (rng.random((n, len(data))) < np.asarray(data)).astype(int)


ZEROS = [0.0] * 10
BIN = [0.0] * 3 + [1.0] + [0.0] * 6
GAUSSIAN_TV = 2 * norm.cdf(0.5) - 1
WIDE_TV = 2 * norm.cdf(0.2 * np.sqrt(50) / 2) - 1
MANY_TV = 2 * norm.cdf(0.06 * np.sqrt(1000) / 2) - 1
KINDS = {
    "laplace": (laplace, 0.0, 1.0, 1 - np.exp(-0.5)),
    "shared draw": (shared, ZEROS, BIN, 1.0),
    "cancelling noise": (cancelling, 0.0, 1.0, 1 - np.exp(-0.5 / 0.3)),
    "only the sum": (only_the_sum, 0.0, 1.0, GAUSSIAN_TV),
    "50 small shifts": (normals, [0.0] * 50, [0.2] * 50, WIDE_TV),
    "one bit of ten": (bits, [0.5] * 10, [0.5] * 9 + [0.7], 0.2),
}

FINDS = [
    # kind, attack, share of the oracle's advantage that it must reach
    ("laplace", "leaf", 0.97),
    ("laplace", "membership", 0.97),
    ("laplace", "logistic", 0.97),
    ("only the sum", "boosting", 0.9),
    ("shared draw", "atoms", 1.0),
    ("shared draw", "leaf", 1.0),
    ("shared draw", "logistic", 0.99),
    ("cancelling noise", "membership", 0.97),
    ("cancelling noise", "logistic", 0.97),
    ("only the sum", "leaf", 0.97),
    ("only the sum", "membership", 0.97),
    ("only the sum", "logistic", 0.95),
    ("50 small shifts", "membership", 0.95),
    ("50 small shifts", "logistic", 0.93),
    ("50 small shifts", "boosting", 0.8),
    ("one bit of ten", "atoms", 0.95),
    ("one bit of ten", "logistic", 0.9),
]


@pytest.fixture(scope="module")
def bouts():
    made = {}

    def bout(kind):
        if kind not in made:
            run, left, right, _ = KINDS[kind]
            made[kind] = Bout(run, left, right, seed=17)
        return made[kind]

    return bout


def test_boosting_leaves_one_number_to_the_events(bouts):
    assert bouts("laplace").advantage(build("boosting")) == 0


@pytest.mark.parametrize(("kind", "name", "least"), FINDS)
def test_attack_finds_its_kind(bouts, kind, name, least):
    oracle = KINDS[kind][3]
    found = bouts(kind).advantage(build(name))
    assert found >= least * oracle - SURE  # false alarm 2.9e-7 for an attack of that quality
    assert found <= oracle + SURE  # false alarm 2.9e-7: nothing beats the oracle


def test_a_thousand_small_shifts():
    bout = Bout(normals, [0.0] * 1000, [0.06] * 1000, 3, fit=2000, choose=2000, test=4000)
    error = np.sqrt(1 / 2 / 4000)
    for name, least in (("membership", 0.7), ("logistic", 0.7), ("leaf", 0.9)):
        found = bout.advantage(build(name))
        # false alarms 2.9e-7 each
        assert least * MANY_TV - 5 * error <= found <= MANY_TV + 5 * error


def test_a_difference_in_variance_is_found():
    bout = Bout(lambda data, n, rng: data * rng.normal(size=(n, 4)), 1.0, 1.5, seed=5)
    # the norm squared is chi-square with 4 degrees: oracle by the exact law
    from scipy.stats import chi2

    cut = 2 * 4 * np.log(1.5) / (1 - 1 / 1.5**2)
    oracle = chi2.cdf(cut, 4) - chi2.cdf(cut / 1.5**2, 4)
    for name, least in (("membership", 0.97), ("leaf", 0.97), ("logistic", 0.95)):
        found = bout.advantage(build(name))
        # false alarms 2.9e-7 each
        assert least * oracle - SURE <= found <= oracle + SURE


def test_a_thin_shift_needs_no_learning():
    """Half of 60 numbers move by a tenth of their own noise, under noise common to all.

    By Woodbury mu^2 = .01 (30 - 9 * 30^2/(1 + 9 * 60)) = .15; weights blind to the common noise
    would have mu = .03.
    """
    moved = 0.1 * (np.arange(60) < 30)

    def run(data, n, rng):
        return data * moved + rng.normal(size=(n, 60)) + 3 * rng.normal(size=(n, 1))

    bout = Bout(run, 1.0, 0.0, seed=37, fit=1_500)
    mu = np.sqrt(0.01 * (30 - 9 * 30**2 / (1 + 9 * 60)))
    oracle = 2 * norm.cdf(mu / 2) - 1
    # false alarms 2.9e-7 each
    assert 0.9 * oracle - SURE <= bout.advantage(build("shift")) <= oracle + SURE
    assert bout.advantage(build("logistic")) <= 0.75 * oracle + SURE


def test_the_battery_finds_a_leak_that_is_spread_thinly():
    """200 numbers move together by mu = .3, under a claim of .2. Wrong with probability 1e-3."""
    direction = np.sin(np.arange(200.0) ** 2)
    direction *= 0.3 / np.linalg.norm(direction)
    found = audit.examine(
        lambda data, n, rng: data * direction + rng.normal(size=(n, 200)),
        claim=audit.GaussianDp(mu=0.2),
        pairs=[Pair(1.0, 0.0)],
        batched=True,
        early_stop=False,
    )
    assert (found.verdict, found.choice.attack) == ("refuted", "shift")
    assert 0.2 < found.parameter_lower <= 0.3


@pytest.mark.parametrize(
    "name", [n for n in CATALOGUE if n not in ("likelihood", "prices", "shadow")]
)
def test_nothing_is_found_where_nothing_is(name):
    bout = Bout(lambda data, n, rng: rng.normal(size=(n, 8)).round(1), 0.0, 0.0, seed=23)
    # false alarm 5.7e-7: the advantage of a frozen event is unbiased on fresh trials
    assert abs(bout.advantage(build(name))) <= SURE


def sparse_vector(data, n, rng):
    """Algorithm 4 of Lyu, Su and Li (2017): noise that does not grow with the cut-off."""
    bar = 1 + rng.laplace(scale=4, size=(n, 1))
    above = np.asarray(data) + rng.laplace(scale=4 / 3, size=(n, 10)) >= bar
    stopped = np.cumsum(above, axis=1) - above >= 2
    return np.where(stopped, np.nan, above * 1.0)


def test_sparse_vector_outcomes_are_counted():
    left, right = [1.0] * 5 + [0.0] * 5, [0.0] * 5 + [1.0] * 5
    bout = Bout(sparse_vector, left, right, 8, fit=10_000, choose=10_000, test=40_000)
    found = bout.certified(Atoms(), alpha=1e-4)
    # false alarm 1e-4 above the exact epsilon of this pair; power on these seeds is fixed
    assert 1.5 < found < 2.959


def test_rounding_noise_of_doubles_certifies_nothing():
    """|y| - |y - 1| is +-1 on half of all runs, with rounding errors that tell the inputs apart."""

    def run(data, n, rng):
        y = data + rng.laplace(size=n)
        return np.stack([np.abs(y), np.abs(y - 1)], axis=1)

    bout = Bout(run, 0.0, 1.0, seed=9, fit=5_000)
    for attack in (Leaf(), Atoms(), Membership(), build("logistic")):
        assert bout.certified(attack, alpha=1e-4) <= 1.0  # false alarm 1e-4 each


@pytest.mark.parametrize(("scale", "truth", "least"), [(1.0, 1.0, 0.85), (0.25, 4.0, 3.4)])
def test_a_laplace_leaf_certifies_nearly_all(scale, truth, least):
    bout = Bout(lambda d, n, rng: d + rng.laplace(scale=scale, size=n), 0.0, 1.0, seed=31)
    found = bout.certified(Leaf(), alpha=1e-4)
    # false alarm 1e-4 above the truth; power on these seeds is fixed
    assert least <= found <= truth


def test_a_leak_in_few_of_many_numbers_is_found():
    few = [0.0] * 97 + [0.5] * 3
    bout = Bout(normals, [0.0] * 100, few, seed=41, fit=1500)
    oracle = 2 * norm.cdf(0.5 * np.sqrt(3) / 2) - 1
    found = bout.advantage(build("logistic"))
    # false alarms 2.9e-7 each
    assert 0.9 * oracle - SURE <= found <= oracle + SURE
