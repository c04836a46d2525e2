"""Pair search: what is proposed, that the worst pair is found, and that nothing else changes."""

import json
import math

import numpy as np
import pytest
from hypothesis import strategies as st

import audit
from attacks.inputs import Proposals, places
from audit.domain import Domain
from audit.search import evidence
from audit.view import collect

CLAIM = audit.PureDp(epsilon=1.0)
UNIT = Domain(bounds=(0, 1), sizes=(0, 50))
BANDIT = Domain(streams={"outcomes": Domain(bounds=(0, 1), dimension=3)}, sizes=(12, 12))
DOMAINS = {
    "numbers": (UNIT, ("replace-one", "add-remove")),
    "vectors": (Domain(bounds=(-1, 1), dimension=3, sizes=(1, 8)), ("replace-one",)),
    "one number": (Domain(bounds=(0, 9), distance=1), ("replace-one",)),
    "categories": (Domain(categories=("a", "b", "c"), sizes=(1, 8)), ("add-remove",)),
    "a bandit": (BANDIT, ("replace-one",)),
    "lists": (Domain(strategy=st.lists(st.integers(0, 9))), ("replace-one", "add-remove")),
}


def proposed(name, records=1):
    domain, relations = DOMAINS[name]
    return Proposals().propose(domain, relations, records)


@pytest.mark.parametrize("name", DOMAINS)
def test_proposals_are_neighbours_in_the_asked_relations_and_always_the_same(name):
    pairs = proposed(name)
    relations = {pair.relation for pair in pairs}
    wanted = {"declared"} if name == "one number" else set(DOMAINS[name][1])
    assert relations == wanted  # Pair itself checks that the inputs are neighbours
    assert 5 <= len(pairs) <= 96
    again = proposed(name)
    assert [repr((p.left, p.right)) for p in pairs] == [repr((p.left, p.right)) for p in again]
    assert len({repr((p.left, p.right)) for p in pairs}) == len(pairs)


def test_special_inputs_are_among_the_proposals():
    pairs = proposed("numbers")
    sides = [(p.left, p.right) for p in pairs]
    assert ([], [1.0]) in sides
    assert ([0.0], [1.0]) in sides
    assert any(11.0 in left + right for left, right in sides)
    assert any(-10.0 in left + right for left, right in sides)
    assert any(len(set(left)) == 1 and len(left) > 5 for left, _ in sides)
    assert {len(left) for left, _ in sides} >= {0, 1, 2, 3, 4, 7, 8, 9, 10, 15, 16, 31, 32}
    inside = Proposals().propose(Domain(bounds=(0, 1), sizes=(0, 50), beyond=False), ("both",))
    assert all(0 <= x <= 1 for p in inside for x in p.left + p.right)


def test_places_are_the_ends_the_middle_and_powers_of_two():
    assert sorted(at for _, at in places(12)) == [0, 6, 7, 8, 11]
    assert [at for _, at in places(1)] == [0]


def test_groups_change_so_many_records():
    for pair in proposed("numbers", 3):
        assert pair.records == 3
        short, long = sorted((len(pair.left), len(pair.right)))
        assert long - short in (0, 3)
    for pair in proposed("a bandit", 2):
        assert len(pair.differs) == 2


@pytest.mark.parametrize(
    ("name", "at"), [("numbers", 0), ("numbers", 1), ("vectors", 0), ("a bandit", 1)]
)
def test_refinements_are_neighbours_too(name, at):
    domain, _ = DOMAINS[name]
    pair = proposed(name)[at]
    close = Proposals().refine(domain, pair)
    assert len(close) > 4
    assert {p.relation for p in close} == {pair.relation}


def clipped(data, rng):
    return sum(min(max(x, 0.0), 1.0) for x in data) + rng.laplace()


def trusting(data, rng):
    return sum(data) + rng.laplace()


def bounded_count(data, rng):
    return len(data[:10]) + sum(data) + rng.laplace(scale=2.0)


def dropped_row(data, rng):
    kept = data[len(data) % 2 :]
    return [a + b + rng.laplace() for a, b in zip(kept[::2], kept[1::2], strict=True)]


def fragile(data, rng):
    return 1 / len(data) + rng.laplace()


def tie_breaker(data, rng):
    # scores equal: the first of the data decides without noise
    total = sum(0 < x < 1 for x in data)
    return data[0] if total == 0 and len(set(data)) > 1 else float(rng.laplace())


def overflowing(data, rng):
    return int(np.asarray(data, dtype=np.int8).sum(dtype=np.int8)) + rng.laplace()


