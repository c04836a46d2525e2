"""The contract of every attack: total, deterministic, picklable, tolerant of unseen views."""

import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import audit
from attacks.atoms import Atoms
from attacks.catalogue import CATALOGUE
from attacks.events import Form, Leaf
from attacks.likelihood import Likelihood
from attacks.shift import Shift
from audit.attack import Game
from audit.mechanism import FunctionMechanism, play
from audit.pair import Pair
from audit.view import Raised, Views, collect

PAIR = Pair(0.0, 1.0)
GAME = Game(FunctionMechanism(lambda data, n, rng: data + rng.laplace(size=n)), PAIR, "output")
EMPTY = Views(np.empty(0, dtype=object))


def build(name):
    module, _, attribute = CATALOGUE[name].partition(":")
    return getattr(importlib.import_module(module), attribute)()


LEARNERS = [name for name in CATALOGUE if name not in ("likelihood", "prices", "shadow")]


def emitted(kind, n, rng):
    """Outputs of n trials, of a kind that is awkward in some way."""
    holes = np.where(rng.random((n, 6)) < 0.3, np.nan, rng.normal(size=(n, 6)))
    kinds = {
        "numbers": lambda: rng.normal(size=(n, 3)),
        "strings": lambda: ["abc"[i % 3] for i in rng.integers(0, 9, n)],
        "mixed": lambda: [{"a": [1, 2.5, None]} if i % 3 else float(i) for i in range(n)],
        "raised": lambda: [Raised("ValueError", str(i % 2)) if i % 4 else 1.0 for i in range(n)],
        "holes": lambda: np.where(rng.random((n, 6)) < 0.2, np.inf * np.sign(holes), holes),
        "all nan": lambda: np.full((n, 3), np.nan),
        "nothing": lambda: [None] * n,
        "no columns": lambda: np.empty((n, 0)),
        "constant": lambda: np.ones((n, 3)),
        "huge": lambda: rng.standard_cauchy((n, 300)) * 10.0 ** rng.integers(-290, 290, (n, 300)),
        "actions": lambda: rng.integers(0, 5, (n, 300)),
    }
    return collect(kinds[kind](), n)


KINDS = (
    "numbers", "strings", "mixed", "raised", "holes", "all nan", "nothing", "no columns",
    "constant", "huge", "actions",
)  # fmt: skip


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_finite_on_views_of_every_kind(name, kind):
    rng = np.random.default_rng(5)
    views = [emitted(kind, 40, rng) for _ in range(2)]
    scorer = build(name).fit(GAME, *views, np.random.default_rng(1))
    scorer = pickle.loads(pickle.dumps(scorer))
    assert scorer.description
    for other in [*views, EMPTY, *(emitted(k, 9, rng) for k in KINDS)]:
        scores = scorer(other)
        assert scores.shape == (len(other),)
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_few_trials_are_enough(name, n):
    rng = np.random.default_rng(n)
    left, right = emitted("holes", n, rng), emitted("strings", n, rng)
    scorer = build(name).fit(GAME, left, right, np.random.default_rng(1))
    assert np.isfinite(scorer(left)).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_fitting_and_scoring_are_deterministic(name):
    scores = []
    for _ in range(2):
        rng = np.random.default_rng(3)
        left, right = emitted("holes", 300, rng), emitted("holes", 300, rng)
        scorer = build(name).fit(GAME, left, right, np.random.default_rng(7))
        scores.append(scorer(left))
    assert np.isfinite(scores[0]).all()
    assert np.array_equal(scores[0], scores[1])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_score_does_not_depend_on_the_other_trials_of_the_block(name):
    rng = np.random.default_rng(11)
    left, right = emitted("numbers", 200, rng), emitted("numbers", 200, rng)
    scorer = build(name).fit(GAME, left, right, np.random.default_rng(7))
    rows = np.array([5, 17, 50])
    assert np.allclose(scorer(left)[rows], scorer(left.take(rows)), rtol=1e-9, atol=1e-9)


