"""Policies of one customer at a time: seeding, isolation, silence, and what they may look like."""

import logging
import pickle
import random

import cloudpickle
import numpy as np
import pytest

import audit
from audit.errors import UsageError
from audit.mechanism import Played, play
from audit.registry import as_mechanism
from audit.view import part_of

STREAM = {"outcomes": [1.0, 0.0, 1.0], "contexts": [{"x": 1}, {"x": 2}, {"x": 3}]}


class Service:
    """Draws from five sources of randomness."""

    def __init__(self):
        self.own = np.random.default_rng(7)
        self.same = self.own
        self.old = np.random.RandomState(7)
        self.python = random.Random(7)
        self.seen = []
        self.inside = type("Inside", (), {"noise": np.random.default_rng(7)})()

    def quote(self, customer):
        draws = (self.own.random(), self.old.rand(), self.python.random())
        return [*draws, random.random(), np.random.rand(), self.inside.noise.random()]  # noqa: NPY002

    def record(self, bought):
        self.seen.append(bought)


def mechanism(make=Service, **options):
    return audit.OneByOne(make, **{"act": "quote", "observe": "record", **options})


def run(one, n=4, seed=0, data=STREAM):
    return one.run(data, n, np.random.default_rng(seed))["actions"]


def draws(one, n=4, seed=0):
    """The six numbers of every answer of `Service`, shape (n, T, 6)."""
    columns = one.run(STREAM, n, np.random.default_rng(seed))
    return np.stack([columns[part_of("actions", f"[{i}]")] for i in range(6)], axis=2)


def test_all_sources_are_seeded_from_the_addressed_stream():
    one = mechanism(rng="inside.noise")
    first = draws(one)
    assert first.shape == (4, 3, 6)
    np.testing.assert_array_equal(first, draws(one))
    flat = np.sort(np.concatenate([first, draws(one, seed=1)]).ravel())
    assert np.all(np.diff(flat) > 0), "no draw is repeated within or across trials"


def test_a_nested_generator_is_only_reseeded_when_named():
    hidden = draws(mechanism())[:, :, 5]
    np.testing.assert_array_equal(hidden[0], hidden[1])
    with pytest.raises(UsageError, match="nose"):
        run(mechanism(rng="inside.nose"))


def test_one_shared_generator_stays_shared():
    class Two(Service):
        def quote(self, customer):
            assert self.same is self.own
            return 0.0

    run(mechanism(Two))


def test_global_state_and_logging_come_back():
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = random.Random(3).random(), np.random.RandomState(3).rand()
    run(mechanism())
    assert (random.random(), np.random.rand()) == expected  # noqa: NPY002
    assert not logging.root.manager.disable


class Loud:
    def act(self, context):
        print("price set")
        logging.getLogger("shop").error("price set")
        return 1.0

    def observe(self, outcome):
        pass


@pytest.mark.parametrize("mute", [True, False])
def test_logging_and_printing_are_silenced_unless_wanted(mute, capsys, caplog):
    run(audit.OneByOne(Loud, mute=mute))
    assert ("price set" in capsys.readouterr().out) != mute
    assert ("price set" in caplog.text) != mute


class Counting:
    def __init__(self, seed=None):
        self.heard = []

    def act(self):
        return float(len(self.heard))

    def observe(self, action, outcome):
        self.heard.append((action, outcome))


def test_every_trial_has_a_policy_of_its_own_whatever_makes_it():
    def factory(rng):
        assert isinstance(rng, np.random.Generator)
        return Counting()

    expected = np.tile([0.0, 1.0, 2.0], (4, 1))
    for make in (Counting, Counting(), lambda: Counting(), factory, lambda seed: Counting(seed)):
        np.testing.assert_array_equal(run(audit.OneByOne(make)), expected)


def test_methods_get_the_last_of_context_action_and_outcome():
    heard = []

    class All:
        def act(self, context):
            return context["x"] / 10

        def observe(self, context, action, outcome, note=""):
            heard.append((context["x"], action, outcome, note))

    run(audit.OneByOne(All), n=1)
    assert heard == [(1, 0.1, 1.0, ""), (2, 0.2, 0.0, ""), (3, 0.3, 1.0, "")]