def without_outliers(data, rng):
    values = np.asarray(data)
    kept = np.abs(values - values.mean()) <= 2 * values.std() + 1e-12
    return values[kept].clip(0, 1).sum() + rng.laplace()


FOUND = [
    (trusting, "replace-one", 1000, "outlier beyond the bounds"),
    (dropped_row, "add-remove", 4000, "odd and even sizes"),
    (fragile, "add-remove", 1000, "the empty table"),
    (tie_breaker, "replace-one", 2000, "ties"),
]


@pytest.mark.parametrize(("function", "relation", "trials", "why"), FOUND)
def test_faults_on_special_inputs_are_found_without_a_pair(function, relation, trials, why):
    """Refutations of broken functions: power on fixed seeds, no false alarm to state."""
    domain = Domain(bounds=(0, 1), sizes=(0, 20), relation=relation)
    result = audit.examine(function, claim=CLAIM, domain=domain, trials=trials)
    assert result.verdict == "refuted", why
    left, right = (json.loads(getattr(result.choice.played, side)) for side in ("left", "right"))
    pasted = audit.Pair(left, right, relation=relation)
    again = audit.examine(function, claim=CLAIM, pairs=[pasted], trials=trials)
    assert again.verdict == "refuted"


@pytest.mark.parametrize("function", [overflowing, without_outliers])
def test_faults_among_many_or_a_few_high_records_are_found(function):
    """Power on fixed seeds, no false alarm to state."""
    domain = Domain(bounds=(0, 1), sizes=(4, 200), beyond=False)
    result = audit.examine(function, claim=CLAIM, domain=domain, trials=2000)
    assert result.verdict == "refuted"


@pytest.mark.parametrize("output", [lambda: 1.0, lambda: "ok", lambda: None])
def test_pairs_that_look_alike_can_be_played(output):
    """Nothing is exceptional about a mechanism whose output is always the same."""
    domain = Domain(bounds=(0, 1), sizes=(0, 20), relation="both")
    result = audit.examine(lambda data, rng: output(), claim=CLAIM, domain=domain, trials=600)
    assert result.verdict in ("blind", "unrefuted")


def test_a_function_that_keeps_its_claim_is_not_refuted_by_searching():
    """False alarm 1e-3 each. The search costs no more than half of the scouting budget."""
    for relation in ("replace-one", "add-remove"):
        domain = Domain(bounds=(0, 1), sizes=(0, 20), relation=relation)
        result = audit.examine(clipped, claim=CLAIM, domain=domain, trials=4000)
        assert result.verdict == "unrefuted"
        assert result.epsilon_lower > 0.6  # the pair found is a worst one; power on a fixed seed
        assert sum(tried.trials for tried in result.searched) <= 0.55 * 1000


def test_values_beyond_the_bounds_can_be_ruled_out():
    """False alarm 1e-3."""
    domain = Domain(bounds=(0, 1), sizes=(1, 20), beyond=False)
    assert audit.examine(trusting, claim=CLAIM, domain=domain, trials=2000).verdict != "refuted"


def test_the_claim_decides_about_the_relation():
    claim = audit.PureDp(epsilon=1.0, relation="add-remove")
    result = audit.examine(clipped, claim=claim, domain=UNIT, trials=400)
    assert result.choice.played.relation == "add-remove"
    assert UNIT.relations("declared") == ("replace-one",)
    both = Domain(bounds=(0, 1), sizes=(0, 3), relation="both")
    assert both.relations("declared") == ("replace-one", "add-remove")
    assert both.relations("add-remove") == ("add-remove",)


@pytest.mark.slow
def test_a_search_is_reproducible_whatever_the_jobs():
    results = [
        audit.examine(bounded_count, claim=CLAIM, domain=UNIT, trials=600, jobs=jobs)
        for jobs in (1, 2)
    ]
    assert results[0] == results[1]


class Counting:
    """A mechanism with a domain of its own and no pair."""

    claim = CLAIM
    domain = Domain(bounds=(0, 5), distance=1)

    def pairs(self):
        return ()

    def run(self, data, n, rng):
        return data + rng.laplace(scale=0.5, size=n)


def test_a_mechanism_may_declare_its_domain():
    result = audit.examine(Counting(), trials=600)
    assert result.verdict == "refuted"


class Imitator:
    """Plays the arm of the best outcome so far; noise of the first round only.

    Its state is exact, so what it does is a function of the data.
    """

    def start(self, n, rng):
        self.n, self.rng, self.total = n, rng, np.zeros((n, 3))
        self.last = None

    def act(self, context):
        self.last = np.argmin(self.total + self.rng.laplace(scale=0.1, size=(self.n, 3)), axis=1)
        return self.last

    def observe(self, outcome):
        self.total[np.arange(self.n), self.last] += outcome


