"""The true epsilon of every known case, from closed forms, enumeration or quadrature."""

import itertools
import json
import math
import pickle

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from algorithms.broken.cases import CASES, mechanism_of
from algorithms.broken.cases_sums import add_up, take_apart
from algorithms.catalogue import CATALOGUE
from audit.attack import Game
from audit.errors import UsageError
from audit.mechanism import play
from audit.pair import Pair
from tests.unit.sparse_vector import law_of

SIGMA = 3.730632


def gaussian_epsilon(mu, delta):
    def excess(e):
        first = stats.norm.cdf(mu / 2 - e / mu)
        return first - math.exp(e + stats.norm.logcdf(-mu / 2 - e / mu)) - delta

    return optimize.brentq(excess, 0, 40)


def noisy_max(scores, scale, i=0):
    def tail(x):
        return math.exp(-abs(x)) / 2

    def below(x):
        return tail(x) if x < 0 else 1 - tail(x)

    def integrand(x):
        others = (below((x - s) / scale) for j, s in enumerate(scores) if j != i)
        return tail((x - scores[i]) / scale) / scale * math.prod(others)

    knots = sorted(set(scores))
    return integrate.quad(integrand, -40, 44, points=knots, limit=300, epsabs=1e-12)[0]


def noisy_max_epsilon(scale):
    left, right = (0, 3, 3, 3, 3), (-1, 4, 4, 4, 4)
    return max(
        abs(math.log(noisy_max(left, scale, i) / noisy_max(right, scale, i))) for i in (0, 1)
    )


def dyadic_blocks(t):
    """Binary expansion of t as consecutive blocks (start, stop], largest first."""
    start = 0
    for power in reversed(range(t.bit_length())):
        if t >> power & 1:
            yield start, start + 2**power
            start += 2**power


def nodes_over_first_item(horizon):
    blocks = {block for t in range(1, horizon + 1) for block in dyadic_blocks(t)}
    return sum(start == 0 for start, _ in blocks)


def second_moment_mu():
    """Mahalanobis distance over the 55 distinct entries of the symmetric matrix."""
    x = np.asarray(CASES["C28"].pair.right[0])
    rows, columns = np.triu_indices(10)
    variance = np.where(rows == columns, SIGMA**2, SIGMA**2 / 2)
    return math.sqrt(np.sum(np.outer(x, x)[rows, columns] ** 2 / variance))


def two_laplace_tail(x):
    return integrate.quad(
        lambda y: stats.laplace.pdf(y) * stats.laplace.sf(x - y), -40, 40, points=[0, x], limit=200
    )[0]


def drop_epsilon():
    left, right = two_laplace_tail(0.2), two_laplace_tail(-0.8)
    return max(abs(math.log(left / right)), abs(math.log((1 - left) / (1 - right))))


def sparse_vector_epsilon():
    pair = CASES["sparse-vector"].pair
    left, right = law_of(pair.left), law_of(pair.right)
    return max(abs(math.log(left[k] / right[k])) for k in left)


TRUTH = {
    "C1": lambda: 1.0,
    "C2": lambda: 1 / 0.5,
    "half-noise": lambda: 1 / 0.5,
    "C3": lambda: gaussian_epsilon(1 / SIGMA, 1e-5),
    "C4": lambda: gaussian_epsilon(2 / SIGMA, 1e-5),
    "C6": lambda: gaussian_epsilon(10 / SIGMA, 1e-5),
    "C9": lambda: noisy_max_epsilon(2.0),
    "C10": lambda: noisy_max_epsilon(1.0),
    "C14": lambda: nodes_over_first_item(16) / 5,
    "C15": lambda: 64 / 6,
    "C19": drop_epsilon,
    "C21-after": lambda: nodes_over_first_item(15) / 4,
    "C24": lambda: 2.0,
    "C25": lambda: math.log(0.9375 / 0.0625),
    "C28": lambda: gaussian_epsilon(second_moment_mu(), 1e-5),
    "sparse-vector": sparse_vector_epsilon,
}
INFINITE = {"C7", "C12", "C21-all", "C22"}


def test_every_case_is_verified():
    assert set(CASES) == set(TRUTH) | INFINITE
    assert {k for k, case in CASES.items() if case.epsilon == math.inf} == INFINITE


@pytest.mark.parametrize("name", TRUTH)
def test_true_epsilon(name):
    assert CASES[name].epsilon == pytest.approx(TRUTH[name](), rel=3e-4)


@pytest.mark.parametrize("name", CASES)
def test_flag_exactly_when_the_truth_exceeds_the_claim(name):
    case = CASES[name]
    assert case.must == ("flag" if case.epsilon > case.claim.epsilon else "pass")
    assert (case.n is None) == (case.must == "pass")
    assert case.id == name


def test_index_zero_of_noisy_max_with_half_the_noise():
    assert noisy_max((0, 3, 3, 3, 3), 1.0) == pytest.approx(0.010165, abs=5e-7)
    assert noisy_max((-1, 4, 4, 4, 4), 1.0) == pytest.approx(0.001376, abs=5e-7)


