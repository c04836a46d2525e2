"""What trials end in: all that an exception tells, all that an iterator gives."""

import asyncio
import itertools

import numpy as np
import pytest

import audit
from audit.errors import MechanismError, UsageError
from audit.mechanism import FunctionMechanism, play
from audit.outcome import MOST_ITEMS, drained, raised

CLAIM = audit.PureDp(epsilon=1.0)


def views_of(function, data, n=4):
    return play(FunctionMechanism(function), data, n, np.random.default_rng(0))


def caused(name, explicit):
    try:
        try:
            {}[name]
        except KeyError as error:
            if explicit:
                raise ValueError("unknown customer") from error
            raise ValueError("unknown customer")  # noqa: B904
    except ValueError as error:
        error.add_note("row 7")
        return error


@pytest.mark.parametrize("explicit", [True, False])
def test_an_exception_tells_what_led_to_it(explicit):
    found = raised(caused("alice", explicit))
    assert found.kind == "ValueError"
    assert found.message == "unknown customer\nrow 7\nKeyError: 'alice'"


def test_what_is_hidden_or_has_no_text_is_not_told():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    error = caused("alice", explicit=False)
    error.__suppress_context__ = True
    assert raised(error).message == "unknown customer\nrow 7"
    assert raised(MuteError()) == raised(MuteError())
    error.__cause__ = error
    assert raised(error).kind == "ValueError"


def test_the_exception_of_a_call_is_none_of_its_trials():
    """Trials are played again one by one; they must not show what the whole call raised."""

    class Fragile:
        claim = CLAIM

        def pairs(self):
            return ()

        def run(self, data, n, rng):
            raise ValueError(f"{n} trials")

    views = play(Fragile(), 0.0, 3, np.random.default_rng(0))
    assert views["value.message.number[0]"].tolist() == [1, 1, 1]
    assert "value.message.number[1]" not in views.columns


def test_an_iterator_is_what_it_gives():
    def steps(data, rng):
        for x in data:
            if x < 0:
                raise ValueError(f"negative {x}")
            yield x

    views = views_of(steps, [1.0, 2.0])
    assert views["value[1]"].tolist() == [2.0] * 4
    assert views.form[0] == "generator[2 x float]"
    broken = views_of(steps, [1.0, -2.0])
    assert broken.form[0] == "generator[float,raised ValueError]"
    assert broken["value[1].message.number[0]"].tolist() == [-2.0] * 4
    assert len(drained(itertools.count()).items) == MOST_ITEMS + 1
    lazy = views_of(lambda data, rng: {"all": map(abs, data)}, [-1.0])
    assert lazy["value['all'][0]"].tolist() == [1.0] * 4


def test_a_leak_in_a_generator_is_found():
    """Power on a fixed seed, no false alarm to state."""

    def prices(data, rng):
        for x in data:
            yield x + rng.laplace(scale=0.2)

    result = audit.examine(prices, claim=CLAIM, pairs=[audit.Pair([0.0], [1.0])], trials=1000)
    assert result.verdict == "refuted"


@pytest.mark.parametrize("kind", [asyncio.CancelledError, GeneratorExit, SystemExit])
def test_what_is_no_exception_in_name_is_an_outcome_too(kind):
    def leaves(data, rng):
        raise kind

    assert views_of(leaves, 0.0).form[0] == f"raised {kind.__name__}"


def test_async_functions_are_refused():
    async def later(data, rng):
        return data

    async def in_turn(data, rng):
        yield data

    for function in (later, in_turn):
        with pytest.raises(UsageError, match=r"asyncio\.run"):
            audit.examine(function, claim=CLAIM, pairs=[audit.Pair(0.0, 1.0)])


def test_a_batch_played_singly_says_what_is_wrong_with_its_output():
    class Scalar:
        claim = CLAIM

        def pairs(self):
            return ()

        def run(self, data, n, rng):
            if n > 1:
                raise ValueError
            return 1.0

    with pytest.raises(MechanismError, match="returned float"):
        play(Scalar(), 0.0, 3, np.random.default_rng(0))


def test_a_text_that_is_no_unicode_ends_in_a_record():
    def refuses(data, rng):
        raise ValueError("\ud800")

    result = audit.examine(refuses, claim=CLAIM, pairs=[audit.Pair(0.0, 1.0)], trials=200)
    assert result.verdict == "error"
    assert r"\ud800" in result.findings[0].message
    result.findings[0].message.encode()


def test_numbers_near_the_largest_double_disturb_no_attack():
    """Warnings are errors here. Power on a fixed seed, no false alarm to state."""

    def huge(data, n, rng):
        noisy = 1e308 * np.clip(data + rng.laplace(scale=0.1, size=n), -1.7, 1.7)
        return np.stack([rng.choice([-1.7e308, 1.7e308], size=n), noisy], axis=1)

    pairs = [audit.Pair(0.0, 1.0)]
    result = audit.examine(huge, claim=CLAIM, pairs=pairs, batched=True, trials=1000)
    assert result.verdict == "refuted"