def test_cheap_attacks_import_neither_sklearn_nor_scipy_stats():
    modules = sorted({target.partition(":")[0] for target in CATALOGUE.values()})
    code = f"import sys, {', '.join(modules)}; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "attacks.classifier" in done.stdout
    assert "sklearn" not in done.stdout
    assert "scipy.stats" not in done.stdout


def fitted(attack, left, right):
    return attack.fit(GAME, left, right, np.random.default_rng(0))


def test_form_sees_an_exception_on_one_side():
    def quantile(data, rng):
        if data == 1491 and rng.random() < 0.5:
            raise FloatingPointError("weights underflow")
        return rng.laplace()

    mechanism, rng = FunctionMechanism(quantile), np.random.default_rng(0)
    left, right = play(mechanism, 1490, 60, rng), play(mechanism, 1491, 60, rng)
    scorer = fitted(Form(), left, right)
    scores = scorer(play(mechanism, 1491, 50, rng))
    # 50 fair coins are all heads with probability 1e-15
    assert scores.min() < -3
    assert "raised FloatingPointError" in scorer.description


def test_form_sees_an_extra_key_and_ignores_unseen_forms():
    left = collect([{"count": 1.0, "exact": 2.0}] * 20, 20)
    right = collect([{"count": 1.0}] * 20, 20)
    scorer = fitted(Form(), left, right)
    assert scorer(left).min() == pytest.approx(np.log(20.5 / 0.5))
    assert scorer(right).max() == pytest.approx(-np.log(20.5 / 0.5))
    assert scorer(collect(["text"], 1))[0] == 0


def test_atoms_score_an_atom_of_one_side_by_its_count():
    rng = np.random.default_rng(2)
    clipped = np.minimum(rng.normal(size=400), 0.5)
    left, right = collect(clipped, 400), collect(rng.normal(size=400), 400)
    seen = np.sum(clipped == 0.5)
    scorer = fitted(Atoms(), left, right)
    assert scorer(collect(np.array([0.5]), 1))[0] == pytest.approx(np.log((seen + 0.5) / 0.5))
    assert "exact value of value" in scorer.description


def test_atoms_count_whole_rows_of_a_discrete_view():
    rng = np.random.default_rng(4)
    parity = rng.integers(0, 2, (500, 4))
    odd = parity.copy()
    odd[:, 3] = (1 + parity[:, :3].sum(axis=1)) % 2
    even = parity.copy()
    even[:, 3] = parity[:, :3].sum(axis=1) % 2
    left, right = collect(odd, 500), collect(even, 500)
    scorer = fitted(Atoms(), left, right)
    assert scorer(left).min() > 0 > scorer(right).max()


def test_atoms_tell_strings_apart():
    left, right = collect(["yes", "no"] * 30, 60), collect(["no", "perhaps"] * 30, 60)
    scores = fitted(Atoms(), left, right)(collect(["yes", "perhaps", "no"], 3))
    assert scores[0] > 3 > -3 > scores[1]
    assert abs(scores[2]) < 1


def quiet(run, data=PAIR):
    """What the shift says of a function of 50 scouting trials a side."""
    game = Game(FunctionMechanism(run, batched=True), data, "output")
    views = [game.play(side, 50, np.random.default_rng(side)) for side in (True, False)]
    return Shift().fit(game, *views, np.random.default_rng(1))


def test_shift_knows_the_direction_of_the_noiseless_difference():
    """One noise in two numbers cancels in their difference, which is what the pair moves."""

    def run(data, n, rng):
        common, own = rng.normal(size=(n, 1)), rng.laplace(scale=0.1, size=(n, 2))
        return common + own + data * np.array([1.0, 0.0])

    scorer = quiet(run)
    assert "2 numbers" in scorer.description
    first, second = scorer.weights / scorer.layout.spread
    assert second / first == pytest.approx(-1, abs=0.1)
    assert first < 0