def test_sparse_vector_law_is_a_law():
    law = law_of(CASES["sparse-vector"].pair.left)
    assert len(law) == 1 + 10 + math.comb(10, 2)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)


def test_histogram_differences_have_no_noise():
    case = CASES["C7"]
    for left, gap in ((True, 2.0), (False, 3.0)):
        counts = Game(case.mechanism, case.pair, "output").play(left, 40, np.random.default_rng(0))
        difference = counts["counts"][:, 0] - counts["counts"][:, 1]
        assert difference == pytest.approx(np.full(40, gap), abs=1e-12)


def test_first_price_has_no_noise_and_is_not_in_the_anticipating_view():
    case = CASES["C21-all"]
    for left in (True, False):
        rng = np.random.default_rng(0)
        prices = Game(case.mechanism, case.pair, "prices_all").play(left, 9, rng)["prices"]
        assert prices.shape == (9, 16)
        assert (prices[:, 0] == (0.0 if left else 1.0)).all()
    after = Game(case.mechanism, case.pair, "prices_after").play(True, 9, np.random.default_rng(0))
    assert after["prices"].shape == (9, 15)


def test_exception_only_on_one_side():
    case = CASES["C22"]
    left, right = (
        play(case.mechanism, side, 6, np.random.default_rng(0))
        for side in (case.pair.left, case.pair.right)
    )
    assert set(left.form) == {"float"}
    assert ((left["value"] >= 0) & (left["value"] <= 1)).all()
    assert set(right.form) == {"raised ValueError"}


def test_impossible_outcome_of_the_sparse_vector_with_exact_queries():
    case = CASES["C12"]
    above = play(case.mechanism, case.pair.right, 5000, np.random.default_rng(0))["above"]
    assert not ((above[:, 0] == 0) & (above[:, 1] == 1)).any()


def test_tree_is_made_of_dyadic_blocks():
    nodes = np.random.default_rng(0).normal(size=(3, 16))
    ends = {block: block[1] - 1 for t in range(1, 17) for block in dyadic_blocks(t)}
    prefix = np.stack(
        [sum(nodes[:, ends[b]] for b in dyadic_blocks(t)) for t in range(1, 17)], axis=1
    )
    assert add_up(nodes) == pytest.approx(prefix)
    assert take_apart(prefix) == pytest.approx(nodes)


@pytest.mark.parametrize("name", CASES)
def test_contract(name):
    case = CASES[name]
    n = 3 if name == "C22" else 40
    json.dumps([case.pair.left, case.pair.right])
    copy = pickle.loads(pickle.dumps(case.mechanism))
    first, again, other = (
        play(m, case.pair.left, n, np.random.default_rng(seed))
        for m, seed in ((case.mechanism, 1), (copy, 1), (case.mechanism, 2))
    )
    assert len(first) == n
    assert np.array_equal(first.matrix(), again.matrix())
    assert not np.array_equal(first.matrix(), other.matrix())


@pytest.mark.parametrize("name", [k for k in CASES if k != "C22"])
def test_one_call_plays_all_trials(name):
    case = CASES[name]
    emitted = case.mechanism.run(case.pair.left, 7, np.random.default_rng(0))
    assert {len(column) for column in emitted.values()} == {7}


@pytest.mark.parametrize("name", ["C1", "C3", "C6", "C7", "C14", "C15", "C21-after", "C28"])
def test_trials_share_no_draw(name):
    case = CASES[name]
    emitted = play(case.mechanism, case.pair.left, 50, np.random.default_rng(5)).matrix()
    for one, two in itertools.combinations(emitted, 2):
        noisy = one != two
        assert noisy.sum() >= len(one) - 1  # the first price alone carries no noise


def test_prices_likelihood_refuses_another_customer():
    case = CASES["C21-after"]
    left = {"covariates": [0.0] * 16, "demands": [0.0] * 16}
    right = {"covariates": [0.0] * 16, "demands": [0.0, 1.0] + [0.0] * 14}
    views = play(case.mechanism, left, 2, np.random.default_rng(0))
    with pytest.raises(UsageError, match="expected customer 0"):
        case.mechanism.log_likelihood_ratio(views, Pair(left, right))


def test_unknown_case():
    with pytest.raises(UsageError, match="expected one of C1"):
        mechanism_of("C99")


@pytest.mark.parametrize(
    "name",
    ["broken/laplace-half-noise", "broken/histogram-shared-draw", "broken/prefix-sums-redrawn"],
)
def test_controls_build(name):
    entry = CATALOGUE[name]
    mechanism = entry.build()
    assert entry.role == "control"
    assert mechanism in [case.mechanism for case in CASES.values() if case.must == "flag"]


@pytest.mark.parametrize("name", [k for k in CATALOGUE if k.startswith("calibration/")])
def test_calibration_subjects_build(name):
    entry = CATALOGUE[name]
    assert entry.role == "subject"
    assert entry.build().claim is not None