@pytest.mark.parametrize(
    ("data", "heard"),
    [
        ({"outcomes": [[5, 6], [7, 8]]}, [6, 8]),
        ({"valuations": [0.5, 1.5]}, [0.0, 1.0]),
        ({"outcomes": [3, 4]}, [3, 4]),
    ],
)
def test_outcomes_follow_arm_or_price(data, heard):
    found = []

    class Policy:
        def act(self):
            return 1

        def observe(self, outcome):
            found.append(outcome)

    run(audit.OneByOne(Policy), n=1, data=data)
    assert found == heard


def test_the_vectorised_policy_hears_the_same():
    class Policy:
        def start(self, n, rng):
            self.n = n

        def act(self, context):
            return np.linspace(0, 2, self.n)

        def observe(self, outcome):
            heard.append(outcome.tolist())

    heard = []
    Played(Policy).run({"valuations": [1.0, 1.5]}, 5, np.random.default_rng(0))
    assert heard == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]


def actions_of(*answers):
    class Policy:
        def __init__(self):
            self.left = list(answers)

        def act(self, context):
            return self.left.pop(0)

        def observe(self, outcome):
            pass

    return run(audit.OneByOne(Policy), n=2)[0]


def test_actions_of_any_kind_become_numbers_that_tell_them_apart():
    assert actions_of(True, 2, np.float32(0.5)).tolist() == [1.0, 2.0, 0.5]
    assert actions_of(np.array(1), np.array(0.5), 3).tolist() == [1.0, 0.5, 3.0]
    words = actions_of("low", "high", "low")
    assert words[0] == words[2] != words[1]
    assert np.isnan(actions_of(None, 1.0, 2.0)[0])
    large = actions_of(2**62, 2**62 + 1, 2**53)
    assert large[0] != large[1]
    assert large[2] == 2**53
    ragged = actions_of([1.0], [1.0, 2.0], [1.0])
    assert ragged[0] == ragged[2] != ragged[1]
    reused = np.zeros(2)

    class Policy:
        def act(self, context):
            reused[0] += 1
            return reused

    assert len(np.unique(run(audit.OneByOne(Policy, observe=""), n=1)[0])) == 3


def test_what_a_trial_shows_does_not_depend_on_its_neighbours():
    """Blocks hold trials of one side: a rare answer of another shape must not mark them all."""

    class Policy:
        def __init__(self, rng):
            self.rng = rng

        def act(self):
            return 1.0 if self.rng.random() < 0.9 else [1.0, 2.0]

    one = audit.OneByOne(Policy, observe="")
    rare = run(one, n=64) != 1.0
    assert 0 < rare.mean() < 0.3
    assert set(play(one, STREAM, 64, np.random.default_rng(0)).form) == {"actions:f[3]"}


class Quote:
    """What a shop answers with."""

    def __init__(self, price):
        self.price, self.currency = price, "EUR"


@pytest.mark.parametrize("answer", [Quote, "{:.3f} EUR".format, lambda p: {"price": p}])
def test_noise_in_what_an_answer_holds_is_seen(answer):
    """Power on a fixed seed, no false alarm to state."""

    class Policy:
        def __init__(self, rng):
            self.rng, self.sold = rng, 0.0

        def act(self):
            return answer(self.sold + self.rng.laplace(scale=0.2))

        def observe(self, outcome):
            self.sold += outcome

    pair = audit.Pair({"outcomes": [1.0, 0.0]}, {"outcomes": [0.0, 0.0]})
    claim = audit.PureDp(epsilon=1.0, view="actions_after")
    result = audit.examine(audit.OneByOne(Policy), claim=claim, pairs=[pair], trials=1000)
    assert result.verdict == "refuted"