def test_streams_against_a_policy():
    result = audit.examine(audit.Played(Imitator), claim=CLAIM, domain=BANDIT, trials=1500)
    assert result.verdict == "refuted"
    assert any("answers" in tried.label for tried in result.searched)


SEEN: list[list[float]] = []


class Scripted:
    """Plays arms 0, 0, 1 and keeps what it observes."""

    def start(self, n, rng):
        self.n, self.round = n, 0
        SEEN.clear()

    def act(self, context):
        self.round += 1
        return np.full(self.n, (0, 0, 1)[self.round - 1])

    def observe(self, outcome):
        SEEN.append(outcome.tolist())


@pytest.mark.parametrize(
    ("rule", "answers"),
    [
        ({"last": 1.0, "others": 0.25}, [1.0, 0.25]),
        ({"below": 0.5, "then": 1.0, "else": 0.0}, [1.0, 0.0]),
        (lambda actions: np.full(len(actions[-1]), float(len(actions))), [2.0, 3.0]),
    ],
)
def test_missing_outcomes_are_answered_by_the_rule(rule, answers):
    data = {"outcomes": [[0.5, 0.5], [None] * 2, [None] * 2], "responses": rule}
    audit.Played(Scripted).run(data, 2, np.random.default_rng(0))
    assert [[0.5] * 2, [answers[0]] * 2, [answers[1]] * 2] == SEEN


def test_an_unknown_rule_is_refused():
    data = {"outcomes": [None, 1.0, 1.0], "responses": {"first": 1}}
    with pytest.raises(audit.UsageError, match="last, others or below"):
        audit.Played(Scripted).run(data, 2, np.random.default_rng(0))


def test_evidence_is_the_area_beyond_one_half():
    rng = np.random.default_rng(0)
    apart = evidence(collect(rng.normal(size=400) + 9, 400), collect(rng.normal(size=400), 400))
    error = math.sqrt((1 / 400 + 1 / 400) / 12)
    assert apart == pytest.approx(0.5 - error)
    alike = evidence(collect(rng.normal(size=400), 400), collect(rng.normal(size=400), 400))
    assert alike < 4.5 * error  # false alarm 1e-7 over three features
    forms = evidence(collect(["a"] * 8, 8), collect([1] * 8, 8))
    assert forms == pytest.approx(0.5 - math.sqrt(2 / 8 / 12))


def test_a_strategy_of_pairs_or_of_nothing_usable():
    pairs = st.floats(0, 1).map(lambda x: audit.Pair(x, x + 1, "shifted"))
    found = Proposals().propose(Domain(strategy=pairs), ("replace-one",))
    assert found
    assert all(p.right - p.left == pytest.approx(1) for p in found)
    with pytest.raises(audit.UsageError, match="strategy of lists"):
        Proposals().propose(Domain(strategy=st.integers()), ("replace-one",))


def test_vectors_of_answers_move_by_the_distance_and_stay_in_bounds():
    domain = Domain(bounds=(-1, 4), dimension=5, distance=1)
    pairs = Proposals().propose(domain, ("replace-one",))
    assert len(pairs) > 20
    for pair in pairs:
        left, right = np.array(pair.left), np.array(pair.right)
        assert left.shape == right.shape == (5,)
        assert np.abs(left - right).max() == 1
        assert min(left.min(), right.min()) >= -1
        assert max(left.max(), right.max()) <= 4
    assert any(p.left == [0, 3, 3, 3, 3] and p.right == [-1, 4, 4, 4, 4] for p in pairs)


@pytest.mark.parametrize("limit", [1, 2, 7, 1490, 1999])
def test_the_size_at_which_data_begin_to_raise_is_found(limit):
    domain, asked = Domain(bounds=(0, 1), sizes=(0, 2000)), []

    def raises(data):
        asked.append(len(data))
        return len(data) > limit and data[0] == 1

    (pair,) = Proposals().jumps(domain, ("add-remove",), raises)
    assert (len(pair.left), len(pair.right)) == (limit, limit + 1)
    assert set(pair.right) == {1.0}
    assert len(asked) <= 16


def test_data_that_never_or_always_raise_have_no_jump():
    domain = Domain(bounds=(0, 1), sizes=(0, 2000))
    assert Proposals().jumps(domain, ("add-remove",), lambda data: True) == ()
    assert Proposals().jumps(domain, ("replace-one",), lambda data: len(data) > 3) == ()