@pytest.mark.parametrize(
    ("run", "data", "words"),
    [
        (lambda d, n, rng: d + rng.random((n, 2)), PAIR, "no value without noise"),
        (lambda d, n, rng: d + rng.normal(size=(n, 2)), Pair(1.0, 1.0), "no number differs"),
        (lambda d, n, rng: d + rng.normal(size=(n, 1001)), PAIR, "more than 1,000"),
        (lambda d, n, rng: [None] * n, PAIR, "no numbers"),
    ],
    ids=["uniform", "equal", "many", "nothing"],
)
def test_shift_says_why_it_sees_nothing(run, data, words):
    scorer = quiet(run, data)
    assert words in scorer.description
    assert not scorer(collect(np.ones((3, 2)), 3)).any()


def test_leaf_names_the_number_and_the_direction():
    rng = np.random.default_rng(6)
    right = rng.normal(size=(2000, 3))
    left = rng.normal(size=(2000, 3)) - [0, 3, 0]
    scorer = fitted(Leaf(), collect(left, 2000), collect(right, 2000))
    assert scorer.description.startswith("guesses left when value[1] <")
    scores = scorer(collect(np.array([[0.0, -9, 0], [0, -1.5, 0], [0, 9, 0]]), 3))
    assert scores[0] > scores[1] > scores[2]


def test_leaf_finds_the_telling_one_of_many_numbers():
    rng = np.random.default_rng(7)
    left, right = rng.normal(size=(2, 1000, 500))
    left[:, 321] += 2
    scorer = fitted(Leaf(), collect(left, 1000), collect(right, 1000))
    assert "value[321] >=" in scorer.description


class Known:
    """A Laplace mechanism that knows its density."""

    claim = None

    def pairs(self):
        return [PAIR]

    def run(self, data, n, rng):
        return {"value": data + rng.laplace(size=n)}

    def log_likelihood_ratio(self, views, pair):
        y = views["value"]
        return np.abs(y - pair.right) - np.abs(y - pair.left)


def test_likelihood_uses_the_density_of_the_mechanism():
    game = Game(Known(), PAIR, "output")
    assert Likelihood().applies(game)
    assert not Likelihood().applies(Game(Known(), PAIR, "actions"))
    assert not Likelihood().applies(GAME)
    rng = np.random.default_rng(0)
    left, right = game.play(True, 50, rng), game.play(False, 50, rng)
    scorer = pickle.loads(pickle.dumps(Likelihood().fit(game, left, right, rng)))
    assert scorer(left) == pytest.approx(np.clip(1 - 2 * left["value"], -1, 1))
    assert scorer(collect(["text", "other"], 2)).tolist() == [0, 0]
    assert scorer.description == "exact log-likelihood ratio of the output"
    broken = Views(left.form[:2], {"value": np.array([np.nan, np.inf])})
    assert np.isfinite(scorer(broken)).all()


@pytest.mark.parametrize(("left", "right", "step"), [(0.3, 0.7, 1), (0.0, 1.0, 2)])
def test_discrete_noise_on_data_off_its_lattice_is_found(left, right, step):
    """With so much noise no value repeats; what is left over gives the side away.

    Power on a fixed seed, no false alarm to state.
    """

    def shifted(data, n, rng):
        up, down = rng.geometric(1e-3, size=(2, n))
        return data + step * (up - down)

    claim, pairs = audit.PureDp(epsilon=0.1), [audit.Pair(left, right)]
    result = audit.examine(shifted, claim=claim, pairs=pairs, batched=True, trials=2000)
    assert result.verdict == "refuted"


def test_noise_on_the_lattice_of_the_data_is_not_refuted_by_it():
    """False alarm 1e-3."""

    def shifted(data, n, rng):
        up, down = rng.geometric(1 - np.exp(-0.1), size=(2, n))
        return data + up - down

    claim, pairs = audit.PureDp(epsilon=0.1), [audit.Pair(0, 1)]
    result = audit.examine(shifted, claim=claim, pairs=pairs, batched=True, trials=4000)
    assert result.verdict in ("unrefuted", "blind")