def test_an_exception_is_the_outcome_of_its_trial():
    class Fragile:
        def __init__(self, rng):
            self.rng = rng

        def act(self):
            if self.rng.random() < 0.1:
                raise ValueError("out of stock")
            return 1.0

    one = audit.OneByOne(Fragile, observe="")
    views = play(one, STREAM, 64, np.random.default_rng(0))
    raised = [form == "raised ValueError" for form in views.form]
    assert 0 < sum(raised) < 64
    assert np.array_equal(np.isnan(views["actions"]).any(axis=1), raised)
    assert (views["actions"][~np.array(raised)] == 1).all()
    told = views[part_of("actions", ".raised.message")]
    assert np.array_equal(np.isfinite(told).sum(axis=1), np.array(raised, dtype=int))


class Lazy:
    """A policy for trials side by side or one by one, without what a test gives it."""

    def start(self, n, rng):
        pass

    def act(self, context):
        return 0.0

    def observe(self, outcome):
        pass


async def later(self, _):
    return 1.0


def bit_by_bit(self, _):
    yield 1.0


@pytest.mark.parametrize("kind", [audit.OneByOne, Played])
@pytest.mark.parametrize(
    ("method", "code"), [("act", later), ("observe", later), ("observe", bit_by_bit)]
)
def test_code_that_nobody_runs_is_refused(kind, method, code):
    """A policy that never learns would look private."""
    policy = type("Never", (Lazy,), {method: code})
    with pytest.raises(UsageError, match="whose code has not run"):
        play(kind(policy), STREAM, 3, np.random.default_rng(0))


@pytest.mark.parametrize("view", ["actions_aftr", "actions_before", "prices_aftr"])
def test_a_misspelt_view_is_told(view):
    pair = audit.Pair({"outcomes": [1.0, 0.0]}, {"outcomes": [0.0, 0.0]})
    claim = audit.PureDp(epsilon=1.0, view=view)
    with pytest.raises(UsageError, match=f"view '{view}': expected .* actions with or without"):
        audit.examine(audit.OneByOne(Lazy), claim=claim, pairs=[pair], trials=200)


@pytest.mark.parametrize(
    ("one", "data", "message"),
    [
        (audit.OneByOne(lambda shelf: Loud()), STREAM, "shelf"),
        (audit.OneByOne(Loud, act="price"), STREAM, "'price'"),
        (audit.OneByOne(Loud), [1, 0], "list"),
        (audit.OneByOne(Loud), {"outcome": [1]}, "dict with 'outcome'"),
        (audit.OneByOne(Loud), {"outcomes": 3}, "shape"),
        (audit.OneByOne(Loud), {"outcomes": [1], "contexts": []}, "0 contexts"),
    ],
)
def test_misuse_is_told(one, data, message):
    with pytest.raises(UsageError, match=message):
        run(one, data=data)


def test_it_survives_pickling():
    again = pickle.loads(cloudpickle.dumps(mechanism(rng="inside.noise")))
    np.testing.assert_array_equal(run(again), run(mechanism(rng="inside.noise")))


class Array:
    def start(self, n, rng):
        self.n, self.total = n, 0.0

    def act(self, context):
        return np.full(self.n, self.total)

    def observe(self, outcome):
        self.total = self.total + outcome


@pytest.mark.parametrize("found", [Array, Array(), lambda: Array()], ids=["class", "object", "def"])
def test_array_policies_are_played_side_by_side(found):
    claim = audit.PureDp(epsilon=1.0, view="prices_after")
    made = as_mechanism(found, "target", claim)
    assert isinstance(made, Played)
    assert made.column == "prices"
    assert len(made.pairs()) > 1
    for _ in range(2):
        views = made.run({"outcomes": [1.0, 1.0]}, 3, np.random.default_rng(0))
        np.testing.assert_array_equal(views["prices"], np.tile([0.0, 1.0], (3, 1)))


@pytest.mark.parametrize("found", [Loud, Loud(), lambda: Loud(), audit.OneByOne(Loud)])
def test_scalar_policies_are_recognised(found):
    made = as_mechanism(found, "target", audit.PureDp(epsilon=1.0, view="prices_all"))
    assert isinstance(made, audit.OneByOne)
    assert made.column == "prices"
    assert made.claim is not None
    assert made.run(STREAM, 2, np.random.default_rng(0))["prices"].shape == (2, 3)
